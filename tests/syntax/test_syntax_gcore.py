"""G-CORE texts, and the regular queries that they are, written as Datalog."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from meander.syntax import guess_language, parse, to_datalog
from meander.syntax.query import Label, RegularQuery, Rule, heads_of, map_labels

FIGURES = Path(__file__).parent / "figures"
ON = "ON s WINDOW(5)"


def same(text: str, datalog: str) -> None:
    """The text means the Datalog query, and its printed form parses to itself."""
    query = parse(text, language="gcore")
    assert to_datalog(query) == to_datalog(parse(datalog))
    assert parse(to_datalog(query)) == query


def equal_up_to_names(first: RegularQuery, second: RegularQuery) -> bool:
    """Whether some renaming of heads, variables and paths, and some order of rules and atoms, makes them equal."""
    heads, other_heads = heads_of(first), heads_of(second)
    return first.streams == second.streams and any(
        _canonical(first, dict(zip(heads, order, strict=True)))
        == _canonical(second, {h: h for h in other_heads})
        for order in permutations(other_heads)
        if len(heads) == len(other_heads)
    )


def _canonical(query: RegularQuery, heads: dict[str, str]) -> tuple[object, object]:
    return {_canonical_rule(rule, heads) for rule in query.rules}, {heads[result] for result in query.results}


def _canonical_rule(rule: Rule, heads: dict[str, str]) -> tuple[object, ...]:
    """The least form of the rule over all orders of its atoms, variables numbered in order of use."""

    def renamed(label: Label) -> Label:
        return Label(heads[label.name]) if label.stream is None else label

    forms = []
    for body in permutations(rule.body):
        numbers: dict[object, int] = {}
        args = tuple(numbers.setdefault(term, len(numbers)) for term in rule.args)
        atoms = tuple(
            (
                repr(map_labels(atom.expr, renamed)),
                numbers.setdefault(atom.src, len(numbers)),
                numbers.setdefault(atom.trg, len(numbers)),
            )
            for atom in body
        )
        forms.append((heads[rule.head], args, atoms))
    return min(forms)


# -- the paper's figures


def test_the_notification_figure_is_the_papers_regular_query() -> None:
    figure = parse((FIGURES / "notification.gcore").read_text())
    paper = parse(
        """
        STREAM social_stream WINDOW 24h SLIDE 1h
        RL(u1, u2)   <- likes(u1, m1), follows*(u1, u2) as FP, posts(u2, m1).
        Notify(u, m) <- RL*(u, v) as RLP, posts(v, m).
        Answer(u, m) <- Notify(u, m).
        """
    )
    assert equal_up_to_names(figure, paper)
    assert heads_of(figure) == ("RL", "notify", "Answer")


def test_the_recommendation_figure_is_the_papers_regular_query() -> None:
    figure = parse((FIGURES / "recommendation.gcore").read_text())
    paper = parse(
        """
        STREAM social_stream WINDOW 24h
        STREAM tx_stream WINDOW 30d SLIDE 1d
        ACQ(u1, u2)  <- social_stream.likes(u1, m1), social_stream.posts(u2, m1).
        ACQ(u1, u2)  <- social_stream.follows(u1, u2).
        REC(u, p)    <- ACQ(u, u2), tx_stream.purchase(u2, p).
        Answer(u, p) <- REC(u, p).
        """
    )
    assert equal_up_to_names(figure, paper)
    assert heads_of(figure) == ("Alternative", "rec_stream.recommendation", "Answer")


def test_equality_up_to_names_tells_queries_apart() -> None:
    query = parse("STREAM s WINDOW 1 A(x, y) <- a(x, z), b(z, y). Answer(x, y) <- A+(x, y).")
    assert equal_up_to_names(
        query, parse("STREAM s WINDOW 1 B(u, v) <- b(w, v), a(u, w). Answer(x, y) <- B+(x, y).")
    )
    assert not equal_up_to_names(
        query, parse("STREAM s WINDOW 1 B(u, v) <- b(v, w), a(u, w). Answer(x, y) <- B+(x, y).")
    )
    assert not equal_up_to_names(
        query, parse("STREAM s WINDOW 1 B(u, v) <- a(u, w), b(w, v). Answer(x, y) <- B*(x, y).")
    )


# -- expressions


@pytest.mark.parametrize(
    ("gcore", "datalog"),
    [
        (":a", "a"),
        (":a*", "a*"),
        (":a^*", "a*"),
        (":a ^+", "a+"),
        (":a?", "a?"),
        (":a{2,4}", "a{2,4}"),
        (":a{3}", "a{3}"),
        (":a{2,}", "a{2,}"),
        (":a-", "^a"),
        (":a-*", "(^a)*"),
        ("(:a :b)-", "^(a/b)"),
        (":a/:b", "a/b"),
        (":a :b", "a/b"),
        (":a:b*", "a/b*"),
        (":a-/:b-", "^a/^b"),
        (":a|:b/:c", "a|b/c"),
        ("(:a|:b)/:c", "(a|b)/c"),
        (":`has-tag`+", "`has-tag`+"),
    ],
)
def test_expressions(gcore: str, datalog: str) -> None:
    same(
        f"CONSTRUCT (u)-[:x]->(v) MATCH (u)-/<{gcore}>/->(v) {ON}",
        f"STREAM s WINDOW 5 x(u, v) <- ({datalog})(u, v). Answer(u, v) <- x(u, v).",
    )


@pytest.mark.parametrize(
    ("pattern", "body"),
    [
        ("(u)-[:a]->(v)", "a(u, v)"),
        ("(u)<-[:a]-(v)", "a(v, u)"),
        ("(u)-[:a]->(m)<-[:b]-(v)", "a(u, m), b(v, m)"),
        ("(u)<-/p<:a+>/-(v)", "a+(v, u) as p"),
        ("(u)-[:a]->()-[:b]->(v)", "a(u, _1), b(_1, v)"),
        ("(u)-[:a]->(_), (_)-[:b]->(v)", "a(u, _1), b(_2, v)"),
        ("(u)-[:a]->(v), (w)", "a(u, v)"),
        ('(u)-[:a]->(v), (v)-[:b]->("alice")', 'a(u, v), b(v, "alice")'),
        ("(u)-[:a]->(v)-[:b]->(7)", "a(u, v), b(v, 7)"),
        ('(u)-[:a]->(v), (v)-[:b]->(w = "alice"), (w)-[:c]->(u)', 'a(u, v), b(v, "alice"), c("alice", u)'),
    ],
)
def test_patterns(pattern: str, body: str) -> None:
    same(
        f"CONSTRUCT (u)-[:x]->(v) MATCH {pattern} {ON}",
        f"STREAM s WINDOW 5 x(u, v) <- {body}. Answer(u, v) <- x(u, v).",
    )


# -- WHERE


@pytest.mark.parametrize(
    ("condition", "body"),
    [
        ("(w) = (v)", "a(u, v), b(v, m)"),
        ("w = v", "a(u, v), b(v, m)"),
        ("(w = v)", "a(u, v), b(v, m)"),
        ("(v) = (w) AND (v) = (m)", "a(u, v), b(v, v)"),
        ('(w) = "alice"', 'a(u, v), b("alice", m)'),
        ('"alice" = w AND (m) = 7', 'a(u, v), b("alice", 7)'),
        ('(w = m AND ((m = "alice")))', 'a(u, v), b("alice", "alice")'),
        ('(u) = "alice"', 'a(u, v), b(w, m), u = "alice"'),
        ("(u) = (u)", "a(u, v), b(w, m)"),
    ],
)
def test_where_unifies(condition: str, body: str) -> None:
    same(
        f"CONSTRUCT (u)-[:x]->(v) MATCH (u)-[:a]->(v), (w)-[:b]->(m) {ON} WHERE {condition}",
        f"STREAM s WINDOW 5 x(u, v) <- {body}. Answer(u, v) <- x(u, v).",
    )


def test_an_end_that_is_a_vertex_is_compared_with_it() -> None:
    same(
        f"CONSTRUCT (u)-[:x]->(v) MATCH (u)-/<(:a|:b-)*>/->(v) {ON} WHERE (v) = 7",
        "STREAM s WINDOW 5 x(u, v) <- (a|^b)*(u, v), v = 7. Answer(u, v) <- x(u, v).",
    )


# -- CONSTRUCT


def test_several_elements_are_several_results() -> None:
    same(
        f"CONSTRUCT (u)-[:x]->(v)<-[:y]-(w) MATCH (u)-[:a]->(v), (w)-[:b]->(v) {ON}",
        "STREAM s WINDOW 5 x(u, v) <- a(u, v), b(w, v). y(w, v) <- a(u, v), b(w, v). RESULT x, y",
    )


def test_elements_of_one_label_are_a_union() -> None:
    same(
        f"CONSTRUCT (u)-[:x]->(v), (v)-[:x]->(u) MATCH (u)-[:a]->(v) {ON}",
        "STREAM s WINDOW 5 x(u, v) <- a(u, v). x(v, u) <- a(u, v). Answer(u, v) <- x(u, v).",
    )


def test_a_constructed_path_is_one_of_the_match_under_all_its_conditions() -> None:
    same(
        f"PATH RL = (x)-[:a]->(y) "
        f"CONSTRUCT (u)-[:notify]->(m), (u)-/@p:because/->(v) MATCH (u)-/p<~RL*>/->(v), (v)-[:b]->(m) {ON}",
        "STREAM s WINDOW 5 RL(x, y) <- a(x, y). notify(u, m) <- RL*(u, v), b(v, m). "
        "because(u, v) as p <- RL*(u, v) as p, b(v, m). RESULT notify, because",
    )


def test_a_constructed_path_alone_is_the_result() -> None:
    query = parse(f"CONSTRUCT (u)-/@p:because/->(v) MATCH (v)<-/p<:a*>/-(u) {ON}")
    assert query.results == ("because",)
    assert query.rules[-1].path == "p"


def test_one_path_constructed_twice_has_two_names() -> None:
    same(
        f"CONSTRUCT (u)-/@p:x/->(v), (u)-/@p:y/->(v) MATCH (u)-/p<:a*>/->(v) {ON}",
        "STREAM s WINDOW 5 x(u, v) as p <- a*(u, v) as p. y(u, v) as p_2 <- a*(u, v) as p_2. RESULT x, y",
    )


def test_a_constructed_label_may_be_spelled_like_one_of_the_stream() -> None:
    same(
        f"CONSTRUCT (u)-[:a]->(w) MATCH (u)-[:a]->(v)-[:a]->(w) {ON}",
        "STREAM s WINDOW 5 a(u, w) <- s.a(u, v), s.a(v, w). Answer(u, w) <- a(u, w).",
    )


def test_a_label_named_answer_is_the_answer() -> None:
    same(
        f"CONSTRUCT (u)-[:Answer]->(v) MATCH (u)-[:a]->(v) {ON}", "STREAM s WINDOW 5 Answer(u, v) <- a(u, v)."
    )


# -- PATH


def test_a_path_clause_leads_along_its_first_pattern() -> None:
    same(
        f"PATH P = (a)-[:x]->(b)-[:y]->(c), (c)-[:z]->(d) CONSTRUCT (u)-[:r]->(v) MATCH (u)-/<~P+>/->(v) {ON}",
        "STREAM s WINDOW 5 P(a, c) <- x(a, b), y(b, c), z(c, d). r(u, v) <- P+(u, v). Answer(u, v) <- r(u, v).",
    )


def test_path_clauses_build_on_one_another_in_any_order() -> None:
    same(
        f"PATH P = (a)-/<~Q+>/->(b) PATH Q = (a)-[:x]->(b) CONSTRUCT (u)-[:r]->(v) MATCH (u)-/<~P|~Q>/->(v) {ON}",
        "STREAM s WINDOW 5 Q(a, b) <- x(a, b). P(a, b) <- Q+(a, b). r(u, v) <- (P|Q)(u, v). Answer(u, v) <- r(u, v).",
    )


def test_a_path_clause_reads_the_stream_that_it_is_used_on() -> None:
    same(
        "PATH P = (a)-[:x]->(b) CONSTRUCT (u)-[:r]->(w) "
        "MATCH (u)-/<~P>/->(v) ON s WINDOW(5) MATCH (v)-/<~P>/->(w) ON t WINDOW(6)",
        "STREAM s WINDOW 5 STREAM t WINDOW 6 P(a, b) <- s.x(a, b). P_2(a, b) <- t.x(a, b). "
        "r(u, w) <- P(u, v), P_2(v, w). Answer(u, w) <- r(u, w).",
    )


def test_a_path_clause_spelled_like_a_constructed_label_is_another_head() -> None:
    same(
        f"PATH r = (a)-[:x]->(b) CONSTRUCT (u)-[:r]->(v) MATCH (u)-/r<~r+>/->(v) {ON}",
        "STREAM s WINDOW 5 r_2(a, b) <- x(a, b). r(u, v) <- r_2+(u, v) as r_3. Answer(u, v) <- r(u, v).",
    )


def test_the_end_of_a_path_clause_may_be_a_vertex_or_have_no_name() -> None:
    same(
        f'PATH P = ("alice")-[:x]->() CONSTRUCT (u)-[:r]->(v) MATCH (u)-/<~P>/->(v) {ON}',
        'STREAM s WINDOW 5 P(_1, _2) <- x(_1, _2), _1 = "alice". r(u, v) <- P(u, v). Answer(u, v) <- r(u, v).',
    )


# -- OPTIONAL


def test_alternatives_of_the_only_match_are_rules_of_the_element() -> None:
    same(
        f"CONSTRUCT (u)-[:r]->(v) MATCH (u)-[:a]->(w) OPTIONAL (w)-[:b]->(v) OPTIONAL (w)-[:c]->(v) {ON}",
        "STREAM s WINDOW 5 r(u, v) <- a(u, w), b(w, v). r(u, v) <- a(u, w), c(w, v). Answer(u, v) <- r(u, v).",
    )


def test_alternatives_beside_another_match_are_a_head_with_the_mandatory_part() -> None:
    same(
        "CONSTRUCT (u)-[:r]->(p) MATCH (u)-[:a]->(w) OPTIONAL (w)-[:b]->(v) OPTIONAL (w)-[:c]->(v) ON s WINDOW(5) "
        "MATCH (v)-[:d]->(p) ON t WINDOW(6)",
        "STREAM s WINDOW 5 STREAM t WINDOW 6 Alternative(u, v) <- s.a(u, w), s.b(w, v). "
        "Alternative(u, v) <- s.a(u, w), s.c(w, v). "
        "r(u, p) <- Alternative(u, v), t.d(v, p). Answer(u, p) <- r(u, p).",
    )


def test_alternatives_that_share_three_variables_with_the_rest_are_chosen_in_the_element() -> None:
    same(
        "CONSTRUCT (u)-[:r]->(p) MATCH (u)-[:a]->(w) OPTIONAL (w)-[:b]->(v) OPTIONAL (w)-[:c]->(v) ON s WINDOW(5) "
        "MATCH (v)-[:d]->(p), (w)-[:e]->(p) ON t WINDOW(6)",
        "STREAM s WINDOW 5 STREAM t WINDOW 6 "
        "r(u, p) <- s.a(u, w), s.b(w, v), t.d(v, p), t.e(w, p). "
        "r(u, p) <- s.a(u, w), s.c(w, v), t.d(v, p), t.e(w, p). Answer(u, p) <- r(u, p).",
    )


def test_alternatives_may_bind_one_path_that_is_constructed() -> None:
    same(
        f"CONSTRUCT (u)-/@p:r/->(v) MATCH OPTIONAL (u)-/p<:a*>/->(v) OPTIONAL (u)-/p<:b*>/->(v), (v)-[:c]->(w) {ON}",
        "STREAM s WINDOW 5 r(u, v) as p <- a*(u, v) as p. r(u, v) as p_2 <- b*(u, v) as p_2, c(v, w).",
    )


# -- views

FRIENDS = f"GRAPH VIEW friends AS (CONSTRUCT (u)-[:friend]->(v) MATCH (u)-[:a]->(v), (v)-[:a]->(u) {ON})"


def test_a_view_at_the_end_is_the_result() -> None:
    same(
        FRIENDS,
        "STREAM s WINDOW 5 friends.friend(u, v) <- a(u, v), a(v, u). Answer(u, v) <- friends.friend(u, v).",
    )


def test_views_are_read_by_views_and_joined_with_streams() -> None:
    same(
        f"{FRIENDS} GRAPH VIEW far AS "
        "(CONSTRUCT (u)-[:far]->(v), (v)-[:near]->(u) MATCH (u)-/<:friend+>/->(v) ON friends) "
        "CONSTRUCT (u)-[:r]->(w) MATCH (u)-[:far]->(v) ON far MATCH (v)-[:a]->(w) ON s",
        "STREAM s WINDOW 5 friends.friend(u, v) <- a(u, v), a(v, u). far.far(u, v) <- friends.friend+(u, v). "
        "far.near(v, u) <- friends.friend+(u, v). r(u, w) <- far.far(u, v), a(v, w). Answer(u, w) <- r(u, w).",
    )


def test_a_text_that_ends_with_a_view_of_several_labels_has_them_as_results() -> None:
    query = parse(f"GRAPH VIEW v AS (CONSTRUCT (u)-[:x]->(v), (u)-[:y]->(v) MATCH (u)-[:a]->(v) {ON})")
    assert query.results == ("v.x", "v.y")
    assert parse(to_datalog(query)) == query


def test_a_query_reads_the_views_that_it_is_given() -> None:
    query = parse(
        "CONSTRUCT (u)-[:r]->(v) MATCH (u)-/<:friend+>/->(v) ON friends", views={"friends": parse(FRIENDS)}
    )
    assert to_datalog(query) == (
        "STREAM s WINDOW 5\n"
        "friends.friend(u, v) <- a(u, v), a(v, u).\n"
        "friends.Answer(u, v) <- friends.friend(u, v).\n"
        "r(u, v) <- friends.friend+(u, v).\n"
        "Answer(u, v) <- r(u, v).\n"
    )


def test_a_datalog_query_reads_a_view_made_in_gcore() -> None:
    query = parse("STREAM friends Answer(x, y) <- friend*(x, y).", views={"friends": parse(FRIENDS)})
    assert heads_of(query) == ("friends.friend", "friends.Answer", "Answer")


def test_a_stream_named_again_keeps_its_window() -> None:
    query = parse("CONSTRUCT (u)-[:r]->(w) MATCH (u)-[:a]->(v) ON s WINDOW(5) MATCH (v)-[:b]->(w) ON s")
    assert [(stream.name, stream.window) for stream in query.streams] == [("s", 5)]


def test_a_stream_on_two_windows_is_one_input() -> None:
    text = (
        "CONSTRUCT (u)-[:r]->(w) "
        "MATCH (u)-[:a]->(v), (v)-[:a]->(v) ON s WINDOW(5), (v)-[:a]->(w) ON s WINDOW(9) SLIDE(3) "
        "MATCH (w)-/<:a+>/->(w) ON s WINDOW(9) SLIDE(3)"
    )
    assert to_datalog(parse(text)) == (
        "STREAM s WINDOW 5\n"
        "STREAM s_2 FROM s WINDOW 9 SLIDE 3\n"
        "r(u, w) <- s.a(u, v), s.a(v, v), s_2.a(v, w), s_2.a+(w, w).\n"
        "Answer(u, w) <- r(u, w).\n"
    )


def test_a_view_may_read_another_window_of_a_stream() -> None:
    query = parse(
        f"{FRIENDS} CONSTRUCT (u)-[:r]->(v) MATCH (u)-[:friend]->(v) ON friends, (u)-[:a]->(v) ON s WINDOW(6)"
    )
    assert [(stream.name, stream.input, stream.window) for stream in query.streams] == [
        ("s", "s", 5),
        ("s_2", "s", 6),
    ]


def test_the_windows_of_a_stream_get_names_that_no_stream_has() -> None:
    text = (
        "CONSTRUCT (u)-[:r]->(v) MATCH (u)-[:a]->(v) ON s WINDOW(5), (u)-[:a]->(v) ON s WINDOW(6), "
        "(u)-[:a]->(v) ON s_2 WINDOW(7), (v)-[:a]->(u) ON s_2 WINDOW(7), (u)-[:a]->(v) ON s"
    )
    query = parse(text)
    assert [(stream.name, stream.input, stream.window) for stream in query.streams] == [
        ("s", "s", 5),
        ("s_3", "s", 6),
        ("s_2", "s_2", 7),
    ]
    assert [str(atom.expr) for atom in query.rules[0].body] == ["s.a", "s_3.a", "s_2.a", "s_2.a", "s.a"]
    assert parse(to_datalog(query)) == query


# -- telling the languages apart


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("PATH RL = (x)-[:a]->(y) CONSTRUCT", "gcore"),
        ("% note\n# note\n  construct (u)-[:x]->(v)", "gcore"),
        ("CONSTRUCT (u)<-[:x]-(v)", "gcore"),
        ("MATCH (u)", "gcore"),
        ("graph view v as (", "gcore"),
        ("CONSTRUC (u)-[:x]->(v)", "gcore"),
        ("STREAM s WINDOW 5", "datalog"),
        ("path(x, y) <- a(x, y). STREAM s WINDOW 5", "datalog"),
        ("Match(x, y) as p <- a*(x, y) as p. STREAM s WINDOW 5", "datalog"),
        ("graph.x(x, y) <- a(x, y).", "datalog"),
        ("STRAEM s WINDOW 5", "datalog"),
        ("", "datalog"),
        ("A(x, y) <- a(x, y). % -[ ]->", "datalog"),
    ],
)
def test_the_language_is_guessed_from_the_text(text: str, language: str) -> None:
    assert guess_language(text) == language
