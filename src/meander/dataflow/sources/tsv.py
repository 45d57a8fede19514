"""`.tsv`: fields with tabs between them and without quoting.

A first line that names the columns src, label, trg and ts (or those that they are read from) is a header; columns are
then in any order, and there may be others. Without a header a line is `src TAB label TAB trg TAB ts [TAB op]`, in a
stream whose rows all have one label `src TAB trg TAB ts [TAB op]`.
"""

from __future__ import annotations

from pathlib import Path

from meander.dataflow.edges import shown
from meander.dataflow.layout import StreamLayout
from meander.dataflow.sources.header import ColumnRows, column_rows, optional_bits
from meander.dataflow.sources.text import Block, Parser, TextFormat, TextReader, first_line
from meander.errors import InputError
from meander.kernels.parsing import Rows, judge_rows, split_columns, split_tsv


class TsvFormat(TextFormat):
    row_hint = "a line of a .tsv file is src, label, trg, ts and perhaps op, with a tab between"

    def parser(self, reader: TextReader, head: bytes) -> tuple[Parser, bytes]:
        line, head = reader.peek_line(head)
        layout = reader.layout
        names = header_names(shown(line), layout)
        if names:
            layout.check_columns(names, f"the header of {reader.path}")
            _, rest = reader.read_line(head)
            return columns_parser(layout, column_rows(layout, names), len(names)), rest
        if line:
            check_without_header(reader.path, layout)
        if layout.is_plain:
            return plain_parser(layout), head
        last = max(layout.fields.index(name) for name in layout.required)
        return columns_parser(layout, column_rows(layout, layout.fields), last + 1), head

    def has_header(self, path: Path, layout: StreamLayout) -> bool:
        return bool(self.column_names(path, layout))

    def column_names(self, path: Path, layout: StreamLayout) -> list[str]:
        return header_names(first_line(path), layout)


def header_names(line: str, layout: StreamLayout) -> list[str]:
    """The columns that the first line of a file names; none if it is a row."""
    names = [name.strip() for name in line.rstrip("\r").split("\t")]
    return names if all(layout.column(name) in names for name in layout.required) else []


def check_without_header(path: Path, layout: StreamLayout) -> None:
    """Refuse a file without header if columns are read by name."""
    wanted = [*layout.named_properties, *(name for name in layout.columns if name in layout.fields)]
    if wanted:
        columns = [*map(layout.column, layout.required), *map(layout.column, layout.named_properties)]
        raise InputError(
            f"{path} has no header: its first line does not name the columns of the stream {layout.stream}, and "
            f"{layout.column(wanted[0])} is read by its name",
            hint=f"begin the file with a line of names, with tabs between: {' '.join(dict.fromkeys(columns))}",
        )


def columns_parser(layout: StreamLayout, columns: ColumnRows, least: int) -> Parser:
    """The parser for rows of these columns, of which each has `least` or more."""
    optional = optional_bits(layout)

    def parse(block: Block, at: int, rows: Rows) -> tuple[int, int]:
        columns.begin(rows)
        at, count = split_columns(block.data, at, block.size, block.final, least, columns.span_rows, rows)
        columns.finish(rows)
        judge_rows(block.data, count, block.beyond_ascii, optional, layout.digits, rows)
        return at, count

    return parse


def plain_parser(layout: StreamLayout) -> Parser:
    """The parser for rows of the fields of an edge in their order."""

    def parse(block: Block, at: int, rows: Rows) -> tuple[int, int]:
        at, count = split_tsv(block.data, at, block.size, block.final, rows)
        judge_rows(block.data, count, block.beyond_ascii, 0, layout.digits, rows)
        return at, count

    return parse
