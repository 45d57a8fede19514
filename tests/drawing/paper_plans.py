"""The canonical plans of the paper's queries, written down by hand: Q1 to Q7 and those of both figures."""

from __future__ import annotations

from meander.algebra.nodes import Path, Pattern, Plan, Union, WScan
from meander.syntax.query import Label, Repeat, Then

DAY = 86_400


def scan(label: str, stream: str = "social_stream", window: int = DAY, slide: int = 3600) -> WScan:
    return WScan(stream, (label,), window, slide)


first, second, third = Label("0"), Label("1"), Label("2")


def star(label: Label) -> Repeat:
    return Repeat(label, 0, None)


def plus(label: Label) -> Repeat:
    return Repeat(label, 1, None)


a, b, c = (scan(label, "s", 30 * DAY, DAY) for label in "abc")
abc = Pattern((a, b, c), ((0, 1), (1, 2), (2, 3)), (0, 3), "D")
triangle = Pattern((b, c, Path((a,), plus(first), "AP")), ((0, 1), (1, 2), (0, 2)), (0, 2), "RL")
likers = Pattern(
    (scan("likes"), scan("posts"), Path((scan("follows"),), plus(first), "FP")),
    ((0, 1), (2, 1), (0, 2)),
    (0, 2),
    "RL",
)
acquainted = Union(
    (Pattern((scan("likes"), scan("posts")), ((0, 1), (2, 1)), (0, 2), "ACQ"), scan("follows")), "ACQ"
)

PLANS: dict[str, dict[str, Plan]] = {
    "q1": {"Answer": Path((a,), star(first), "P")},
    "q2": {"Answer": Path((a, b), Then((first, star(second))), "P")},
    "q3": {"Answer": Path((a, b, c), Then((first, star(second), star(third))), "P")},
    "q4": {"Answer": Path((abc,), plus(first), "P")},
    "q5": {"Answer": Pattern((a, b, b, c), ((0, 1), (2, 0), (3, 1), (3, 2)), (2, 3), "Answer")},
    "q6": {"Answer": triangle},
    "q7": {"Answer": Pattern((Path((triangle,), plus(first), "RLP"), c), ((0, 1), (2, 1)), (0, 2), "Answer")},
    "notify": {
        "notify": Pattern(
            (Path((likers,), star(first), "p"), scan("posts")), ((0, 1), (1, 2)), (0, 2), "notify"
        )
    },
    "recommend": {
        "rec_stream.recommendation": Pattern(
            (acquainted, scan("purchase", "tx_stream", 30 * DAY, DAY)),
            ((0, 1), (1, 2)),
            (0, 2),
            "recommendation",
        )
    },
}
