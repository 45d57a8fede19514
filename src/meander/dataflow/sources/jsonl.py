"""`.jsonl`: one JSON object per line, with `src`, `label`, `trg`, `ts` and perhaps `op` among its fields."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from meander.dataflow.edges import VERDICTS, Reason, as_text
from meander.dataflow.sources.text import Block, Parser, TextFormat, TextReader, first_line
from meander.dataflow.tabular import REQUIRED_FIELDS, judge_row
from meander.kernels.jit import Array
from meander.kernels.parsing import FINE, LABEL, LINE, SRC, TRG, UNDECIDED, Rows
from meander.kernels.parsing_json import split_jsonl

CODES = {reason: verdict for verdict, reason in VERDICTS.items()}


class JsonlFormat(TextFormat):
    row_hint = (
        'a line of a .jsonl file is an object such as {"src": "a", "label": "knows", "trg": "b", "ts": 1}'
    )

    def parser(self, reader: TextReader, head: bytes) -> tuple[Parser, bytes]:
        return parse_jsonl, head

    def column_names(self, path: Path) -> list[str]:
        try:
            fields = json.loads(first_line(path))
        except (ValueError, RecursionError):
            return []
        return list(fields) if isinstance(fields, dict) else []


def parse_jsonl(block: Block, at: int, rows: Rows) -> tuple[int, int]:
    at, count, block.tail = split_jsonl(
        block.data, at, block.size, block.final, block.beyond_ascii, block.tail, rows
    )
    for row in np.flatnonzero(rows.verdict[:count] == UNDECIDED):
        block.tail = _judge_object(block.data, block.tail, rows, int(row))
    return at, count


def _judge_object(buffer: Array, tail: int, rows: Rows, row: int) -> int:
    """Judge a line of JSON that the kernel left undecided; its names go to the tail."""
    raw = buffer[rows.start[LINE, row] : rows.end[LINE, row]].tobytes()
    reason: str | None
    try:
        fields = json.loads(raw.decode())
        edge = [fields.get(name) for name in REQUIRED_FIELDS]
        if "op" in fields:
            edge.append(fields["op"])
        reason = judge_row(edge)
    except UnicodeDecodeError:
        reason = Reason.NOT_UTF8
    except (ValueError, AttributeError, RecursionError):
        reason = Reason.UNPARSABLE
    if reason is not None:
        rows.verdict[row] = CODES[reason]
        return tail
    src, label, trg, ts, *op = edge
    for span_row, value in ((SRC, src), (LABEL, label), (TRG, trg)):
        name = as_text([value])
        rows.start[span_row, row] = tail
        buffer[tail : tail + name.data.size] = name.data
        tail += name.data.size
        rows.end[span_row, row] = tail
        rows.kind[span_row, row] = name.kind[0]
    rows.ts[row] = ts
    rows.op[row] = -1 if op == ["-"] else 1
    rows.verdict[row] = FINE
    return tail
