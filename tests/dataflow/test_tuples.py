"""Streams of TUPLES: records of answers as they are, from every kind of input."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import meander
from command import meander as run_command
from judge import instants
from meander.dataflow.sinks import merging
from meander.dataflow.sinks.merging import merge_blocks, merge_tables
from meander.errors import InputError
from meander.explain import explain

FOREVER = 2**62
EDGES = "STREAM d TUPLES\nAnswer(x, y) <- D(x, y)."
VALUES = "STREAM d TUPLES (w INT)\nAnswer(x, y, w: w) <- D(x, y, w: w)."
VERTICES = "STREAM d TUPLES (w INT)\nR(x, x) <- Answer(x, w: w), w > 1."


def record(ts: int, exp: int | None = None, op: str = "+", **fields: Any) -> dict[str, Any]:
    return {"src": "u", "trg": "v", "label": "D", "ts": ts, "exp": exp, "op": op, **fields}


def held(text: str, given: Any, **options: Any) -> dict[Any, list[tuple[int, int]]]:
    """When each answer holds, by its ends and values; no row may be rejected."""
    rejects: list[dict[str, str]] = []
    by_answer: dict[Any, list[Mapping[str, Any]]] = {}
    for row in meander.run(text, given, rejects=rejects, **options):
        key = (row["src"], row["trg"], *row.get("properties", {}).values())
        by_answer.setdefault(key, []).append(row)
    assert rejects == []
    return {key: instants(rows) for key, rows in by_answer.items()}


def rejected(text: str, given: Any) -> list[str]:
    rejects: list[dict[str, str]] = []
    for _ in meander.run(text, given, rejects=rejects):
        pass
    return [reject["reason"] for reject in rejects]


def test_a_tuple_holds_until_its_expiry_and_without_one_until_its_retraction() -> None:
    assert held(EDGES, [record(1, 5), record(3, 9)]) == {("u", "v"): [(1, 9)]}
    assert held(EDGES, [record(1), record(7, op="-")]) == {("u", "v"): [(1, 7)]}
    assert held(EDGES, [record(1)]) == {("u", "v"): [(1, FOREVER)]}
    missing = [{name: value for name, value in record(1).items() if name != "exp"}]
    assert held(EDGES, missing) == {("u", "v"): [(1, FOREVER)]}
    assert held(EDGES, [("u", "D", "v", 1), ("u", "D", "v", 4, "-")]) == {("u", "v"): [(1, 4)]}


def test_a_tuple_that_ends_before_it_begins_never_holds() -> None:
    assert held(EDGES, [record(5, 5), record(6, 2), record(7, -1), record(8, 9)]) == {("u", "v"): [(8, 9)]}


def test_a_retraction_cuts_all_earlier_records_and_no_later_ones() -> None:
    rows = [record(1, 20), record(2, 30), record(5, op="-"), record(5, 8), record(9, 10)]
    assert held(EDGES, rows) == {("u", "v"): [(1, 8), (9, 10)]}


@pytest.mark.parametrize("bad", ["soon", 5.5, True, [9]])
def test_an_expiry_that_is_no_time_rejects_its_record(bad: Any) -> None:
    assert rejected(EDGES, [record(1) | {"exp": bad}]) == ["bad value of exp"]


def test_a_bad_expiry_in_a_file_rejects_its_record(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"src":"u","trg":"v","label":"D","ts":1,"exp":2.5,"op":"+"}\n')
    assert rejected(EDGES, tmp_path / "d.jsonl") == ["bad value of exp"]
    (tmp_path / "d.csv").write_text("src,label,trg,ts,exp\nu,D,v,1,late\nu,D,v,1,\nu,D,v,2,9\n")
    assert rejected(EDGES, tmp_path / "d.csv") == ["bad value of exp"]
    with pytest.raises(InputError, match="the column exp of the table has type double"):
        meander.run(EDGES, pa.table({"src": ["u"], "label": ["D"], "trg": ["v"], "ts": [1], "exp": [0.5]}))


def test_late_tuples_are_as_if_they_had_come_in_time() -> None:
    rows = [record(4, 9), record(1, 6), record(3, op="-")]
    assert held(EDGES, rows, lateness=5) == {("u", "v"): [(1, 3), (4, 9)]}
    assert rejected(EDGES, rows) == ["too late", "too late"]


W3, W4 = {"properties": {"w": 3, "k": "a"}}, {"properties": {"w": 4, "k": "a"}}
SEVERAL = [record(1, **W3), record(2, 9, **W4), record(5, op="-", **W3), record(6, 20, w=5)]


def given_as(kind: str, rows: list[dict[str, Any]], folder: Path) -> Any:
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    match kind:
        case "dicts":
            return rows
        case "jsonl":
            (folder / "d.jsonl").write_text(lines)
            return folder / "d.jsonl"
        case "compact jsonl":
            compact = (json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
            (folder / "d.jsonl").write_text("".join(compact))
            return folder / "d.jsonl"
        case "folder":
            (folder / "0.jsonl").write_text(lines[: lines.index("\n") + 1])
            (folder / "1.jsonl.gz").write_bytes(gzip.compress(lines[lines.index("\n") + 1 :].encode()))
            return folder
        case "parquet":
            pq.write_table(pa.Table.from_pylist(rows), folder / "d.parquet")
            return folder / "d.parquet"
    return pa.Table.from_pylist(rows)


KINDS = ("dicts", "jsonl", "compact jsonl", "folder", "parquet", "table")


@pytest.mark.parametrize("kind", KINDS)
def test_properties_are_read_from_their_object_and_from_columns(kind: str, tmp_path: Path) -> None:
    rows = [{"w": None, "properties": None, **row} for row in SEVERAL]
    assert held(VALUES, given_as(kind, rows, tmp_path)) == {
        ("u", "v", 3): [(1, 5)],
        ("u", "v", 4): [(2, 9)],
        ("u", "v", 5): [(6, 20)],
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_retraction_spares_tuples_with_other_properties_that_the_query_does_not_name(
    kind: str, tmp_path: Path
) -> None:
    rows = [record(1, **W3), record(2, 9, **W4), record(5, op="-", **W3)]
    assert held(EDGES, given_as(kind, rows, tmp_path)) == {("u", "v"): [(1, 9)]}
    rows = [*rows[:2], record(5, op="-", **W4), record(7, op="-", **W3)]
    assert held(EDGES, given_as(kind, rows, tmp_path)) == {("u", "v"): [(1, 7)]}


def test_a_retraction_without_properties_ends_all_tuples_of_its_ends() -> None:
    rows = [record(1, **W3), record(2, 9, **W4), record(5, op="-")]
    assert held(VALUES, rows) == {("u", "v", 3): [(1, 5)], ("u", "v", 4): [(2, 5)]}
    rows = [record(1, **W3), record(2, 9, **W4), record(5, op="-", properties={"w": 3})]
    assert held(VALUES, rows) == {("u", "v", 3): [(1, 5)], ("u", "v", 4): [(2, 9)]}


@pytest.mark.parametrize("kind", ["dicts", "jsonl", "compact jsonl", "parquet", "table"])
def test_the_answer_of_one_vertex_is_a_vertex_tuple(kind: str, tmp_path: Path) -> None:
    rows = [{"answer": ["u"], "ts": 1, "exp": 5, "op": "+", "properties": {"w": 2}}]
    assert held(VERTICES, given_as(kind, rows, tmp_path)) == {("u", "u"): [(1, 5)]}
    rows = [{"answer": [7], "ts": 1, "exp": 5, "op": "+", "properties": {"w": 2}}]
    assert held(VERTICES, given_as(kind, rows, tmp_path)) == {(7, 7): [(1, 5)]}
    named = VERTICES.replace("Answer(", "seen(")
    assert held(named, given_as(kind, rows, tmp_path), labels={"d": "seen"}) == {(7, 7): [(1, 5)]}


@pytest.mark.parametrize("kind", ["dicts", "jsonl", "compact jsonl", "parquet", "table"])
def test_answers_of_other_arities_are_no_edges(kind: str, tmp_path: Path) -> None:
    rows = [{"answer": ["u", "v", "w"], "ts": 1, "exp": 5, "op": "+"}]
    assert rejected(VERTICES.replace(", w: w), w > 1", ")"), given_as(kind, rows, tmp_path)) == [
        "not an edge"
    ]
    rows = [{"answer": ["u"], "ts": 1, "exp": 5, "op": "+"}]
    assert rejected(EDGES, given_as(kind, rows, tmp_path)) == ["not an edge"]


def test_paths_of_records_are_ignored_as_fast_lines_are_read(tmp_path: Path) -> None:
    path = [["u", "a", 'say "hi"'], [1, "b", "v", 3.5e2]]
    proof = {"edge": ["u", "D", "v"], "because": [{"edge": [], "ts": None}, {}]}
    rows = [record(1, 5, path=path), record(2, 6, path=[], proof=proof), record(3, 7, path=None)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert held(EDGES, tmp_path / "d.jsonl") == {("u", "v"): [(1, 7)]}
    broken = [
        f'{{"src":"u","trg":"v","label":"D","ts":1,"path":{bad}}}\n'
        for bad in ("[1,]", "[1 2]", "{1:2}", "[")
    ]
    (tmp_path / "d.jsonl").write_text("".join(broken))
    assert rejected(EDGES, tmp_path / "d.jsonl") == ["unparsable row"] * len(broken)


def test_one_stream_is_read_beside_a_window_and_a_table() -> None:
    text = """
    STREAM d TUPLES
    STREAM s WINDOW 10
    TABLE t
    Answer(x, y) <- d.D(x, z), s.a(z, y), t.k(y, y).
    """
    streams = {
        "d": [record(1), record(30, op="-")],
        "s": [("v", "a", "w", 4), ("v", "a", "w", 25)],
        "t": [{"src": "w", "label": "k", "trg": "w"}],
    }
    assert held(text, streams) == {("u", "w"): [(4, 14), (25, 30)]}


@pytest.mark.parametrize("mode", ["intervals", "changes"])
def test_the_results_of_a_run_are_the_input_of_another(mode: str, tmp_path: Path) -> None:
    rules = "D(x, y, w: w) <- a(x, z, w: w), b(z, y).\nE(x, y) <- b+(x, y) as P.\n"
    last = "Answer(x, y) <- D(x, z, w: w), E(z, y), w > 0."
    rows = [
        {"src": src, "label": label, "trg": trg, "ts": ts, "w": ts % 3, "op": "-" if ts % 7 == 6 else "+"}
        for ts in range(60)
        for src, label, trg in (("u", "a", f"v{ts % 4}"), (f"v{ts % 5}", "b", f"v{ts % 3}"))
    ]
    whole = held(f"STREAM s (w INT) WINDOW 10\n{rules}{last}", rows)
    assert whole
    first, second = f"STREAM s (w INT) WINDOW 10\n{rules}RESULT D, E", f"STREAM d TUPLES\n{last}"
    options: dict[str, Any] = {"mode": mode, "batch_rows": 7}
    assert held(second, meander.run(first, rows, **options)) == whole
    # One output of several results is in order of time.
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "d.jsonl"
    stream = f"s={tmp_path / 'rows.jsonl'}"
    options_given = ("--runner", "local", "--mode", mode, "--batch-rows", "7")
    assert run_command("run", first, "--stream", stream, "--out", str(out), *options_given).returncode == 0
    assert held(second, out) == whole
    times = [json.loads(line)["ts"] for line in out.read_text().splitlines()]
    assert times == sorted(times)


def test_what_is_left_of_a_result_is_the_input_of_another() -> None:
    result = meander.run(
        "STREAM s WINDOW 10\nD(x, y) <- a(x, y).", [("u", "a", "v", ts) for ts in (1, 5, 30)]
    )
    next(result)
    assert held(EDGES, result) == {("u", "v"): [(5, 15), (30, 40)]}
    text = "STREAM s (w STRING) WINDOW 10\nD(x, y, w: w) <- a(x, y, w: w)."
    with pytest.raises(InputError, match="the answers have w of type STRING"):
        meander.run(VALUES, meander.run(text, []))


@pytest.mark.parametrize("given", ["dicts", "table", "jsonl"])
def test_an_expiry_that_is_ignored_is_warned_of_once(given: str, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="the exp of the stream d is ignored") as warned:
        windowed = meander.run(
            "STREAM d WINDOW 3\nAnswer(x, y) <- D(x, y).", given_as(given, [record(1, 9)], tmp_path)
        )
    assert [row["exp"] for row in windowed] == [4]
    assert len(warned) == 1
    assert "hint: STREAM d TUPLES" in str(warned[0].message)


@pytest.mark.parametrize(("most", "runs"), [(1, 1), (60, 2), (1 << 24, 1 << 10)])
def test_lines_of_several_writers_are_merged_by_time(
    most: int, runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "MERGED_BYTES", most)
    monkeypatch.setattr(merging, "FIRST_RUNS", runs)
    blocks = [
        [{"src": '"ts":9', "n": 0, "ts": 1}, {"src": "x", "n": 1, "ts": 5}, {"src": '"ts', "n": 2, "ts": 5}],
        [],
        [{"src": "ts", "n": 3, "ts": 0}, {"src": "ü", "n": 4, "ts": 5, "because": {"ts": 1}}],
        [{"src": "x", "n": 5, "ts": 5}, {"src": "x", "n": 6, "ts": 70}],
    ]
    texts = [
        "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode() for rows in blocks
    ]
    (tmp_path / "block").write_bytes(texts[2])
    given = [texts[0], texts[1], tmp_path / "block", memoryview(texts[3])]
    merged = b"".join(bytes(block) for block in merge_blocks(given)).decode()
    assert [json.loads(line)["n"] for line in merged.splitlines()] == [3, 0, 1, 2, 4, 5, 6]
    in_order = [texts[0], texts[3]]
    assert list(merge_blocks(in_order)) == in_order


def test_tables_of_several_writers_are_merged_by_time() -> None:
    parts = [pa.table({"ts": [1, 5, 5], "n": [0, 1, 2]}), pa.table({"ts": [0, 5], "n": [3, 4]})]
    [merged] = merge_tables(parts)
    assert merged["n"].to_pylist() == [3, 0, 1, 2, 4]
    assert merge_tables([parts[0], pa.table({"ts": [7], "n": [5]})])[0] is parts[0]


def test_tuples_are_read_by_a_query_in_gcore() -> None:
    text = "CONSTRUCT (x)-[:n]->(y) MATCH (x)-/<:D+>/->(y) ON d TUPLES (w INT) WHERE x <> y"
    rows = [record(1, 9), record(2, 5) | {"src": "v", "trg": "t"}]
    assert held(text, rows) == {("u", "v"): [(1, 9)], ("v", "t"): [(2, 5)], ("u", "t"): [(2, 5)]}


def test_an_explanation_says_that_a_stream_has_tuples() -> None:
    text = explain("STREAM d TUPLES\nAnswer(x, y) <- D(x, z), D(z, y).")
    assert "WSCAN d: D  tuples" in text
    assert "tuples of d (D), each until its exp or its retraction" in text
    assert meander.plans(EDGES) == ["𝒲_{exp}(S_D)"]


PATHS = "STREAM d TUPLES (P PATH)\nAnswer(x, y, P) <- D(x, y, P)."
ONE, TWO = [["u", "a", "v"]], [["u", "a", 'say "hi"'], ['say "hi"', "b", "v"]]


def paths_of(text: str, given: Any, **options: Any) -> list[Any]:
    """The path of each record, by its time; no row may be rejected."""
    rejects: list[dict[str, str]] = []
    found = [
        (row["op"], row["ts"], row["exp"], row["properties"]["P"])
        for row in meander.run(text, given, rejects=rejects, **options)
    ]
    assert rejects == []
    return found


def as_steps(path: list[list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(("src", "label", "trg", "ts"), step, strict=False)) for step in path]


@pytest.mark.parametrize("kind", KINDS)
def test_a_path_survives_as_a_value_and_counts_for_no_identity(kind: str, tmp_path: Path) -> None:
    """The end of a tuple has no path, and a longer record of it may have another one."""
    in_table = kind in ("parquet", "table")
    given = [
        record(ts, exp, op, properties={"w": 1, "P": as_steps(path) if path and in_table else path})
        for ts, exp, op, path in ((1, 9, "+", ONE), (4, 12, "+", TWO), (6, None, "-", None), (8, 9, "+", []))
    ]
    wanted = [("+", 1, 9, ONE), ("+", 4, 12, TWO), ("-", 6, None, None), ("+", 8, 9, [])]
    assert paths_of(PATHS, given_as(kind, given, tmp_path)) == wanted
    # Whether the query names the path or not, the tuple ends.
    assert held(EDGES, given_as(kind, given, tmp_path)) == {("u", "v"): [(1, 6), (8, 9)]}


def test_another_path_takes_the_place_of_one_whose_tuple_ends() -> None:
    text = "STREAM d TUPLES (P PATH)\nAnswer(x, y, P) <- D(x, z, P), E(z, y)."
    rows = [
        record(1, 20, trg="z", properties={"P": ONE}),
        record(1, 20, trg="z2", properties={"P": TWO}),
        record(1, 20, src="z", label="E", properties={}),
        record(1, 20, src="z2", label="E", properties={}),
    ]
    (first, *_) = paths_of(text, rows)
    gone, other = ("z", TWO) if first[3] == ONE else ("z2", ONE)
    found = paths_of(text, [*rows, record(5, op="-", trg=gone, properties={"P": None})])
    assert found == [first, ("-", 5, None, None), ("+", 5, 20, other)]


def test_the_path_of_a_record_is_read_as_a_column() -> None:
    """A rule that is a path has it in `path`, with `paths=True`; a record without one does not match."""
    result = meander.run(
        "STREAM s WINDOW 10\nAnswer(x, y) <- a+(x, y) as P.\nAnswer(x, y) <- b(x, y).",
        [("u", "a", "v", 1), (7, "a", "u", 2), ("u", "b", "w", 3)],
        paths=True,
    )
    text = PATHS.replace("P PATH", "path PATH").replace("D(x, y, P)", "d.Answer(x, y, path: P)")
    rows = list(result)
    wanted = {
        ("u", "v"): [["u", "a", "v"]],
        (7, "u"): [[7, "a", "u"]],
        (7, "v"): [[7, "a", "u"], ["u", "a", "v"]],
    }
    found = {(row["src"], row["trg"]): row["properties"]["P"] for row in meander.run(text, rows)}
    assert found == wanted
    again = meander.run(
        "STREAM s WINDOW 10\nAnswer(x, y) <- a+(x, y) as P.", [("u", "a", "v", 1)], paths=True
    )
    assert paths_of(text, again) == [("+", 1, 11, [["u", "a", "v"]])]


def test_paths_in_order_of_time_keep_their_times(tmp_path: Path) -> None:
    text = "STREAM s WINDOW 10\nAnswer(x, y, P) <- a+(x, y) as P ascending, b(y, y)."
    edges = [("u", "a", "v", 1), ("v", "a", "w", 3), ("w", "b", "w", 4)]
    again = "STREAM d TUPLES (P PATH)\nAnswer(x, y, P) <- d.Answer(x, y, P)."
    for given in (tmp_path / "d.jsonl", tmp_path / "d.parquet"):
        meander.run(text, edges, answers=given)
        found = {row[3][0][0]: row[3] for row in paths_of(again, given)}
        assert found == {"u": [["u", "a", "v", 1], ["v", "a", "w", 3]], "v": [["v", "a", "w", 3]]}


def test_frames_bring_paths() -> None:
    text = "STREAM s WINDOW 10\nAnswer(x, y, P) <- a+(x, z) as P, b(z, y)."
    edges = [("u", "a", "v", 1), ("v", "b", "w", 3)]
    wanted = [("+", 3, 11, [["u", "a", "v"]])]
    again = "STREAM d TUPLES (P PATH)\nAnswer(x, y, P) <- d.Answer(x, y, P)."
    assert paths_of(again, meander.run(text, edges).to_pandas()) == wanted
    assert paths_of(again, meander.run(text, edges).to_polars()) == wanted


BAD_PATHS = [
    "x",
    7,
    True,
    {},
    [[]],
    ["u"],
    [["u", "a"]],
    [["u", 7, "v"]],
    [["u", "a", "v", "x"]],
    [["", "a", "v"]],
]


@pytest.mark.parametrize("bad", BAD_PATHS)
def test_what_is_no_path_rejects_its_record(bad: Any, tmp_path: Path) -> None:
    rows = [record(1, 9, properties={"P": bad})]
    assert rejected(PATHS, rows) == ["bad value of P"]
    assert rejected(PATHS, given_as("jsonl", rows, tmp_path)) == ["bad value of P"]
    # Nothing reads it.
    assert held(EDGES, given_as("jsonl", rows, tmp_path)) == {("u", "v"): [(1, 9)]}


def test_columns_of_steps_are_read_whatever_their_types() -> None:
    steps = pa.struct([("src", pa.int64()), ("label", pa.string()), ("trg", pa.string()), ("ts", pa.int32())])
    good = [{"src": 7, "label": "a", "trg": "v", "ts": 3}, {"src": 8, "label": "a", "trg": "u", "ts": None}]
    bad = [
        [{"src": None, "label": "a", "trg": "v"}],
        [{"src": 7, "label": "", "trg": "v"}],
        [good[0], {"src": 7, "label": "a", "trg": "v", "ts": -1}],
    ]
    for kind in (pa.list_(steps), pa.large_list(steps)):
        column = pa.array([good, *bad, [], None], kind)
        rows = pa.record_batch(
            [list("uvwxyz"), ["v"] * 6, ["D"] * 6, list(range(6)), column], ["src", "trg", "label", "ts", "P"]
        )
        for part in (rows, rows.slice(0, 5), rows.slice(2)):
            rejects: list[dict[str, str]] = []
            found = meander.run(PATHS, part, rejects=rejects)
            paths = [row["properties"]["P"] for row in found]
            wanted = [[[7, "a", "v", 3], [8, "a", "u"]], *([None] * 3), [], None]
            first = 2 if part.num_rows == 4 else 0
            assert paths == [path for path in wanted[first : first + part.num_rows] if path is not None]
            assert {reject["reason"] for reject in rejects} == {"bad value of P"}
            assert len(rejects) == (2 if first else 3)


def test_a_path_is_a_value_of_a_leaf_in_a_proof() -> None:
    rows = [record(1, 9, properties={"P": TWO})]
    (answer,) = meander.run(PATHS, rows, proofs=True)
    leaf = {"edge": ["u", "D", "v"], "ts": 1, "exp": 9, "properties": {"P": TWO}}
    assert answer["proof"]["because"] == [leaf]
    assert answer["properties"] == {"P": TWO}


def test_an_explanation_says_where_a_path_comes_from() -> None:
    assert "Answer.P: the path P of a tuple of d of a match" in explain(PATHS)
