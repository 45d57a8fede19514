"""Values in both languages: what is read, which types follow, and that it prints to text that means the same."""

from __future__ import annotations

import pytest

from meander.syntax import parse, to_datalog
from meander.syntax.query import PathOrder, RegularQuery
from meander.syntax.values import ValueType

S = "STREAM s WINDOW 24h\n"
ON = "ON s WINDOW(24h)"


def types(query: RegularQuery) -> dict[str, str | None]:
    return {f"{stream.name}.{name}": kind for stream in query.streams for name, kind in stream.properties}


def reads(text: str) -> str:
    """The rules of a text as printed, which are read again as the same query."""
    query = parse(text)
    printed = to_datalog(query)
    assert parse(printed) == query
    return "\n".join(line for line in printed.splitlines() if not line.startswith(("STREAM", "TABLE")))


@pytest.mark.parametrize(
    "rule",
    [
        "Answer(x, y, out: m2) <- a(x, z, amount: m1, ts: t1), b(z, y, amount: m2), m2 >= 0.9 * m1 - (t1 + 3).",
        'Answer(x, y) <- a[amount > 1000 and currency = "EUR"]+(x, y) as P ascending.',
        "Answer(x, y) <- (a[w > 5 or not (u = 3 and v = true)]/^b)*(x, y) strictly ascending.",
        "Answer(x) <- account(x, risk: r), r >= 3.",
        'Answer(x, y) <- a(x, y), x != y, x != "alice", y not in [1, "q"].',
        'Answer(x, y) <- a[c in ["EUR", "USD"]](x, y).',
        "Answer(x, y) <- s.*(x, y), s.*[w = 1.5](y, x).",
        "Answer(x, y) <- a(x, y, `my key`: v), v <= -5.",
        "Answer(x, y) <- a[`in` = 1e+300 and `not` < 2](x, y).",
    ],
)
def test_values_are_printed_as_they_are_read(rule: str) -> None:
    assert reads(S + rule) == rule


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("Answer(x, y) :- a(x, y).", "Answer(x, y) <- a(x, y)."),
        ("Answer(x, y) ← a(x, y).", "Answer(x, y) <- a(x, y)."),
        (
            "Answer(x, y) <- a^+(x, y), b^*(x, y), (c*(x, y) as P).",
            "Answer(x, y) <- a+(x, y), b*(x, y), c*(x, y) as P.",
        ),
        ('Answer(x, y) <- a(x, y, c: "EUR", w: 2.5).', 'Answer(x, y) <- a[c = "EUR" and w = 2.5](x, y).'),
        ("Answer(x, y) <- a(x, y, w: true, v: _).", "Answer(x, y) <- a[w = true](x, y, v: _1)."),
        (
            "Answer(x, y) <- a(x, y, ts: t), t < 2 days, t>1h.",
            "Answer(x, y) <- a(x, y, ts: t), t < 172800, t > 3600.",
        ),
        (
            "Answer(x, y) <- a[ok and not (paid)](x, y), b[not(ok) or w > 2](x, y).",
            "Answer(x, y) <- a[ok = true and not paid = true](x, y), b[not ok = true or w > 2](x, y).",
        ),
        (
            "Answer(x, y) <- a(x, y, ok: o, paid: p), o, not p, (o), o or x = y, s.b(x, y).",
            "Answer(x, y) <- a(x, y, ok: o, paid: p), b(x, y), o = true, not p = true, o = true or x = y.",
        ),
        (
            "Answer(x, y) <- a[w > -5 and -w < - 3 and +w * -(w - -v) <= 7](x, y).",
            "Answer(x, y) <- a[w > -5 and 0 - w < 0 - 3 and w * (0 - (w - (0 - v))) <= 7](x, y).",
        ),
        (
            "Answer(x, y) <- a(x, y, w: m), -m > 1.5, -(m+1)<2.",
            "Answer(x, y) <- a(x, y, w: m), 0 - m > 1.5, 0 - (m + 1) < 2.",
        ),
        ("Answer(x, y) <- a(x, y, ts: t), t+1h-3>=2.", "Answer(x, y) <- a(x, y, ts: t), t + 3600 - 3 >= 2."),
        ("Answer(x, y) <- x <> y, a(x, y).", "Answer(x, y) <- a(x, y), x != y."),
        (
            "Answer(x, y) <- a(x, y), x!=y.b(x, y) <- c(x, y).",
            "Answer(x, y) <- a(x, y), x != y.\nb(x, y) <- c(x, y).",
        ),
    ],
)
def test_other_notations(written: str, means: str) -> None:
    assert reads(S + written) == means


@pytest.mark.parametrize(
    "name", ["table", "ascending", "strictly", "and", "or", "in", "not", "result", "true"]
)
def test_keywords_are_still_names(name: str) -> None:
    label = f"Answer(x, y) <- {name}(x, y), ({name}/b)*(y, x)."
    assert parse(S + label) == parse(S + label.replace(name, f"`{name}`"))
    assert parse(f"STREAM {name} WINDOW 5 {name}(x, y) <- a(x, y). Answer(x, y) <- {name}+(x, y) as P.")


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        ("Answer(x, y) <- a[m > 5](x, y).", {"m": "INT"}),
        ("Answer(x, y) <- a[m > 5 and m < 7.5](x, y).", {"m": "FLOAT"}),
        ("Answer(x, y) <- a(x, y, m: v), b(x, y, n: v), a[m > 0.5](x, y).", {"m": "FLOAT", "n": "FLOAT"}),
        ("Answer(x, y) <- a(x, y, m: v), b(x, y, n: w), v >= 0.9 * w.", {"m": "FLOAT", "n": "FLOAT"}),
        ("Answer(x, y) <- a(x, y, due: v, ts: t), v < t + 1h.", {"due": "TIME"}),
        ('Answer(x, y) <- a[c in ["EUR"] and f = false](x, y).', {"c": "STRING", "f": "BOOL"}),
        ("Answer(x, y, v: m) <- a(x, y, m: m).", {"m": None}),
        ('D(x, y, v: m) <- a(x, y, m: m). Answer(x, y) <- D[v > "b"](x, y).', {"m": "STRING"}),
    ],
)
def test_types_follow_from_use(rules: str, found: dict[str, str | None]) -> None:
    assert types(parse(S + rules)) == {f"s.{name}": kind for name, kind in found.items()}


def test_a_property_that_stands_alone_is_a_bool() -> None:
    assert types(parse(S + "Answer(x, y) <- a[ok](x, y), a(x, y, paid: p), not p.")) == {
        "s.ok": ValueType.BOOL,
        "s.paid": ValueType.BOOL,
    }
    gcore = f"CONSTRUCT (u)-[:x]->(v) MATCH (u)-[e:a]->(v) {ON} WHERE NOT e.ok AND (e.paid OR -e.w > 2)"
    assert types(parse(gcore)) == {
        "s.ok": ValueType.BOOL,
        "s.paid": ValueType.BOOL,
        "s.w": ValueType.INT,
    }
    assert parse(gcore) == parse(gcore.replace("e.ok", "e.ok = true").replace("e.paid", "e.paid = true"))


def test_a_declaration_and_the_input_come_before_use() -> None:
    rules = "Answer(x, y) <- a[m > 5 and n > 5](x, y)."
    declared = parse("STREAM s (m FLOAT, n) WINDOW 5 " + rules)
    assert types(declared) == {"s.m": "FLOAT", "s.n": "INT"}
    known = {"s": {"m": ValueType.FLOAT, "n": ValueType.TIME, "other": ValueType.BOOL}}
    assert types(parse(S + rules, types=known)) == {"s.m": "FLOAT", "s.n": "TIME"}
    assert types(parse("STREAM s (m INT, n) WINDOW 5 " + rules, types=known)) == {"s.m": "INT", "s.n": "TIME"}


def test_a_text_beside_a_time_is_one() -> None:
    rule = 'Answer(x, y) <- a[ts >= "1970-01-01T01:00:00Z" and ts < "1970-01-02"](x, y).'
    assert reads(S + rule) == "Answer(x, y) <- a[ts >= 3600 and ts < 86400](x, y)."
    assert parse(S + rule, unit="ms") == parse(S.replace("24h", "24h") + rule, unit="ms")


@pytest.mark.parametrize(
    ("pattern", "where", "rules"),
    [
        ("(u)-[e:a]->(v)", "WHERE e.w > 5", "x(u, v) <- a(u, v, w: e_w), e_w > 5."),
        ("(u:account)-[:a]->(v)", "", "x(u, v) <- account(u), a(u, v)."),
        (
            '(u:account {risk: 3})-[:a {c: "EUR"}]->(v)',
            "",
            'x(u, v) <- account[risk = 3](u), a[c = "EUR"](u, v).',
        ),
        (
            "(u)-[:a]->(v:account)",
            "WHERE v.risk >= 3 OR u <> v",
            "x(u, v) <- account(v, risk: v_risk), a(u, v), v_risk >= 3 or u != v.",
        ),
        ("(u)-[:a|b]->(v)", "", "x(u, v) <- (a|b)(u, v)."),
        ("(u)-[:a]-(v)", "", "x(u, v) <- (a|^a)(u, v)."),
        ("(u)-[]->(v)", "", "x(u, v) <- s.*(u, v)."),
        ("(u)-/p<:a+> STRICTLY ASCENDING/->(v)", "", "x(u, v) <- a+(u, v) as p strictly ascending."),
        ("(u)-[e:a]->(v)", 'WHERE NOT e.c IN ["EUR"]', 'x(u, v) <- a(u, v, c: e_c), e_c not in ["EUR"].'),
        (
            "(u)-[e:a]->(v), (v)-[f:a]->(w)",
            "WHERE e.m = f.m AND e.ts < f.ts",
            "x(u, v) <- a(u, v, m: e_m, ts: e_ts), a(v, w, m: f_m, ts: f_ts), e_m = f_m, e_ts < f_ts.",
        ),
        (
            "(u)-[e:a|b]->(v)",
            "WHERE e.m > 5",
            "Edge(x, y, m: v1) <- a(x, y, m: v1).\nEdge(x, y, m: v1) <- b(x, y, m: v1).\n"
            "x(u, v) <- Edge(u, v, m: e_m), e_m > 5.",
        ),
    ],
)
def test_gcore_reads_properties(pattern: str, where: str, rules: str) -> None:
    text = f"CONSTRUCT (u)-[:x]->(v) MATCH {pattern} {ON} {where}"
    assert reads(text).removesuffix("\nAnswer(u, v) <- x(u, v).") == rules


def test_a_constructed_edge_returns_properties() -> None:
    text = f"CONSTRUCT (u)-[:x {{m: e.amount, at: e.ts}}]->(v) MATCH (u)-[e:a]->(v) {ON}"
    assert reads(text).splitlines() == [
        "x(u, v, at: e_ts, m: e_amount) <- a(u, v, amount: e_amount, ts: e_ts).",
        "Answer(u, v, at: e_ts, m: e_amount) <- x(u, v, at: e_ts, m: e_amount).",
    ]


def test_a_path_clause_has_conditions_of_its_own() -> None:
    text = f"PATH big = (x)-[e:a]->(y) WHERE e.m > 5 CONSTRUCT (u)-[:r]->(v) MATCH (u)-/p<~big+> ASCENDING/->(v) {ON}"
    query = parse(text)
    assert reads(text).splitlines()[:2] == [
        "big(x, y) <- a(x, y, m: e_m), e_m > 5.",
        "r(u, v) <- big+(u, v) as p ascending.",
    ]
    assert query.rules[1].body[0].order is PathOrder.ASCENDING


def test_a_table_has_no_window() -> None:
    query = parse("TABLE kyc (risk INT) Answer(x) <- account(x, risk: r), r > 3.")
    assert [(stream.name, stream.is_table) for stream in query.streams] == [("kyc", True)]
    text = (
        "CONSTRUCT (u)-[:x]->(v) MATCH (u)-[:a]->(v) ON s WINDOW(5) MATCH (v:account) ON TABLE kyc (risk INT)"
    )
    assert [stream.is_table for stream in parse(text).streams] == [False, True]
