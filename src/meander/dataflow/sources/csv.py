"""`.csv`: comma-separated values with a header; columns in any order, and others beside those of an edge."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from meander.dataflow.edges import shown
from meander.dataflow.sources.text import Block, Parser, TextFormat, TextReader, first_line
from meander.dataflow.tabular import EDGE_FIELDS, REQUIRED_FIELDS
from meander.errors import InputError
from meander.kernels.parsing import ABSENT, LABEL, OP, SRC, TIME, TRG, Rows, judge_rows, split_csv

SPAN_ROWS = {"src": SRC, "label": LABEL, "trg": TRG, "ts": TIME, "op": OP}
"""For each field of an edge its row of `Rows.start` and `Rows.end`."""


class CsvFormat(TextFormat):
    row_hint = "a line of a .csv file has a field for each column of the header, with a comma between"

    def parser(self, reader: TextReader, head: bytes) -> tuple[Parser, bytes]:
        header, rest = reader.read_line(head)
        return csv_parser(reader.path, header), rest

    def column_names(self, path: Path) -> list[str]:
        return header_names(first_line(path))


def header_names(header: str) -> list[str]:
    return [name.strip() for name in next(csv.reader([header]), [])]


def csv_parser(path: Path, header: bytes) -> Parser:
    """The parser for a file with this header."""
    names = header_names(shown(header).rstrip("\r"))
    missing = [name for name in REQUIRED_FIELDS if name not in names]
    if missing and names:
        raise InputError(
            f"the header of {path} has no column {missing[0]}: it has {', '.join(names)}",
            hint="the first line of a .csv file is src,label,trg,ts or src,label,trg,ts,op, in any order",
        )
    doubled = [name for name in EDGE_FIELDS if names.count(name) > 1]
    if doubled:
        raise InputError(f"the header of {path} has more than one column {doubled[0]}")
    span_rows = np.array([SPAN_ROWS.get(name, ABSENT) for name in names], np.int64)

    def parse(block: Block, at: int, rows: Rows) -> tuple[int, int]:
        at, count, block.tail = split_csv(
            block.data, at, block.size, block.final, block.tail, span_rows, rows
        )
        judge_rows(block.data, count, block.beyond_ascii, rows)
        return at, count

    return parse
