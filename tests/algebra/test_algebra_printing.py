"""Plans in the paper's notation and as trees."""

import pytest

from meander.algebra.nodes import Filter, Path, Pattern, Union, WScan
from meander.algebra.printing import equalities, notation, path_expression, positions, tree
from meander.algebra.trees import walk
from meander.syntax.query import Either, Inverse, Label, Repeat, Then
from meander.syntax.values import And, Comparison, end_point, equals_vertex

ZERO, ONE = Label("0"), Label("1")
A, B = WScan("s", ("a",), 24), WScan("s", ("b",), 24)
LIKES = WScan("social", ("likes",), 24, 1)
LOOP = Comparison("=", end_point(0), end_point(1))
BOUGHT = WScan("tx", ("bought", "returned"), 720, 24, equals_vertex("src", "alice"))


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (A, "𝒲_24(S_a)"),
        (LIKES, "𝒲_24(S_{likes})"),
        (BOUGHT, '𝒲_{720,24}(σ_{src = "alice"}(S_{bought} ∪ S_{returned}))'),
        (
            Filter(A, And((equals_vertex(0, 'say "hi"'), equals_vertex(1, 7), LOOP))),
            'σ_{src = "say \\"hi\\"" ∧ trg = 7 ∧ src = trg}(𝒲_24(S_a))',
        ),
        (Union((A, B), "d"), "∪^{d}(𝒲_24(S_a), 𝒲_24(S_b))"),
        (
            Pattern((A, B), ((0, 1), (1, 2)), (0, 2), "d"),
            "⋈_{trg1 = src2}^{src1, trg2, d}(𝒲_24(S_a), 𝒲_24(S_b))",
        ),
        (Pattern((A, B), ((0, 1), (2, 3)), (), "d"), "⋈^{d}(𝒲_24(S_a), 𝒲_24(S_b))"),
        (Path((A, B), Then((ZERO, Repeat(ONE, 0, None))), "P"), "𝒫_{a/b*}^{P}(𝒲_24(S_a), 𝒲_24(S_b))"),
        (
            Union((LIKES, BOUGHT), "d"),
            '∪^{d}(𝒲_24(S_{social.likes}), 𝒲_{720,24}(σ_{src = "alice"}(S_{tx.bought} ∪ S_{tx.returned})))',
        ),
    ],
)
def test_notation(plan, text):
    assert notation(plan) == text


def test_windows_are_written_as_asked():
    hours = "{}h".format
    assert notation(Union((A, BOUGHT), "d"), hours) == (
        '∪^{d}(𝒲_{24h}(S_{s.a}), 𝒲_{720h,24h}(σ_{src = "alice"}(S_{tx.bought} ∪ S_{tx.returned})))'
    )
    assert tree(WScan("s", ("a",), 24, 6), hours) == "𝒲 a  s, window 24h, slide 6h"


def test_each_later_position_is_tied_to_the_first_position_of_its_variable():
    star = Pattern((A, A, A), ((0, 0), (0, 1), (1, 0)), (1, 0, 1), "d")
    assert positions(star.ends) == ["src1", "trg2"]
    assert equalities(star.ends) == ["src1 = trg1", "src1 = src2", "trg2 = src3", "src1 = trg3"]


def test_a_tree_has_a_line_for_each_node_and_prints_what_is_shared_once():
    closure = Path((A,), Repeat(ZERO, 1, None), "AP")
    inner = Pattern((B, closure), ((0, 1), (1, 2)), (0, 2), "d")
    plan = Union(
        (Pattern((inner, closure), ((0, 1), (0, 2)), (1, 2), "e"), Filter(inner, equals_vertex(1, "x"))), "f"
    )
    assert tree(plan).splitlines() == [
        "∪ f",
        "├─ ⋈ e(trg1, trg2)  src1 = src2",
        "│  ├─ #1 ⋈ d(src1, trg2)  trg1 = src2",
        "│  │  ├─ 𝒲 b  s, window 24",
        "│  │  └─ #2 𝒫 AP  a+",
        "│  │     └─ 𝒲 a  s, window 24",
        "│  └─ #2 AP, as above",
        '└─ σ d  trg = "x"',
        "   └─ #1 d(src1, trg2), as above",
    ]


def test_a_tree_over_several_streams_names_them():
    path = Path((LIKES, BOUGHT), Repeat(Either((Inverse(ZERO), ONE)), 1, None), "P")
    assert tree(path).splitlines() == [
        "𝒫 P  (^social.likes|(tx.bought|tx.returned))+",
        "├─ 𝒲 social.likes  social, window 24",
        '└─ 𝒲 tx.bought|tx.returned  tx, window 720, slide 24, src = "alice"',
    ]


def test_an_input_shared_by_one_node_is_a_reference_too():
    assert tree(Pattern((A, A), ((0, 1), (1, 2)), (0, 2), "d")).splitlines() == [
        "⋈ d(src1, trg2)  trg1 = src2",
        "├─ #1 𝒲 a  s, window 24",
        "└─ #1 a, as above",
    ]


def test_walking_meets_each_node_once():
    doubled = A
    for _ in range(60):
        doubled = Pattern((doubled, doubled), ((0, 1), (1, 2)), (0, 2), "d")
    assert len(list(walk(doubled))) == 61
    assert len(tree(doubled).splitlines()) == 121


def test_inputs_with_a_compound_label_stand_in_parentheses():
    both = WScan("s", ("a", "b"), 24)
    assert path_expression(Path((both,), Repeat(ZERO, 1, None), "P")) == "(a|b)+"
    assert path_expression(Path((both,), ZERO, "P")) == "a|b"
