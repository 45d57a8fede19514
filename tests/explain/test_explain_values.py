"""Values in explanations: where predicates went, what values cost, and warnings about inputs."""

from __future__ import annotations

from meander.explain import explain
from meander.explain.warnings import warnings_of
from meander.syntax import parse

QUERY = """STREAM bank (amount FLOAT, currency STRING) WINDOW 24h SLIDE 1h
TABLE kyc (risk INT)
Answer(x, y, out: m2) <- bank.transfer(x, z, amount: m1, ts: t1), bank.transfer(z, y, amount: m2, ts: t2), t1 < t2,
                         m1 > 500, x != y, kyc.account(y, risk: r), r >= 3, bank.wire[currency = "EUR"]+(y, x).
"""


def test_a_predicate_stands_where_it_is_decided() -> None:
    lines = explain(QUERY, "physical").splitlines()
    scans = [line.strip() for line in lines if "WSCAN" in line]
    assert any("reads ts; where amount > 500;" in line for line in scans)
    assert any("vertices; table; where risk >= 3;" in line for line in scans)
    assert any('where currency = "EUR";' in line for line in scans)
    (pattern,) = (line for line in lines if "PATTERN Answer from" in line)
    assert "ts1 < ts2" in pattern
    assert "500" not in pattern


def test_the_state_of_values_is_named() -> None:
    text = explain(QUERY)
    assert "transfer with amount and ts" in text
    assert "rows of kyc (account where risk >= 3), each until a later one replaces it" in text
    assert "2 values (amount, ts), 4 bytes per edge and value" in text
    assert "for deletions from bank, its edges by amount and currency" in text


def test_values_tie_atoms_and_tables_have_no_endless_window() -> None:
    tied = "TABLE s (m INT) Answer(x, y) <- s.a(x, _, m: v), s.b(_, y, m: v)."
    assert not warnings_of(parse(tied))
    assert "compares no value" in warnings_of(parse("TABLE s Answer(x, y) <- s.a(x, y), 1 < 2."))[0].message
    labels = "TABLE s Answer(x, y) <- s.account(x), s.account+(x, y)."
    assert "label of vertices" in warnings_of(parse(labels))[0].message


def test_a_row_of_a_table_that_is_read_as_an_edge_by_mistake_is_pointed_out() -> None:
    text = "TABLE t STREAM s WINDOW 9 Answer(x, y) <- s.a(x, y), t.host(y, z, crit: c), c > 5."
    [warning] = warnings_of(parse(text))
    assert warning.message == (
        "t.host(y, z, crit: c) reads edges, and nothing else names z: a row without trg is a vertex, whose atom has "
        "one end, t.host(y, crit: c)"
    )
    for meant in (
        "t.host(y, crit: c)",
        "t.host(y, z, crit: c), s.a(z, x)",
        "t.host(y, z, crit: c), z != x",
        "t.host(y, _, crit: c)",
    ):
        assert warnings_of(parse(text.replace("t.host(y, z, crit: c)", meant))) == []


def test_a_bool_is_explained_as_it_is_compared() -> None:
    assert "a[ok = true]" in explain("STREAM s WINDOW 9 Answer(x, y) <- a[ok](x, y).", "query")
