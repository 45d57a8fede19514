"""The workloads: the paper's seven queries, bound to the labels of each data set.

A query is written once, over the roles `a`, `b` and `c`; a data set binds each role to a *relation*, that is a
label, or `^label` for a label read backwards. From there come Meander's query text and, for the peers, the
relations to load.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
PATH_QUERIES = ("Q1", "Q2", "Q3", "Q4")
"""The queries whose answers are paths."""

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
    """A graph to measure on: a file, or, if `file` is empty, the generated one of that name with `edges` edges.

    A relative path is one in the folder of data sets (see `data`).
    """

    name: str
    about: str
    bindings: Mapping[str, tuple[str, ...]] = field(hash=False)
    file: str = ""
    edges: int = 0
    dense: bool = False


DATA_SETS: Mapping[str, DataSet] = {
    data.name: data
    for data in (
        DataSet(
            "mathoverflow",
            "sx-mathoverflow: people answering and commenting on each other, dense and cyclic",
            _COMMENTS,
            "sx-mathoverflow.tsv.gz",
            dense=True,
        ),
        DataSet(
            "snb",
            "LDBC SNB, scale factor 0.1: posts, reply trees, likes and friendships",
            _SOCIAL,
            "ldbc-snb-sf0.1.tsv.gz",
        ),
        DataSet(
            "cyclic",
            "generated: people answering and commenting on each other",
            _COMMENTS,
            edges=12_000,
            dense=True,
        ),
        DataSet("trees", "generated: posts, reply trees, likes and friendships", _SOCIAL, edges=18_000),
    )
}


def generated(name: str, edges: int) -> DataSet:
    """A generated data set of another size."""
    known = DATA_SETS[name]
    return DataSet(f"{name}:{edges}", known.about, known.bindings, edges=edges, dense=known.dense)


def from_file(path: str, labels: Sequence[str]) -> DataSet:
    """A file of the user's, with the relations that stand for `a`, `b` and `c`."""
    relations = dict(zip(ROLES, labels, strict=False))
    bindings = {}
    for query, text in QUERIES.items():
        roles = sorted(set(_ROLE.findall(text)))
        if all(role in relations for role in roles):
            bindings[query] = tuple(relations[role] for role in roles)
    shown = ", ".join(f"{role} = {relation}" for role, relation in relations.items())
    return DataSet(path.rpartition("/")[2].partition(".")[0], f"{path}, with {shown}", bindings, path)


@dataclass(frozen=True, slots=True)
class Workload:
    """One query on one data set."""

    data: DataSet
    query: str

    @property
    def relations(self) -> tuple[str, ...]:
        """What `a`, `b` and `c` stand for, as far as the query has them."""
        return tuple(self.data.bindings[self.query])

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


def choose_queries(queries: Sequence[str]) -> list[str]:
    """The named queries, each once."""
    for name in queries:
        if name not in QUERIES:
            raise ArgumentError(f"unknown query {name!r}", hint=f"queries are {', '.join(QUERIES)}")
    return list(dict.fromkeys(queries))
