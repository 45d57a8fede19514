"""The tables in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from meander.bench.report.page import sections_of
from meander.bench.report.sections import Table
from meander.bench.results import Results


def print_sections(results: Results, experiments: Sequence[str]) -> None:
    """The tables and findings of these experiments on standard output."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=160)
    for section in sections_of(results, experiments).values():
        console.print(f"\n{section.title}", style="bold")
        for part in section.parts:
            if isinstance(part, Table):
                header, *lines = part.rows
                grid = Grid(title=part.title, title_justify="left", box=box.SIMPLE_HEAD)
                for column, name in enumerate(header):
                    grid.add_column(name, justify="left" if column == 0 else "right")
                for line in lines:
                    grid.add_row(*line)
                console.print(grid)
        for sentence in section.findings + section.limits:
            console.print(sentence, soft_wrap=True, markup=False)
