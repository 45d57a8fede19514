"""The Streaming Graph Algebra: five logical nodes, and `Receive` for a plan that is split over stages.

Nodes are immutable, compare by structure, and check themselves when built. A node stands for a stream of
tuples over vertices, each with its validity interval.

The vertices of a `Pattern` are written as variables, numbered in the order of their first use over its
inputs: `ends=((0, 1), (2, 1))` is trg₁ = trg₂, the form that `printing.equalities` prints.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Literal

from meander.algebra.automata import labels
from meander.syntax.query import PathExpr

Side = Literal["src", "trg"]
"""The end of an edge by which a stream is hash-partitioned over cells."""


class PlanError(ValueError):
    """A node that breaks the algebra's own rules: a fault of the planner, not of the user."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A conjunction over one tuple: `src = c`, `trg = c`, `src = trg`. A field at its default imposes nothing."""

    src: str | int | None = None
    trg: str | int | None = None
    loop: bool = False

    def conjunction(self, other: Condition) -> Condition | None:
        """Both conditions as one; None if they contradict each other."""
        merged = self
        for field in fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if mine == field.default:
                merged = replace(merged, **{field.name: theirs})
            elif theirs not in (field.default, mine):
                return None
        return merged

    def reversed(self) -> Condition:
        """The condition on the tuple with its ends exchanged."""
        return replace(self, src=self.trg, trg=self.src)


class Node:
    """The contract of a node: `label`, `arity` and `inputs`.

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
    def arity(self) -> int:
        """The number of vertices in a tuple: two, except for an `Answer` of another arity."""
        return 2

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

    With a `side`, only the edges whose vertex on that side belongs to the cell that runs the plan.
    """

    stream: str
    labels: tuple[str, ...]
    window: int
    slide: int = 1
    condition: Condition = Condition()
    side: Side | None = None

    def __post_init__(self) -> None:
        if not self.labels:
            raise PlanError("WScan needs a label")
        if self.window < 1 or self.slide < 1:
            raise PlanError("WScan needs a window and a slide of at least 1")
        if tuple(sorted(set(self.labels))) != self.labels:
            raise PlanError("WScan's labels are sorted and distinct")

    @property
    def label(self) -> str:
        return "|".join(self.labels)

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Filter(Node):
    """`σ_φ(S)`: the tuples of the input on which the condition holds."""

    input: Plan
    condition: Condition

    def __post_init__(self) -> None:
        if self.input.arity != 2:
            raise PlanError("Filter reads pairs")
        if self.condition == Condition():
            raise PlanError("Filter without a condition")

    @property
    def label(self) -> str:
        return self.input.label

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

    @property
    def arity(self) -> int:
        return self.inputs[0].arity


@dataclass(frozen=True, slots=True)
class Pattern(Node):
    """`⋈_Φ^{src,trg,d}(S₁, …, Sₙ)`: all ways to join the inputs' ends; emits the variables `output`."""

    inputs: tuple[Plan, ...]
    ends: tuple[tuple[int, int], ...]
    output: tuple[int, ...]
    label: str

    def __post_init__(self) -> None:
        if not self.inputs or len(self.inputs) != len(self.ends):
            raise PlanError("Pattern needs the ends of each of its inputs")
        if any(plan.arity != 2 for plan in self.inputs):
            raise PlanError("Pattern reads pairs")
        seen: list[int] = []
        for pair in self.ends:
            for variable in pair:
                if variable not in seen:
                    seen.append(variable)
        if seen != list(range(len(seen))):
            raise PlanError("Pattern's variables are numbered in order of first use")
        if not set(self.output) <= set(seen):
            raise PlanError("Pattern emits variables of its own inputs only")

    @property
    def arity(self) -> int:
        return len(self.output)

    @property
    def variables(self) -> int:
        return 1 + max(variable for pair in self.ends for variable in pair)


@dataclass(frozen=True, slots=True)
class Path(Node):
    """`𝒫_R^d(S_{l₁}, …, S_{lₙ})`: pairs joined by a path whose labels spell a word of `expr`.

    `expr` refers to its inputs by position: a `Label` named "0" is the first input, "1" the second, … (its
    `stream` is None). Every input is used, so that inputs are exactly the streams whose end points have the
    empty path if `expr` accepts the empty word. The printed form shows the inputs' labels.

    `demand`, if given, holds the only pairs that the readers of the path need: others may be left out.
    """

    inputs: tuple[Plan, ...]
    expr: PathExpr
    label: str
    demand: Plan | None = None

    def __post_init__(self) -> None:
        if not self.inputs:
            raise PlanError("Path needs an input")
        if any(plan.arity != 2 for plan in self.inputs):
            raise PlanError("Path reads pairs")
        if len(set(self.inputs)) != len(self.inputs):
            raise PlanError("Path names each input once")
        used = labels(self.expr)
        if any(label.stream is not None for label in used):
            raise PlanError("Path's expression refers to inputs by position, not to streams")
        if {label.name for label in used} != {str(position) for position in range(len(self.inputs))}:
            raise PlanError(f"Path's expression uses each of its {len(self.inputs)} inputs, and no other")
        if self.demand is not None and self.demand.arity != 2:
            raise PlanError("Path's demand has pairs")


@dataclass(frozen=True, slots=True)
class Receive(Node):
    """Pairs that an earlier stage derives, each with its interval, as the stream `stream`; `side` as for `WScan`."""

    stream: str
    label: str
    side: Side | None = None

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return ()


Plan = WScan | Filter | Union | Pattern | Path | Receive
