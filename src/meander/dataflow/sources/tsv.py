"""`.tsv`: `src TAB label TAB trg TAB ts [TAB op]`, without a header and without quoting."""

from __future__ import annotations

from pathlib import Path

from meander.dataflow.sources.text import Block, Parser, TextFormat, TextReader
from meander.kernels.parsing import Rows, judge_rows, split_tsv


class TsvFormat(TextFormat):
    row_hint = "a line of a .tsv file is src, label, trg, ts and perhaps op, with a tab between"

    def parser(self, reader: TextReader, head: bytes) -> tuple[Parser, bytes]:
        return parse_tsv, head

    def column_names(self, path: Path) -> list[str]:
        return []


def parse_tsv(block: Block, at: int, rows: Rows) -> tuple[int, int]:
    at, count = split_tsv(block.data, at, block.size, block.final, rows)
    judge_rows(block.data, count, block.beyond_ascii, rows)
    return at, count
