"""Hypothesis strategies for the law: regular queries, streams of edges, and ways to run the one over the
other.

Everything is small, so that things meet: few vertices, few labels, times close together and windows of about
as many instants as the stream has. A drawn `Case` prints itself as a call that runs it again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

import pytest
from hypothesis import strategies as st

from meander.dataflow.cutting import CutLimits, Cutter
from meander.dataflow.operators import path_closure
from meander.dataflow.operators.path_auto import CostModel, PathAuto
from meander.dataflow.pipeline import Pipeline
from meander.dataflow.reclaiming import VertexReclaimer
from meander.dataflow.state import FIRST_CAPACITY
from oracle import Edge
from querytext import (
    Alt,
    Atom,
    Back,
    Expr,
    Query,
    Rep,
    Rule,
    Seq,
    Step,
    Stream,
    Term,
    Var,
    Vertex,
    query_text,
    steps,
)

LABELS = ("a", "b", "c")
UNASKED = "z"
BATCH_ROWS = (1, 2, 3, 7, 65536)
# The room with which every table starts; None is the usual one.
CAPACITIES = (None, None, 1, 2, 4)

# Names that look like one another, like labels, like nothing else; integers from end to end of their range.
VERTICES: tuple[tuple[Vertex, ...], ...] = (
    ("u", "v", "w", "x", "y", "t"),
    ("a", "b", "é", "a b", "1", "Answer"),
    (0, 1, 2, 3, 4, 5),
    (7, -1, 2**63 - 1, -(2**63), 2**32 + 7, 10),
    ("1", 1, "2", 2, "-1", -1),
)


@dataclass(frozen=True)
class Case:
    """A query, its streams in order of arrival, and how to run it."""

    query: Query
    streams: Mapping[str, Sequence[Edge]]
    lateness: int = 0
    mode: str = "intervals"
    paths: bool = False
    batch_rows: int = 65536
    plan: int | None = None
    demand: bool = True
    threads: int = 1
    moves: int = 7  # the seed of `restless`
    capacity: int | None = None

    @property
    def text(self) -> str:
        return query_text(self.query)

    def __repr__(self) -> str:
        if sum(map(len, self.streams.values())) > 100:
            return f"{type(self).__name__} of {self.text!r} over very many edges"
        streams = ",\n".join(f"    {name!r}: {list(edges)!r}" for name, edges in self.streams.items())
        options = ", ".join(
            f"{name}={getattr(self, name)!r}"
            for name in ("lateness", "mode", "paths", "batch_rows", "plan", "demand", "threads")
        )
        return f'meander.run("""\\\n{self.text}""", {{\n{streams}\n}}, {options})'

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How Hypothesis shows it."""
        printer.text(repr(self))


T = TypeVar("T")


@cache
def _below(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


def pick(draw: st.DrawFn, options: Sequence[T]) -> T:
    """One of the options; what stands first is the simplest."""
    return options[draw(_below(len(options)))]


def once_in(draw: st.DrawFn, count: int) -> bool:
    return draw(_below(count)) == count - 1


@contextmanager
def tables_of(capacity: int | None) -> Iterator[None]:
    """While every table starts with room for `capacity` rows; None: the usual room."""
    with pytest.MonkeyPatch.context() as patch:
        if capacity is not None:
            patch.setenv(FIRST_CAPACITY, str(capacity))
        yield


class RandomChoice(CostModel):
    """The `auto` operator switches at random."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(least_work=0)
        object.__setattr__(self, "chance", chance)

    def decide(self, *_: object) -> int:
        chance: random.Random = self.chance  # type: ignore[attr-defined]
        return chance.randrange(2)


@contextmanager
def restless(seed: int = 7, capacity: int | None = None) -> Iterator[None]:
    """While `auto` switches between its operators at random, every table starts with room for `capacity` rows, rows
    and vertices are renumbered, the levels that the closure caches may be too many, and batches are cut into parts,
    some of which start before others are finished."""
    chance = random.Random(seed)
    usual = CutLimits()
    with tables_of(capacity), pytest.MonkeyPatch.context() as patch:
        levels = (0, 4 * path_closure.CHUNK, path_closure.MOST_LEVELS)
        patch.setattr(path_closure, "MOST_LEVELS", chance.choice(levels))
        limits = CutLimits(
            first=chance.choice((1, usual.first)),
            least=chance.choice((1, usual.least)),
            most_out=chance.choice((3, usual.most_out)),
        )
        patch.setattr(Cutter, "limits", limits)
        patch.setattr(VertexReclaimer, "slack", chance.choice((0, VertexReclaimer.slack)))
        patch.setattr(Pipeline, "ahead", chance.randrange(4))
        patch.setattr(PathAuto, "part_rows", chance.choice((2, 2, 8, PathAuto.part_rows)))
        patch.setattr(PathAuto, "costs", RandomChoice(chance))
        yield


# ---------------------------------------------------------------------------------------------------------
# Queries

BOUNDS = ((1, None), (0, None), (0, 1), (2, 3), (0, 2), (2, None), (1, 2), (2, 2))


def draw_expr(draw: st.DrawFn, labels: Sequence[Step], depth: int = 3) -> Expr:
    """A path expression over the given labels and heads: inverse, empty words, closures within closures."""
    kind = pick(draw, ("step", "step", "repeat", "repeat", "then", "either", "back")) if depth else "step"
    match kind:
        case "repeat":
            return Rep(draw_expr(draw, labels, depth - 1), *pick(draw, BOUNDS))
        case "back":
            return Back(draw_expr(draw, labels, depth - 1))
        case "then" | "either":
            parts = tuple(draw_expr(draw, labels, depth - 1) for _ in range(pick(draw, (2, 2, 3))))
            return Seq(parts) if kind == "then" else Alt(parts)
    return pick(draw, labels)


def draw_atom(
    draw: st.DrawFn, labels: Sequence[Step], known: Sequence[Var], vertices: Sequence[Vertex]
) -> Atom:
    """An atom that, as a rule, shares a variable with those before it; a constant now and then."""
    expr: Expr
    match pick(draw, ("edge", "edge", "edge", "closure", "path", "path")):
        case "edge":
            expr = pick(draw, labels)
        case "closure":
            expr = Rep(pick(draw, labels), pick(draw, (1, 0)), None)
        case _:
            expr = draw_expr(draw, labels)
    near: Term = pick(draw, known) if known and not once_in(draw, 12) else pick(draw, VARIABLES)
    far: Term = pick(draw, vertices) if once_in(draw, 12) else pick(draw, VARIABLES)
    return Atom(expr, near, far) if pick(draw, (True, False)) else Atom(expr, far, near)


VARIABLES = tuple(map(Var, "xyuv"))


def variables(body: Sequence[Atom]) -> list[Var]:
    """The body's variables, in order of first use."""
    return list(
        dict.fromkeys(term for atom in body for term in (atom.src, atom.trg) if isinstance(term, Var))
    )


def draw_rule(
    draw: st.DrawFn, head: str, arity: int, labels: Sequence[Step], vertices: Sequence[Vertex]
) -> Rule:
    """A rule of one to four atoms. One in three of the binary ones is one path and nothing else: these alone
    have answers that come with a path."""
    x, y = VARIABLES[:2]
    if arity == 2 and not once_in(draw, 3):
        return Rule(head, (x, y), (Atom(draw_expr(draw, labels), x, y),))
    body: list[Atom] = []
    for _ in range(pick(draw, (1, 2, 2, 3, 3, 4))):
        body.append(draw_atom(draw, labels, variables(body), vertices))
    bound = variables(body)
    if not bound and arity:
        body.append(Atom(pick(draw, labels), x, y))
        bound = [x, y]
    if len(bound) < arity or once_in(draw, 12):
        return Rule(head, tuple(pick(draw, bound) for _ in range(arity)) if arity else (), tuple(body))
    args = []
    for _ in range(arity):
        args.append(pick(draw, [var for var in bound if var not in args]))
    return Rule(head, tuple(args), tuple(body))


def draw_names(draw: st.DrawFn, rules: Sequence[Rule]) -> list[Rule]:
    """The rules with names for some of their paths, none used twice."""
    named: list[Rule] = []
    count = 0
    for rule in rules:
        body = []
        for atom in rule.body:
            if not isinstance(atom.expr, Step) and once_in(draw, 2):
                count += 1
                atom = replace(atom, name=f"P{count}")
            body.append(atom)
        named.append(replace(rule, body=tuple(body)))
    return named


def draw_streams(draw: st.DrawFn) -> tuple[Stream, ...]:
    """One stream, or two or three with windows of their own; slides that fit, that do not, and that are too
    large."""
    asked = []
    for name in ("social", "s2", "s3")[: pick(draw, (1, 1, 1, 1, 2, 2, 3))]:
        window = pick(draw, (10, 24, 7, 40, 3, 1, 17))
        match pick(draw, ("every instant", "every instant", "some", "any")):
            case "every instant":
                slide = 1
            case "some":
                slide = 1 + draw(_below(window))
            case _:
                slide = 1 + draw(_below(window + 3))
        asked.append(Stream(name, window, slide))
    return tuple(asked)


def draw_query(draw: st.DrawFn, vertices: Sequence[Vertex]) -> Query:
    """A regular query of one to three heads, each a union of one or two rules, later ones built on earlier
    ones."""
    streams = draw_streams(draw)
    count = pick(draw, (1, 1, 2, 2, 3))
    labels = [Step(label, pick(draw, streams).name) for label in LABELS[:count]]
    if once_in(draw, 4):
        labels[-1] = Step(LABELS[0], streams[-1].name)
    rules: list[Rule] = []
    for head in ("D", "E")[: pick(draw, (0, 0, 1, 1, 2))]:
        for _ in range(pick(draw, (1, 1, 2))):
            rules.append(draw_rule(draw, head, 2, labels, vertices))
        # Twice, so that what stands on derived edges is drawn as often as what stands on the input.
        labels = [*labels, Step(head), Step(head)]
    result = pick(draw, ("Answer", "Answer", "Answer", "Outcome"))
    arity = pick(draw, (2, 2, 2, 2, 1, 3, 0))
    for _ in range(pick(draw, (1, 1, 1, 2))):
        rules.append(draw_rule(draw, result, arity, labels, vertices))
    rules = draw_names(draw, rules)
    if result == "Answer" and once_in(draw, 3):
        rules.reverse()
    return Query(streams, tuple(rules))


@st.composite
def queries(draw: st.DrawFn, vertices: Sequence[Vertex] = VERTICES[0]) -> Query:
    return draw_query(draw, vertices)


@st.composite
def streams_asked(draw: st.DrawFn) -> tuple[Stream, ...]:
    return draw_streams(draw)


# ---------------------------------------------------------------------------------------------------------
# Streams

UNUSABLE: tuple[Any, ...] = (
    ("u", "a", "v", -1),
    (None, "a", "v", 5),
    ("u", "a", "v", "12:30"),
    ("u", "a", "v", None),
)
GAPS = (0, 1, 0, 0, 1, 2, 3, 0, 1, 5, 30)


@cache
def _events(vertices: int, labels: int, least: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    # src, label, trg, gap, of what kind, how late
    fields = (_below(vertices), _below(labels), _below(vertices), _below(len(GAPS)), _below(12), _below(12))
    return st.lists(st.tuples(*fields), min_size=least, max_size=max(30, least))


def draw_edges(
    draw: st.DrawFn,
    vertices: Sequence[Vertex],
    labels: Sequence[str],
    *,
    least: int = 0,
    deletions: bool = False,
    lateness: int | None = None,
) -> list[Edge]:
    """A stream in order of arrival: equal times, gaps, repeats, self-loops, a label that nobody asked for; where
    asked, deletions (of absent edges too) and edges that come late, some of them too late or unusable."""
    time = draw(_below(30))
    stream: list[Edge] = []
    for src, label, trg, gap, kind, late in draw(_events(len(vertices), len(labels), least)):
        time += GAPS[gap]
        at = time if lateness is None or late < 6 else max(0, time - (late - 6) * (lateness + 1) // 5)
        edge = (vertices[src], UNASKED if kind == 11 else labels[label], vertices[trg])
        if lateness is not None and kind == late == 11:
            stream.append(UNUSABLE[gap % len(UNUSABLE)])
            continue
        if deletions and kind in (7, 8):
            stream.append((*edge, at, "-"))
        elif stream and kind in (9, 10):
            again = stream[(src * 7 + trg) % len(stream)][:3]
            stream.append((*again, at, "-") if deletions and kind == 10 else (*again, at))
        else:
            stream.append((*edge, at) if kind else (*edge, at, "+"))
    return stream


@st.composite
def edges(draw: st.DrawFn, vertices: Sequence[Vertex], labels: Sequence[str]) -> list[Edge]:
    return draw_edges(draw, vertices, labels)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A query, streams for it, and a way to run it."""
    vertices = pick(draw, VERTICES)[: pick(draw, (3, 4, 2, 5, 6))]
    query = draw_query(draw, vertices)
    deletions = once_in(draw, 2)
    disorder = once_in(draw, 4)
    lateness = draw(_below(7)) if disorder else 0
    named = {step for rule in query.rules for atom in rule.body for step in steps(atom.expr)}
    least = pick(draw, (0, 5, 10, 16, 24)) // len(query.streams)
    streams = {}
    for stream in query.streams:
        labels = sorted(step.label for step in named if step.stream == stream.name)
        streams[stream.name] = draw_edges(
            draw,
            vertices,
            labels or [UNASKED],
            least=least,
            deletions=deletions,
            lateness=lateness if disorder else None,
        )
    return Case(
        query,
        streams,
        lateness=lateness,
        mode=pick(draw, ("intervals", "intervals", "changes")),
        paths=once_in(draw, 2),
        batch_rows=pick(draw, BATCH_ROWS),
        plan=None if once_in(draw, 2) else draw(_below(40)),
        demand=not once_in(draw, 4),
        threads=pick(draw, (1, 1, 1, 2, 3)),
        moves=draw(_below(100)),
        capacity=pick(draw, CAPACITIES),
    )
