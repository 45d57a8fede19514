"""`.csv`: comma-separated values with a header; columns in any order, and others beside those of an edge."""

from __future__ import annotations

import csv
from pathlib import Path

from meander.dataflow.edges import shown
from meander.dataflow.layout import StreamLayout
from meander.dataflow.sources.header import column_rows, optional_bits
from meander.dataflow.sources.text import Block, Parser, TextFormat, TextReader, first_line
from meander.kernels.parsing import Rows, judge_rows, split_csv

HEADER_HINT = "the first line of a .csv file names src, label, trg, ts and perhaps op, in any order"


class CsvFormat(TextFormat):
    row_hint = "a line of a .csv file has a field for each column of the header, with a comma between"

    def parser(self, reader: TextReader, head: bytes) -> tuple[Parser, bytes]:
        header, rest = reader.read_line(head)
        return csv_parser(reader.path, header, reader.layout), rest

    def has_header(self, path: Path, layout: StreamLayout) -> bool:
        return True

    def column_names(self, path: Path, layout: StreamLayout) -> list[str]:
        return header_names(first_line(path))


def header_names(header: str) -> list[str]:
    return [name.strip() for name in next(csv.reader([header]), [])]


def csv_parser(path: Path, header: bytes, layout: StreamLayout) -> Parser:
    """The parser for a file with this header."""
    names = header_names(shown(header).rstrip("\r"))
    if names:
        layout.check_columns(names, f"the header of {path}", HEADER_HINT)
    columns = column_rows(layout, names)
    optional = optional_bits(layout)

    def parse(block: Block, at: int, rows: Rows) -> tuple[int, int]:
        columns.begin(rows)
        at, count, block.tail = split_csv(
            block.data, at, block.size, block.final, block.tail, columns.span_rows, rows
        )
        columns.finish(rows)
        judge_rows(block.data, count, block.beyond_ascii, optional, layout.digits, rows)
        return at, count

    return parse
