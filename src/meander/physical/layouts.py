"""Layouts: how the tuples of a plan are divided among cells, and the choice of the cheapest for a join of edges.

The cells are a grid with one dimension per chosen column of the tuples (Afrati and Ullman, "Optimizing joins in a
map-reduce environment", 2010; for one round Beame, Koutris and Suciu, "Communication steps for parallel query
processing", 2013). A tuple belongs to the cell at the hashes of its vertices at these columns. An edge goes to the
cells that agree with the columns that it has. So a join over a grid of p×q cells sends an edge to p or q cells, which
one over p·q cells by a single column would broadcast.

Only columns that are returned may be dimensions: each answer is then found by exactly one cell.

A *heavy* vertex, with very many edges, would keep one coordinate busy. Where another returned column occurs in an
edge beside it, that column's hash is the coordinate of tuples with a heavy vertex instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from math import prod

from meander.algebra.nodes import Filter, Path, Pattern, Plan, Share, Slice, Union, WScan
from meander.physical.streams import SIDES
from meander.rewrite.choice import WEIGHTS, Sizes, search_work

LABELS = WEIGHTS.any_label
MOST_DIMENSIONS = 4
EXACT_SIZES = 8
"""Dimensions of up to this size are tried with every size; larger ones with fractions of the number of cells."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A dimension of a grid: the hash of the vertex at a `position` is the coordinate.

    If it `spreads`, tuples with a heavy vertex there have the hash of the vertex at position `other` instead. Tuples
    without that position (None) then belong to every coordinate.
    """

    position: int
    size: int
    stride: int = 1
    spreads: bool = False
    other: int | None = None

    @property
    def is_exact(self) -> bool:
        """Whether it gives every tuple one coordinate."""
        return not self.spreads or self.other is not None


@dataclass(frozen=True, slots=True)
class Layout:
    """A grid on the first `cells` of `of` cells, with the hashes of the names of heavy vertices.

    If it `repeats_searches`, each cell computes the closures that a pattern probes from all roots at its coordinate.
    """

    cells: int
    of: int
    axes: tuple[Axis, ...]
    heavy: tuple[int, ...] = ()
    repeats_searches: bool = False

    def share(self) -> Share | None:
        """What a cell has of edges by this layout of their ends; None: all."""
        if not self.axes and self.cells == self.of:
            return None
        slices = [
            Slice(
                SIDES[axis.position],
                axis.size,
                axis.stride,
                "hash" if not axis.spreads else "copy" if axis.other is None else "spread",
            )
            for axis in self.axes
        ]
        knows_heavy = any(part.heavy != "hash" for part in slices)
        return Share(
            self.cells,
            tuple(sorted(slices, key=lambda part: (part.side, part.stride))),
            self.heavy if knows_heavy else (),
        )

    def of_input(self, output: Sequence[int], ends: Sequence[int]) -> Layout:
        """The layout of a pattern's input whose columns are the variables `ends`, if this is that of its `output`."""

        def column(position: int | None) -> int | None:
            variable = None if position is None else output[position]
            return next((at for at, end in enumerate(ends[:2]) if end == variable), None)

        axes = [
            Axis(
                at,
                axis.size,
                axis.stride,
                axis.spreads,
                other if (other := column(axis.other)) != at else None,
            )
            for axis in self.axes
            if (at := column(axis.position)) is not None
        ]
        return Layout(self.cells, self.of, tuple(axes), self.heavy)

    def at(self, position: int) -> Layout:
        """The same, by another position."""
        (axis,) = self.axes
        return replace(self, axes=(replace(axis, position=position),))

    def by_root(self) -> Layout:
        """The layout of a closure by its root alone; without an axis if that is no dimension."""
        roots = [axis for axis in self.axes if axis.position == 0 and not axis.spreads]
        return Layout(self.cells, self.of, tuple(roots))

    def whole(self) -> Layout:
        """That of a stream which every cell of the grid reads in full."""
        return Layout(self.cells, self.of, (), self.heavy)


def by_position(position: int, cells: int) -> Layout:
    """All cells, by the hash of one column."""
    return Layout(cells, cells, (Axis(position, cells),))


# ---------------------------------------------------------------------------------------------------------
# Joins of edges


@dataclass(frozen=True, slots=True)
class Conjunct:
    """An input of a join that only reads edges: the positions of the join's tuples that its two columns are."""

    columns: tuple[tuple[int, ...], tuple[int, ...]]
    labels: tuple[tuple[str, str | None], ...]  # (stream, label) of the edges; None: any
    closure: Path | None = None  # of these edges; every cell has them all

    def has(self, position: int) -> bool:
        return self.closure is None and any(position in column for column in self.columns)

    def joins(self, left: int, right: int) -> bool:
        """Whether its columns are these two positions."""
        first, second = self.columns
        if left in first and left in second:
            return False
        return (left in first and right in second) or (left in second and right in first)


@dataclass(frozen=True)
class Statistics:
    """What is known of the input: numbers of edges by (stream, label), and hashes of heavy vertices."""

    sizes: Mapping[tuple[str, str | None], float] = field(default_factory=dict)
    heavy: tuple[int, ...] = ()

    def relative(self, labels: Iterable[tuple[str, str | None]]) -> dict[tuple[str, str | None], float]:
        """The numbers of edges of some labels, in units of their mean; those that are unknown have as many."""
        labels = set(labels)
        known = {label: self.sizes[label] for label in labels if label in self.sizes}
        mean = sum(known.values()) / len(known) if known else 0.0
        return {
            label: known[label] / mean if label in known and mean else LABELS if label[1] is None else 1.0
            for label in labels
        }


UNKNOWN = Statistics()


def best_grid(plan: Plan, cells: int, statistics: Statistics = UNKNOWN) -> Layout | None:
    """The layout of a join of edges with the least cost; None if the plan has derived inputs, or no vertex.

    A join may probe a closure of edges, if the numbers of all edges are known: it is searched again for every
    coordinate of the other dimensions, which pays if its edges are few.
    """
    parts = joins_of(plan)
    if parts is None or plan.arity == 0:
        return None
    conjuncts = [conjunct for part in parts for conjunct in part]
    closures = [conjunct for conjunct in conjuncts if conjunct.closure is not None]
    labels = {label for conjunct in conjuncts for label in conjunct.labels}
    if closures and not labels <= set(statistics.sizes):
        return None
    relative = statistics.relative(labels)
    estimates = Sizes(edges=relative) if closures else Sizes()
    # What the cells do once together, as matching, and what each does for every edge that it has.
    found = WEIGHTS.find * estimates.of(plan)

    def search(sizes: Mapping[int, int]) -> float:
        return sum(
            search_work(conjunct.closure, estimates)
            / prod(size for position, size in sizes.items() if position in conjunct.columns[0])
            for conjunct in closures
            if conjunct.closure is not None
        )

    def cost(sizes: Mapping[int, int]) -> float:
        used = prod(sizes.values())
        read = sum(relative[label] * share for label, share in shares_of_labels(parts, sizes).items())
        read += search(sizes)
        slowest, work = read + found / used, read * used + found
        # Work that does not end sooner still takes cores from others. Below eight cells that is hardly an issue, nor
        # beside a closure.
        return slowest if closures else slowest + 2 * work / max(cells, 8)

    best = min(
        grids(range(plan.arity), cells),
        key=lambda sizes: (round(cost(sizes), 9), len(sizes), sorted(sizes.items())),
    )
    axes, stride = [], 1
    for position, size in best.items():
        spreads = statistics.heavy and not closures
        other = spread_position(parts, position, plan.arity) if spreads else None
        axes.append(Axis(position, size, stride, other is not None, other))
        stride *= size
    return Layout(stride, cells, tuple(axes), () if closures else statistics.heavy, bool(closures))


def grids(positions: Sequence[int], cells: int) -> Iterator[dict[int, int]]:
    """Sizes of the dimensions by position, at most `cells` cells in all; one position at least."""
    sizes = [
        size
        for size in range(2, cells + 1)
        if size <= EXACT_SIZES or any(size == cells // part for part in range(1, EXACT_SIZES + 1))
    ]

    def of(chosen: tuple[int, ...], left: int) -> Iterator[dict[int, int]]:
        if not chosen:
            yield {}
            return
        for size in sizes:
            if size <= left:
                for rest in of(chosen[1:], left // size):
                    yield {chosen[0]: size, **rest}

    for dimensions in range(1, min(len(positions), MOST_DIMENSIONS) + 1):
        for chosen in combinations(positions, dimensions):
            yield from of(chosen, cells)


def joins_of(plan: Plan) -> list[list[Conjunct]] | None:
    """The conjuncts of each alternative of a plan; None if one of them is derived."""
    if isinstance(plan, Union):
        alternatives = [joins_of(part) for part in plan.inputs]
        return [part for of in alternatives if of for part in of] if None not in alternatives else None
    if isinstance(plan, Pattern):
        conjuncts = []
        for source, ends in zip(plan.inputs, plan.ends, strict=True):
            closure = source if isinstance(source, Path) else None
            labels = labels_read(source) if closure is None else labels_of_steps(closure)
            if labels is None:
                return None
            first, second = (
                tuple(at for at, variable in enumerate(plan.output[: plan.arity]) if variable == end)
                for end in ends[:2]
            )
            conjuncts.append(Conjunct((first, second), labels, closure))
        searches = [conjunct for conjunct in conjuncts if conjunct.closure is not None]
        return [conjuncts] if len(searches) <= 1 < len(conjuncts) or not searches else None
    labels = labels_read(plan)
    return None if labels is None else [[Conjunct(((0,), (1,)), labels)]]


def labels_read(plan: Plan) -> tuple[tuple[str, str | None], ...] | None:
    """The (stream, label) of the edges that are a plan's tuples; None if it derives them from several edges."""
    match plan:
        case WScan(stream, names):
            return tuple((stream, name) for name in names) or ((stream, None),)
        case Filter(inner) | Pattern((inner,)):
            return labels_read(inner)
        case Union(inputs):
            parts = [labels_read(part) for part in inputs]
            return (
                tuple(dict.fromkeys(label for part in parts if part for label in part))
                if all(parts)
                else None
            )
    return None


def labels_of_steps(closure: Path) -> tuple[tuple[str, str | None], ...] | None:
    """The (stream, label) of the edges that a path consists of; None if it has steps over several edges."""
    steps = [labels_read(source) for source in closure.inputs]
    known = [labels for labels in steps if labels is not None]
    return tuple(dict.fromkeys(chain.from_iterable(known))) if len(known) == len(steps) else None


def shares_of_labels(
    parts: Sequence[Sequence[Conjunct]], sizes: Mapping[int, int]
) -> dict[tuple[str, str | None], float]:
    """By label: the share of its edges that a cell of a grid has."""
    missing: dict[tuple[str, str | None], float] = {}
    for part in parts:
        for conjunct in part:
            share = 1 / prod(size for position, size in sizes.items() if conjunct.has(position))
            for label in conjunct.labels:
                missing[label] = missing.get(label, 1.0) * (1 - share)
    return {label: 1 - missed for label, missed in missing.items()}


def spread_position(parts: Sequence[Sequence[Conjunct]], position: int, arity: int) -> int | None:
    """Another position that an edge beside it has, in every alternative."""
    for other in range(arity):
        if other != position and all(
            any(conjunct.joins(position, other) for conjunct in part) for part in parts
        ):
            return other
    return None
