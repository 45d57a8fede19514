"""The parsing kernels against naive twins: text, integers and lines mean what Python says they mean."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from meander.dataflow.layout import StreamLayout
from meander.dataflow.sources.jsonl import object_shape
from meander.kernels.parsing import (
    ABSENT,
    BAD_TIME,
    FINE,
    LABEL,
    LINE,
    MAX_TIME,
    MISSING,
    NEGATIVE,
    NEWLINE,
    NO_FIELD,
    OP,
    OUT_OF_RANGE,
    SRC,
    TIME,
    TRG,
    UNDECIDED,
    UNPARSABLE,
    Rows,
    is_utf8,
    judge_rows,
    make_rows,
    parse_time,
    split_csv,
    split_tsv,
)
from meander.kernels.parsing_json import split_jsonl

SHAPE = object_shape(StreamLayout())


def block(raw: bytes) -> np.ndarray:
    """The text, the newline that must follow it, and a tail."""
    return np.frombuffer(raw + bytes([NEWLINE]) + bytes(len(raw) + 64), np.uint8).copy()


@settings(deadline=None, max_examples=300)
@given(
    st.one_of(
        st.binary(max_size=8), st.text(max_size=4).map(lambda text: text.encode(errors="surrogatepass"))
    )
)
@example(b"\xed\xa0\x80")
@example(b"\xf4\x90\x80\x80")
@example(b"\xc0\x80")
@example(b"\xe2\x82")
def test_utf8_is_what_python_decodes(raw: bytes) -> None:
    try:
        raw.decode()
        wanted = True
    except UnicodeDecodeError:
        wanted = False
    assert is_utf8(np.frombuffer(b"a" + raw + b"\x80", np.uint8), 1, 1 + len(raw)) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0", (0, FINE)),
        ("-0", (0, FINE)),
        ("007", (7, FINE)),
        (str(MAX_TIME), (MAX_TIME, FINE)),
        (str(MAX_TIME + 1), (0, OUT_OF_RANGE)),
        ("9" * 40, (0, OUT_OF_RANGE)),
        ("0" * 40 + "5", (5, FINE)),
        ("-5", (0, NEGATIVE)),
        ("-" + "9" * 40, (0, NEGATIVE)),
        ("", (0, NO_FIELD + TIME)),
        ("-", (0, BAD_TIME)),
        ("+5", (0, BAD_TIME)),
        ("12:30", (0, BAD_TIME)),
        ("1.0", (0, BAD_TIME)),
        ("1e3", (0, BAD_TIME)),
        (" 1", (0, BAD_TIME)),
        ("9" * 40 + "x", (0, BAD_TIME)),
        ("٣", (0, BAD_TIME)),
    ],
)
def test_times(text: str, wanted: tuple[int, int]) -> None:
    raw = text.encode()
    value, verdict = parse_time(np.frombuffer(b"1" + raw + b"1", np.uint8), 1, 1 + len(raw))
    assert (int(value), int(verdict)) == wanted


def fields_of(data: np.ndarray, rows: Rows, row: int, fields: tuple[int, ...]) -> list[bytes]:
    return [data[rows.start[field, row] : rows.end[field, row]].tobytes() for field in fields]


tsv_field = st.text(alphabet="ab\0é,\"'-1", max_size=3)
tsv_line = st.lists(tsv_field, max_size=7).map("\t".join)


@settings(deadline=None, max_examples=200)
@given(st.lists(tsv_line), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.integers(1, 5))
def test_tsv_lines_split_as_python_splits_them(
    lines: list[str], newline: str, ended: bool, room: int
) -> None:
    text = newline.join(lines) + (newline if ended and lines else "")
    raw = text.encode()
    data = block(raw)
    parsed = []
    at, count = 0, 1
    while count:
        rows = make_rows(room)
        at, count = split_tsv(data, at, len(raw), True, rows)
        for row in range(count):
            line = fields_of(data, rows, row, (LINE,))[0].decode()
            fields = line.split("\t")
            wanted = MISSING if len(fields) < 4 else UNPARSABLE if len(fields) > 5 else FINE
            assert rows.verdict[row] == wanted
            if wanted == FINE:
                names = (SRC, LABEL, TRG, TIME, OP)[: len(fields)]
                assert [field.decode() for field in fields_of(data, rows, row, names)] == fields
                assert (rows.start[OP, row] >= 0) == (len(fields) == 5)
            parsed.append(line)
    assert at == len(raw)
    assert parsed == [line for line in lines if line]


def test_a_line_without_its_end_is_left_for_later() -> None:
    raw = b"a\tl\tb\t1\nc\tl\td\t2"
    data = block(raw)
    rows = make_rows(9)
    assert split_tsv(data, 0, len(raw), False, rows) == (8, 1)
    assert split_tsv(data, 8, len(raw), False, rows) == (8, 0)
    assert split_tsv(data, 8, len(raw), True, rows) == (len(raw), 1)


csv_field = st.text(alphabet='ab,"é', max_size=4)


def csv_line(fields: list[tuple[str, bool]]) -> str:
    """As a writer does it: in quotes where asked for or where needed."""
    return ",".join(
        '"' + text.replace('"', '""') + '"' if quoted or "," in text or text.startswith('"') else text
        for text, quoted in fields
    )


@settings(deadline=None, max_examples=200)
@given(st.lists(st.lists(st.tuples(csv_field, st.booleans()), min_size=2, max_size=7)))
def test_csv_lines_split_as_pythons_reader_splits_them(lines: list[list[tuple[str, bool]]]) -> None:
    texts = [csv_line(line) for line in lines]
    raw = "\n".join(texts).encode()
    data = block(raw)
    rows = make_rows(len(lines) + 1)
    span_rows = np.array([TIME, SRC, ABSENT, TRG, LABEL], np.int64)
    at, count, tail = split_csv(data, 0, len(raw), True, len(raw) + 1, span_rows, rows)
    wanted = list(csv.reader(texts))
    assert (at, count) == (len(raw), len(wanted))
    assert tail <= 2 * len(raw) + 1
    for row, fields in enumerate(wanted):
        assert fields_of(data, rows, row, (LINE,))[0].decode() == texts[row]
        verdict = MISSING if len(fields) < 5 else UNPARSABLE if len(fields) > 5 else FINE
        assert rows.verdict[row] == verdict
        if verdict == FINE:
            read = [field.decode() for field in fields_of(data, rows, row, (TIME, SRC, TRG, LABEL))]
            assert read == [fields[0], fields[1], fields[3], fields[4]]


def test_csv_with_stray_quotes_is_unparsable_and_ends_with_its_line() -> None:
    raw = b'"a,l,b,1\n"a"x,l,b,1\na"b,l,c,1\n'
    data = block(raw)
    rows = make_rows(9)
    span_rows = np.array([SRC, LABEL, TRG, TIME], np.int64)
    assert split_csv(data, 0, len(raw), True, len(raw) + 1, span_rows, rows)[1] == 3
    assert rows.verdict[:3].tolist() == [UNPARSABLE, UNPARSABLE, FINE]
    judge_rows(data, 3, False, 0, 0, rows)
    assert fields_of(data, rows, 2, (SRC,)) == [b'a"b']


json_value = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(),
    st.integers(-3, 12),
    st.integers(-(2**64), 2**64),
    st.text(alphabet='ab"\\é\n\x7f', max_size=4),
    st.sampled_from(["+", "-"]),
    st.lists(st.integers(), max_size=2),
)
json_key = st.sampled_from(["src", "label", "trg", "ts", "op", "extra", "srd", ""])


@settings(deadline=None, max_examples=500)
@given(
    st.lists(st.tuples(json_key, json_value), max_size=6),
    st.sampled_from(["{%s}", " {%s} ", "{%s", "[%s]", "{%s}}", "{%s,}", "{}%s"]),
    st.booleans(),
)
@example([("src", "a"), ("label", "l"), ("trg", 5), ("ts", 7)], "{%s}", False)
@example([("src", -5), ("label", "l"), ("trg", "é"), ("ts", 7), ("op", "-"), ("extra", 5)], "{%s}", True)
def test_what_the_json_kernel_accepts_is_what_a_parser_reads(
    fields: list[tuple[str, object]], shape: str, spaced: bool
) -> None:
    body = (", " if spaced else ",").join(
        json.dumps(key) + (" : " if spaced else ":") + json.dumps(value, ensure_ascii=False)
        for key, value in fields
    )
    raw = (shape % body).encode()
    data = block(raw)
    rows = make_rows(2)
    at, count, _ = split_jsonl(data, 0, len(raw), True, True, len(raw) + 1, SHAPE, rows)
    assert at == len(raw)
    assert count == 1
    if rows.verdict[0] == UNDECIDED:
        return
    record = json.loads(raw)
    assert len({key for key, _ in fields if key != "extra"}) >= 4
    for field, name in enumerate(("src", "label", "trg")):
        (span,) = fields_of(data, rows, 0, (field,))
        value = int.from_bytes(span, "little", signed=True) if rows.kind[field, 0] else span.decode()
        assert type(value) is type(record[name])
        assert value == record[name] != ""
    assert isinstance(record["label"], str)
    assert rows.ts[0] == record["ts"]
    assert 0 <= record["ts"] <= MAX_TIME
    assert rows.op[0] == {"+": 1, "-": -1}[record.get("op", "+")]


def test_the_json_kernel_accepts_what_programs_write() -> None:
    """The fast path is taken where it should be: otherwise it would be right, and useless."""
    records = [
        {"src": "a", "label": "l", "trg": "b", "ts": 5},
        {"ts": 5, "op": "-", "trg": 2**63 - 1, "label": "é", "src": -7},
        {"src": "a", "label": "l", "trg": "b", "ts": MAX_TIME, "weight": 3, "note": "x"},
    ]
    raw = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
    rows = make_rows(9)
    assert split_jsonl(block(raw), 0, len(raw), True, True, len(raw) + 1, SHAPE, rows)[1] == 3
    assert rows.verdict[:3].tolist() == [FINE] * 3
