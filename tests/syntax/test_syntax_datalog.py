"""Datalog texts and the regular queries that they are."""

from __future__ import annotations

import pytest

import meander
from meander.algebra.nodes import Path
from meander.algebra.printing import walk
from meander.engine import compile_query, physical_plan
from meander.errors import ArgumentError, QueryError
from meander.syntax import parse, to_datalog
from meander.syntax.query import (
    Atom,
    Constant,
    Either,
    Inverse,
    Label,
    PathExpr,
    RegularQuery,
    Repeat,
    Rule,
    Stream,
    Then,
    Variable,
)

X, Y, Z, U, V, M = (Variable(name) for name in "xyzuvm")


def label(name: str, stream: str | None = "s") -> Label:
    return Label(name, stream)


def expression(text: str) -> PathExpr:
    return parse(f"STREAM s WINDOW 1 Answer(x, y) <- ({text})(x, y).").rules[0].body[0].expr


def test_the_notification_query() -> None:
    query = parse(
        """
        STREAM social WINDOW 24h SLIDE 1h
        RL(u1, u2)   <- likes(u1, m), follows+(u1, u2) as FP, posts(u2, m).
        Notify(u, m) <- RL+(u, v) as RLP, posts(v, m).   % a comment
        Answer(u, m) <- Notify(u, m).                    # another
        """
    )
    u1, u2 = Variable("u1"), Variable("u2")
    likes, follows, posts = (label(name, "social") for name in ("likes", "follows", "posts"))
    assert query == RegularQuery(
        (Stream("social", 86_400, 3_600),),
        (
            Rule(
                "RL",
                (u1, u2),
                (Atom(likes, u1, M), Atom(Repeat(follows, 1, None), u1, u2, "FP"), Atom(posts, u2, M)),
            ),
            Rule("Notify", (U, M), (Atom(Repeat(Label("RL"), 1, None), U, V, "RLP"), Atom(posts, V, M))),
            Rule("Answer", (U, M), (Atom(Label("Notify"), U, M),)),
        ),
        ("Answer",),
    )


PAPER = {
    "Q1": "Answer(x, y) <- a*(x, y) as P.",
    "Q2": "Answer(x, y) <- (a/b*)(x, y) as P.",
    "Q3": "Answer(x, y) <- (a/b*/c*)(x, y) as P.",
    "Q4": "D(x, y) <- a(x, u), b(u, v), c(v, y).\nAnswer(x, y) <- D+(x, y) as P.",
    "Q5": "Answer(m1, m2) <- a(x, y), b(m1, x), b(m2, y), c(m2, m1).",
    "Q6": "Answer(x, y) <- a+(x, y) as AP, b(x, m), c(m, y).",
    "Q7": "RL(x, y) <- a+(x, y) as AP, b(x, m), c(m, y).\nAnswer(x, m) <- RL+(x, y) as RLP, c(m, y).",
}


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_queries_are_printed_as_they_are_written(name: str) -> None:
    text = f"STREAM s WINDOW 100\n{PAPER[name]}\n"
    assert to_datalog(parse(text)) == text


def test_a_bare_window_before_a_head_spelled_like_a_unit_is_in_the_streams_unit() -> None:
    for text in ("STREAM s WINDOW 24\nD(x, y) <- a(x, y).", "STREAM s WINDOW 24 d(x, y) <- a(x, y)."):
        assert parse(text).streams == (Stream("s", 24),)


@pytest.mark.parametrize(
    ("text", "expr"),
    [
        ("a", label("a")),
        ("a/b/c", Then((label("a"), label("b"), label("c")))),
        ("a|b", Either((label("a"), label("b")))),
        ("a/b|c", Either((Then((label("a"), label("b"))), label("c")))),
        ("a/(b|c)", Then((label("a"), Either((label("b"), label("c")))))),
        ("a*", Repeat(label("a"), 0, None)),
        ("a+", Repeat(label("a"), 1, None)),
        ("a?", Repeat(label("a"), 0, 1)),
        ("a{2,4}", Repeat(label("a"), 2, 4)),
        ("a{3}", Repeat(label("a"), 3, 3)),
        ("a{2,}", Repeat(label("a"), 2, None)),
        ("^a", Inverse(label("a"))),
        ("^a*", Inverse(Repeat(label("a"), 0, None))),
        ("(^a)*", Repeat(Inverse(label("a")), 0, None)),
        ("^(a/b)", Inverse(Then((label("a"), label("b"))))),
        ("`has-tag`", label("has-tag")),
        ("`back``quote`", label("back`quote")),
        ("s.a", label("a")),
        ("s.`a.b`", label("a.b")),
    ],
)
def test_expressions_bind_as_in_sparql(text: str, expr: PathExpr) -> None:
    assert expression(text) == expr


def test_an_expression_needs_no_parentheses_before_its_arguments() -> None:
    [rule] = parse("STREAM s WINDOW 1 Answer(x, y) <- a/b*(x, y).").rules
    assert rule.body[0].expr == Then((label("a"), Repeat(label("b"), 0, None)))


def test_a_constant_may_stand_for_a_variable() -> None:
    [rule] = parse(
        """STREAM s WINDOW 1 Answer(x, y) <- a("al\\"ice\\u00e9", x), a('bob', y), a(-7, y)."""
    ).rules
    assert [atom.src for atom in rule.body] == [Constant('al"iceé'), Constant("bob"), Constant(-7)]


def test_each_anonymous_variable_is_another() -> None:
    [rule] = parse("STREAM s WINDOW 1 Answer(x) <- a(x, _), b(_, _1).").rules
    assert [(atom.src, atom.trg) for atom in rule.body] == [
        (X, Variable("_2")),
        (Variable("_3"), Variable("_1")),
    ]


@pytest.mark.parametrize(("args", "arity"), [("", 0), ("x", 1), ("x, y", 2), ("x, y, x", 3)])
def test_an_answer_has_any_arity(args: str, arity: int) -> None:
    assert len(parse(f"STREAM s WINDOW 1 Answer({args}) <- a(x, y).").rules[0].args) == arity


def test_the_last_head_is_the_result_if_there_is_no_answer() -> None:
    query = parse("STREAM s WINDOW 1 A(x, y) <- a(x, y). B(x) <- A(x, y).")
    assert query.results == ("B",)


def test_answer_is_the_result_wherever_it_stands() -> None:
    query = parse("STREAM s WINDOW 1 Answer(x, y) <- B(x, y). B(x, y) <- a(x, y).")
    assert query.results == ("Answer",)


def test_results_can_be_named() -> None:
    query = parse("STREAM s WINDOW 1 A(x, y) <- a(x, y). B(x, y) <- b(x, y). RESULT A, B")
    assert query.results == ("A", "B")


def test_rules_of_one_head_are_a_union() -> None:
    query = parse("STREAM s WINDOW 1 A(x, y) <- a(x, y). A(x, y) <- b(y, x).")
    assert [rule.head for rule in query.rules] == ["A", "A"]


def test_with_several_streams_labels_carry_their_stream() -> None:
    query = parse("STREAM s WINDOW 1 STREAM t WINDOW 2 Answer(x, y) <- s.a(x, z), t.a+(z, y).")
    assert [atom.expr for atom in query.rules[0].body] == [label("a"), Repeat(label("a", "t"), 1, None)]


def test_a_bare_name_is_a_head_before_it_is_a_label() -> None:
    query = parse("STREAM s WINDOW 1 follows(x, y) <- s.follows(x, y). Answer(x, y) <- follows(x, y).")
    assert [rule.body[0].expr for rule in query.rules] == [label("follows"), label("follows", None)]


def test_keywords_are_read_in_any_case_and_can_be_names() -> None:
    query = parse("stream stream Window 2 slide 1 result(as, window) <- slide(as, window) AS stream.")
    assert query.streams == (Stream("stream", 2, 1),)
    assert query.rules[0].head == "result"
    assert query.rules[0].body == (
        Atom(label("slide", "stream"), Variable("as"), Variable("window"), "stream"),
    )


def test_a_head_may_say_which_path_is_the_answers() -> None:
    [rule] = parse("STREAM s WINDOW 1 because(u, v) as p <- a*(u, v) as p, b(v, m).").rules
    assert (rule.head, rule.args, rule.path, rule.body[0].name) == ("because", (U, V), "p", "p")


def test_statements_come_in_any_order() -> None:
    query = parse("RESULT A A(x, y) <- B(x, y). STREAM s WINDOW 1 B(x, y) <- a(x, y).")
    assert query == parse("STREAM s WINDOW 1 A(x, y) <- B(x, y). B(x, y) <- a(x, y). RESULT A")


def test_redundant_parentheses_nest_as_deep_as_they_like() -> None:
    assert expression("(" * 5_000 + "a" + ")" * 5_000) == label("a")


def test_a_text_may_begin_with_a_byte_order_mark_and_have_windows_line_ends() -> None:
    assert parse("\ufeffSTREAM s WINDOW 1\r\n% note\r\nA(x, y) <- a(x, y).\r\n").results == ("A",)


# -- views


def view() -> RegularQuery:
    return parse(
        """
        STREAM s WINDOW 5
        RL(x, y) <- a+(x, y) as P, b(x, m), c(m, y).
        because(x, y) as Q <- RL*(x, y) as Q, a(x, z).
        """
    )


def test_a_view_is_read_without_a_window() -> None:
    query = parse("STREAM v Answer(x, y) <- RL+(x, y).", views={"v": view()})
    assert to_datalog(query) == (
        "STREAM s WINDOW 5\n"
        "v.RL(x, y) <- a+(x, y) as `v.P`, b(x, m), c(m, y).\n"
        "v.because(x, y) as `v.Q` <- v.RL*(x, y) as `v.Q`, a(x, z).\n"
        "Answer(x, y) <- v.RL+(x, y).\n"
    )
    assert parse(to_datalog(query)) == query


def test_a_view_is_joined_with_a_stream() -> None:
    query = parse("STREAM v STREAM t WINDOW 7 Answer(x, y) <- v.RL(x, z), t.buys(z, y).", views={"v": view()})
    assert query.streams == (Stream("s", 5), Stream("t", 7))
    assert [atom.expr for atom in query.rules[-1].body] == [label("v.RL", None), label("buys", "t")]


def test_views_are_read_by_views() -> None:
    second = parse("STREAM v RL(x, y) <- v.RL(y, x).", views={"v": view()})
    query = parse("STREAM w Answer(x, y) <- RL(x, y).", views={"w": second})
    assert [rule.head for rule in query.rules] == ["w.v.RL", "w.v.because", "w.RL", "Answer"]
    assert parse(to_datalog(query)) == query


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("STREAM v Answer(x, y) <- LR(x, y).", "the view v has no label LR"),
        ("STREAM v WINDOW 5 Answer(x, y) <- RL(x, y).", "v is a view, which has no window of its own"),
        ("STREAM w Answer(x, y) <- RL(x, y).", "the stream w is missing its window"),
        ("STREAM v v.RL(x, y) <- RL(x, y).", "the labels of v are not defined here"),
        ("STREAM v STREAM s WINDOW 6 Answer(x, y) <- v.RL(x, y).", "the stream s has two windows"),
    ],
)
def test_a_view_is_used_as_one(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        parse(text, views={"v": view()})


def test_windows_are_in_the_given_unit() -> None:
    text = "STREAM s WINDOW 2h SLIDE 5 A(x, y) <- a(x, y)."
    assert parse(text, unit="ms").streams == (Stream("s", 7_200_000, 5),)


def test_unknown_languages_and_units_are_refused() -> None:
    with pytest.raises(ArgumentError, match="unknown language"):
        parse("", language="sql")
    with pytest.raises(ArgumentError, match="unknown time unit"):
        parse("", unit="h")


PATHS = "STREAM s WINDOW 9 {}R(x, y) <- a+(x, y) as AP, b(y, x). Answer(x, y) <- {}"


@pytest.mark.parametrize("use", ["AP(x, z), R(z, y).", "(AP|R)*(x, y) as Q.", "^AP(x, y), R(x, x)."])
def test_the_name_of_a_path_is_that_of_all_its_paths(use: str) -> None:
    """As the paper's SGQParser has it: exp[d] is the closure, whatever its rule joins with it."""
    query = parse(PATHS.format("", use))
    assert query == parse(PATHS.format("AP(x, y) <- a+(x, y) as AP. ", use))
    assert parse(to_datalog(query)) == query
    plain = "AP(x, y) <- a+(x, y). R(x, y) <- a+(x, y), b(y, x). Answer(x, y) <- "
    edges = [
        ("u", "a", "v", 1),
        ("v", "a", "w", 2),
        ("v", "b", "u", 3),
        ("w", "a", "u", 4),
        ("w", "b", "v", 5),
    ]
    assert list(meander.run(PATHS.format("", use), edges)) == list(
        meander.run(f"STREAM s WINDOW 9 {plain} {use}", edges)
    )


def test_a_path_that_is_used_by_its_name_is_computed_once() -> None:
    query = compile_query(PATHS.format("", "AP(x, y), R(x, y)."))
    assert sum(isinstance(node, Path) for node in set(walk(query.canonical["Answer"]))) == 1
    assert sum(name.startswith("PATH") for name in physical_plan([query]).names) == 1


def test_the_name_of_a_path_may_be_a_result() -> None:
    query = compile_query("STREAM s WINDOW 9 R(x, y) <- a+(x, y) as AP, b(y, x). RESULT R, AP")
    assert query.regular.results == ("R", "AP")
    assert [bool(paths) for paths in query.proofs.values()] == [False, True]


def test_a_head_and_a_label_of_a_stream_are_not_a_path_of_their_name() -> None:
    query = parse("STREAM s WINDOW 9 R(x, y) <- a+(x, y) as AP. Answer(x, y) <- s.AP(x, y), R(x, y).")
    assert [rule.head for rule in query.rules] == ["R", "Answer"]


def test_a_view_has_the_paths_that_it_uses_by_name() -> None:
    view = parse(PATHS.format("", "AP(x, z), R(z, y)."))
    query = parse("STREAM v Answer(x, y) <- v.AP(x, z), v.Answer(z, y).", views={"v": view})
    assert [rule.head for rule in query.rules] == ["v.AP", "v.R", "v.Answer", "Answer"]
    assert parse(to_datalog(query)) == query
