"""Paths as values of heads: what both languages say, and how it is printed."""

from __future__ import annotations

import pytest

from meander.syntax import parse, to_datalog
from meander.syntax.query import Rule, Variable

STREAM = "STREAM social WINDOW 24h\n"


def rules_of(text: str) -> tuple[Rule, ...]:
    """The rules of a query, which is what it is printed as."""
    query = parse(text)
    assert parse(to_datalog(query)) == query
    return query.rules


def paths_of(rule: Rule) -> dict[str, str]:
    return {name: variable.name for name, variable in rule.paths}


def test_a_path_among_the_arguments_is_a_value_of_its_own_name() -> None:
    [rule] = rules_of(STREAM + "Answer(u, m, P) <- follows+(u, v) as P, posts(v, m).")
    assert rule.args == (Variable("u"), Variable("m"))
    assert paths_of(rule) == {"P": "P"}
    assert rule.values == ()


def test_a_path_has_another_name_in_a_head() -> None:
    [rule] = rules_of(STREAM + "Answer(u, m, why: P) <- follows+(u, v) as P, posts(v, m).")
    assert paths_of(rule) == {"why": "P"}


def test_paths_stand_beside_values_and_further_vertices() -> None:
    [rule] = rules_of(
        STREAM + "Answer(u, v, m, P, w: w, Q: Q) <- follows+(u, v) as P, likes*(v, m) as Q, a(u, m, w: w)."
    )
    assert [variable.name for variable in rule.args] == ["u", "v", "m"]
    assert paths_of(rule) == {"P": "P", "Q": "Q"}
    assert rule.values == (("w", Variable("w")),)


@pytest.mark.parametrize("atom", ["Notify(x, y, P)", "Notify(x, y, P: P)"])
def test_a_later_rule_reads_a_path(atom: str) -> None:
    notify, answer = rules_of(
        STREAM + "Notify(u, m, P) <- follows+(u, v) as P, posts(v, m).\n"
        f"Answer(x, y, why: P) <- {atom}, knows(x, y)."
    )
    assert answer.body[0].paths == (("P", Variable("P")),)
    assert answer.body[0].values == ()
    assert paths_of(answer) == {"why": "P"}
    assert paths_of(notify) == {"P": "P"}


def test_rules_of_one_head_return_different_paths_under_one_name() -> None:
    first, second = rules_of(
        STREAM + "Answer(x, y, P) <- follows+(x, y) as P.\nAnswer(x, y, P: Q) <- likes+(x, y) as Q."
    )
    assert paths_of(first) == {"P": "P"}
    assert paths_of(second) == {"P": "Q"}


def test_a_name_that_is_bound_to_a_vertex_stays_one() -> None:
    first, second = rules_of(
        STREAM + "Answer(x, y, P) <- a(x, y), b(y, P).\nAnswer(x, y, z) <- a+(x, y) as Q, b(y, z)."
    )
    assert len(first.args) == len(second.args) == 3
    assert first.paths == second.paths == ()


def test_a_constructed_edge_has_a_path() -> None:
    notify, answer = rules_of(
        "CONSTRUCT (u)-[:notify {why: p, weight: e.weight}]->(m)\n"
        "MATCH (u)-/p<:follows+>/->(v)-[e:posts]->(m) ON social WINDOW(24h)"
    )
    assert paths_of(notify) == {"why": "p"}
    assert [name for name, _ in notify.values] == ["weight"]
    assert paths_of(answer) == {"why": "p"}


def test_each_alternative_has_a_path_of_its_own() -> None:
    first, second, _ = rules_of(
        "CONSTRUCT (u)-[:notify {why: p}]->(m)\nMATCH (u)-[:knows]->(w)\n"
        "OPTIONAL (u)-/p<:follows+>/->(v)-[:posts]->(m)\nOPTIONAL (w)-/p<:likes+>/->(m)\nON social WINDOW(24h)"
    )
    assert paths_of(first) == {"why": first.body[1].name}
    assert paths_of(second) == {"why": second.body[1].name}
    assert first.body[1].name != second.body[1].name


def test_an_edge_of_a_view_hands_on_its_path() -> None:
    notify, alert, _ = rules_of(
        "GRAPH VIEW seen AS (CONSTRUCT (u)-[:notify {why: p}]->(m)\n"
        "MATCH (u)-/p<:follows+>/->(v)-[:posts]->(m) ON social WINDOW(24h))\n"
        "CONSTRUCT (x)-[:alert {because: e.why}]->(y) MATCH (x)-[e:notify]->(y) ON seen"
    )
    assert paths_of(notify) == {"why": "p"}
    assert paths_of(alert) == {"because": alert.body[0].paths[0][1].name}


def test_a_view_of_another_text_keeps_its_paths_apart() -> None:
    view = parse(STREAM + "Notify(u, m, P) <- follows+(u, v) as P, posts(v, m).")
    query = parse("STREAM seen\nAnswer(x, y, P) <- seen.Notify(x, y, P).", views={"seen": view})
    assert paths_of(query.rules[0]) == {"P": "seen.P"}
    assert parse(to_datalog(query)) == query


TUPLES = "STREAM d TUPLES (P PATH, w INT)\n"


@pytest.mark.parametrize("atom", ["Notify(x, y, P)", "d.Notify(x, y, P: P)"])
def test_a_path_of_another_run_is_read_of_its_tuples(atom: str) -> None:
    [rule] = rules_of(TUPLES + f"Answer(x, y, why: P) <- {atom}, Notify(y, x, w: w), w > 1.")
    assert rule.body[0].paths == (("P", Variable("P")),)
    assert paths_of(rule) == {"why": "P"}
    [stream] = parse(TUPLES + f"Answer(x, y, why: P) <- {atom}.").streams
    assert [(name, str(kind)) for name, kind in stream.properties] == [("P", "PATH")]


def test_a_path_of_another_run_is_read_in_gcore() -> None:
    text = "CONSTRUCT (x)-[:n {why: e.P}]->(y) MATCH (x)-[e:Notify]->(y) ON d TUPLES (P PATH)"
    rule, *_ = rules_of(text)
    assert list(dict(rule.paths)) == ["why"]
    assert [name for name, _ in rule.body[0].paths] == ["P"]
