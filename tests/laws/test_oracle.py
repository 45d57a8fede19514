"""The judge is judged: small cases worked out by hand, one instant at a time, and by another engine."""

from __future__ import annotations

from collections import defaultdict

import duckdb
import pytest
from hypothesis import given, settings

from oracle import (
    Edge,
    answers,
    edge_history,
    evaluate,
    expect,
    in_order,
    snapshot_at,
    union,
    valid_intervals,
)
from querytext import Query, Step, query_text, read_query
from strategies import cases, edges, queries, streams_asked

XY = "STREAM s WINDOW 10\nAnswer(x, y) <- {}(x, y)."


def asked(expr: str, *stream: Edge) -> dict[tuple[object, ...], list[tuple[int, int]]]:
    return answers(read_query(XY.format(expr)), {"s": stream})


# ---------------------------------------------------------------------------------------------------------
# Validity


def test_an_edge_is_valid_from_its_time_to_the_end_of_its_slide_plus_the_window() -> None:
    assert valid_intervals([("u", "a", "v", 13)], window=24) == {("u", "a", "v"): [(13, 37)]}
    assert valid_intervals([("u", "a", "v", 13)], window=10, slide=5) == {("u", "a", "v"): [(13, 20)]}


def test_an_edge_whose_interval_is_empty_never_becomes_valid() -> None:
    assert valid_intervals([("u", "a", "v", 13)], window=3, slide=5) == {}
    assert valid_intervals([("u", "a", "v", 12)], window=3, slide=5) == {("u", "a", "v"): [(12, 13)]}


def test_arrivals_that_touch_are_one_interval_and_those_apart_are_two() -> None:
    stream = [("u", "a", "v", time) for time in (0, 10, 25, 27)]
    assert valid_intervals(stream, window=10) == {("u", "a", "v"): [(0, 20), (25, 37)]}


def test_a_deletion_ends_all_arrivals_before_it_and_none_after() -> None:
    stream: list[Edge] = [("u", "a", "v", 0), ("u", "a", "v", 4), ("u", "a", "v", 6, "-"), ("u", "a", "v", 8)]
    assert valid_intervals(stream, window=10) == {("u", "a", "v"): [(0, 6), (8, 18)]}


def test_at_equal_times_the_later_arrival_has_the_last_word() -> None:
    assert valid_intervals([("u", "a", "v", 5), ("u", "a", "v", 5, "-")], window=10) == {}
    assert valid_intervals([("u", "a", "v", 5, "-"), ("u", "a", "v", 5)], window=10) == {
        ("u", "a", "v"): [(5, 15)]
    }


def test_a_late_edge_takes_its_place_or_is_rejected() -> None:
    stream: list[Edge] = [("u", "a", "v", 9), ("u", "a", "v", 6, "-"), ("u", "b", "v", 5), ("u", "a", "v", 8)]
    accepted, rejected = in_order(stream, lateness=3)
    assert accepted == [("u", "a", "v", 6, "-"), ("u", "a", "v", 8), ("u", "a", "v", 9)]
    assert rejected == [("u", "b", "v", 5)]


def test_without_lateness_whatever_is_older_than_the_newest_is_rejected() -> None:
    assert in_order([("u", "a", "v", 9), ("u", "a", "v", 9), ("u", "a", "v", 8)])[1] == [("u", "a", "v", 8)]


# ---------------------------------------------------------------------------------------------------------
# Queries by hand

A_THEN_B: list[Edge] = [("u", "a", "v", 0), ("v", "b", "w", 3)]


def test_a_path_holds_while_all_its_edges_do() -> None:
    assert asked("(a/b)", *A_THEN_B) == {("u", "w"): [(3, 10)]}


def test_a_closure_keeps_the_ends_that_have_no_further_edge() -> None:
    assert asked("(a/b*)", *A_THEN_B) == {("u", "v"): [(0, 10)], ("u", "w"): [(3, 10)]}


def test_the_empty_path_is_at_every_end_of_an_edge_of_the_atoms_own_inputs() -> None:
    assert asked("a?", *A_THEN_B) == {("u", "u"): [(0, 10)], ("v", "v"): [(0, 10)], ("u", "v"): [(0, 10)]}
    assert asked("(a|b)?", *A_THEN_B)["v", "v"] == [(0, 13)]


def test_the_empty_path_over_derived_edges_is_at_their_ends_alone() -> None:
    query = read_query("STREAM s WINDOW 10\nD(x, y) <- a(x, m), b(m, y).\nAnswer(x, y) <- D*(x, y).")
    assert answers(query, {"s": A_THEN_B}) == {
        ("u", "u"): [(3, 10)],
        ("w", "w"): [(3, 10)],
        ("u", "w"): [(3, 10)],
    }


def test_an_inverse_step_reads_its_edge_backwards() -> None:
    assert asked("(^a)", *A_THEN_B) == {("v", "u"): [(0, 10)]}
    assert asked("(^(a/b))", *A_THEN_B) == {("w", "u"): [(3, 10)]}


@pytest.mark.parametrize(
    ("expr", "reached"),
    [
        ("a{2,3}", {2, 3}),
        ("a{2,}", {2, 3, 4}),
        ("a{2}", {2}),
        ("a{0,1}", {0, 1}),
        ("(a?){2,3}", {0, 1, 2, 3}),
        ("(a/a)+", {2, 4}),
        ("(a/a)*", {0, 2, 4}),
        ("(a{2,3}){1,1}", {2, 3}),
        ("(a*/a*)", {0, 1, 2, 3, 4}),
        ("(a+/a?)", {1, 2, 3, 4}),
        ("(a|a/a/a)", {1, 3}),
        ("(a{0,0})", {0}),
    ],
)
def test_repetition_counts_words(expr: str, reached: set[int]) -> None:
    chain = [(number, "a", number + 1, 0) for number in range(4)]
    assert {trg for src, trg in asked(expr, *chain) if src == 0} == reached


def test_a_pattern_binds_its_variables_alike_everywhere() -> None:
    triangle = read_query("STREAM s WINDOW 10\nAnswer(x, y, z) <- a(x, y), a(y, z), a(z, x).")
    around = [("u", "a", "v", 0), ("v", "a", "w", 1), ("w", "a", "u", 2)]
    assert answers(triangle, {"s": [*around, ("w", "a", "w", 3), ("u", "a", "w", 4)]}) == {
        ("u", "v", "w"): [(2, 10)],
        ("v", "w", "u"): [(2, 10)],
        ("w", "u", "v"): [(2, 10)],
        ("w", "w", "w"): [(3, 13)],
        ("u", "w", "w"): [(4, 12)],
        ("w", "w", "u"): [(4, 12)],
        ("w", "u", "w"): [(4, 12)],
    }


def test_constants_and_repeated_variables_select() -> None:
    stream = [("u", "a", "v", 0), ("v", "a", "v", 1), (1, "a", "1", 2)]
    query = 'STREAM s WINDOW 10\nAnswer(x) <- a("u", x).\nAnswer(x) <- a(x, x).\nAnswer(x) <- a(1, x).'
    assert answers(read_query(query), {"s": stream}) == {("v",): [(0, 11)], ("1",): [(2, 12)]}


def test_an_answer_of_no_vertices_says_whether_there_is_one() -> None:
    assert answers(read_query("STREAM s WINDOW 10\nAnswer() <- a(x, y), b(y, z)."), {"s": A_THEN_B}) == {
        (): [(3, 10)]
    }


def test_every_stream_has_its_own_window() -> None:
    query = read_query("STREAM s WINDOW 10\nSTREAM t WINDOW 4 SLIDE 2\nR(x, y) <- (s.a/t.a)(x, y).")
    assert answers(query, {"s": [("u", "a", "v", 0)], "t": [("v", "a", "w", 3), ("v", "a", "w", 9)]}) == {
        ("u", "w"): [(3, 6), (9, 10)]
    }


# ---------------------------------------------------------------------------------------------------------
# Other ways to the same


@given(queries())
def test_a_query_reads_back_as_it_was_printed(query: Query) -> None:
    assert query_text(read_query(query_text(query))) == query_text(query)


@given(cases())
@settings(max_examples=60, deadline=None)
def test_evaluating_where_something_changes_is_evaluating_at_every_instant(case) -> None:
    history = edge_history(case.query, case.streams, case.lateness)
    times = [time for edge in history.values() for ends in edge.values() for pair in ends for time in pair]
    held = defaultdict(list)
    for time in range(min(times, default=0) - 1, max(times, default=0) + 2):
        for each in evaluate(case.query, snapshot_at(history, time))[Step(case.query.result)]:
            held[each].append((time, time + 1))
    assert answers(case.query, case.streams, case.lateness) == {
        each: union(ticks) for each, ticks in held.items()
    }


CLOSURE = """
WITH RECURSIVE instants AS (SELECT unnest(range(0, 400)) AS t),
valid AS (
    SELECT DISTINCT t, src, trg FROM instants, edges
    WHERE label = 'a' AND ts <= t AND t < ts // {slide} * {slide} + {window}
),
reached AS (
    SELECT t, src, trg FROM valid
    UNION
    SELECT reached.t, reached.src, valid.trg FROM reached JOIN valid
    ON reached.t = valid.t AND reached.trg = valid.src
)
SELECT src, trg, t FROM reached
"""


@given(edges(range(5), ("a", "b")), streams_asked())
@settings(max_examples=40, deadline=None)
def test_recursive_sql_on_every_snapshot_finds_the_same_closure(stream: list[Edge], asked) -> None:
    window, slide = asked[0].window, asked[0].slide
    query = read_query(f"STREAM s WINDOW {window} SLIDE {slide}\nAnswer(x, y) <- a+(x, y).")
    stream = [edge for edge in stream if edge[3] + window < 400]
    with duckdb.connect() as database:
        database.execute("SET threads = 1; CREATE TABLE edges (src INT, label TEXT, trg INT, ts INT)")
        if stream:
            database.executemany("INSERT INTO edges VALUES (?, ?, ?, ?)", [edge[:4] for edge in stream])
        found = database.execute(CLOSURE.format(window=window, slide=slide)).fetchall()
    held = defaultdict(list)
    for src, trg, time in found:
        held[src, trg].append((time, time + 1))
    assert answers(query, {"s": stream}) == {each: union(ticks) for each, ticks in held.items()}


def test_rejected_edges_are_told_by_stream() -> None:
    query = read_query("STREAM s WINDOW 10\nAnswer(x, y) <- a(x, y).")
    assert expect(query, {"s": [("u", "a", "v", 4), ("u", "a", "v", 3)]}).rejected == {
        "s": [("u", "a", "v", 3)]
    }
