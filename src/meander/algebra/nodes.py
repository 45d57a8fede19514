"""The Streaming Graph Algebra: five logical nodes, and `Receive` for a plan that is split over stages.

Nodes are immutable, compare by structure, and check themselves when built. A node stands for a stream of
tuples, each with its validity interval: `arity` vertices, and then the `values`, which are properties.

The columns of a `Pattern`'s inputs are written as variables, numbered in the order of their first use over its
inputs: `ends=((0, 1), (2, 1))` is trg₁ = trg₂, the form that `printing.equalities` prints.

A predicate names what it compares: in a `WScan` an end point or a property of the edge, in a `Filter` a column of its
input by number, in a `Pattern` a variable by number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from meander.algebra.automata import labels
from meander.syntax.query import PathExpr, PathOrder
from meander.syntax.values import (
    RESERVED_PROPERTIES,
    TIME_PROPERTY,
    Predicate,
    Property,
    ValueType,
    refs,
)

Side = Literal["src", "trg"]
"""The end of an edge by which a stream is hash-partitioned over cells."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A dimension of a grid of cells: each has the edges whose vertex on a `side` is hashed to its coordinate.

    The dimension has `size` coordinates; that of a cell is its number, divided by `stride`, modulo `size`. The edges
    of a heavy vertex may instead be spread, by the hash of their other end, or copied to every coordinate.
    """

    side: Side
    size: int
    stride: int = 1
    heavy: Literal["hash", "spread", "copy"] = "hash"


@dataclass(frozen=True, slots=True)
class Share:
    """What the cells of a grid read of a stream: the first `cells` cells, each the edges of its coordinates.

    `heavy` are the hashes of the names of heavy vertices, if a dimension spreads or copies their edges.
    """

    cells: int
    slices: tuple[Slice, ...] = ()
    heavy: tuple[int, ...] = ()


ANY_LABEL = "_"
"""What edges are called that are scanned whatever their label."""

EDGE_TIME = Property(TIME_PROPERTY, ValueType.TIME)
"""The column of an edge's own time."""


class PlanError(ValueError):
    """A node that breaks the algebra's own rules: a fault of the planner, not of the user."""


class Node:
    """The contract of a node: `label`, `arity`, `values` and `inputs`.

    A plan may share subplans. A node therefore hashes once and keeps the hash, else the hash of a plan would take as
    long as the plan is large as a tree. Pickles leave it out, since strings hash differently in another process.
    """

    __slots__ = ("_hash",)
    _hash: int

    if TYPE_CHECKING:  # fields of some nodes, properties of others

        @property
        def label(self) -> str:
            """The label of the node's tuples."""

        @property
        def inputs(self) -> tuple[Plan, ...]:
            """The nodes that it reads."""

        @property
        def values(self) -> tuple[Property, ...]:
            """The columns after the vertices."""

    @property
    def arity(self) -> int:
        """The number of vertices in a tuple: two, except for an `Answer` of another arity."""
        return 2

    @property
    def width(self) -> int:
        """The number of columns of a tuple: its vertices and its values."""
        return self.arity + len(self.values)

    @property
    def types(self) -> tuple[ValueType | None, ...]:
        """The type of each column; None where it is undecided."""
        return (ValueType.VERTEX,) * self.arity + tuple(value.type for value in self.values)

    def __init_subclass__(cls) -> None:
        # `dataclass` would generate another `__hash__` for every class that does not define its own.
        cls.__hash__ = Node.__hash__  # type: ignore[method-assign]

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            names = self.__match_args__  # type: ignore[attr-defined]
            value = hash((type(self), *(getattr(self, name) for name in names)))
            object.__setattr__(self, "_hash", value)
            return value


@dataclass(frozen=True, slots=True)
class WScan(Node):
    """`𝒲_{T,β}(σ_φ(S_a ∪ S_b …))`: edges of a stream with any of `labels`, each valid in [t, ⌊t/β⌋·β + T).

    With a `share`, only the edges that the cell that runs the plan has by it. `values` are the properties that are
    columns; `named` are all that the query names on the stream, by which deletions are matched. Without `labels` it
    reads edges of any label. A `vertex` scan reads vertex tuples, as loops; the tuples of a `table` hold until they
    are replaced, and `tuples` as long as they say themselves, whatever the window.
    """

    stream: str
    labels: tuple[str, ...]
    window: int
    slide: int = 1
    predicate: Predicate | None = None
    share: Share | None = None
    values: tuple[Property, ...] = ()
    named: tuple[Property, ...] = ()
    vertex: bool = False
    table: bool = False
    tuples: bool = False

    def __post_init__(self) -> None:
        if self.window < 1 or self.slide < 1:
            raise PlanError("WScan needs a window and a slide of at least 1")
        if tuple(sorted(set(self.labels))) != self.labels:
            raise PlanError("WScan's labels are sorted and distinct")
        for properties in (self.values, self.named):
            if tuple(sorted({value.name for value in properties})) != tuple(v.name for v in properties):
                raise PlanError("WScan's properties are sorted and distinct")
        known = {value.name for value in self.named} | {*RESERVED_PROPERTIES}
        used = {ref.name for ref in refs(self.predicate)} | {value.name for value in self.values}
        if not used <= known:
            raise PlanError("WScan names each property that it reads")

    @property
    def label(self) -> str:
        return "|".join(self.labels) or ANY_LABEL

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Filter(Node):
    """`σ_φ(S)`: the tuples of the input for which the predicate is true."""

    input: Plan
    predicate: Predicate

    def __post_init__(self) -> None:
        if self.input.arity != 2:
            raise PlanError("Filter reads pairs")
        _check_refs(self.predicate, self.input.width, "Filter compares columns of its input")

    @property
    def label(self) -> str:
        return self.input.label

    @property
    def values(self) -> tuple[Property, ...]:
        return self.input.values

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Union(Node):
    """`S₁ ∪^d S₂ …`: the tuples of all inputs, labeled `label`. A union of one input renames it."""

    inputs: tuple[Plan, ...]
    label: str

    def __post_init__(self) -> None:
        if not self.inputs:
            raise PlanError("Union needs an input")
        if len({plan.arity for plan in self.inputs}) != 1:
            raise PlanError("Union's inputs have one arity")
        if len({plan.values for plan in self.inputs}) != 1:
            raise PlanError("Union's inputs have the same values")

    @property
    def arity(self) -> int:
        return self.inputs[0].arity

    @property
    def values(self) -> tuple[Property, ...]:
        return self.inputs[0].values


@dataclass(frozen=True, slots=True)
class Pattern(Node):
    """`⋈_Φ^{src,trg,d}(S₁, …, Sₙ)`: all ways to join the inputs' columns; emits the variables `output`.

    `ends` has for each input a variable for each of its columns: its two ends, then its values. `predicate` compares
    variables. The last variables of the output are values, named by `values`.
    """

    inputs: tuple[Plan, ...]
    ends: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    label: str
    predicate: Predicate | None = None
    values: tuple[Property, ...] = ()

    def __post_init__(self) -> None:
        if not self.inputs or len(self.inputs) != len(self.ends):
            raise PlanError("Pattern needs the ends of each of its inputs")
        if any(plan.arity != 2 for plan in self.inputs):
            raise PlanError("Pattern reads pairs")
        if any(plan.width != len(ends) for plan, ends in zip(self.inputs, self.ends, strict=True)):
            raise PlanError("Pattern needs a variable for each column of its inputs")
        seen = list(dict.fromkeys(variable for ends in self.ends for variable in ends))
        if seen != list(range(len(seen))):
            raise PlanError("Pattern's variables are numbered in order of first use")
        if not set(self.output) <= set(seen):
            raise PlanError("Pattern emits variables of its own inputs only")
        _check_refs(self.predicate, len(seen), "Pattern compares its own variables")
        self._check_types()

    def _check_types(self) -> None:
        found: dict[int, ValueType] = {}
        for plan, ends in zip(self.inputs, self.ends, strict=True):
            for variable, kind in zip(ends, plan.types, strict=True):
                if kind is not None and found.setdefault(variable, kind) is not kind:
                    raise PlanError(f"Pattern joins {kind} with {found[variable]}")
        for variable, kind in zip(self.output, self.types, strict=True):
            if kind is not None and found.get(variable, kind) is not kind:
                raise PlanError("Pattern emits its vertices first, then its values")

    @property
    def arity(self) -> int:
        return len(self.output) - len(self.values)

    @property
    def variables(self) -> int:
        return 1 + max(variable for ends in self.ends for variable in ends)

    @property
    def variable_types(self) -> tuple[ValueType | None, ...]:
        """The type of each variable."""
        found: dict[int, ValueType | None] = {}
        for plan, ends in zip(self.inputs, self.ends, strict=True):
            for variable, kind in zip(ends, plan.types, strict=True):
                found[variable] = found.get(variable) or kind
        return tuple(found[variable] for variable in range(len(found)))


@dataclass(frozen=True, slots=True)
class Path(Node):
    """`𝒫_R^d(S_{l₁}, …, S_{lₙ})`: pairs joined by a path whose labels spell a word of `expr`.

    `expr` refers to its inputs by position: a `Label` named "0" is the first input, "1" the second, … (its
    `stream` is None). Every input is used, so that inputs are exactly the streams whose end points have the
    empty path if `expr` accepts the empty word. The printed form shows the inputs' labels.

    `demand`, if given, holds the only pairs that the readers of the path need: others may be left out. With an
    `order`, the times of a path's edges are in that order, and each input has its time as its only value.
    """

    inputs: tuple[Plan, ...]
    expr: PathExpr
    label: str
    demand: Plan | None = None
    order: PathOrder = PathOrder.ANY

    def __post_init__(self) -> None:
        if not self.inputs:
            raise PlanError("Path needs an input")
        if any(plan.arity != 2 for plan in self.inputs):
            raise PlanError("Path reads pairs")
        wanted = () if self.order is PathOrder.ANY else (EDGE_TIME,)
        if any(plan.values != wanted for plan in self.inputs):
            raise PlanError("Path reads pairs, with their time alone if it has an order")
        if len(set(self.inputs)) != len(self.inputs):
            raise PlanError("Path names each input once")
        used = labels(self.expr)
        if any(label.stream is not None for label in used):
            raise PlanError("Path's expression refers to inputs by position, not to streams")
        if {label.name for label in used} != {str(position) for position in range(len(self.inputs))}:
            raise PlanError(f"Path's expression uses each of its {len(self.inputs)} inputs, and no other")
        if self.demand is not None and self.demand.width != 2:
            raise PlanError("Path's demand has pairs")

    @property
    def values(self) -> tuple[Property, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Receive(Node):
    """Pairs and their `values` that an earlier stage derives, each with its interval, as the stream `stream`;
    `share` as for `WScan`."""

    stream: str
    label: str
    share: Share | None = None
    values: tuple[Property, ...] = ()

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return ()


Plan = WScan | Filter | Union | Pattern | Path | Receive


def _check_refs(predicate: Predicate | None, width: int, message: str) -> None:
    if any(not isinstance(ref.name, int) or not 0 <= ref.name < width for ref in refs(predicate)):
        raise PlanError(message)
