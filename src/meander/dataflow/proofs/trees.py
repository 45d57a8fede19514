"""The proofs of a batch of answer records, as arrays."""

from __future__ import annotations

from typing import NamedTuple

from meander.dataflow.state import Array


class ProofTrees(NamedTuple):
    """The proofs of n records: trees that share equal subtrees, each node before its children.

    A node is a tuple that holds as long as the records above it. Its `kind` is a position in the nodes of the
    result's `ProofPlan`. Its columns are `columns[column[i] : column[i + 1]]`: its vertices, then its values, as
    numbers of `Vertices`. Its children are `child[begin[i] : begin[i + 1]]`: for a path its steps in order, for a
    head the atoms of the rule that derives it, in the order of the text.
    """

    root: Array  # by record: its node, or -1 for a retraction
    kind: Array  # by node
    rule: Array  # by node: the position of the rule that derives it in the `HeadNode`; 0 for others
    row: Array  # by node: its row in the graph, or -1 for the answer itself
    column: Array  # by node, with one more for the end
    columns: Array
    begin: Array  # by node, with one more for the end
    child: Array
    since: Array  # by node: for a leaf the beginning of its own validity if the graph has it, for others 0
    until: Array  # by node: its end, in the same way
