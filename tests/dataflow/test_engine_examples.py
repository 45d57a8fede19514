"""Small queries over small streams, with answers worked out by hand: the engine's contract by example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import meander


def answers(text: str, edges: Any, **options: Any) -> list[Any]:
    """(answer, ts, exp) of each record, where a `-` has the expiry "-"."""
    records = [
        (
            tuple(answer["answer"]) if "answer" in answer else (answer["src"], answer["trg"]),
            answer["ts"],
            "-" if answer["op"] == "-" else answer["exp"],
        )
        for answer in meander.run(text, edges, **options)
    ]
    return sorted(records, key=lambda record: (repr(record[0]), record[1]))


def test_an_edge_is_valid_from_its_time_to_the_end_of_its_windows() -> None:
    """With a slide of 4 the window of an edge is that of the slide it came in: [t, floor(t/4)*4 + 10)."""
    edges = [("u", "a", "v", 3), ("v", "a", "w", 4), ("w", "a", "x", 7)]
    assert answers("STREAM s WINDOW 10 SLIDE 4\nAnswer(x, y) <- a(x, y).", edges) == [
        (("u", "v"), 3, 10),
        (("v", "w"), 4, 14),
        (("w", "x"), 7, 14),
    ]


def test_an_edge_whose_interval_is_empty_never_becomes_valid() -> None:
    """A slide of 10 and a window of 4: what comes in the last six instants of a slide has expired already."""
    edges = [("u", "a", "v", 13), ("v", "a", "w", 14), ("w", "a", "x", 19), ("x", "a", "y", 20)]
    assert answers("STREAM s WINDOW 4 SLIDE 10\nAnswer(x, y) <- a(x, y).", edges) == [
        (("u", "v"), 13, 14),
        (("x", "y"), 20, 24),
    ]


def test_two_streams_have_windows_of_their_own() -> None:
    """A follow holds for 100, a post for 5: the answer lasts as long as the shorter of the two."""
    text = (
        "STREAM people WINDOW 100\nSTREAM posts WINDOW 5 SLIDE 2\n"
        "Answer(u, m) <- people.follows(u, v), posts.wrote(v, m)."
    )
    streams = {
        "people": [("ann", "follows", "bob", 1), ("cat", "follows", "bob", 8)],
        "posts": [("bob", "wrote", "hello", 7), ("bob", "wrote", "again", 98)],
    }
    assert answers(text, streams) == [
        (("ann", "again"), 98, 101),
        (("ann", "hello"), 7, 11),
        (("cat", "again"), 98, 103),
        (("cat", "hello"), 8, 11),
    ]


def test_the_same_label_of_two_streams_is_two_labels() -> None:
    text = "STREAM s WINDOW 5\nSTREAM t WINDOW 9\nAnswer(x, y) <- (s.a/t.a)(x, y)."
    streams = {"s": [("u", "a", "v", 1), ("p", "a", "q", 1)], "t": [("v", "a", "w", 2), ("u", "a", "p", 2)]}
    assert answers(text, streams) == [(("u", "w"), 2, 6)]


def test_a_stream_that_no_result_reads_needs_no_edges_and_may_have_some() -> None:
    text = "STREAM s WINDOW 5\nSTREAM t WINDOW 9\nAnswer(x, y) <- s.a(x, y)."
    edges = [("u", "a", "v", 1)]
    assert answers(text, {"s": edges}) == answers(text, {"s": edges, "t": edges}) == [(("u", "v"), 1, 6)]


def test_a_view_is_a_stream_of_its_own() -> None:
    """The view's tuples keep their validity; the query on it needs no window."""
    text = """
    GRAPH VIEW friends AS (
      CONSTRUCT (x)-[:near]->(z)
      MATCH (x)-[:knows]->(y), (y)-[:knows]->(z)
      ON people WINDOW(10)
    )
    CONSTRUCT (x)-[:far]->(y)
    MATCH (x)-/<:near+>/->(y)
    ON friends
    """
    edges = [("a", "knows", "b", 1), ("b", "knows", "c", 2), ("c", "knows", "d", 3), ("d", "knows", "e", 4)]
    assert answers(text, edges, path_operator="s-path") == [
        (("a", "c"), 2, 11),
        (("a", "e"), 4, 11),
        (("b", "d"), 3, 12),
        (("c", "e"), 4, 13),
    ]


TRIANGLE = [("u", "a", "v", 1), ("v", "b", "w", 2), ("w", "c", "u", 4)]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("Answer()", [((), 4, 11)]),
        ("Answer(y)", [(("v",), 4, 11)]),
        ("Answer(x, z)", [(("u", "w"), 4, 11)]),
        ("Answer(z, y, x)", [(("w", "v", "u"), 4, 11)]),
        ("Answer(x, x, y)", [(("u", "u", "v"), 4, 11)]),
    ],
    ids=["0", "1", "2", "3", "twice"],
)
def test_an_answer_has_any_number_of_vertices(head: str, expected: Sequence[Any]) -> None:
    assert answers(f"STREAM s WINDOW 10\n{head} <- a(x, y), b(y, z), c(z, x).", TRIANGLE) == expected


def test_answers_are_records_with_the_fields_of_the_contract() -> None:
    text = "STREAM s WINDOW 10\nAnswer(x, y) <- (a/b)(x, y)."
    assert list(meander.run(text, TRIANGLE, paths=True)) == [
        {
            "src": "u",
            "trg": "w",
            "label": "Answer",
            "ts": 2,
            "exp": 11,
            "op": "+",
            "path": [["u", "a", "v"], ["v", "b", "w"]],
        }
    ]
    assert list(meander.run("STREAM s WINDOW 10\nAnswer(x) <- a(x, y).", TRIANGLE)) == [
        {"answer": ["u"], "ts": 1, "exp": 11, "op": "+"}
    ]


# ---------------------------------------------------------------------------------------------------------
# Vertices and constants

MIXED = [(42, "a", "x", 1), ("42", "a", "y", 1), (4, "a", "z", 1), ("042", "a", "z", 1)]


def test_a_number_in_a_query_is_the_integer_and_its_text() -> None:
    """Text files have strings only: a number in the query means both the integer 42 and the string "42"."""
    assert answers("STREAM s WINDOW 10\nAnswer(x) <- a(42, x).", MIXED) == [(("x",), 1, 11), (("y",), 1, 11)]


def test_a_string_in_a_query_is_that_string_alone() -> None:
    assert answers('STREAM s WINDOW 10\nAnswer(x) <- a("42", x).', MIXED) == [(("y",), 1, 11)]


@pytest.mark.parametrize("path_operator", ["s-path", "negative-tuple"])
def test_a_path_may_start_or_end_at_a_constant(path_operator: str) -> None:
    edges = [(42, "a", "x", 1), ("x", "a", "y", 2), ("42", "a", "z", 3), ("y", "a", 42, 4)]
    ways = {"path_operator": path_operator}
    assert {
        answer[0] for answer in answers("STREAM s WINDOW 10\nAnswer(x) <- a+(42, x).", edges, **ways)
    } == {
        ("x",),
        ("y",),
        ("z",),
        (42,),
    }
    assert {
        answer[0] for answer in answers("STREAM s WINDOW 10\nAnswer(x) <- a+(x, 42).", edges, **ways)
    } == {
        (42,),
        ("x",),
        ("y",),
    }
    assert answers('STREAM s WINDOW 10\nAnswer() <- a+("x", 42).', edges, **ways) == [((), 4, 12)]


def test_a_constant_that_never_comes_has_no_answers() -> None:
    assert answers('STREAM s WINDOW 10\nAnswer(x) <- a("nobody", x).', MIXED) == []
    assert answers('STREAM s WINDOW 10\nAnswer(x) <- a*("nobody", x).', MIXED) == []


def test_integers_of_64_bits_and_strings_are_vertices_as_they_are() -> None:
    least, most = -(2**63), 2**63 - 1
    edges = [(least, "a", most, 1), (most, "a", str(most), 1), (str(most), "a", 0, 1), (0, "a", -1, 1)]
    records = answers("STREAM s WINDOW 10\nAnswer(x, y) <- a{4}(x, y).", edges)
    assert records == [((least, -1), 1, 11)]
    # The string and the integer of the same digits are two vertices.
    assert (
        answers("STREAM s WINDOW 10\nAnswer(x, y) <- (a/a)(x, y).", [(1, "a", 2, 1), ("2", "a", 3, 1)]) == []
    )


# ---------------------------------------------------------------------------------------------------------
# Output modes, deletions, paths

COMES_AGAIN = [("u", "a", "v", 1), ("u", "a", "v", 6), ("u", "a", "v", 30)]


def test_intervals_are_extended_record_by_record() -> None:
    assert answers("STREAM s WINDOW 10\nAnswer(x, y) <- a(x, y).", COMES_AGAIN) == [
        (("u", "v"), 1, 11),
        (("u", "v"), 6, 16),
        (("u", "v"), 30, 40),
    ]


def test_changes_are_a_start_and_a_stop() -> None:
    assert answers("STREAM s WINDOW 10\nAnswer(x, y) <- a(x, y).", COMES_AGAIN, mode="changes") == [
        (("u", "v"), 1, None),
        (("u", "v"), 16, "-"),
        (("u", "v"), 30, None),
        (("u", "v"), 40, "-"),
    ]


def test_an_answer_that_expires_when_it_comes_again_has_not_changed() -> None:
    edges = [("u", "a", "v", 1), ("u", "a", "v", 11)]
    assert answers("STREAM s WINDOW 10\nAnswer(x, y) <- a(x, y).", edges, mode="changes", batch_rows=1) == [
        (("u", "v"), 1, None),
        (("u", "v"), 21, "-"),
    ]


def test_a_deletion_retracts_the_answer_and_a_later_arrival_starts_it_again() -> None:
    edges = [("u", "a", "v", 1), ("u", "a", "v", 3), ("u", "a", "v", 5, "-"), ("u", "a", "v", 8)]
    assert answers("STREAM s WINDOW 10\nAnswer(x, y) <- a(x, y).", edges) == [
        (("u", "v"), 1, 11),
        (("u", "v"), 3, 13),
        (("u", "v"), 5, "-"),
        (("u", "v"), 8, 18),
    ]


def test_a_deletion_shortens_what_another_way_keeps_for_less_time() -> None:
    edges = [("u", "b", "v", 1), ("u", "a", "v", 4), ("u", "a", "v", 6, "-")]
    for path_operator in ("s-path", "negative-tuple"):
        records = meander.run(
            "STREAM s WINDOW 10\nAnswer(x, y) <- (a|b)+(x, y).", edges, path_operator=path_operator
        )
        times = [(record["op"], record["ts"], record["exp"]) for record in records]
        if path_operator == "s-path":
            assert times == [("+", 1, 11), ("+", 4, 14), ("-", 6, None), ("+", 6, 11)]
        else:
            # The first path found is kept: it holds until 11, and the deletion of the other one cuts nothing.
            assert times == [("+", 1, 11)]


@pytest.mark.parametrize("batch_rows", [1, 65536])
def test_a_deletion_that_breaks_a_path_emits_the_answer_again_with_another(batch_rows: int) -> None:
    """The answer holds on by `b`; but the record that said `a` is true no longer, so it is cut."""
    text = "STREAM s WINDOW 10\nAnswer(x, y) <- (a|b)+(x, y)."
    edges = [("u", "a", "v", 1), ("u", "b", "v", 3), ("u", "a", "v", 5, "-"), ("u", "b", "v", 7, "-")]
    records = list(meander.run(text, edges, paths=True, batch_rows=batch_rows, path_operator="s-path"))
    assert [(record["op"], record["ts"], record["exp"], record["path"]) for record in records] == [
        ("+", 1, 11, [["u", "a", "v"]]),
        ("+", 3, 13, [["u", "b", "v"]]),
        ("-", 5, None, None),
        ("+", 5, 13, [["u", "b", "v"]]),
        ("-", 7, None, None),
    ]
    # Without paths nothing was said that the first deletion makes untrue.
    bare = meander.run(text, edges, batch_rows=batch_rows, path_operator="s-path")
    assert [(record["op"], record["ts"], record["exp"]) for record in bare] == [
        ("+", 1, 11),
        ("+", 3, 13),
        ("-", 7, None),
    ]


def test_a_deletion_elsewhere_cuts_no_path() -> None:
    text = "STREAM s WINDOW 10\nAnswer(x, y) <- a+(x, y)."
    edges = [("u", "a", "v", 1), ("u", "a", "w", 1), ("u", "a", "w", 5, "-")]
    records = meander.run(text, edges, paths=True)
    assert [(record["trg"], record["op"], record["ts"]) for record in records] == [
        ("v", "+", 1),
        ("w", "+", 1),
        ("w", "-", 5),
    ]


def test_a_path_names_its_edges_as_the_expression_reads_them() -> None:
    """`D` is `a` by another name: computed once, and still called what the rule calls it."""
    edges = [("u", "a", "v", 1), ("v", "a", "w", 1)]
    text = "STREAM s WINDOW 10\nD(x, y) <- a(x, y).\nAnswer(x, y) <- (D/a)(x, y)."
    assert [answer["path"] for answer in meander.run(text, edges, paths=True)] == [
        [["u", "D", "v"], ["v", "a", "w"]]
    ]
    text = "STREAM s WINDOW 10\nD(x, y) <- a(x, y).\nAnswer(x, y) <- D+(x, y).\nAnswer(x, y) <- (a/a)(x, y)."
    paths = [answer["path"] for answer in meander.run(text, edges, paths=True)]
    assert [["u", "D", "v"]] in paths
    assert [["v", "D", "w"]] in paths


def test_an_inverse_step_shows_its_edge_as_it_stands_in_the_graph() -> None:
    edges = [("u", "a", "v", 1), ("w", "a", "v", 2)]
    text = 'STREAM s WINDOW 10\nAnswer(x, y) <- (a/^a)(x, y), (a/^a)("u", y).'
    assert {answer["trg"] for answer in meander.run(text, edges)} == {"u", "w"}
    text = "STREAM s WINDOW 10\nAnswer(x, y) <- (a/^a)(x, y)."
    paths = {
        (answer["src"], answer["trg"]): answer["path"] for answer in meander.run(text, edges, paths=True)
    }
    assert paths["u", "w"] == [["u", "a", "v"], ["w", "a", "v"]]


def test_the_empty_path_joins_each_end_of_a_valid_edge_to_itself() -> None:
    text = "STREAM s WINDOW 10\nAnswer(x, y) <- a*(x, y)."
    records = list(meander.run(text, [("u", "a", "v", 1)], paths=True))
    assert {
        (record["src"], record["trg"]): (record["ts"], record["exp"], record["path"]) for record in records
    } == {
        ("u", "u"): (1, 11, []),
        ("v", "v"): (1, 11, []),
        ("u", "v"): (1, 11, [["u", "a", "v"]]),
    }


@pytest.mark.parametrize("plan", range(3))
def test_a_deletion_is_of_one_label(plan: int) -> None:
    """Also in the plan that scans both labels at once: the same pair under the other label stays."""
    edges = [("u", "a", "v", 1), ("u", "b", "v", 3), ("u", "a", "v", 5, "-")]
    text = "STREAM s WINDOW 10\nAnswer(x, y) <- (a|b)+(x, y)."
    assert answers(text, edges, plan=plan, path_operator="s-path") == [
        (("u", "v"), 1, 11),
        (("u", "v"), 3, 13),
    ]
