"""A second oracle, more naive than the first: every instant by itself, every binding of variables to whatever there
is, and every walk along edges, matched against the expression by its derivatives (Brzozowski, 1964).

It shares the model of queries with `tests/oracle.py` and the reading of a row, and nothing else: not when an edge is
valid, nor how predicates, joins and paths are decided.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from oracle import FOREVER, Edge, edge_key, fields, head_types, in_order, operation, reader_of, time_of
from querytext import (
    Alt,
    Among,
    And,
    Atom,
    Back,
    Compare,
    Expr,
    Math,
    Not,
    Or,
    Predicate,
    Query,
    Rep,
    Rule,
    Scalar,
    Seq,
    Step,
    Stream,
    Var,
    steps,
)

EMPTY = Seq(())
NOTHING = Alt(())
MOST_BINDINGS = 3_000


class TooMany(Exception):
    """More bindings than can be tried."""


class Fact(NamedTuple):
    """An edge of a snapshot, given or derived; `time` is None where it is derived from several."""

    src: Any
    trg: Any
    values: Mapping[str, Any]
    time: int | None


def enumerated(
    query: Query, streams: Mapping[str, Sequence[Edge]], lateness: int = 0
) -> dict[int, set[tuple[Any, ...]]]:
    """The answers at each instant from the first arrival to a while after the last."""
    accepted = {}
    for stream in query.streams:
        reader = reader_of(query, stream)
        rows = in_order(streams.get(stream.input, ()), lateness, reader)[0]
        accepted[stream.name] = [without_fields(edge, reader.bad_values(edge)) for edge in rows]
    times = [time_of(edge) for edges in accepted.values() for edge in edges]
    if not times:
        return {}
    last = max(times) + max(stream.window for stream in query.streams) + 1
    ends = {
        end
        for stream in query.streams
        for edge in accepted[stream.name]
        for end in (time_of(edge), expiry(stream, edge))
    }
    return {
        instant: Instant(query, accepted, instant).answers()
        for instant in range(min(times), last)
        # Nothing changes elsewhere; the instant before each change is looked at too.
        if {instant, instant + 1} & ends
    }


def without_fields(edge: Edge, names: Sequence[str]) -> Edge:
    """The row without some of its properties, which only rows by name have."""
    return {name: value for name, value in fields(edge).items() if name not in names} if names else edge


def expiry(stream: Stream, edge: Edge) -> int:
    if stream.table:
        return FOREVER
    return (time_of(edge) // stream.slide) * stream.slide + stream.window


class Instant:
    """What a query holds at one instant."""

    def __init__(self, query: Query, accepted: Mapping[str, Sequence[Edge]], instant: int) -> None:
        self.query = query
        self.facts: dict[Step, list[Fact]] = {}
        for stream in query.streams:
            types = {name: query.types(stream.name)[name] for name in query.named(stream.name)}
            rows = accepted[stream.name]
            for place, edge in enumerate(rows):
                if self.is_valid(stream, rows, place, instant, types):
                    src, label, trg = edge_key(edge)
                    step = Step(label, stream.name, vertex=trg is None)
                    values = cells(edge, types) | {"ts": time_of(edge)}
                    fact = Fact(src, src if trg is None else trg, values, time_of(edge))
                    self.facts.setdefault(step, []).append(fact)

    @staticmethod
    def is_valid(
        stream: Stream, rows: Sequence[Edge], place: int, instant: int, types: Mapping[str, str]
    ) -> bool:
        edge = rows[place]
        if operation(edge) == "-" or not time_of(edge) <= instant < expiry(stream, edge):
            return False
        own = cells(edge, types)
        for later in rows[place + 1 :]:
            if time_of(later) <= instant and edge_key(later) == edge_key(edge):
                said = {name: value for name, value in cells(later, types).items() if value is not None}
                deletes = operation(later) == "-" and said.items() <= own.items()
                if deletes or (stream.table and operation(later) == "+"):
                    return False
        return True

    def of(self, step: Step) -> list[Fact]:
        """The edges of a step that satisfy its predicate."""
        bare = step.bare
        if bare not in self.facts:
            self.facts[bare] = [] if step.stream is not None else self.derived(step.label)
        return [
            fact
            for fact in self.facts[bare]
            if step.predicate is None or decide(step.predicate, fact.values, set()) == 1
        ]

    def answers(self) -> set[tuple[Any, ...]]:
        return {
            (*vertices, *(values[name] for name in sorted(values)))
            for rule in self.query.rules_of(self.query.result)
            for vertices, values, _ in self.matches(rule)
        }

    def derived(self, head: str) -> list[Fact]:
        return [
            Fact(src, trg, values, time)
            for rule in self.query.rules_of(head)
            for (src, trg), values, time in self.matches(rule)
        ]

    def matches(self, rule: Rule) -> Iterator[tuple[tuple[Any, ...], dict[str, Any], int | None]]:
        """Every choice of one match for each atom that agrees on all variables and satisfies all comparisons."""
        wide = head_types(self.query, rule.head)
        choices = [list(self.atom_matches(atom)) for atom in rule.body]
        if math.prod(map(len, choices)) > MOST_BINDINGS:
            raise TooMany
        vertices = {end.name for atom in rule.body for end in (atom.src, atom.trg) if isinstance(end, Var)}
        for chosen in product(*choices):
            bound: dict[str, list[Any]] = {}
            for binding, _ in chosen:
                for name, value in binding:
                    bound.setdefault(name, []).append(value)
            if any(not alike(values[0], value) for values in bound.values() for value in values):
                continue
            # Where INT and FLOAT meet, the value is a FLOAT.
            known = {
                name: next((value for value in values if isinstance(value, float)), values[0])
                for name, values in bound.items()
            }
            if all(decide(comparison, known, vertices) == 1 for comparison in rule.comparisons):
                values = {
                    name: float(known[var.name]) if wide[name] == "FLOAT" else known[var.name]
                    for name, var in rule.values
                }
                yield tuple(known[var.name] for var in rule.args), values, chosen[0][1]

    def atom_matches(self, atom: Atom) -> Iterator[tuple[list[tuple[str, Any]], int | None]]:
        """What each match binds, in pairs of a name and a value, and its time."""
        if isinstance(atom.expr, Step):
            found = self.of(atom.expr)
        else:
            found = [Fact(src, trg, {}, None) for src, trg in self.walks(atom.expr, atom.order)]
        for fact in found:
            terms = [(atom.src, fact.src), (atom.trg, fact.trg)]
            if any(
                value not in ({term, str(term)} if isinstance(term, int) else {term})
                for term, value in terms
                if not isinstance(term, Var)
            ):
                continue
            named = [(wanted, fact.values[name]) for name, wanted in atom.values]
            if any(
                value is None or (not isinstance(wanted, Var) and not alike(wanted, value))
                for wanted, value in named
            ):
                continue
            yield (
                [(term.name, value) for term, value in (*terms, *named) if isinstance(term, Var)],
                fact.time,
            )

    def walks(self, expr: Expr, order: str) -> set[tuple[Any, Any]]:
        """The ends of all walks that spell a word of the expression, in the order of time if it has one: a search
        over (vertex, what is left of the expression, time of the last edge)."""
        facts = [(step, fact) for step in steps(expr) for fact in self.of(step)]
        starts = {end for _, fact in facts for end in (fact.src, fact.trg)}
        found = set()
        for start in starts:
            waiting = [(start, expr, -1)]
            seen = set(waiting)
            while waiting:
                vertex, left, last = waiting.pop()
                if accepts_empty(left):
                    found.add((start, vertex))
                for step, fact in facts:
                    time = fact.time if order else 0
                    assert time is not None
                    if order and (time <= last if order.startswith("strictly") else time < last):
                        continue
                    for backwards in (False, True):
                        here, there = (fact.trg, fact.src) if backwards else (fact.src, fact.trg)
                        rest = derivative(left, step, backwards)
                        place = (there, rest, time)
                        if here == vertex and rest != NOTHING and place not in seen:
                            seen.add(place)
                            waiting.append(place)
        return found


# ---------------------------------------------------------------------------------------------------------
# Values


def cells(edge: Edge, types: Mapping[str, str]) -> dict[str, Any]:
    """The values of a usable row by name."""
    row = fields(edge)
    found = {}
    for name, kind in types.items():
        value = row.get(name)
        if kind == "FLOAT" and value is not None:
            value = None if value != value else float(value) or 0.0
        elif kind == "TIME" and value is not None:
            value = seconds(value)
        found[name] = value
    return found


def seconds(time: int | str) -> int:
    """A time as a number; as text it is one of the first minute of 1970."""
    return int(str(time).removeprefix("1970-01-01T00:00:").removesuffix("Z"))


def alike(one: Any, other: Any) -> bool:
    """Equality of two values of comparable types, or of two vertices."""
    if isinstance(one, float) or isinstance(other, float):
        return float(one) == float(other)
    if isinstance(one, str) and one.startswith("1970-") and isinstance(other, int):
        return seconds(one) == other
    return type(one) is type(other) and one == other


def decide(predicate: Predicate, row: Mapping[str, Any], vertices: set[str]) -> float:
    """1 for true, 0 for false, a half for unknown (Kleene): `and` is the least, `or` the greatest."""
    match predicate:
        case And(parts):
            return min(decide(part, row, vertices) for part in parts)
        case Or(parts):
            return max(decide(part, row, vertices) for part in parts)
        case Not(part):
            return 1 - decide(part, row, vertices)
        case Among(operand, values):
            return max(decide(Compare("=", operand, value), row, vertices) for value in values)
        case Compare(op, left, right):
            one, other = number(left, row), number(right, row)
            if one is None or other is None:
                return 0.5
            if isinstance(left, Var) and left.name in vertices:
                names = {other} if isinstance(right, Var) else {other, str(other)}
                return float((one in names) == (op == "="))
            if isinstance(one, float) or isinstance(other, float):
                one, other = float(one), float(other)
            if isinstance(one, str) != isinstance(other, str):
                one, other = seconds(one), seconds(other)
            sign = (one > other) - (one < other)
            wanted = {"=": (0,), "!=": (-1, 1), "<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1)}
            return float(sign in wanted[op])


def number(scalar: Scalar, row: Mapping[str, Any]) -> Any:
    if isinstance(scalar, Var):
        return row.get(scalar.name)
    if not isinstance(scalar, Math):
        return scalar
    one, other = number(scalar.left, row), number(scalar.right, row)
    if one is None or other is None:
        return None
    if scalar.op == "/" or isinstance(one, float) or isinstance(other, float):
        one, other = float(one), float(other)
    match scalar.op:
        case "+":
            result = one + other
        case "-":
            result = one - other
        case "*":
            result = one * other
        case _:
            result = one / other if other else math.nan
    fits = isinstance(result, float) or -(2**63) <= result <= 2**63 - 1
    return result if fits and result == result else None


# ---------------------------------------------------------------------------------------------------------
# Derivatives


def accepts_empty(expr: Expr) -> bool:
    match expr:
        case Step():
            return False
        case Seq(parts):
            return all(map(accepts_empty, parts))
        case Alt(parts):
            return any(map(accepts_empty, parts))
        case Back(part):
            return accepts_empty(part)
        case Rep(part, low, _):
            return low == 0 or accepts_empty(part)


def derivative(expr: Expr, step: Step, backwards: bool) -> Expr:
    """What may follow where the expression has read the step, forwards or backwards."""
    match expr:
        case Step():
            return EMPTY if expr == step and not backwards else NOTHING
        case Back(Step() as read):
            return EMPTY if read == step and backwards else NOTHING
        case Back(part):
            return derivative(reversed_words(part), step, backwards)
        case Alt(parts):
            return either([derivative(part, step, backwards) for part in parts])
        case Rep(part, low, high):
            if high == 0:
                return NOTHING
            first = derivative(part, step, backwards)
            return then([first, Rep(part, max(low - 1, 0), None if high is None else high - 1)])
        case Seq(parts):
            found = []
            for place, part in enumerate(parts):
                found.append(then([derivative(part, step, backwards), *parts[place + 1 :]]))
                if not accepts_empty(part):
                    break
            return either(found)
    raise AssertionError(expr)


def reversed_words(expr: Expr) -> Expr:
    """The expression whose words are read from the end, each edge backwards."""
    match expr:
        case Step():
            return Back(expr)
        case Back(part):
            return part
        case Alt(parts):
            return Alt(tuple(map(reversed_words, parts)))
        case Seq(parts):
            return Seq(tuple(map(reversed_words, reversed(parts))))
        case Rep(part, low, high):
            return Rep(reversed_words(part), low, high)
    raise AssertionError(expr)


def then(parts: Sequence[Expr]) -> Expr:
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, Seq) else (part,))]
    if NOTHING in flat:
        return NOTHING
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def either(parts: Sequence[Expr]) -> Expr:
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, Alt) else (part,))]
    distinct = tuple(dict.fromkeys(sorted(flat, key=repr)))
    return distinct[0] if len(distinct) == 1 else Alt(distinct)
