"""A kernel has at most eight parameters: what belongs together is a table or a NamedTuple of tables."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import meander.kernels

MOST = 8
FOLDER = Path(*meander.kernels.__path__)


def kernels() -> Iterator[tuple[str, int]]:
    """Every kernel with its file, and the number of its parameters."""
    for file in sorted(FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and {"kernel", "inner_kernel"} & {
                decorator.id for decorator in node.decorator_list if isinstance(decorator, ast.Name)
            }:
                yield f"{file.relative_to(FOLDER)}: {node.name}", len(node.args.args)


def test_no_kernel_has_more_than_eight_parameters() -> None:
    counts = dict(kernels())
    assert len(counts) > 100
    assert {name: count for name, count in counts.items() if count > MOST} == {}
