"""The operators that a dataflow can run: one class per physical node, and one per PATH algorithm.

To add a PATH algorithm, write a class here and name it in `physical.path_operators`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from meander.dataflow.operator import Context, Operator
from meander.dataflow.operators.filter import Filter
from meander.dataflow.operators.pattern import Pattern
from meander.dataflow.operators.receive import Receive
from meander.dataflow.operators.scan import open_scan
from meander.dataflow.operators.union import Union
from meander.physical.path_operators import ORDERED_PATH_OPERATORS, PATH_OPERATORS
from meander.physical.plan import FilterOp, PathOp, PatternOp, ReceiveOp, ScanOp, UnionOp


def open_path(node: PathOp, context: Context) -> Operator:
    """The operator of the algorithm that the node names; only its module is imported."""
    module, _, name = (PATH_OPERATORS | ORDERED_PATH_OPERATORS)[node.operator].implementation.partition(":")
    operator: Operator = getattr(import_module(module), name)(node, context)
    return operator


OPERATORS: dict[type, Callable[[Any, Context], Operator]] = {
    ScanOp: open_scan,
    ReceiveOp: Receive,
    FilterOp: Filter,
    UnionOp: Union,
    PatternOp: Pattern,
    PathOp: open_path,
}
