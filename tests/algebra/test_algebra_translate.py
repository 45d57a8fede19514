"""SGQParser, case by case: what the canonical plan of a query is."""

import pytest

from meander.algebra.nodes import Filter, Path, Pattern, PlanError, Union, WScan
from meander.algebra.printing import notation
from meander.algebra.routes import Each, Here, Input
from meander.algebra.translate import path_results, path_routes, path_values, result_labels, translate
from meander.errors import QueryError
from meander.syntax.datalog import parse_datalog
from meander.syntax.query import (
    Atom,
    Either,
    Inverse,
    Label,
    RegularQuery,
    Repeat,
    Rule,
    Stream,
    Then,
    Variable,
)
from meander.syntax.values import And, equals_vertex

ZERO, ONE, TWO = Label("0"), Label("1"), Label("2")
X, Y = Variable("x"), Variable("y")


def scan(label, stream="s", window=24, slide=1):
    return WScan(stream, (label,), window, slide)


A, B, C = scan("a"), scan("b"), scan("c")


def query(rules, header="STREAM s WINDOW 24"):
    return parse_datalog(f"{header}\n{rules}")


def canonical(rules, header="STREAM s WINDOW 24"):
    """The plan of the only result."""
    (plan,) = translate(query(rules, header)).values()
    return plan


NOTIFICATION = """
    RL(u1, u2)   <- l(u1, m1), f+(u1, u2) as FP, p(u2, m1).
    notify(u, m) <- RL+(u, v) as RLP, p(v, m).
    Answer(u, m) <- notify(u, m).
"""


def test_the_papers_canonical_translation():
    likes, posts, follows = scan("l"), scan("p"), scan("f")
    fp = Path((follows,), Repeat(ZERO, 1, None), "FP")
    rl = Pattern((likes, posts, fp), ((0, 1), (2, 1), (0, 2)), (0, 2), "RL")
    rlp = Path((rl,), Repeat(ZERO, 1, None), "RLP")
    assert canonical(NOTIFICATION) == Pattern((rlp, posts), ((0, 1), (1, 2)), (0, 2), "notify")


def test_the_papers_canonical_translation_as_printed():
    assert notation(canonical(NOTIFICATION)) == (
        "⋈_{trg1 = src2}^{src1, trg2, notify}("
        "𝒫_{RL+}^{RLP}("
        "⋈_{trg1 = trg2 ∧ src1 = src3 ∧ src2 = trg3}^{src1, src2, RL}("
        "𝒲_24(S_l), 𝒲_24(S_p), 𝒫_{f+}^{FP}(𝒲_24(S_f)))), "
        "𝒲_24(S_p))"
    )


Q7_RL = Pattern((B, C, Path((A,), Repeat(ZERO, 1, None), "AP")), ((0, 1), (1, 2), (0, 2)), (0, 2), "RL")

PAPER_QUERIES = {
    "Q1": ("Answer(x, y) <- a*(x, y) as P.", Path((A,), Repeat(ZERO, 0, None), "P")),
    "Q2": ("Answer(x, y) <- (a/b*)(x, y) as P.", Path((A, B), Then((ZERO, Repeat(ONE, 0, None))), "P")),
    "Q3": (
        "Answer(x, y) <- (a/b*/c*)(x, y) as P.",
        Path((A, B, C), Then((ZERO, Repeat(ONE, 0, None), Repeat(TWO, 0, None))), "P"),
    ),
    "Q4": (
        "D(x, y) <- a(x, u), b(u, v), c(v, y). Answer(x, y) <- D+(x, y) as P.",
        Path((Pattern((A, B, C), ((0, 1), (1, 2), (2, 3)), (0, 3), "D"),), Repeat(ZERO, 1, None), "P"),
    ),
    "Q5": (
        "Answer(m1, m2) <- a(x, y), b(m1, x), b(m2, y), c(m2, m1).",
        Pattern((A, B, B, C), ((0, 1), (2, 0), (3, 1), (3, 2)), (2, 3), "Answer"),
    ),
    "Q6": (
        "Answer(x, y) <- a+(x, y) as AP, b(x, m), c(m, y).",
        Pattern(Q7_RL.inputs, Q7_RL.ends, (0, 2), "Answer"),
    ),
    "Q7": (
        "RL(x, y) <- a+(x, y) as AP, b(x, m), c(m, y).  Answer(x, m) <- RL+(x, y) as RLP, c(m, y).",
        Pattern((Path((Q7_RL,), Repeat(ZERO, 1, None), "RLP"), C), ((0, 1), (2, 1)), (0, 2), "Answer"),
    ),
}


@pytest.mark.parametrize(("rules", "plan"), PAPER_QUERIES.values(), ids=PAPER_QUERIES.keys())
def test_the_papers_queries(rules, plan):
    assert canonical(rules) == plan


def test_the_papers_recommendation_over_two_streams_with_their_own_windows():
    plan = canonical(
        """
        ACQ(u1, u2) <- social.l(u1, m1), social.p(u2, m1).
        ACQ(u1, u2) <- social.f(u1, u2).
        REC(u, p)   <- ACQ(u, u2), tx.pur(u2, p).
        Answer(u, p) <- REC(u, p).
        """,
        "STREAM social WINDOW 24  STREAM tx WINDOW 720 SLIDE 24",
    )
    liked = Pattern((scan("l", "social"), scan("p", "social")), ((0, 1), (2, 1)), (0, 2), "ACQ")
    acquainted = Union((liked, scan("f", "social")), "ACQ")
    assert plan == Pattern((acquainted, scan("pur", "tx", 720, 24)), ((0, 1), (1, 2)), (0, 2), "REC")


def test_a_union_takes_rules_in_order_and_equal_ones_once():
    assert canonical("Answer(x, y) <- b(x, y). Answer(x, y) <- a(x, y).") == Union((B, A), "Answer")
    assert canonical("Answer(x, y) <- a(y, x). Answer(u, v) <- a(v, u).") == Pattern(
        (A,), ((0, 1),), (1, 0), "Answer"
    )


def test_constants_filter_their_atom():
    assert canonical('Answer(x, z) <- a("alice", x), b(x, z).') == Pattern(
        (Filter(A, equals_vertex(0, "alice")), B), ((0, 1), (1, 2)), (1, 2), "Answer"
    )
    assert canonical('Answer(x) <- a+(x, 7) as P, b("p", "q").') == Pattern(
        (
            Filter(Path((A,), Repeat(ZERO, 1, None), "P"), equals_vertex(1, 7)),
            Filter(B, And((equals_vertex(0, "p"), equals_vertex(1, "q")))),
        ),
        ((0, 1), (2, 3)),
        (0,),
        "Answer",
    )


@pytest.mark.parametrize(
    ("head", "output"), [("", ()), ("x", (0,)), ("y, x", (1, 0)), ("x, x", (0, 0)), ("x, y, x", (0, 1, 0))]
)
def test_a_single_atom_whose_ends_are_not_handed_on_as_they_are_makes_a_pattern(head, output):
    assert canonical(f"Answer({head}) <- a(x, y).") == Pattern((A,), ((0, 1),), output, "Answer")


def test_a_variable_used_twice_in_an_atom_makes_a_loop():
    assert canonical("Answer(x, x) <- a(x, x).") == Pattern((A,), ((0, 0),), (0, 0), "Answer")


def test_handing_on_adds_no_node():
    assert canonical("Answer(x, y) <- a(x, y).") == A
    assert canonical("D(x, y) <- a(x, y). E(x, y) <- D(x, y). Answer(x, z) <- E(x, y), D(y, z).") == Pattern(
        (A, A), ((0, 1), (1, 2)), (0, 2), "Answer"
    )


def test_paths_stand_after_the_plain_atoms_that_bind_their_variables_and_else_as_written():
    closure = Path((A,), Repeat(ZERO, 1, None), "a+")
    checked = canonical("Answer(x, z) <- a+(x, z), b(x, y), c(y, z).")
    assert checked.inputs == (B, C, closure)
    leading = canonical("Answer(x, z) <- a+(x, y), b(y, z).")
    assert leading.inputs == (closure, B)
    through_another_path = canonical("Answer(x, z) <- a+(x, y), b(y, z), c*(z, x).")
    assert through_another_path.inputs == (closure, B, Path((C,), Repeat(ZERO, 0, None), "c*"))


def test_path_inputs_are_distinct_plans_in_order_of_first_use():
    assert canonical("Answer(x, y) <- (^b/(a|b){2,4}/c?)(x, y).") == Path(
        (B, A, C),
        Then((Inverse(ZERO), Repeat(Either((ONE, ZERO)), 2, 4), Repeat(TWO, 0, 1))),
        "^b/(a|b){2,4}/c?",
    )


def test_a_head_that_only_renames_keeps_its_name_inside_a_path():
    plan = canonical("D(x, y) <- a(x, y). Answer(x, y) <- (D/a)(x, y) as P.")
    assert plan == Path((Union((A,), "D"), A), Then((ZERO, ONE)), "P")


def test_a_named_label_is_a_path_of_one_edge():
    assert canonical("Answer(x, z) <- a(x, y) as E, b(y, z).").inputs == (Path((A,), ZERO, "E"), B)


def test_equal_subplans_are_equal_and_hash_alike():
    rules = "Answer(x, z) <- a+(x, y) as P, b(y, z)."
    first, second = canonical(rules), canonical(rules)
    assert first == second
    assert hash(first) == hash(second)
    assert first is not second
    assert canonical(rules.replace("P", "Q")) != first


def test_results_come_in_their_order_and_share_their_subplans():
    two = query("N(x, z) <- a+(x, y) as P, b(y, z). W(x, y) <- a+(x, y) as Q. RESULT W, N")
    plans = translate(two)
    assert list(plans) == ["W", "N"]
    assert result_labels(two) == {"W": "W", "N": "N"}


def test_answers_are_labeled_by_their_head_or_by_the_head_that_answer_forwards():
    assert result_labels(query(NOTIFICATION)) == {"Answer": "notify"}
    assert result_labels(query("Answer(x, y) <- a(x, y).")) == {"Answer": "Answer"}
    assert result_labels(query("N(x, y) <- a(x, y). Answer(x, y) <- N(y, x).")) == {"Answer": "Answer"}
    assert result_labels(query("N(x, y) <- a(x, y). Answer(x, y) <- N+(x, y) as P.")) == {"Answer": "Answer"}
    both = "N(x, y) <- a(x, y). Answer(x, y) <- N(x, y). Answer(x, y) <- b(x, y)."
    assert result_labels(query(both)) == {"Answer": "Answer"}
    assert result_labels(query("N(x, y) <- a(x, y). M(x, y) <- N(x, y).")) == {"M": "M"}
    view = RegularQuery(
        (Stream("s", 24),), (Rule("v.rec", (X, Y), (Atom(Label("a", "s"), Y, X),)),), ("v.rec",)
    )
    assert result_labels(view) == {"v.rec": "rec"}
    assert translate(view)["v.rec"].label == "rec"


def closure_of(plan, label, low=1):
    return Path((plan,), Repeat(ZERO, low, None), label)


@pytest.mark.parametrize(
    ("rules", "paths"),
    [
        ("Answer(x, y) <- a+(x, y) as P.", (closure_of(A, "P"),)),
        ("D(x, y) <- a+(x, y) as P. Answer(u, v) <- D(u, v).", (closure_of(A, "P"),)),
        (
            "Answer(x, y) <- a+(x, y) as P. Answer(x, y) <- b+(x, y) as Q.",
            (closure_of(A, "P"), closure_of(B, "Q")),
        ),
        ("Answer(x, x) <- a+(x, x) as P.", (closure_of(A, "P"),)),
        ("because(u, v) as p <- a*(u, v) as p, b(v, m).", (closure_of(A, "p", 0),)),
        ("Answer(x, y) <- a+(x, y) as P. Answer(x, y) <- b(x, y).", None),
        ("Answer(x, y) <- a(x, y).", None),
        ("Answer(y, x) <- a+(x, y) as P.", None),
        ("Answer(x) <- a+(x, y) as P.", None),
        ("Answer(x, y) <- a+(x, y) as P, b(y, z).", None),
    ],
)
def test_which_answers_are_paths_and_what_proves_them(rules, paths):
    assert list(path_results(query(rules)).values()) == [paths]


@pytest.mark.parametrize(
    ("rules", "route"),
    [
        ("Answer(x, y) <- a+(x, y) as P. Answer(x, y) <- b(x, y).", Each((Here(), None))),
        (
            "D(x, y) <- a+(x, y) as P. Answer(x, y) <- b(x, y). Answer(x, y) <- D(x, y).",
            Each((None, Here())),
        ),
        (
            "Answer(x, y) <- a+(x, y) as P, x != y. Answer(x, y) <- b(x, y).",
            Each((Input(0, Here()), None)),
        ),
        (
            "because(u, v) as p <- b(v, m), a*(u, v) as p. because(u, v) <- b(u, v).",
            Each((Input(1, Here()), None)),
        ),
        ("Answer(x, y) <- a(x, y).", None),
        ("Answer(y, x) <- a+(x, y) as P.", None),
    ],
)
def test_where_the_paths_of_some_answers_come_from(rules, route):
    assert path_routes(query(rules)) == {query(rules).results[0]: route}


@pytest.mark.parametrize(
    ("rules", "routes"),
    [
        ("Answer(x, y, P) <- a+(x, y) as P.", {"P": Here()}),
        ("Answer(x, z, P) <- b(y, z), a+(x, y) as P.", {"P": Input(1, Here())}),
        ("Answer(x, y, why: P) <- b(x, y), a+(x, y) as P.", {"why": Input(1, Here())}),
        (
            "Answer(x, z, P, Q) <- a+(x, y) as P, b+(y, z) as Q.",
            {"P": Input(0, Here()), "Q": Input(1, Here())},
        ),
        (
            'Answer(x, z, P) <- a+(x, y) as P, b(y, z). Answer(x, y, P: Q) <- a+("u", x) as Q, b(x, y).',
            {"P": Each((Input(0, Here()), Input(1, Input(0, Here()))))},
        ),
        (
            "D(x, z, P) <- a+(x, y) as P, b(y, z). Answer(x, z, P) <- D(x, z, P).",
            {"P": Input(0, Here())},
        ),
        (
            "D(x, z, P) <- a+(x, y) as P, b(y, z). Answer(x, z, P) <- b(x, y), D(y, z, P).",
            {"P": Input(1, Input(0, Here()))},
        ),
    ],
)
def test_where_path_values_come_from(rules, routes):
    (values,) = path_values(query(rules)).values()
    assert {value.name: value.route for value in values} == routes


def test_a_path_value_does_not_change_the_plan():
    returned = canonical("Answer(x, z, P) <- a+(x, y) as P, b(y, z).")
    assert returned == canonical("Answer(x, z) <- a+(x, y) as P, b(y, z).")


def test_naming_the_path_of_an_answer_does_not_change_the_plan():
    named = canonical("because(u, v) as p <- a*(u, v) as p, b(v, m).")
    assert named == canonical("because(u, v) <- a*(u, v) as p, b(v, m).")


def test_an_automaton_too_large_is_refused_with_its_position():
    with pytest.raises(QueryError, match="too large") as raised:
        canonical("Answer(x, y) <- ((a|b)*/a/(a|b){14})(x, y) as P.")
    assert raised.value.span is not None


@pytest.mark.parametrize(
    ("rules", "results", "message"),
    [
        ((Rule("D", (X, Y), (Atom(Label("E"), X, Y),)),), ("D",), "no rule defines"),
        ((Rule("D", (X, Y), (Atom(Label("a", "t"), X, Y),)),), ("D",), "no stream t; streams: s"),
        ((Rule("D", (X, Y), (Atom(Label("D"), X, Y),)),), ("D",), "recursive: D <- D"),
        ((Rule("D", (X, Y), (Atom(Label("a", "s"), X, X),)),), ("D",), "returns y"),
        ((Rule("D", (X, Y), (Atom(Label("a", "s"), X, Y),)),), ("Answer",), "no rule for the result Answer"),
    ],
)
def test_queries_that_no_parser_lets_through_are_refused(rules, results, message):
    with pytest.raises(PlanError, match=message):
        translate(RegularQuery((Stream("s", 24),), rules, results))
