"""Bursts: hundreds or thousands of edges at a few instants, so that every table fills while an instant is open.

The edges come from a seeded generator, not from Hypothesis's own choices: there are too many of them. Graphs are of
shapes whose closures stay small enough for the oracle; a drawn query that joins too much of one is not judged.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from oracle import Edge, fields
from querytext import Query, Vertex, read_query, steps
from strategies import CAPACITIES, UNASKED, Case, draw_query, pick

BATCH_ROWS = (65536, 65536, 1000, 257, 64)
SIZES = (600, 300, 1200, 600, 300, 3000, 5000)
INSTANTS = ((5,), (5,), (5, 6), (3, 3, 9), (1, 4, 8, 12), (2, 30))

# Every operator, and unions wherever one can stand: two rules, alternation, a head with two rules inside a closure.
BODIES = (
    "Answer(x, y) <- a(x, y).\nAnswer(x, y) <- b(x, y).",
    "Answer(x, y) <- (a|b)(x, y).",
    "Answer(x, y) <- (a/c|b/c)(x, y).",
    "Answer(x) <- a(x, y).\nAnswer(x) <- b(y, x).",
    "Answer(x, y, z) <- a(x, y), b(y, z).\nAnswer(x, y, z) <- c(x, y), a(y, z).",
    "H(x, y) <- a(x, y).\nH(x, y) <- b(y, x).\nAnswer(x, y) <- (H/c)+(x, y).",
    "H(x, y) <- a(x, m), b(m, y).\nH(x, y) <- c(x, y).\nAnswer(x, y) <- H+(x, y) as P.",
    "Answer(x, y) <- a+(x, y) as P.",
    "Answer(x, y) <- a*(x, y) as P.",
    "Answer(x, y) <- (a/b*)(x, y).",
    "Answer(x, y) <- (a|^b)+(x, y).\nAnswer(x, y) <- c(x, y).",
    "Answer(x, y) <- (a/b*/c*)(x, y).",
    "D(x, y) <- a(x, u), b(u, v), c(v, y).\nAnswer(x, y) <- D+(x, y).",
    "Answer(m, n) <- a(x, y), b(m, x), b(n, y), c(n, m).",
    "Answer(x, y) <- a+(x, y), b(x, m), c(m, y).",
    "RL(x, y) <- a+(x, y), b(x, m), c(m, y).\nAnswer(x, m) <- RL+(x, y), c(m, y).",
    "Answer(x, y) <- a(x, y), a(y, x).",
    "Answer(x) <- a(x, x).\nAnswer(x) <- b+(x, x).",
    "Answer() <- a(x, y), b(y, x).",
)


def pairs(chance: random.Random, count: int) -> list[tuple[int, int]]:
    """Edges that share no vertex."""
    return [(i, i + count) for i in range(count)]


def chains(chance: random.Random, count: int) -> list[tuple[int, int]]:
    """Paths of up to seven edges, some of them closed to rings."""
    drawn_edges: list[tuple[int, int]] = []
    while len(drawn_edges) < count:
        first, length = 8 * len(drawn_edges), chance.randrange(1, 8)
        drawn_edges += [(first + i, first + i + 1) for i in range(length)]
        if chance.random() < 0.3:
            drawn_edges.append((first + length, first))
    return drawn_edges


def stars(chance: random.Random, count: int) -> list[tuple[int, int]]:
    """A few vertices with very many edges, in or out."""
    hubs = [(hub, chance.random() < 0.5) for hub in range(chance.randrange(1, 4))]
    drawn_edges = []
    for i in range(count):
        hub, out = chance.choice(hubs)
        drawn_edges.append((hub, 10 + i) if out else (10 + i, hub))
    return drawn_edges


def scattered(chance: random.Random, count: int) -> list[tuple[int, int]]:
    """Twice as many vertices as edges, all at random: small trees."""
    return [(chance.randrange(2 * count), chance.randrange(2 * count)) for _ in range(count)]


def dense(chance: random.Random, count: int) -> list[tuple[int, int]]:
    """Few vertices: the same edges again and again, and rings everywhere."""
    vertices = chance.choice((5, 20, 40))
    return [(chance.randrange(vertices), chance.randrange(vertices)) for _ in range(count)]


SHAPES: tuple[Callable[[random.Random, int], list[tuple[int, int]]], ...] = (
    chains,
    dense,
    stars,
    chains,
    pairs,
    scattered,
)


def burst_edges(
    seed: int,
    labels: Sequence[str],
    *,
    shape: Callable[[random.Random, int], list[tuple[int, int]]],
    count: int,
    instants: Sequence[int],
    deletions: float,
    names: Callable[[int], Vertex],
) -> list[Edge]:
    """A stream in order of time. Some edges come again, under another label too; a deletion may come in the instant
    of what it deletes, before it or after it."""
    chance = random.Random(seed)
    drawn_edges: list[Edge] = []
    # Labels in turn, so that the edges of a chain spell words, or at random.
    in_turn = chance.random() < 0.5
    kinds = [labels[i % len(labels)] if in_turn else chance.choice(labels) for i in range(2 * count)]
    edges = [
        (names(src), label, names(trg))
        for (src, trg), label in zip(shape(chance, count), kinds, strict=False)
    ]
    for time in instants:
        now: list[Edge] = []
        for edge in chance.sample(edges, max(1, len(edges) // len(instants))):
            src, label, trg = edge
            now.append((src, UNASKED if chance.random() < 0.02 else label, trg, time))
        now += [(*edge[:3], time) for edge in chance.sample(drawn_edges, len(drawn_edges) // 4)]
        for edge in chance.sample([*drawn_edges, *now], int(deletions * len(now))):
            now.insert(chance.randrange(len(now) + 1), (*edge[:3], time, "-"))
        drawn_edges += now
    return drawn_edges


# Values beside each operator: as keys of joins and unions, compared between edges, in the steps of paths, as times.
PROPERTY_BODIES = (
    "Answer(x, y, w: m) <- a(x, y, w: m).",
    "Answer(x, y, w: m) <- a(x, y, w: m).\nAnswer(x, y, w: m) <- b(x, y, w: m).",
    "Answer(x, y, w: m) <- a(x, z, w: m), b(z, y, w: n), m < n.",
    "Answer(x, y) <- a(x, z, w: m), b(z, y, w: m), x != y.",
    "Answer(x, y, at: t) <- a(x, z, ts: t), b(z, y, ts: u), t <= u, u - t <= 5.",
    "Answer(x, y) <- a[w > 1](x, y).",
    "Answer(x, y) <- (a[w > 0])+(x, y) as P.",
    "Answer(x, y) <- (a[w > 1]|^b[w < 2])*(x, y).",
    "Answer(x, y) <- (a|b)+(x, y) as P ascending.",
    "Answer(x, y) <- (a|b)+(x, y) as P strictly ascending.",
    "Answer(x, y) <- (a/b*)(x, y) as P ascending.",
    "D(x, y) <- a(x, y, w: m), m > 0.\nAnswer(x, y) <- D+(x, y) as P ascending.",
    "D(x, y, w: m) <- a(x, z, w: m), b(z, y, w: m).\nAnswer(x, y) <- D[w > 0]+(x, y).",
    "Answer(x, y, w: m) <- a+(x, y), b(x, y, w: m), a(y, w: n), n >= m.",
)


@st.composite
def property_bursts(draw: st.DrawFn) -> Case:
    """A burst whose edges have weights, and a query that reads them; some of its rows are vertex tuples."""
    window, slide = pick(draw, ((10, 1), (10, 4), (3, 1), (24, 12)))
    query = read_query(f"STREAM s (w INT) WINDOW {window} SLIDE {slide}\n{pick(draw, PROPERTY_BODIES)}")
    case = draw(burst_cases(query))
    chance = random.Random(draw(st.integers(0, 1 << 30)))
    vertices = query.has_vertices("s")
    rows: list[Edge] = []
    for edge in case.streams["s"]:
        row = fields(edge) | {"w": chance.choice((0, 1, 1, 2, 3, None))}
        if row["op"] == "-" and chance.random() < 0.5:
            del row["w"]
        if vertices and chance.random() < 0.3:
            del row["trg"]
        rows.append(row)
    return replace(case, streams={"s": rows})


@st.composite
def bursts(draw: st.DrawFn) -> Case:
    """A query, a burst of edges for each of its streams, and a way to run it."""
    query: Query
    if pick(draw, (True, False)):
        window, slide = pick(draw, ((10, 1), (10, 4), (3, 1), (24, 12)))
        query = read_query(f"STREAM social WINDOW {window} SLIDE {slide}\n{pick(draw, BODIES)}")
    else:
        query = draw_query(draw, (0, 1, 2, 10, 11))
    return draw(burst_cases(query))


@st.composite
def burst_cases(draw: st.DrawFn, query: Query) -> Case:
    """A burst of edges for each of a query's streams, and a way to run it."""
    named = {step for rule in query.rules for atom in rule.body for step in steps(atom.expr)}
    names = pick(draw, (int, lambda number: f"v{number}"))
    streams = {}
    for stream in (each for each in query.streams if not each.source):
        windows = query.windows(stream.name)
        labels = sorted({step.label for step in named if step.stream in windows})
        streams[stream.name] = burst_edges(
            draw(st.integers(0, 1 << 30)),
            labels or [UNASKED],
            shape=pick(draw, SHAPES),
            count=pick(draw, SIZES),
            instants=pick(draw, INSTANTS),
            deletions=pick(draw, (0.0, 0.0, 0.1, 0.5)),
            names=names,
        )
    return Case(
        query,
        streams,
        mode=pick(draw, ("intervals", "intervals", "changes")),
        paths=pick(draw, (False, False, True)),
        batch_rows=pick(draw, BATCH_ROWS),
        plan=pick(draw, (None, None, draw(st.integers(0, 39)))),
        demand=pick(draw, (True, True, False)),
        threads=pick(draw, (1, 1, 2)),
        moves=draw(st.integers(0, 99)),
        capacity=pick(draw, CAPACITIES),
    )
