"""Files of text whose first line names the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meander.dataflow.layout import StreamLayout
from meander.kernels.jit import Array
from meander.kernels.parsing import ABSENT, LABEL, OP, SRC, TIME, TRG, VALUES, Rows

SPAN_ROWS = {"src": SRC, "label": LABEL, "trg": TRG, "ts": TIME, "op": OP}
"""For each field of an edge its row of `Rows.start` and `Rows.end`."""


@dataclass(frozen=True)
class ColumnRows:
    """The columns of a file, and the rows of `Rows.start` and `Rows.end` that they fill.

    A column that several fields or properties read fills the first one's row; `copies` has the others, each with that
    row. `absent` are the rows that no column fills.
    """

    span_rows: Array
    copies: tuple[tuple[int, int], ...]
    absent: tuple[int, ...]

    def begin(self, rows: Rows) -> None:
        """Before the columns are read."""
        for span_row in self.absent:
            rows.start[span_row] = ABSENT
            rows.end[span_row] = ABSENT

    def finish(self, rows: Rows) -> None:
        """After the columns have been read."""
        for span_row, source in self.copies:
            rows.start[span_row] = rows.start[source]
            rows.end[span_row] = rows.end[source]


def optional_bits(layout: StreamLayout) -> int:
    """A bit for each field that a row may lack, for `judge_rows`."""
    optional = {TRG: layout.schema.vertices, TIME: layout.schema.table, LABEL: layout.label is not None}
    return sum(1 << field for field, is_optional in optional.items() if is_optional)


def span_row(layout: StreamLayout, name: str) -> int:
    """The row of a field or property."""
    return SPAN_ROWS[name] if name in SPAN_ROWS else VALUES + list(layout.types).index(name)


def column_rows(layout: StreamLayout, names: Sequence[str]) -> ColumnRows:
    """The rows that columns with these names fill."""
    span_rows = np.full(len(names), ABSENT, np.int64)
    copies = []
    absent = [] if layout.label is None else [LABEL]
    for name, column in layout.columns_read.items():
        target = span_row(layout, name)
        if column not in names:
            absent.append(target)
        elif span_rows[names.index(column)] == ABSENT:
            span_rows[names.index(column)] = target
        else:
            copies.append((target, int(span_rows[names.index(column)])))
    return ColumnRows(span_rows, tuple(copies), tuple(absent))
