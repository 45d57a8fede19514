"""The judge passes what is right and refuses each thing that the contract of the answer stream forbids."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from judge import judge, result_label
from oracle import FOREVER, Edge, Expected, expect
from querytext import read_query
from strategies import Case, cases, property_cases

EDGES: list[Edge] = [("u", "a", "v", 0), ("v", "a", "w", 3), ("u", "a", "v", 6)]
CUT: list[Edge] = [("u", "a", "v", 0), ("u", "a", "v", 4, "-")]


def expected(expr: str, edges: list[Edge] = EDGES) -> Expected:
    return expect(read_query(f"STREAM s WINDOW 10\nAnswer(x, y) <- {expr}(x, y)."), {"s": edges})


def record(src: str, trg: str, ts: int, exp: int | None, op: str = "+", **path: Any) -> dict[str, Any]:
    return {"src": src, "trg": trg, "label": "Answer", "ts": ts, "exp": exp, "op": op, **path}


UV, VW, UW = (
    [record("u", "v", 0, 10), record("u", "v", 6, 16)],
    [record("v", "w", 3, 13)],
    [record("u", "w", 3, 10), record("u", "w", 6, 13)],
)


def ideal(found: Expected, mode: str) -> list[dict[str, Any]]:
    """The fewest records that say what the oracle found."""
    records = []
    for answer, intervals in found.answers.items():
        for start, end in intervals:
            names = found.query.value_names(found.query.result)
            values = (
                {"properties": dict(zip(names, answer[found.query.arity :], strict=True))} if names else {}
            )
            if found.query.arity == 2:
                fields: dict[str, Any] = {
                    "src": answer[0],
                    "trg": answer[1],
                    "label": result_label(found.query),
                }
            else:
                fields = {"answer": list(answer[: found.query.arity])}
            fields |= values
            if mode == "changes":
                records.append(fields | {"ts": start, "exp": None, "op": "+"})
                if end < FOREVER:
                    records.append(fields | {"ts": end, "exp": None, "op": "-"})
            else:
                records.append(fields | {"ts": start, "exp": None if end == FOREVER else end, "op": "+"})
    return records


@given(cases() | property_cases())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_oracles_own_answers_pass_and_none_can_be_left_out(case: Case) -> None:
    found = expect(case.query, case.streams, case.lateness)
    records = ideal(found, case.mode)
    judge(records, found, mode=case.mode)
    for place in range(min(len(records), 5)):
        with pytest.raises(AssertionError):
            judge(records[:place] + records[place + 1 :], found, mode=case.mode)


def test_records_may_overlap_and_extend() -> None:
    judge(UV + VW + UW, expected("a+"))


@pytest.mark.parametrize(
    ("records", "complaint"),
    [
        ([record("u", "v", 0, 16)], "instants"),
        (UV + VW + UW + [record("w", "w", 3, 5)], "instants"),
        (UV + VW + [record("u", "w", 3, 14)], "instants"),
        (UV + VW + [record("u", "w", 3, 9), record("u", "w", 10, 13)], "instants"),
        (UV + VW + UW + [record("u", "w", 8, 8)], "exp is an integer after ts"),
        (UV + VW + UW + [record("u", "w", 13, None, "-")], "without a deletion"),
        (UV + VW + UW + [record("u", "w", 3, 10, path=None)], "fields"),
        (UV + VW + UW + [record("u", "w", 3, 10) | {"label": "a"}], "label"),
        (UV + VW + UW + [record("u", "w", 3, 10) | {"op": "*"}], "op is"),
    ],
)
def test_wrong_records_are_refused(records: list[dict[str, Any]], complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        judge(records, expected("a+"))


def test_a_complaint_shows_the_query_the_edges_and_both_sides() -> None:
    with pytest.raises(AssertionError) as raised:
        judge(UV + VW, expected("a+"))
    assert str(raised.value) == (
        "the answer's instants are not those of the oracle\n\n"
        "query:\n  STREAM s WINDOW 10\n  Answer(x, y) <- a+(x, y).\n"
        "edges of s:\n  ('u', 'a', 'v', 0)\n  ('v', 'a', 'w', 3)\n  ('u', 'a', 'v', 6)\n"
        "answer ('u', 'w'):\n  expected [3, 13)\n  got      never\n  from its records"
    )


def test_a_cut_ends_what_came_before_it_and_nothing_after() -> None:
    judge([record("u", "v", 0, 10), record("u", "v", 4, None, "-")], expected("a", CUT))
    back = [record("u", "v", 0, 10), record("u", "v", 4, None, "-"), record("u", "v", 7, 17)]
    judge(back, expected("a", [*CUT, ("u", "a", "v", 7)]))


def test_a_cut_of_what_holds_on_is_refused() -> None:
    edges: list[Edge] = [("u", "a", "v", 0), ("u", "b", "v", 1), ("u", "a", "v", 4, "-")]
    cut = [record("u", "v", 0, 10), record("u", "v", 4, None, "-"), record("u", "v", 4, 11)]
    with pytest.raises(AssertionError, match="cuts what holds on"):
        judge(cut, expected("(a|b)", edges))
    with pytest.raises(AssertionError, match="cuts nothing"):
        judge([record("u", "v", 0, 4), record("u", "v", 4, None, "-")], expected("a", CUT))


def test_changes_are_one_record_a_start_and_one_a_stop() -> None:
    found = expected("a", [*EDGES[:1], ("u", "a", "v", 10), ("u", "a", "v", 30)])
    right = [record("u", "v", ts, None, op) for ts, op in ((0, "+"), (20, "-"), (30, "+"), (40, "-"))]
    judge(right, found, mode="changes")
    for wrong in (right[:3], [right[0], right[0], *right[1:]], [*right[:1], *right[2:]]):
        with pytest.raises(AssertionError, match="changes are not"):
            judge(wrong, found, mode="changes")


A, B, BACK = ["u", "a", "v"], ["v", "a", "w"], ["x", "b", "v"]
WAY: list[Edge] = [("u", "a", "v", 0), ("v", "a", "w", 3), ("x", "b", "v", 4)]


@pytest.mark.parametrize(
    ("expr", "answers"),
    [
        ("(a/a)", [record("u", "w", 3, 10, path=[A, B])]),
        ("(a/^b)", [record("u", "x", 4, 10, path=[A, BACK])]),
        ("(^(b/^a))", [record("u", "x", 4, 10, path=[A, BACK])]),
        (
            "b?",
            [
                record("x", "x", 4, 14, path=[]),
                record("v", "v", 4, 14, path=[]),
                record("x", "v", 4, 14, path=[BACK]),
            ],
        ),
    ],
)
def test_a_path_is_a_word_whose_edges_hold(expr: str, answers: list[dict[str, Any]]) -> None:
    judge(answers, expected(expr, WAY), paths=True)


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        (None, "a path is missing"),
        ([], "spells no word"),
        ([A], "spells no word"),
        ([B, A], "spells no word"),
        ([["v", "a", "u"], B], "spells no word"),
        ([["u", "b", "v"], B], "spells no word"),
        ([A, B, B], "spells no word"),
    ],
)
def test_a_wrong_path_is_refused(path: list[list[str]] | None, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        judge([record("u", "w", 3, 10, path=path)], expected("(a/a)", WAY), paths=True)


def test_a_path_with_an_edge_that_ends_too_soon_is_refused() -> None:
    edges: list[Edge] = [("u", "a", "v", 0), ("u", "b", "v", 5)]
    first, second = record("u", "v", 0, 10, path=[A]), record("u", "v", 5, 15, path=[["u", "b", "v"]])
    judge([first, second], expected("(a|b)", edges), paths=True)
    with pytest.raises(AssertionError, match="does not hold throughout"):
        judge([first, second | {"path": [A]}], expected("(a|b)", edges), paths=True)


def test_a_path_whose_edge_is_deleted_is_cut_and_told_anew() -> None:
    edges: list[Edge] = [("u", "a", "v", 0), ("u", "b", "v", 0), ("u", "a", "v", 4, "-")]
    first, second = record("u", "v", 0, 10, path=[A]), record("u", "v", 4, 10, path=[["u", "b", "v"]])
    judge([first, record("u", "v", 4, None, "-", path=None), second], expected("(a|b)", edges), paths=True)
    with pytest.raises(AssertionError, match="does not hold throughout"):
        judge([first, second], expected("(a|b)", edges), paths=True)


def test_the_edges_of_a_closure_over_a_rule_are_derived_edges() -> None:
    query = read_query("STREAM s WINDOW 10\nD(x, y) <- a(x, m), a(m, y).\nAnswer(x, y) <- D+(x, y).")
    found = expect(query, {"s": WAY})
    judge([record("u", "w", 3, 10, path=[["u", "D", "w"]])], found, paths=True)
    with pytest.raises(AssertionError, match="spells no word"):
        judge([record("u", "w", 3, 10, path=[A, B])], found, paths=True)


def test_a_pattern_has_no_path() -> None:
    query = read_query("STREAM s WINDOW 10\nAnswer(x, y) <- a(x, m), a(m, y).")
    judge([record("u", "w", 3, 10, path=None)], expect(query, {"s": WAY}), paths=True)
    with pytest.raises(AssertionError, match="no path"):
        judge([record("u", "w", 3, 10, path=[A, B])], expect(query, {"s": WAY}), paths=True)


# ---------------------------------------------------------------------------------------------------------
# Values, tables and times


def valued(text: str, **streams: list[Edge]) -> Expected:
    return expect(read_query(text), streams)


def weighted(*rows: tuple[int, Any]) -> list[Edge]:
    """Arrivals of one edge: when, and with which weight."""
    return [{"src": "u", "label": "a", "trg": "v", "ts": ts, "w": w} for ts, w in rows]


def test_answers_with_other_values_are_other_answers() -> None:
    edges = weighted((0, 1), (4, 2), (6, 0))
    found = valued("STREAM s (w FLOAT) WINDOW 10\nAnswer(x, y, w: m) <- a(x, y, w: m).", s=edges)
    right = [record("u", "v", ts, ts + 10, properties={"w": w}) for ts, w in ((0, 1.0), (4, 2.0), (6, 0.0))]
    judge(right, found)
    for wrong, complaint in (
        ({"w": 1}, "w is a FLOAT"),
        ({"w": None}, "w is a FLOAT"),
        ({"w": 3.0}, "instants"),
        ({"v": 1.0}, "the properties are"),
        ({}, "the properties are"),
        ({"w": -0.0}, "one zero"),
    ):
        with pytest.raises(AssertionError, match=complaint):
            judge([right[0] | {"properties": wrong}, *right[1:]], found)
    with pytest.raises(AssertionError, match="fields"):
        judge([record("u", "v", 0, 10)], found)


def test_an_answer_that_never_ends_has_no_exp_and_no_stop() -> None:
    found = valued("TABLE t\nAnswer(x, y) <- a(x, y).", t=[("u", "a", "v", 3)])
    judge([record("u", "v", 3, None)], found)
    judge([record("u", "v", 3, None)], found, mode="changes")
    with pytest.raises(AssertionError, match="instants"):
        judge([record("u", "v", 3, 100)], found)
    with pytest.raises(AssertionError, match="changes are not"):
        judge([record("u", "v", 3, None), record("u", "v", 100, None, "-")], found, mode="changes")
    with pytest.raises(AssertionError, match="instants"):
        judge([record("u", "v", 0, None)], expected("a", EDGES[:1]))


def test_a_replaced_row_of_a_table_is_cut() -> None:
    rows = weighted((0, 5), (4, 1))
    found = valued("TABLE t (w INT)\nAnswer(x, y) <- a[w > 2](x, y).", t=rows)
    judge([record("u", "v", 0, None), record("u", "v", 4, None, "-")], found)


U1, W1, W3 = ["u", "a", "v", 1], ["v", "a", "w", 1], ["v", "a", "w", 3]


@pytest.mark.parametrize(
    ("order", "path", "complaint"),
    [
        ("ascending", [U1, W3], None),
        ("strictly ascending", [U1, W3], None),
        ("ascending", [U1[:3], W3[:3]], "spells no word"),
        ("ascending", [U1, ["v", "a", "w", 2]], "does not hold throughout"),
        ("ascending", [["u", "a", "v", 4], W3], "spells no word"),
        ("ascending", [U1, W1], "does not hold throughout"),
        ("strictly ascending", [U1, W1], "spells no word"),
    ],
)
def test_the_steps_of_an_ascending_path_have_times_in_order(
    order: str, path: list[list[Any]], complaint: str | None
) -> None:
    edges: list[Edge] = [("u", "a", "v", 1), ("v", "a", "w", 3)]
    found = valued(f"STREAM s WINDOW 10\nAnswer(x, y) <- (a/a)(x, y) {order}.", s=edges)
    right = [record("u", "w", 3, 11, path=path)]
    if complaint is None:
        judge(right, found, paths=True)
    else:
        with pytest.raises(AssertionError, match=complaint):
            judge(right, found, paths=True)


def test_each_edge_of_a_path_satisfies_the_predicate_of_its_step_throughout() -> None:
    edges = weighted((0, 5), (4, 1), (6, 7))
    text = "STREAM s (w INT) WINDOW 10\nAnswer(x, y) <- (a[w {} 2]|b)(x, y)."
    judge([record("u", "v", 0, 16, path=[A])], valued(text.format(">"), s=edges), paths=True)
    low = valued(text.format("<"), s=[*edges, ("u", "b", "v", 9), ("u", "a", "v", 9, "-")])
    judge(
        [record("u", "v", 4, 9, path=[A]), record("u", "v", 9, 19, path=[["u", "b", "v"]])], low, paths=True
    )
    with pytest.raises(AssertionError, match="does not hold throughout"):
        judge([record("u", "v", 4, 19, path=[A])], low, paths=True)


def test_a_path_without_times_beside_one_with_times_has_none() -> None:
    edges: list[Edge] = [("u", "a", "v", 1), ("u", "b", "w", 2)]
    text = "STREAM s WINDOW 10\nAnswer(x, y) <- a+(x, y) ascending.\nAnswer(x, y) <- b+(x, y)."
    found = valued(text, s=edges)
    timed = record("u", "v", 1, 11, path=[U1])
    for step in (["u", "b", "w"], ["u", "b", "w", None]):
        judge([timed, record("u", "w", 2, 12, path=[step])], found, paths=True)
    with pytest.raises(AssertionError, match="spells no word"):
        judge([timed, record("u", "w", 2, 12, path=[["u", "b", "w", -1]])], found, paths=True)
