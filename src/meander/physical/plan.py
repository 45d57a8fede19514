"""The physical plan: which operators run, in topological order, what they look into, and how the paths of answers are
found. Plain data; `meander.physical.builder` makes it from logical plans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from meander.physical.programs import JoinProgram
from meander.physical.proofs import ProofPlan
from meander.physical.streams import StreamRef, StreamSchema
from meander.syntax.query import PathOrder
from meander.syntax.values import Predicate, Property, ValueType, conjuncts, refs


@dataclass(frozen=True, slots=True)
class ScanOp:
    """WSCAN: the edges of a stream with a label, each with its interval; key columns are src, trg and the `values`.

    Without a `label` it reads edges of any. The `predicate` names `src`, `trg` and properties. `named` are all
    properties that the query names on the stream: a deletion removes the edges that agree with it in those that it
    has. A `vertex` scan reads vertex tuples, as loops. The tuples of a `table` hold until they are replaced, and
    `tuples` as long as they say themselves, whatever the window.
    """

    source: StreamRef
    label: str | None
    window: int
    slide: int
    predicate: Predicate | None = None
    values: tuple[Property, ...] = ()
    named: tuple[Property, ...] = ()
    vertex: bool = False
    table: bool = False
    tuples: bool = False

    @property
    def stream(self) -> str:
        return self.source.key

    @property
    def inputs(self) -> tuple[int, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class ReceiveOp:
    """RECEIVE: the tuples that another stage has derived, each with its interval; `values` as for `ScanOp`."""

    source: StreamRef
    values: tuple[Property, ...] = ()

    @property
    def stream(self) -> str:
        return self.source.key

    @property
    def inputs(self) -> tuple[int, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class FilterOp:
    """FILTER: the tuples for which the predicate is true; each `Ref` of it is a column by number, of one of
    `types`."""

    inputs: tuple[int]
    predicate: Predicate
    types: tuple[ValueType, ...] = ()


@dataclass(frozen=True, slots=True)
class UnionOp:
    """UNION: for each tuple the largest expiry over all inputs; `arity` is its number of key columns."""

    inputs: tuple[int, ...]
    arity: int


@dataclass(frozen=True, slots=True)
class PatternOp:
    """PATTERN: a delta generic join; `programs` say how each input's tuples are completed to answers.

    `ends` has for each input a variable per key column: its two ends, then its values. `predicate` compares
    variables, each a `Ref` by number; `types` has the type of every variable, if some are values.
    """

    inputs: tuple[int, ...]
    ends: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    programs: tuple[JoinProgram, ...]
    predicate: Predicate | None = None
    types: tuple[ValueType, ...] = ()


@dataclass(frozen=True, slots=True)
class PathOp:
    """PATH: `moves` are (state, input, inverse, next state) of a minimal automaton; state 0 is the start.

    `root` keeps to the paths that start at that vertex. `demand` is an operator whose pairs are all that is asked
    for; a pair outside of it may be left out. With an `order` the inputs have their time as a third key column.
    """

    edges: tuple[int, ...]
    states: int
    accepting: tuple[int, ...]
    moves: tuple[tuple[int, int, bool, int], ...]
    operator: str
    root: str | int | None = None
    demand: int | None = None
    order: PathOrder = PathOrder.ANY

    @property
    def inputs(self) -> tuple[int, ...]:
        return self.edges if self.demand is None else (*self.edges, self.demand)


Operator = ScanOp | ReceiveOp | FilterOp | UnionOp | PatternOp | PathOp


@dataclass(frozen=True, slots=True)
class Proof:
    """A path expression over indexed operators, whose paths prove the answers of a result."""

    path: PathOp
    labels: tuple[str, ...]  # by move: what the edge that it reads is called


@dataclass(frozen=True, slots=True)
class PathTrace:
    """A path by `proof` with the tuple's ends; it is each of `values`, which number path values of a result."""

    proof: Proof
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ColumnTrace:
    """The paths that the tuple has in some of its columns; each is those of `values`, which number path values of a
    result."""

    columns: tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class PatternTrace:
    """A match of `pattern` that gives the tuple; the tuples of some of its inputs, by number, are traced further."""

    pattern: PatternOp
    inputs: tuple[tuple[int, Trace], ...]


@dataclass(frozen=True, slots=True)
class ChoiceTrace:
    """The first of several patterns that has a match."""

    patterns: tuple[PatternTrace, ...]


@dataclass(frozen=True, slots=True)
class UnionTrace:
    """An indexed operator that has the tuple, and how it is traced further; there may be none that has it."""

    inputs: tuple[tuple[int, Trace], ...]


Trace = PathTrace | ColumnTrace | PatternTrace | ChoiceTrace | UnionTrace
"""How the path values of a tuple are found: from it down to tuples that prove it."""


def branches_of(trace: Trace | None) -> Iterator[int]:
    """The operators whose tuples are looked up to choose among the inputs of unions."""
    match trace:
        case PatternTrace(_, inputs):
            for _, inner in inputs:
                yield from branches_of(inner)
        case ChoiceTrace(patterns):
            for pattern in patterns:
                yield from branches_of(pattern)
        case UnionTrace(inputs):
            for operator, branch in inputs:
                yield operator
                yield from branches_of(branch)


def is_timed(trace: Trace | None, value: int) -> bool:
    """Whether the paths of a path value have times."""
    match trace:
        case PathTrace(proof, values):
            return value in values and bool(proof.path.order)
        case ColumnTrace(columns):
            return any(
                value in values for _, values in columns
            )  # whether they have is not known before they come
        case PatternTrace(_, inputs) | UnionTrace(inputs):
            return any(is_timed(inner, value) for _, inner in inputs)
        case ChoiceTrace(patterns):
            return any(is_timed(pattern, value) for pattern in patterns)
    return False


@dataclass(frozen=True, slots=True)
class Result:
    """One result of one query: which operator's tuples, and what they are called.

    A `raw` result is its operator's tuples as they are, for another stage. The tuples have `arity` vertices, and then
    the `values`. `paths` name the path values that the `trace` finds, and after them, if `traces_path`, the path of
    an answer that is one by some of the rules.
    """

    query: str
    head: str
    label: str
    input: int
    arity: int
    proofs: tuple[Proof, ...] = ()
    raw: bool = False
    values: tuple[Property, ...] = ()
    paths: tuple[str, ...] = ()
    trace: Trace | None = None
    traces_path: bool = False
    proof: ProofPlan | None = None

    @property
    def is_proved(self) -> bool:
        """Whether the tuples that answers are derived from are looked up."""
        return self.trace is not None or self.proof is not None


@dataclass(frozen=True, slots=True)
class Links:
    """Which lists of an indexed operator are walked, by source, by target and by which of its value columns.

    Its tuples have `width` value columns.
    """

    out: bool = False
    into: bool = False
    values: tuple[int, ...] = ()
    width: int = 0


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    operators: tuple[Operator, ...]
    names: tuple[str, ...]  # by operator: what it is, for people
    results: tuple[Result, ...]
    indexed: Mapping[int, Links]
    readers: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # by operator: who takes its tuples
    schemas: Mapping[str, StreamSchema] = field(default_factory=dict)  # by name of a stream from outside
    columns: tuple[tuple[str, ...], ...] = ()  # by operator: the names of its values, for people

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(op.stream for op in self.operators if isinstance(op, ScanOp | ReceiveOp)))


def deciding(pattern: PatternOp) -> PatternOp:
    """The pattern with a last program that decides all comparisons: that of a tuple which may not be an answer."""
    compared = [frozenset(int(ref.name) for ref in refs(term)) for term in conjuncts(pattern.predicate)]
    *others, last = pattern.programs
    of_output = (number for number, names in enumerate(compared) if names <= set(pattern.output))
    last = replace(last, comparisons=tuple(dict.fromkeys((*last.comparisons, *of_output))))
    return replace(pattern, programs=(*others, last))


def output_arity(operators: Sequence[Operator], number: int) -> int:
    """How many key columns the tuples of an operator have."""
    operator = operators[number]
    match operator:
        case ScanOp() | ReceiveOp():
            return 2 + len(operator.values)
        case FilterOp():
            return output_arity(operators, operator.inputs[0])
        case UnionOp():
            return operator.arity
        case PatternOp():
            return len(operator.output)
        case PathOp():
            return 2
