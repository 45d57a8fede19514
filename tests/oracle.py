"""What a persistent query must answer: the same query, asked once on the snapshot of every instant.

Nothing here is incremental and nothing is shared with the program under test. An edge's validity follows
from its arrivals and deletions; between two instants at which some edge's validity starts or ends, the
snapshot does not change, so one evaluation serves them all; an evaluation is sets, nested loops and
fixpoints. `tests/judge.py` holds a run's answer records against what `expect` finds here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from querytext import Alt, Atom, Back, Expr, Query, Rep, Rule, Seq, Step, Var, Vertex, steps

Edge = tuple[Vertex, str, Vertex, int] | tuple[Vertex, str, Vertex, int, str]
Interval = tuple[int, int]
Pairs = set[tuple[Vertex, Vertex]]
Answer = tuple[Vertex, ...]

MOST_TUPLES = 20_000


class TooLarge(Exception):
    """More tuples than can be found here within a second or two."""


# ---------------------------------------------------------------------------------------------------------
# Intervals: a list of disjoint [start, end), in order, none touching the next


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same instants as maximal intervals."""
    merged: list[Interval] = []
    for start, end in sorted(interval for interval in intervals if interval[0] < interval[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def covers(maximal: Sequence[Interval], start: int, end: int) -> bool:
    """Whether every instant of [start, end) lies in one of the maximal intervals."""
    return start >= end or any(first <= start and end <= last for first, last in maximal)


# ---------------------------------------------------------------------------------------------------------
# Streams


def operation(edge: Edge) -> str:
    return edge[4] if len(edge) == 5 else "+"


def is_usable(edge: Edge) -> bool:
    """Whether an edge has all its fields and a time that can be one."""
    time = edge[3]
    return all(field is not None for field in edge[:4]) and isinstance(time, int) and time >= 0


def in_order(edges: Iterable[Edge], lateness: int = 0) -> tuple[list[Edge], list[Edge]]:
    """The edges that count, by time and then arrival, and those that are rejected (unusable, or later
    than `lateness` after a newer one)."""
    accepted: list[Edge] = []
    rejected: list[Edge] = []
    newest = 0
    for edge in edges:
        if is_usable(edge) and edge[3] >= newest - lateness:
            newest = max(newest, edge[3])
            accepted.append(edge)
        else:
            rejected.append(edge)
    return sorted(accepted, key=lambda edge: edge[3]), rejected


def valid_intervals(
    edges: Iterable[Edge], window: int, slide: int = 1, lateness: int = 0
) -> dict[tuple[Vertex, str, Vertex], list[Interval]]:
    """When each edge `(src, label, trg)` of a stream is valid."""
    arrivals: defaultdict[tuple[Vertex, str, Vertex], list[Interval]] = defaultdict(list)
    for edge in in_order(edges, lateness)[0]:
        src, label, trg, time = edge[:4]
        before = arrivals[src, label, trg]
        if operation(edge) == "-":
            arrivals[src, label, trg] = [(start, min(end, time)) for start, end in before]
        else:
            before.append((time, time // slide * slide + window))
    return {edge: valid for edge, intervals in arrivals.items() if (valid := union(intervals))}


# ---------------------------------------------------------------------------------------------------------
# One snapshot


def compose(first: Pairs, second: Pairs) -> Pairs:
    onwards = defaultdict(set)
    for middle, trg in second:
        onwards[middle].add(trg)
    if sum(len(onwards.get(middle, ())) for _, middle in first) > 10 * MOST_TUPLES:
        raise TooLarge
    return {(src, trg) for src, middle in first for trg in onwards.get(middle, ())}


def is_nullable(expr: Expr) -> bool:
    """Whether the empty word is a word of the expression."""
    match expr:
        case Step():
            return False
        case Back(part):
            return is_nullable(part)
        case Seq(parts):
            return all(map(is_nullable, parts))
        case Alt(parts):
            return any(map(is_nullable, parts))
        case Rep(part, low, _):
            return low == 0 or is_nullable(part)


def joined(expr: Expr, relations: Mapping[Step, Pairs]) -> Pairs:
    """The pairs joined by a path of one edge or more that spells a word of the expression."""
    match expr:
        case Step():
            return relations[expr]
        case Back(part):
            return {(trg, src) for src, trg in joined(part, relations)}
        case Alt(parts):
            return set().union(*(joined(part, relations) for part in parts))
        case Seq((first,)):
            return joined(first, relations)
        case Seq((first, *others)):
            rest = Seq(tuple(others))
            one, two = joined(first, relations), joined(rest, relations)
            pairs = compose(one, two)
            if is_nullable(first):
                pairs |= two
            if is_nullable(rest):
                pairs |= one
            return pairs
        case Rep(part, low, high):
            once = joined(part, relations)
            # Where the part may be empty, any smaller number of non-empty ones will do.
            fewest = 1 if is_nullable(part) else max(low, 1)
            if high is not None and high < fewest:
                return set()
            power = once
            for _ in range(fewest - 1):
                power = compose(power, once)
            pairs = set(power)
            more = None if high is None else high - fewest
            while more != 0:
                power = compose(power, once) - pairs if more is None else compose(power, once)
                if not power:
                    break
                pairs |= power
                more = None if more is None else more - 1
            return pairs
    raise AssertionError(expr)


def atom_pairs(expr: Expr, relations: Mapping[Step, Pairs]) -> Pairs:
    """All pairs of an atom: those joined by edges and, where the empty word is one of its words, every
    end point of an edge of its inputs with itself."""
    pairs = joined(expr, relations)
    if is_nullable(expr):
        pairs = pairs | {(end, end) for step in steps(expr) for edge in relations[step] for end in edge}
    return pairs


def rule_answers(rule: Rule, relations: Mapping[Step, Pairs]) -> set[Answer]:
    """The head's tuples under every binding of variables that satisfies the body."""
    names: list[str] = []
    bindings: set[Answer] = {()}
    for place, atom in enumerate(rule.body):
        pairs = atom_pairs(atom.expr, relations)
        # A pair is looked up by the end whose variable is bound, if there is one.
        known_ends = [
            at for at, term in enumerate((atom.src, atom.trg)) if isinstance(term, Var) and term.name in names
        ]
        by_end = defaultdict(list)
        for pair in pairs:
            by_end[pair[known_ends[0]] if known_ends else None].append(pair)
        extended = set()
        for binding in bindings:
            known = dict(zip(names, binding, strict=True))
            end = known[(atom.src, atom.trg)[known_ends[0]].name] if known_ends else None  # type: ignore[union-attr]
            for pair in by_end.get(end, ()):
                if (bound := bind(atom, pair, known)) is not None:
                    extended.add(tuple(bound.items()))
            if len(extended) > MOST_TUPLES:
                raise TooLarge
        # Only what the head or a later atom still asks for is carried on.
        wanted = {var.name for var in rule.args} | {
            term.name
            for later in rule.body[place + 1 :]
            for term in (later.src, later.trg)
            if isinstance(term, Var)
        }
        new = {term.name for term in (atom.src, atom.trg) if isinstance(term, Var)}
        names = sorted((set(names) | new) & wanted)
        bindings = {tuple(dict(bound)[name] for name in names) for bound in extended}
    return {
        tuple(dict(zip(names, binding, strict=True))[var.name] for var in rule.args) for binding in bindings
    }


def bind(atom: Atom, pair: tuple[Vertex, Vertex], known: Mapping[str, Vertex]) -> dict[str, Vertex] | None:
    """The binding with the atom's variables added, or None where the pair does not fit."""
    bound = dict(known)
    for term, vertex in zip((atom.src, atom.trg), pair, strict=True):
        if isinstance(term, Var):
            if bound.setdefault(term.name, vertex) != vertex:
                return None
        elif vertex not in (term, str(term)):
            # A number in a query names the vertex of that number, and the one whose name is its digits.
            return None
    return bound


def evaluate(query: Query, snapshot: Mapping[Step, Pairs]) -> dict[Step, set[Answer]]:
    """What every label and every head of the query holds on one snapshot."""
    relations: dict[Step, set[Answer]] = {}

    def holds(step: Step) -> set[Answer]:
        if step not in relations:
            if step.stream is not None:
                relations[step] = set(snapshot.get(step, ()))
            else:
                relations[step] = set()
                for rule in query.rules_of(step.label):
                    inputs = {used: holds(used) for atom in rule.body for used in steps(atom.expr)}
                    relations[step] |= rule_answers(rule, inputs)
        return relations[step]

    for rule in query.rules:
        holds(Step(rule.head))
    return relations


# ---------------------------------------------------------------------------------------------------------
# All instants


@dataclass(frozen=True)
class Expected:
    """What a query must answer on given streams, and all that is needed to judge it."""

    query: Query
    streams: Mapping[str, Sequence[Edge]]
    accepted: Mapping[str, Sequence[Edge]]
    rejected: Mapping[str, Sequence[Edge]]
    history: Mapping[Step, Mapping[Answer, list[Interval]]]
    """When each tuple of each label and each head holds."""

    @property
    def answers(self) -> Mapping[Answer, list[Interval]]:
        return self.history[Step(self.query.result)]


def expect(query: Query, streams: Mapping[str, Sequence[Edge]], lateness: int = 0) -> Expected:
    """The query's answers, and those of every head in it, at every instant."""
    edges = edge_history(query, streams, lateness)
    instants = sorted(
        {time for valid in edges.values() for times in valid.values() for ends in times for time in ends}
    )
    held: dict[Step, defaultdict[Answer, list[Interval]]] = defaultdict(lambda: defaultdict(list))
    for start, end in pairwise(instants):
        for step, tuples in evaluate(query, snapshot_at(edges, start)).items():
            for each in tuples:
                held[step][each].append((start, end))
    for rule in query.rules:
        held[Step(rule.head)]
    sorted_streams = {
        stream.name: in_order(streams.get(stream.name, ()), lateness) for stream in query.streams
    }
    return Expected(
        query,
        streams,
        {name: accepted for name, (accepted, _) in sorted_streams.items()},
        {name: rejected for name, (_, rejected) in sorted_streams.items()},
        {step: {each: union(times) for each, times in tuples.items()} for step, tuples in held.items()},
    )


def answers(
    query: Query, streams: Mapping[str, Sequence[Edge]], lateness: int = 0
) -> dict[Answer, list[Interval]]:
    """When each answer holds."""
    return dict(expect(query, streams, lateness).answers)


def edge_history(
    query: Query, streams: Mapping[str, Sequence[Edge]], lateness: int = 0
) -> dict[Step, dict[tuple[Vertex, Vertex], list[Interval]]]:
    """When the edges of the labels that the query names are valid."""
    asked = {step for rule in query.rules for atom in rule.body for step in steps(atom.expr)}
    history: dict[Step, dict[tuple[Vertex, Vertex], list[Interval]]] = defaultdict(dict)
    for stream in query.streams:
        valid = valid_intervals(streams.get(stream.name, ()), stream.window, stream.slide, lateness)
        for (src, label, trg), times in valid.items():
            if Step(label, stream.name) in asked:
                history[Step(label, stream.name)][src, trg] = times
    return history


def snapshot_at(
    history: Mapping[Step, Mapping[tuple[Vertex, Vertex], list[Interval]]], time: int
) -> dict[Step, Pairs]:
    """The edges valid at one instant."""
    return {
        step: {edge for edge, times in edges.items() if covers(times, time, time + 1)}
        for step, edges in history.items()
    }
