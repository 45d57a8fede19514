"""The writing kernel against json: what is written reads back as the same record, byte for byte where it matters."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from meander.dataflow.answers import NO_EXPIRY, NO_TIME, Answers, Paths, ValueColumn, as_dicts
from meander.dataflow.edges import as_text
from meander.dataflow.sinks import jsonl
from meander.dataflow.sinks.jsonl import jsonl_blocks
from meander.kernels.writing import put_integer, put_string
from meander.syntax.values import ValueType

name = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20)
vertex = st.one_of(name, st.integers(-(2**63), 2**63 - 1))
time = st.one_of(st.integers(0, 2**62), st.integers(0, 9))


@settings(deadline=None)
@given(st.integers(-(2**63), 2**63 - 1))
@example(-(2**63))
@example(2**63 - 1)
@example(0)
def test_integers_are_their_digits(value: int) -> None:
    out = np.zeros(40, np.uint8)
    end = put_integer(out, 3, np.int64(value))
    assert out[3:end].tobytes().decode() == str(value)


@settings(deadline=None, max_examples=200)
@given(st.text(alphabet=st.characters(max_codepoint=0x2FF), max_size=30))
@example("".join(map(chr, range(0x80))))
@example("\ud7ff\ue000\U0010ffff\u2028")
def test_strings_are_escaped_as_json_escapes_them(text: str) -> None:
    raw = text.encode()
    out = np.zeros(6 * len(raw) + 2, np.uint8)
    end = put_string(out, 0, np.frombuffer(raw, np.uint8), 0, len(raw))
    assert out[:end].tobytes().decode() == json.dumps(text, ensure_ascii=False)


def all_lines(answers: Answers) -> bytes:
    return b"".join(bytes(block) for block in jsonl_blocks(answers))


@st.composite
def some_answers(draw: st.DrawFn) -> Answers:
    arity = draw(st.integers(0, 4))
    rows = draw(st.integers(0, 6))
    columns = tuple(as_text(draw(st.lists(vertex, min_size=rows, max_size=rows))) for _ in range(arity))
    ts = np.array(draw(st.lists(time, min_size=rows, max_size=rows)), np.int64)
    exp = np.array(
        draw(st.lists(st.one_of(time, st.just(NO_EXPIRY)), min_size=rows, max_size=rows)), np.int64
    )
    op = np.array(draw(st.lists(st.sampled_from([1, -1]), min_size=rows, max_size=rows)), np.int8)
    path = draw(some_paths(rows)) if draw(st.booleans()) else None
    values = [ValueColumn("P", ValueType.PATH, draw(some_paths(rows)))] if draw(st.booleans()) else []
    if draw(st.booleans()):
        numbers = np.array(draw(st.lists(time, min_size=rows, max_size=rows)), np.int64)
        values.append(ValueColumn("w", ValueType.INT, numbers))
    return Answers(draw(name), columns, ts, exp, op, path, tuple(values))


@st.composite
def some_paths(draw: st.DrawFn, rows: int) -> Paths:
    given_paths = draw(st.lists(st.booleans(), min_size=rows, max_size=rows))
    lengths = [draw(st.integers(0, 3)) if is_path else 0 for is_path in given_paths]
    edges = draw(
        st.lists(
            st.tuples(vertex, name, vertex, time | st.just(NO_TIME)),
            min_size=sum(lengths),
            max_size=sum(lengths),
        )
    )
    return Paths(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        as_text(edge[0] for edge in edges),
        as_text(edge[1] for edge in edges),
        as_text(edge[2] for edge in edges),
        np.array(given_paths, np.bool_),
        np.array([edge[3] for edge in edges], np.int64) if draw(st.booleans()) else None,
    )


@settings(deadline=None, max_examples=300)
@given(some_answers())
def test_lines_read_back_as_the_records(answers: Answers) -> None:
    wanted = list(as_dicts(answers))
    lines = all_lines(answers).decode().split("\n")
    assert lines.pop() == ""
    assert [json.loads(line) for line in lines] == wanted
    for line, record in zip(lines, wanted, strict=True):
        assert line == json.dumps(record, ensure_ascii=False, separators=(",", ":"))


@settings(deadline=None, max_examples=100)
@given(some_answers(), st.integers(1, 400))
def test_an_output_of_any_size_gives_the_same_lines(answers: Answers, room: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "OUTPUT_BYTES", room)
        blocks: list[Any] = [bytes(block) for block in jsonl_blocks(answers)]
    assert b"".join(blocks) == all_lines(answers)
    assert all(block.endswith(b"\n") for block in blocks)
