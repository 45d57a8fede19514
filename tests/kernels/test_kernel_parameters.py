"""A kernel has at most eight parameters: what belongs together is a table or a NamedTuple of tables.

The closure's kernels keep to that. PATTERN's do not yet: `check_atoms`, `complete_row`, `cut_answers`, `match_rows`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import meander.kernels

MOST = 8
FOLDER = Path(*meander.kernels.__path__) / "closure"


def kernels() -> Iterator[tuple[str, int]]:
    """Every kernel with its file, and the number of its parameters."""
    for file in sorted(FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and {"kernel", "inner_kernel"} & {
                decorator.id for decorator in node.decorator_list if isinstance(decorator, ast.Name)
            }:
                yield f"{file.relative_to(FOLDER)}: {node.name}", len(node.args.args)


def test_no_kernel_of_the_closure_has_more_than_eight_parameters() -> None:
    counts = dict(kernels())
    assert len(counts) > 50
    assert {name: count for name, count in counts.items() if count > MOST} == {}
