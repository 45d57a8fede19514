"""The Streaming Graph Algebra: five logical nodes, and `Receive` for a plan that is split over stages.

Nodes are immutable, compare by structure, and check themselves when built. Every node stands for a stream
of tuples over vertices, each with the interval in which it holds; `arity` says how many vertices a tuple
has (two, but for the node that hands out an `Answer` of another arity), `label` what its tuples are called.

The vertices of a `Pattern` are written as variables, numbered in the order of their first use over its
inputs: `ends=((0, 1), (2, 1))` says trg₁ = trg₂, the form `printing.equalities` prints.

A plan may share subplans, so it is a graph in memory though it reads as a tree; a node hashes once, else the
hash of a plan would cost as much as the tree is large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from meander.algebra.automata import labels
from meander.syntax.query import PathExpr

Side = Literal["src", "trg"]
"""The end of an edge by which a stream is hash-partitioned over cells."""


class PlanError(ValueError):
    """A node that breaks the algebra's own rules: a fault of the planner, not of the user."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A conjunction over one tuple: `src = c`, `trg = c`, `src = trg`; what is None or False is not asked."""

    src: str | int | None = None
    trg: str | int | None = None
    loop: bool = False


class _HashedOnce:
    """Keeps a node's hash; left out of pickles, since strings hash differently in another process."""

    __slots__ = ("_hash",)
    _hash: int

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            names = self.__match_args__  # type: ignore[attr-defined]
            value = hash((type(self), *(getattr(self, name) for name in names)))
            object.__setattr__(self, "_hash", value)
            return value


@dataclass(frozen=True, slots=True)
class WScan(_HashedOnce):
    """`𝒲_{T,β}(σ_φ(S_a ∪ S_b …))`: edges of a stream with any of `labels`, each valid in [t, ⌊t/β⌋·β + T).

    With a `side`, only the edges whose vertex on that side belongs to the cell that runs the plan.
    """

    stream: str
    labels: tuple[str, ...]
    window: int
    slide: int = 1
    condition: Condition = Condition()
    side: Side | None = None

    __hash__ = _HashedOnce.__hash__

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
    def arity(self) -> int:
        return 2

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Filter(_HashedOnce):
    """`σ_φ(S)`: the tuples of the input on which the condition holds."""

    input: Plan
    condition: Condition

    __hash__ = _HashedOnce.__hash__

    def __post_init__(self) -> None:
        if self.input.arity != 2:
            raise PlanError("Filter reads pairs")
        if self.condition == Condition():
            raise PlanError("Filter without a condition")

    @property
    def label(self) -> str:
        return self.input.label

    @property
    def arity(self) -> int:
        return 2

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Union(_HashedOnce):
    """`S₁ ∪^d S₂ …`: the tuples of all inputs, labelled `label`. One input only renames."""

    inputs: tuple[Plan, ...]
    label: str

    __hash__ = _HashedOnce.__hash__

    def __post_init__(self) -> None:
        if not self.inputs:
            raise PlanError("Union needs an input")
        if len({plan.arity for plan in self.inputs}) != 1:
            raise PlanError("Union's inputs have one arity")

    @property
    def arity(self) -> int:
        return self.inputs[0].arity


@dataclass(frozen=True, slots=True)
class Pattern(_HashedOnce):
    """`⋈_Φ^{src,trg,d}(S₁, …, Sₙ)`: all ways to match the inputs' ends; hands out the variables `output`."""

    inputs: tuple[Plan, ...]
    ends: tuple[tuple[int, int], ...]
    output: tuple[int, ...]
    label: str

    __hash__ = _HashedOnce.__hash__

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
            raise PlanError("Pattern hands out variables of its own inputs only")

    @property
    def arity(self) -> int:
        return len(self.output)

    @property
    def variables(self) -> int:
        return 1 + max(variable for pair in self.ends for variable in pair)


@dataclass(frozen=True, slots=True)
class Path(_HashedOnce):
    """`𝒫_R^d(S_{l₁}, …, S_{lₙ})`: pairs joined by a path whose labels spell a word of `expr`.

    `expr` speaks of its inputs by position: a `Label` named "0" is the first input, "1" the second, … (its
    `stream` is None). Every input is used, so that inputs are exactly the streams whose end points have the
    empty path, where `expr` accepts the empty word. The printed form shows the inputs' labels.

    `demand`, where there is one, is what all readers of the path ask for: pairs outside of it may be left out.
    """

    inputs: tuple[Plan, ...]
    expr: PathExpr
    label: str
    demand: Plan | None = None

    __hash__ = _HashedOnce.__hash__

    def __post_init__(self) -> None:
        if not self.inputs:
            raise PlanError("Path needs an input")
        if any(plan.arity != 2 for plan in self.inputs):
            raise PlanError("Path reads pairs")
        if len(set(self.inputs)) != len(self.inputs):
            raise PlanError("Path names each input once")
        used = labels(self.expr)
        if any(label.stream is not None for label in used):
            raise PlanError("Path's expression speaks of inputs by position, not of streams")
        if {label.name for label in used} != {str(place) for place in range(len(self.inputs))}:
            raise PlanError(f"Path's expression uses each of its {len(self.inputs)} inputs, and no other")
        if self.demand is not None and self.demand.arity != 2:
            raise PlanError("Path is asked for pairs")

    @property
    def arity(self) -> int:
        return 2


@dataclass(frozen=True, slots=True)
class Receive(_HashedOnce):
    """Pairs that an earlier stage derives, each with its interval, as the stream `stream`; `side` as for `WScan`."""

    stream: str
    label: str
    side: Side | None = None

    __hash__ = _HashedOnce.__hash__

    @property
    def arity(self) -> int:
        return 2

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return ()


Plan = WScan | Filter | Union | Pattern | Path | Receive
