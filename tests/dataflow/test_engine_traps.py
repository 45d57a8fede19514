"""Where an engine over arrays goes wrong first: ends of ranges, numbers used again, tables that are packed."""

from __future__ import annotations

from typing import Any

import pytest

import meander
from engine_runs import answered, dataflow_of, edges_of, processed
from meander.dataflow.answers import as_dicts
from meander.dataflow.cutting import CutLimits, Cutter
from meander.dataflow.edges import INFINITY, MAX_TIME
from meander.errors import StateError

EDGES = "STREAM s WINDOW 10\nAnswer(x, y) <- a(x, y)."
CLOSURE = "STREAM s WINDOW 10\nAnswer(x, y) <- a+(x, y)."
UNION = "STREAM s WINDOW 10\nAnswer(x, y) <- a(x, y).\nAnswer(x, y) <- b(x, y)."
OPERATORS = ["s-path", "negative-tuple"]


# ---------------------------------------------------------------------------------------------------------
# Time


def test_time_does_not_go_back() -> None:
    dataflow = dataflow_of(CLOSURE)
    processed(dataflow, {"s": edges_of(("u", "a", "v", 5))}, 7)
    with pytest.raises(StateError, match="no edges and time up to 6 cannot follow the time 7"):
        processed(dataflow, {}, 6)
    with pytest.raises(StateError, match="edges from 5 to 5"):
        processed(dataflow, {"s": edges_of(("v", "a", "w", 5))}, 8)
    # What was refused has changed nothing.
    assert [
        (answer["trg"], answer["ts"])
        for answer in processed(dataflow, {"s": edges_of(("v", "a", "w", 7))}, 7)
    ] == [
        ("w", 7),
        ("w", 7),
    ]


def test_edges_later_than_the_time_given_are_refused() -> None:
    with pytest.raises(StateError, match="edges from 5 to 20 and time up to 10"):
        processed(dataflow_of(CLOSURE), {"s": edges_of(("u", "a", "v", 5), ("v", "a", "w", 20))}, 10)


def test_an_instant_may_come_in_several_batches() -> None:
    dataflow = dataflow_of(CLOSURE, mode="changes")
    edges = [("u", "a", "v", 5), ("v", "a", "w", 5), ("u", "a", "v", 5, "-"), ("u", "a", "v", 5)]
    records = [answer for edge in edges for answer in processed(dataflow, {"s": edges_of(edge)}, 5)]
    records += processed(dataflow, {}, INFINITY)
    held: dict[tuple[str, str], list[Any]] = {}
    for record in records:
        held.setdefault((record["src"], record["trg"]), []).append((record["op"], record["ts"]))
    assert all(changes[-2:] == [("+", 5), ("-", 15)] for changes in held.values())
    assert set(held) == {("u", "v"), ("v", "w"), ("u", "w")}


@pytest.mark.parametrize("path_operator", OPERATORS)
@pytest.mark.parametrize("slide", [1, 7, 10**18])
def test_times_and_windows_at_the_end_of_their_range(path_operator: str, slide: int) -> None:
    window = 10**18
    text = f"STREAM s WINDOW {window} SLIDE {slide}\nAnswer(x, y) <- a+(x, y)."
    last = MAX_TIME // slide * slide
    edges = [("u", "a", "v", last), ("v", "a", "w", MAX_TIME), ("w", "a", "x", MAX_TIME, "-")]
    expected = {("u", "v"): last, ("v", "w"): MAX_TIME, ("u", "w"): MAX_TIME}
    records = list(meander.run(text, edges, path_operator=path_operator))
    assert {(record["src"], record["trg"]): record["ts"] for record in records} == expected
    assert {record["exp"] for record in records} == {MAX_TIME // slide * slide + window, last + window}
    changes = list(meander.run(text, edges, path_operator=path_operator, mode="changes"))
    assert sorted(record["op"] for record in changes) == ["+"] * 3 + ["-"] * 3
    assert max(record["ts"] for record in changes) == MAX_TIME // slide * slide + window


def test_time_zero_is_a_time() -> None:
    records = answered(dataflow_of(CLOSURE), "s", ("u", "a", "v", 0), ("v", "a", "w", 0))
    assert {(record["src"], record["trg"], record["ts"], record["exp"]) for record in records} == {
        ("u", "v", 0, 10),
        ("v", "w", 0, 10),
        ("u", "w", 0, 10),
    }


def test_streams_that_nobody_asks_for_and_labels_that_nobody_asks_for_are_let_by() -> None:
    dataflow = dataflow_of(CLOSURE)
    edges = {"s": edges_of(("u", "z", "v", 1)), "elsewhere": edges_of(("u", "a", "v", 1))}
    assert processed(dataflow, edges, INFINITY) == []
    assert dataflow.vertices.count == 0


# ---------------------------------------------------------------------------------------------------------
# Batches


@pytest.mark.parametrize(
    "options", [{}, {"mode": "changes"}, {"paths": True}], ids=["bare", "changes", "paths"]
)
def test_a_batch_that_is_taken_in_parts_has_the_same_answers(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = [(i * 7 % 11, "a", i * 5 % 13, i // 3, "-" if i % 17 == 16 else "+") for i in range(150)]
    whole = answered(dataflow_of(CLOSURE, **options), "s", *edges)
    monkeypatch.setattr(Cutter, "limits", CutLimits(first=8, most_out=20))
    dataflow = dataflow_of(CLOSURE, **options)
    parts = answered(dataflow, "s", *edges)
    if "paths" in options:
        # Which of several paths proves a record is open.
        for record in (*whole, *parts):
            del record["path"]
    assert sorted(map(repr, parts)) == sorted(map(repr, whole))
    assert dataflow.cutter.state.rows < 1 << 20


# ---------------------------------------------------------------------------------------------------------
# Numbers used again


def churn(first: int, count: int) -> list[tuple[str, str, str, int]]:
    """Many edges whose vertices are seen once."""
    return [(f"p{i}", "a", f"q{i}", i) for i in range(first, first + count)]


@pytest.mark.parametrize("text", [EDGES, UNION, CLOSURE], ids=["scan", "union", "closure"])
def test_what_waits_to_stop_keeps_its_names(text: str) -> None:
    """Vertices are swept time and again while answers that are open, or have just expired, are still to be ended."""
    dataflow = dataflow_of(text, mode="changes")
    records = []
    for first in range(0, 12_000, 1500):
        records += processed(dataflow, {"s": edges_of(*churn(first, 1500))}, first + 1499)
    records += processed(dataflow, {}, INFINITY)
    assert dataflow.vertices.capacity < 12_000
    courses: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for record in records:
        courses.setdefault((record["src"], record["trg"]), []).append((record["op"], record["ts"]))
    assert courses == {(f"p{i}", f"q{i}"): [("+", i), ("-", i + 10)] for i in range(12_000)}


@pytest.mark.parametrize("path_operator", OPERATORS)
@pytest.mark.parametrize(
    "rules",
    [
        "Answer(x, y) <- old.b(x, y).\nAnswer(x, y) <- s.a(x, y).",
        "Answer(x, y) <- (old.b+|s.a)(x, y).",
        "Answer(x, y) <- old.b(x, m), old.b(m, y).\nAnswer(x, y) <- s.a(x, y).",
    ],
    ids=["union", "path", "pattern"],
)
def test_what_is_held_for_long_outlives_all_sweeps(rules: str, path_operator: str) -> None:
    """Two edges of a long window stay while thousands of a short one come and go; then they are deleted."""
    text = f"STREAM s WINDOW 10\nSTREAM old WINDOW 1000000\n{rules}"
    dataflow = dataflow_of(text, path_operator=path_operator)
    valid = [("ann", "b", "bob", 0), ("bob", "b", "cat", 0)]
    records = processed(dataflow, {"old": edges_of(*valid)}, 0)
    for first in range(0, 8_000, 1000):
        processed(dataflow, {"s": edges_of(*churn(first, 1000))}, first + 999)
    gone = processed(dataflow, {"old": edges_of(*((*edge[:3], 8_000, "-") for edge in valid))}, 8_000)
    held = {(record["src"], record["trg"]) for record in records}
    assert held
    assert {(record["src"], record["trg"], record["op"], record["ts"]) for record in gone} == {
        (*pair, "-", 8_000) for pair in held
    }


def test_emitted_answers_stay_what_they_were() -> None:
    dataflow = dataflow_of(EDGES)
    first = [answers for _, answers in dataflow.process({"s": edges_of(*churn(0, 500))}, 499)]
    for begin in range(500, 10_000, 500):
        processed(dataflow, {"s": edges_of(*churn(begin, 500))}, begin + 499)
    records = [record for answers in first for record in as_dicts(answers)]
    assert [(record["src"], record["trg"]) for record in records] == [(f"p{i}", f"q{i}") for i in range(500)]


# ---------------------------------------------------------------------------------------------------------
# Tables packed


@pytest.mark.parametrize("path_operator", OPERATORS)
def test_a_path_is_cut_after_its_edges_have_moved_in_the_table(path_operator: str) -> None:
    """The rows of the graph are packed many times between the record and the deletion of an edge of its path."""
    text = "STREAM s WINDOW 10\nSTREAM old WINDOW 1000000\nAnswer(x, y) <- (old.b/old.c|s.a)(x, y)."
    dataflow = dataflow_of(text, paths=True, path_operator=path_operator)
    processed(dataflow, {"s": edges_of(*churn(0, 1000))}, 999)
    ways = [("u", "b", "v", 1000), ("v", "c", "w", 1000), ("u", "b", "x", 1001), ("x", "c", "w", 1001)]
    (record, *_) = processed(dataflow, {"old": edges_of(*ways)}, 1001)
    assert record["path"] == [["u", "b", "v"], ["v", "c", "w"]]
    for first in range(1001, 9_001, 1000):
        processed(dataflow, {"s": edges_of(*churn(first, 1000))}, first + 999)
    cut, *again = processed(dataflow, {"old": edges_of(("v", "c", "w", 9_500, "-"))}, 9_500)
    assert (cut["op"], cut["ts"]) == ("-", 9_500)
    other = [["u", "b", "x"], ["x", "c", "w"]]
    # An operator that had not followed the later edges yet extends the answer in a record of its own.
    assert {(record["op"], record["ts"], str(record["path"])) for record in again} == {
        ("+", 9_500, str(other))
    }
    assert max(record["exp"] for record in again) == 1_001_001


def test_an_operator_without_lists_both_ways_gets_them_at_the_first_deletion() -> None:
    dataflow = dataflow_of(CLOSURE, path_operator="s-path")
    assert not dataflow.graph.graph.linked_in.any()
    edges = [("u", "a", "v", 1), ("v", "a", "w", 2), ("u", "a", "w", 3)]
    processed(dataflow, {"s": edges_of(*edges)}, 3)
    records = processed(dataflow, {"s": edges_of(("u", "a", "v", 5, "-"))}, 5)
    assert [(record["src"], record["trg"], record["op"], record["ts"]) for record in records] == [
        ("u", "v", "-", 5)
    ]
    assert dataflow.graph.graph.linked_in.all()
    restored = dataflow_of(CLOSURE, path_operator="s-path")
    restored.restore(dataflow.snapshot())
    assert restored.graph.graph.linked_in.all()
    records = processed(restored, {"s": edges_of(("v", "a", "w", 6, "-"))}, 6)
    assert [(record["src"], record["trg"], record["op"], record["ts"]) for record in records] == [
        ("v", "w", "-", 6)
    ]
