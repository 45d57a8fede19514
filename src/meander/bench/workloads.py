"""The workloads: the paper's seven queries, bound to the labels of each data set.

A query is written once, over the roles `a`, `b` and `c`; a data set binds each role to a *relation*, that is a
label, or `^label` for a label read backwards. From there come Meander's query text and, for the peers, the
relations to load.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from meander.errors import ArgumentError

STREAM = "edges"
ROLES = "abc"

QUERIES: Mapping[str, str] = {
    "Q1": "Answer(x, y) <- a*(x, y) as P.",
    "Q2": "Answer(x, y) <- (a/b*)(x, y) as P.",
    "Q3": "Answer(x, y) <- (a/b*/c*)(x, y) as P.",
    "Q4": "D(x, y) <- a(x, u), b(u, v), c(v, y).\nAnswer(x, y) <- D+(x, y) as P.",
    "Q5": "Answer(m1, m2) <- a(x, y), b(m1, x), b(m2, y), c(m2, m1).",
    "Q6": "Answer(x, y) <- a+(x, y) as AP, b(x, m), c(m, y).",
    "Q7": "RL(x, y) <- a+(x, y) as AP, b(x, m), c(m, y).\nAnswer(x, m) <- RL+(x, y) as RLP, c(m, y).",
}

_ATOM = re.compile(rf"\b([{ROLES}])\((\w+), (\w+)\)")
_ROLE = re.compile(rf"\b([{ROLES}])\b")

_COMMENTS = {
    "Q1": ("c2q",),
    "Q2": ("a2q", "c2q"),
    **dict.fromkeys(("Q3", "Q4", "Q5", "Q6", "Q7"), ("a2q", "c2q", "c2a")),
}
_SOCIAL = {
    "Q1": ("replyOf",),
    "Q2": ("likes", "replyOf"),
    "Q3": ("likes", "replyOf", "replyOf"),
    "Q4": ("^hasModerator", "containerOf", "hasCreator"),
    "Q5": ("knows", "hasCreator", "replyOf"),
    "Q6": ("knows", "likes", "hasCreator"),
    "Q7": ("knows", "likes", "hasCreator"),
}


@dataclass(frozen=True, slots=True)
class DataSet:
    """A graph to measure on: a file beside the project, or, if `file` is empty, a generated one."""

    name: str
    about: str
    bindings: Mapping[str, tuple[str, ...]] = field(hash=False)
    file: str = ""


DATA_SETS: Mapping[str, DataSet] = {
    data.name: data
    for data in (
        DataSet(
            "mathoverflow",
            "sx-mathoverflow: people answering and commenting on each other, dense and cyclic",
            _COMMENTS,
            "sx-mathoverflow.tsv.gz",
        ),
        DataSet(
            "snb",
            "LDBC SNB, scale factor 0.1: posts, reply trees, likes and friendships",
            _SOCIAL,
            "ldbc-snb-sf0.1.tsv.gz",
        ),
        DataSet("cyclic", "generated: people answering and commenting on each other", _COMMENTS),
        DataSet("trees", "generated: posts, reply trees, likes and friendships", _SOCIAL),
    )
}


@dataclass(frozen=True, slots=True)
class Workload:
    """One query on one data set."""

    data: DataSet
    query: str

    @property
    def relations(self) -> tuple[str, ...]:
        """What `a`, `b` and `c` stand for, as far as the query has them."""
        return self.data.bindings[self.query]

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(sorted({relation.removeprefix("^") for relation in self.relations}))

    def text(self, window: int, slide: int) -> str:
        """The query in Datalog, over a window in seconds."""
        relations = dict(zip(ROLES, self.relations, strict=False))

        def atom(match: re.Match[str]) -> str:
            role, src, trg = match.groups()
            label = relations[role].removeprefix("^")
            return f"{label}({src}, {trg})" if label == relations[role] else f"{label}({trg}, {src})"

        rules = _ROLE.sub(lambda match: relations[match[1]], _ATOM.sub(atom, QUERIES[self.query]))
        return f"STREAM {STREAM} WINDOW {window} SLIDE {slide}\n{rules}\n"


def choose(data: list[str], queries: list[str]) -> list[Workload]:
    """The workloads of the named data sets and queries, in the order of the tables."""
    for name in data:
        if name not in DATA_SETS:
            raise ArgumentError(
                f"unknown data set {name!r}", hint=f"data sets are {', '.join(DATA_SETS)}, all"
            )
    for name in queries:
        if name not in QUERIES:
            raise ArgumentError(f"unknown query {name!r}", hint=f"queries are {', '.join(QUERIES)}")
    return [Workload(DATA_SETS[name], query) for name in data for query in queries]
