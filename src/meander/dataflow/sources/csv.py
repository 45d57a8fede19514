"""`.csv`: comma-separated values with a header; columns in any order, and others beside those of an edge."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Sequence
from pathlib import Path

from meander.dataflow.edges import shown
from meander.dataflow.layout import StreamLayout
from meander.dataflow.sources.header import column_rows, optional_bits
from meander.dataflow.sources.text import Block, Parser, TextFormat, TextReader, first_line
from meander.errors import InputError
from meander.kernels.parsing import Rows, judge_rows, split_csv

SEPARATORS = {
    ";": "a .csv file has commas between its fields: save it with commas, numbers with a decimal point",
    "\t": "a .csv file has commas between its fields: give a file with tabs a name that ends in .tsv",
    "|": "a .csv file has commas between its fields: save it with commas",
}
"""What to do about a file with another separator."""

OPEN_QUOTE_HINT = (
    "a field in quotes ends on its own line: where fields have line breaks, save the file as .parquet or .jsonl, or "
    "without them"
)

HEADER_HINT = "the first line of a .csv file names src, label, trg, ts and perhaps op, in any order"


class CsvFormat(TextFormat):
    row_hint = "a line of a .csv file has a field for each column of the header, with a comma between"

    def hint_for_row(self, text: str) -> str:
        return OPEN_QUOTE_HINT if text.count('"') % 2 else self.row_hint

    def parser(self, reader: TextReader, head: bytes) -> tuple[Parser, bytes]:
        header, rest = reader.read_line(head)
        return csv_parser(reader.path, header, reader.layout), rest

    def has_header(self, path: Path, layout: StreamLayout) -> bool:
        return True

    def column_names(self, path: Path, layout: StreamLayout) -> list[str]:
        return header_names(first_line(path))


def header_names(header: str) -> list[str]:
    return [name.strip() for name in next(csv.reader([header]), [])]


def check_encoding(header: bytes, path: Path) -> None:
    """Refuse a file in UTF-16, as spreadsheets save it."""
    if header.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{path} is in UTF-16", hint="save it as UTF-8")


def check_separator(names: Sequence[str], path: Path, layout: StreamLayout) -> None:
    """Refuse a header without commas that lacks a column, and has another separator."""
    missing = [column for column in map(layout.column, layout.required) if column not in names]
    if len(names) > 1 or not missing:
        return
    for separator, advice in SEPARATORS.items():
        if separator in names[0]:
            shown_separator = "a tab" if separator == "\t" else separator
            raise InputError(
                f"the header of {path} has no column {missing[0]}: its separator seems to be {shown_separator}",
                hint=advice,
            )


def csv_parser(path: Path, header: bytes, layout: StreamLayout) -> Parser:
    """The parser for a file with this header."""
    check_encoding(header, path)
    names = header_names(shown(header).rstrip("\r"))
    if names:
        check_separator(names, path, layout)
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
