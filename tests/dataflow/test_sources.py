"""Every way in gives the same edges, and what cannot be used is a reject with its own words, or a clear error."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import threading
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from meander.dataflow.edges import MAX_TIME, Edges, Reason, Reject, edge_line
from meander.dataflow.sources.reader import is_live, open_source
from meander.dataflow.tabular import from_arrow, from_table, from_tuples
from meander.errors import ArgumentError, InputError, MeanderError

Row = tuple[Any, ...]
LONG = 100_000 if numba.config.DISABLE_JIT else 10_000_000


def tuples(edges: Edges) -> list[Row]:
    ops = ["+" if op > 0 else "-" for op in edges.op.tolist()]
    columns = (edges.src.values(), edges.label.values(), edges.trg.values(), edges.ts.tolist(), ops)
    return list(zip(*columns, strict=True))


def read(path: Path, **options: Any) -> tuple[list[Row], list[Reject]]:
    rows: list[Row] = []
    rejects: list[Reject] = []
    for edges, bad in open_source(str(path), stream="s", **options):
        rows += tuples(edges)
        rejects += bad
    return rows, rejects


def read_text(
    folder: Path, name: str, content: str | bytes, **options: Any
) -> tuple[list[Row], list[Reject]]:
    path = folder / name
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return read(path, **options)


# At the start of a file, U+FEFF is a byte order mark and not part of a name.
name = st.text(
    alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\ufeff"),
    min_size=1,
    max_size=6,
)
edge = st.tuples(name, name, name, st.integers(0, MAX_TIME), st.sampled_from(["+", "-"]))
vertex = st.one_of(name, st.integers(-(2**63), 2**63 - 1))
typed_edge = st.tuples(vertex, name, vertex, st.integers(0, MAX_TIME), st.sampled_from(["+", "-"]))
batch_rows = st.sampled_from([1, 2, 7, 65536])
within = settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])


def as_csv(rows: list[Row]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["ts", "note", "op", "trg", "src", "label"])
    writer.writerows([ts, 'x, "y"', op, trg, src, label] for src, label, trg, ts, op in rows)
    return out.getvalue()


def as_jsonl(rows: list[Row], *, ascii_only: bool = False) -> str:
    names = ("src", "label", "trg", "ts", "op")
    return "".join(
        json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=ascii_only) + "\n" for row in rows
    )


@within
@given(st.lists(edge), batch_rows, st.booleans())
def test_text_files_give_back_what_was_written(
    tmp_path: Path, rows: list[Row], batch: int, compressed: bool
) -> None:
    ending = ".gz" if compressed else ""
    tsv = "".join("\t".join(map(str, row)) + "\n" for row in rows)
    assert read_text(tmp_path, "a.tsv" + ending, tsv, batch_rows=batch) == (rows, [])
    assert read_text(tmp_path, "a.csv" + ending, as_csv(rows), batch_rows=batch) == (rows, [])


@within
@given(st.lists(typed_edge), batch_rows, st.booleans())
def test_json_and_tuples_keep_strings_and_integers_apart(
    tmp_path: Path, rows: list[Row], batch: int, ascii_only: bool
) -> None:
    content = as_jsonl(rows, ascii_only=ascii_only)
    assert read_text(tmp_path, "a.jsonl", content, batch_rows=batch) == (rows, [])
    read = [row for edges, _ in from_tuples(rows, batch_rows=batch) for row in tuples(edges)]
    assert read == rows


@within
@given(st.lists(edge), st.sampled_from(["string", "large_string", "dictionary", "string_view"]), batch_rows)
def test_parquet_and_tables_give_back_what_was_written(
    tmp_path: Path, rows: list[Row], kind: str, batch: int
) -> None:
    strings = {
        "string": pa.string(),
        "large_string": pa.large_string(),
        "dictionary": pa.dictionary(pa.int32(), pa.string()),
        "string_view": pa.string_view(),
    }[kind]
    columns = list(zip(*rows, strict=True)) or [(), (), (), (), ()]
    arrays = [pa.array(column, pa.string()).cast(strings) for column in columns[:3]]
    arrays += [pa.array(columns[3], pa.int64()), pa.array(columns[4], pa.string())]
    table = pa.table(arrays, names=["src", "label", "trg", "ts", "op"])
    assert [row for edges, _ in from_table(table, batch_rows=batch) for row in tuples(edges)] == rows
    pq.write_table(table, tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", batch_rows=batch) == (rows, [])


def test_four_and_five_fields_may_be_mixed(tmp_path: Path) -> None:
    rows, rejects = read_text(tmp_path, "a.tsv", "a\tl\tb\t1\na\tl\tb\t2\t-\r\n\n\r\na\tl\tb\t3\t+")
    assert rows == [("a", "l", "b", 1, "+"), ("a", "l", "b", 2, "-"), ("a", "l", "b", 3, "+")]
    assert rejects == []


def test_vertices_of_text_files_are_strings_even_if_they_look_like_numbers(tmp_path: Path) -> None:
    assert read_text(tmp_path, "a.tsv", "1\tl\t2\t3\n")[0] == [("1", "l", "2", 3, "+")]
    assert read_text(tmp_path, "a.csv", "src,label,trg,ts\n1,l,2,3\n")[0] == [("1", "l", "2", 3, "+")]


BAD_TSV = [
    ("a\tl\tb", Reason.MISSING),
    ("\tl\tb\t1", Reason.missing("src")),
    ("a\t\tb\t1", Reason.missing("label")),
    ("a\tl\t\t1", Reason.missing("trg")),
    ("a\tl\tb\t", Reason.missing("ts")),
    ("a\tl\tb\t12:30", Reason.BAD_TIME),
    ("a\tl\tb\t1.5", Reason.BAD_TIME),
    ("a\tl\tb\t-1", Reason.NEGATIVE),
    ("a\tl\tb\t9223372036854775808", Reason.OUT_OF_RANGE),
    ("a\tl\tb\t1\t*", Reason.BAD_OP),
    ("a\tl\tb\t1\t", Reason.BAD_OP),
    ("a\tl\tb\t1\t+\tmore", Reason.UNPARSABLE),
]


def test_bad_rows_are_rejects_with_reason_and_text_and_stop_nothing(tmp_path: Path) -> None:
    good = "x\tl\ty\t7"
    content = "\n".join(line for text, _ in BAD_TSV for line in (text, good))
    rows, rejects = read_text(tmp_path, "a.tsv", content)
    assert rows == [("x", "l", "y", 7, "+")] * len(BAD_TSV)
    assert [reject[:3] for reject in rejects] == [("s", reason, text) for text, reason in BAD_TSV]


def test_invalid_utf8_is_a_reject_that_shows_the_bytes(tmp_path: Path) -> None:
    rows, rejects = read_text(tmp_path, "a.tsv", b"a\xff\tl\tb\t1\n\xc3\xa9\tl\tb\t2\n")
    assert rows == [("é", "l", "b", 2, "+")]
    assert [reject[:3] for reject in rejects] == [("s", Reason.NOT_UTF8, "a\\xff\tl\tb\t1")]
    _, rejects = read_text(tmp_path, "a.jsonl", b'{"src":"\xff","label":"l","trg":"b","ts":1}\n')
    assert [reject.reason for reject in rejects] == [Reason.NOT_UTF8]


def test_a_nul_is_a_character_of_a_name(tmp_path: Path) -> None:
    wanted = [("a\0b", "l", "\0", 1, "+")]
    assert read_text(tmp_path, "a.tsv", "a\0b\tl\t\0\t1\n") == (wanted, [])
    assert read_text(tmp_path, "a.csv", "src,label,trg,ts\na\0b,l,\0,1\n") == (wanted, [])
    assert read_text(tmp_path, "a.jsonl", as_jsonl(wanted, ascii_only=True)) == (wanted, [])


def test_names_far_longer_than_a_block(tmp_path: Path) -> None:
    long = "x" * LONG
    content = f"a\tl\tb\t1\na\t{long}\tb\t2\n{long}\tl\tb\t3\n"
    rows, rejects = read_text(tmp_path, "a.tsv.gz", content, batch_rows=16)
    assert rows == [("a", "l", "b", 1, "+"), ("a", long, "b", 2, "+"), (long, "l", "b", 3, "+")]
    assert rejects == []


def test_csv_rejects_show_the_line_as_it_was(tmp_path: Path) -> None:
    lines = ['"a ""b""",l,c,x', "a,l", "a,l,c,1,+", '"a,l,c,1', '"a ""b""",l,c,5']
    rows, rejects = read_text(tmp_path, "a.csv", "src,label,trg,ts\n" + "\n".join(lines))
    assert rows == [('a "b"', "l", "c", 5, "+")]
    assert [(reject.reason, reject.text, reject.line) for reject in rejects] == [
        (Reason.BAD_TIME, lines[0], 2),
        (Reason.MISSING, lines[1], 3),
        (Reason.UNPARSABLE, lines[2], 4),
        (Reason.UNPARSABLE, lines[3], 5),
    ]


BAD_JSON = [
    ('{"src":"a","label":"l","trg":"b"}', Reason.missing("ts")),
    ('{"src":null,"label":"l","trg":"b","ts":1}', Reason.missing("src")),
    ('{"src":"","label":"l","trg":"b","ts":1}', Reason.missing("src")),
    ('{"src":1.5,"label":"l","trg":"b","ts":1}', Reason.BAD_VERTEX),
    ('{"src":true,"label":"l","trg":"b","ts":1}', Reason.BAD_VERTEX),
    ('{"src":{"x":1},"label":"l","trg":"b","ts":1}', Reason.BAD_VERTEX),
    ('{"src":9223372036854775808,"label":"l","trg":"b","ts":1}', Reason.BAD_VERTEX),
    ('{"src":"a","label":7,"trg":"b","ts":1}', Reason.BAD_LABEL),
    ('{"src":"\\ud800","label":"l","trg":"b","ts":1}', Reason.NOT_UTF8),
    ('{"src":"a","label":"l","trg":"b","ts":"1"}', Reason.BAD_TIME),
    ('{"src":"a","label":"l","trg":"b","ts":1.0}', Reason.BAD_TIME),
    ('{"src":"a","label":"l","trg":"b","ts":-1}', Reason.NEGATIVE),
    ('{"src":"a","label":"l","trg":"b","ts":9223372036854775807}', Reason.OUT_OF_RANGE),
    ('{"src":"a","label":"l","trg":"b","ts":1,"op":"x"}', Reason.BAD_OP),
    ('{"src":"a","label":"l","trg":"b","ts":1,"op":null}', Reason.missing("op")),
    ('{"src":"a","label":"l","trg":"b","ts":1', Reason.UNPARSABLE),
    ('{"src":"a","label":"l","trg":"b","ts":1}{}', Reason.UNPARSABLE),
    ("[1,2]", Reason.UNPARSABLE),
    ("[" * 100_000, Reason.UNPARSABLE),
]


def test_bad_json_lines_are_rejects(tmp_path: Path) -> None:
    good = '{"src":"x","label":"l","trg":7,"ts":7,"nested":{"a":[1]}}'
    content = "\n".join(line for text, _ in BAD_JSON for line in (text, good))
    rows, rejects = read_text(tmp_path, "a.jsonl", content)
    assert rows == [("x", "l", 7, 7, "+")] * len(BAD_JSON)
    assert [reject[:3] for reject in rejects] == [("s", reason, text) for text, reason in BAD_JSON]


def test_bad_tuples_are_rejects_as_json_lines_are() -> None:
    rows: list[Any] = [
        ("a", "l", "b"),
        ("a", "l", None, 1),
        ("a", "l", 1.5, 1),
        ("a", "l", True, 1),
        ("a", "l", 2**63, 1),
        ("a", 5, "b", 1),
        ("a", "l", "b", "1"),
        ("a", "l", "b", True),
        ("a", "l", "b", -1),
        ("a", "l", "b", MAX_TIME + 1),
        ("a", "l", "b", 1, "~"),
        ("a", "l", "b", 1, np.zeros(2)),
        ("a", "l", np.zeros(2), 1),
        ("a", "l", "b", 1, "+", 0),
        "alb1",
        ("a", "l", "\ud800", 1),
    ]
    ((edges, rejects),) = from_tuples([*rows, ("a", "l", np.int64(5), np.int32(1))], stream="s")
    assert tuples(edges) == [("a", "l", 5, 1, "+")]
    assert [reject.text for reject in rejects] == [repr(row) for row in rows]
    assert [reject.reason for reject in rejects] == [
        Reason.missing("ts"),
        Reason.missing("trg"),
        Reason.BAD_VERTEX,
        Reason.BAD_VERTEX,
        Reason.BAD_VERTEX,
        Reason.BAD_LABEL,
        Reason.BAD_TIME,
        Reason.BAD_TIME,
        Reason.NEGATIVE,
        Reason.OUT_OF_RANGE,
        Reason.BAD_OP,
        Reason.BAD_OP,
        Reason.BAD_VERTEX,
        Reason.UNPARSABLE,
        Reason.UNPARSABLE,
        Reason.NOT_UTF8,
    ]


def test_nulls_and_bad_values_of_a_table_are_rejects_shown_as_json() -> None:
    batch = pa.record_batch(
        {
            "src": pa.array([1, None, 2**63, 4, 5, 6, 7], pa.uint64()),
            "label": ["l", "l", "l", "", "l", "l", "l"],
            "trg": pa.array(["a", "b", "c", "d", None, "f", "g"], pa.dictionary(pa.int8(), pa.string())),
            "ts": pa.array([1, 2, 3, 4, 5, -6, 7], pa.int32()),
            "op": ["+", "+", "+", "+", "+", "+", "?"],
        }
    )
    edges, rejects = from_arrow(batch, stream="s")
    assert tuples(edges) == [(1, "l", "a", 1, "+")]
    reasons = [
        Reason.missing("src"),
        Reason.BAD_VERTEX,
        Reason.missing("label"),
        Reason.missing("trg"),
        Reason.NEGATIVE,
        Reason.BAD_OP,
    ]
    assert [reject.reason for reject in rejects] == reasons
    assert json.loads(rejects[0].text) == {"src": None, "label": "l", "trg": "b", "ts": 2, "op": "+"}


def test_a_slice_of_a_table_is_read_from_its_offset() -> None:
    table = pa.table({"src": ["a", "b", "c"], "label": ["l"] * 3, "trg": [1, 2, 3], "ts": [1, 2, 3]})
    edges, _ = from_arrow(table.slice(1, 2).to_batches()[0])
    assert tuples(edges) == [("b", "l", 2, 2, "+"), ("c", "l", 3, 3, "+")]


@pytest.mark.parametrize(("unit", "wanted"), [("s", 1), ("ms", 1500), ("us", 1500000)])
def test_timestamps_are_converted_to_the_unit_of_time(unit: str, wanted: int) -> None:
    for kind in (pa.timestamp("ms"), pa.timestamp("us", tz="UTC"), pa.timestamp("ns")):
        times = pa.array([1500], pa.timestamp("ms")).cast(kind)
        batch = pa.record_batch({"src": ["a"], "label": ["l"], "trg": ["b"], "ts": times})
        assert from_arrow(batch, time_unit=unit)[0].ts.tolist() == [wanted]


def test_a_column_that_is_missing_or_of_an_impossible_type_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the table has no column trg: it has src, label, ts"):
        from_arrow(pa.record_batch({"src": ["a"], "label": ["l"], "ts": [1]}))
    pq.write_table(pa.table({"src": [1.5], "label": ["l"], "trg": ["b"], "ts": [1]}), tmp_path / "a.parquet")
    with pytest.raises(
        InputError, match=r"the column src of .*a.parquet has type double, not strings or integers"
    ):
        read(tmp_path / "a.parquet")


def test_a_folder_is_all_its_files_sorted_by_name(tmp_path: Path) -> None:
    (tmp_path / "b.tsv").write_text("b\tl\tx\t2\n")
    (tmp_path / "a.jsonl").write_text('{"src":1,"label":"l","trg":"x","ts":1}\n')
    (tmp_path / "c.csv").write_text("\n\nsrc,label,trg,ts\nc,l,x,3\n")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".hidden.tsv").write_text("nonsense")
    assert [row[0] for row in read(tmp_path)[0]] == [1, "b", "c"]


def test_empty_files_have_no_edges(tmp_path: Path) -> None:
    for ending in ("tsv", "csv", "jsonl", "tsv.gz"):
        path = tmp_path / f"a.{ending}"
        path.write_bytes(b"")
        assert read(path) == ([], [])
    assert read_text(tmp_path, "header.csv", "src,label,trg,ts") == ([], [])


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    assert read_text(tmp_path, "a.tsv", "\ufeffa\tl\tb\t1\n")[0] == [("a", "l", "b", 1, "+")]
    assert read_text(tmp_path, "a.csv", "\ufeffsrc,label,trg,ts\na,l,b,1\n")[0] == [("a", "l", "b", 1, "+")]


@pytest.mark.parametrize(
    ("path", "error", "words"),
    [
        ("missing.tsv", InputError, "missing.tsv does not exist\nhint: the path of a stream names a file"),
        ("empty", InputError, "empty has no files"),
        ("nested", ArgumentError, "nested holds another folder, inner"),
        ("a.txt", ArgumentError, "unknown file extension: .*a.txt"),
        ("kafka://host:9092/topic", ArgumentError, "Kafka needs --runner spark"),
    ],
)
def test_what_cannot_be_read_is_said_at_once(
    tmp_path: Path, path: str, error: type[MeanderError], words: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "nested" / "inner").mkdir(parents=True)
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(error, match=words):
        open_source(path if "://" in path else str(tmp_path / path))


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("a,b,c,d", "has no column src: it has a, b, c, d"),
        ("src,label,trg", "has no column ts"),
        ("src,label,trg,ts,src", "more than one column src"),
    ],
)
def test_a_csv_header_without_the_columns_is_an_error(tmp_path: Path, header: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_text(tmp_path, "a.csv", header + "\na,l,b,1,2\n")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_a_csv_file_in_utf16_is_an_error_that_names_the_encoding(tmp_path: Path, encoding: str) -> None:
    mark = "\ufeff" if encoding.endswith("be") else ""
    (tmp_path / "a.csv").write_text(f"{mark}src,label,trg,ts\na,l,b,1\n", encoding=encoding)
    with pytest.raises(InputError, match=r"a.csv is in UTF-16\nhint: save it as UTF-8"):
        read(tmp_path / "a.csv")


def test_what_is_not_parquet_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError, match=r"a.parquet cannot be read as Parquet"):
        read(tmp_path / "a.parquet")


def collect(path: Path) -> tuple[list[Row], list[Reject], str]:
    """Everything up to the error, and the error."""
    rows: list[Row] = []
    rejects: list[Reject] = []
    try:
        for edges, bad in open_source(str(path), stream="s", batch_rows=100):
            rows += tuples(edges)
            rejects += bad
    except InputError as error:
        return rows, rejects, str(error)
    return rows, rejects, ""


LINES = [f"v{i * 7919 % 1000}\tlabel\tw{i * 104729 % 1000}\t{i}\n" for i in range(4000)]
WANTED = [(f"v{i * 7919 % 1000}", "label", f"w{i * 104729 % 1000}", i, "+") for i in range(4000)]


def test_of_a_gzip_file_that_breaks_off_all_whole_lines_are_used_and_then_it_is_an_error(
    tmp_path: Path,
) -> None:
    packed = gzip.compress("".join(LINES).encode())
    for cut in (5, 12, 1000, len(packed) // 2, len(packed) - 9, len(packed) - 1):
        (tmp_path / "a.tsv.gz").write_bytes(packed[:cut])
        rows, rejects, message = collect(tmp_path / "a.tsv.gz")
        assert rows == WANTED[: len(rows)]
        assert f"a.tsv.gz is damaged at byte {cut}: it ends in the middle" in message
        assert len(rejects) <= 1
        for reject in rejects:
            assert reject.reason == Reason.UNPARSABLE
            assert LINES[len(rows)].startswith(reject.text)
    assert len(rows) == 4000


def test_of_a_gzip_file_with_broken_data_what_is_before_the_break_is_used(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress("".join(LINES).encode()))
    packed[-6] ^= 0xFF
    (tmp_path / "a.tsv.gz").write_bytes(packed)
    rows, rejects, message = collect(tmp_path / "a.tsv.gz")
    assert (rows, rejects) == (WANTED, [])
    assert "fail their checksum" in message
    first, second = (
        gzip.compress("".join(LINES[:2000]).encode()),
        b"\x1f\x8b\x08\0\0\0\0\0\0\0" + b"\xff" * 50,
    )
    (tmp_path / "a.tsv.gz").write_bytes(first + second)
    rows, rejects, message = collect(tmp_path / "a.tsv.gz")
    assert (rows, rejects) == (WANTED[:2000], [])
    assert "make no sense there" in message


def test_gzip_members_and_padding_are_read_through(tmp_path: Path) -> None:
    members = [gzip.compress("".join(LINES[i : i + 500]).encode()) for i in range(0, 4000, 500)]
    (tmp_path / "a.tsv.gz").write_bytes(b"".join(members) + bytes(512))
    assert collect(tmp_path / "a.tsv.gz") == (WANTED, [], "")


def test_what_is_not_gzip_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.tsv.gz").write_text("a\tl\tb\t1\n")
    rows, rejects, message = collect(tmp_path / "a.tsv.gz")
    assert (rows, rejects) == ([], [])
    assert "is not a gzip file" in message


def test_a_csv_header_cut_off_by_damage_is_that_damage(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"src,label,trg,ts\n" + bytes(range(256)) * 8)[:20])
    assert "is damaged at byte 20" in collect(tmp_path / "a.csv.gz")[2]


def test_edges_keep_their_own_text_until_they_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('ts,src,label,trg\n007,"a",l,b\r\n')
    ((edges, _),) = open_source(str(tmp_path / "a.csv"))
    assert edge_line(edges, 0) == '007,"a",l,b'
    assert edge_line(edges._replace(line=None), 0) == "a\tl\tb\t7"


def test_a_reader_may_have_to_wait_for_a_pipe_but_not_for_files(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tl\tb\t1\n")
    assert not is_live(str(tmp_path / "a.tsv"))
    assert not is_live(str(tmp_path))
    os.mkfifo(tmp_path / "b.tsv")
    assert is_live(str(tmp_path / "b.tsv"))
    assert is_live(str(tmp_path))


def test_a_pipe_is_read_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    os.mkfifo(path)
    read_first = threading.Event()

    def write() -> None:
        with open(path, "w") as pipe:
            pipe.write("a\tl\tb\t1\nc\tl")
            pipe.flush()
            assert read_first.wait(20)
            pipe.write("\td\t2\n")

    writer = threading.Thread(target=write)
    writer.start()
    chunks = open_source(str(path))
    assert tuples(next(chunks)[0]) == [("a", "l", "b", 1, "+")]
    read_first.set()
    assert tuples(next(chunks)[0]) == [("c", "l", "d", 2, "+")]
    writer.join()
