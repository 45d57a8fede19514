"""What a persistent query must answer: the same query, asked once on the snapshot of every instant.

Nothing here is incremental and nothing is shared with the program under test. An edge's validity follows
from its arrivals and deletions; between two instants at which some edge's validity starts or ends, the
snapshot does not change, so one evaluation serves them all; an evaluation is sets, nested loops and
fixpoints. `tests/judge.py` holds a run's answer records against what `expect` finds here.
"""

from __future__ import annotations

import math
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

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
    Value,
    Var,
    Vertex,
    names_in,
    steps,
)

Edge = tuple[Any, ...] | Mapping[str, Any]
"""A row of a stream: `(src, label, trg, ts[, op])`, or a mapping with these keys and properties."""

Interval = tuple[int, int]
Row = tuple[Any, ...]
"""A tuple of a relation: its vertices, then its values in the order of their names; for an edge of a stream whose
time the query reads, the time is one of these."""

Rows = set[Row]


class Walk(NamedTuple):
    """What a path value stands for: some path of a path atom, from a vertex to a vertex.

    Beside the values of a derived edge, its rows have a walk for each path value, in the order of their names.
    """

    atom: Atom
    src: Vertex
    trg: Vertex


Answer = tuple[Any, ...]
"""The vertices of an answer, then its values in the order of their names."""

FOREVER = 1 << 62
"""The end of what never ends: the rows of a table that nothing replaces."""

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


FIELDS = ("src", "label", "trg", "ts", "op")
MISSING = "missing field"


def fields(edge: Edge) -> dict[str, Any]:
    """A row as a mapping; what it does not have is None. An answer of one vertex is a vertex tuple."""
    given = dict(edge) if isinstance(edge, Mapping) else dict(zip(FIELDS, edge, strict=False))
    if len(given.get("answer") or ()) == 1:
        given |= {"src": given["answer"][0], "label": "Answer", "trg": None}
    return dict.fromkeys(FIELDS) | {"op": "+"} | given


def operation(edge: Edge) -> str:
    return str(fields(edge)["op"])


def time_of(edge: Edge) -> int:
    """The time of a usable row; a row of a table may have none, and holds from the beginning."""
    return int(fields(edge)["ts"] or 0)


def edge_key(edge: Edge) -> tuple[Vertex, str, Vertex | None]:
    row = fields(edge)
    return row["src"], row["label"], row["trg"]


class BadValue(Exception):
    """A value that is not of its property's type."""


def read_value(value: Any, kind: str) -> Value | None:
    """A property's value as the type that it has; None where it is missing."""
    match kind, value:
        case _, None:
            return None
        case "BOOL", bool():
            return value
        case "STRING", str():
            return value
        case (("INT" | "TIME" | "FLOAT"), bool()):
            pass
        case "FLOAT", int() | float():
            # NaN is a missing value, and there is one zero.
            return None if math.isnan(value) else float(value) + 0.0
        case (("INT" | "TIME"), int()) if -(2**63) <= value < 2**63:
            return value
        case "TIME", str() if re.match(r"\d{4}-\d\d-\d\d", value):
            at = datetime.fromisoformat(value)
            return math.floor((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
    raise BadValue(f"{value!r} is no {kind}")


@dataclass(frozen=True)
class Reader:
    """How the rows of a stream are read: which properties count, of what type, and whether rows may lack `trg` or
    `ts`. `reads` has the properties that are read by label, and whether it is one of vertex tuples."""

    types: Mapping[str, str]
    vertices: bool = False
    table: bool = False
    reads: Mapping[tuple[str, bool], frozenset[str]] = field(default_factory=dict)
    tuples: bool = False

    def given(self, edge: Edge) -> dict[str, Any]:
        """All that a row says of its properties, those of tuples perhaps in one field."""
        row = fields(edge)
        given = {name: row.get(name) for name in self.types}
        if self.tuples:
            inner = row.get("properties") or {}
            given |= {name: value for name, value in inner.items() if value is not None}
        return given

    def values(self, edge: Edge) -> dict[str, Value | None]:
        """The values of a usable row; one that is not of its type, in a row of which nobody reads it, is missing."""
        given = self.given(edge)
        bad = self.bad_values(edge)
        return {
            name: None if name in bad else read_value(given[name], kind) for name, kind in self.types.items()
        }

    def bad_values(self, edge: Edge) -> list[str]:
        """The properties of which a row has a value of another type."""
        given = self.given(edge)
        bad = []
        for name, kind in self.types.items():
            try:
                read_value(given[name], kind)
            except BadValue:
                bad.append(name)
        return bad

    def is_read(self, edge: Edge, name: str) -> bool:
        """Whether the query needs a property of a row: it reads it on that label; or the row is a deletion, which
        removes what agrees with it in all properties that the query names, from a label that the query mentions."""
        row = fields(edge)
        of = (row["label"], row["trg"] is None)
        return of in self.reads and (row["op"] == "-" or name in self.reads[of])

    def others(self, edge: Edge) -> dict[str, Any]:
        """The properties of a tuple that the query does not name."""
        return {name: value for name, value in self.given(edge).items() if name not in self.types}

    def fault(self, edge: Edge) -> str | None:
        """Why a row cannot be used, whatever came before it."""
        row = fields(edge)
        if self.tuples and row.get("answer") is not None and (len(row["answer"]) != 1 or not self.vertices):
            return "not an edge"
        needed = {"src", "label"} | (set() if self.vertices else {"trg"}) | (set() if self.table else {"ts"})
        if any(row[name] is None for name in needed):
            return MISSING
        time = row["ts"] if row["ts"] is not None else 0
        if not isinstance(time, int):
            return "time is no integer"
        if time < 0:
            return "negative time"
        if self.tuples:
            try:
                read_value(row.get("exp"), "TIME")
            except BadValue:
                return "bad value of exp"
        return next(
            (f"bad value of {name}" for name in self.bad_values(edge) if self.is_read(edge, name)), None
        )


PLAIN = Reader({})


def reader_of(query: Query, stream: Stream) -> Reader:
    """What counts of a stream's rows; on which no result depends, only what the query declares."""
    is_read = not query.windows(stream.name).isdisjoint(query.streams_read())
    types = query.types(stream.name) if is_read else {}
    named = {name: types[name] for name in sorted(query.named(stream.name)) if is_read}
    return Reader(
        named, query.has_vertices(stream.name), stream.table, query.reads(stream.name), stream.tuples
    )


def is_usable(edge: Edge, reader: Reader = PLAIN) -> bool:
    """Whether a row has all its fields, a time that can be one, and values of the types of their properties."""
    return reader.fault(edge) is None


def in_order(
    edges: Iterable[Edge], lateness: int = 0, reader: Reader = PLAIN
) -> tuple[list[Edge], list[Edge]]:
    """The edges that count, by time and then arrival, and those that are rejected (unusable, or later
    than `lateness` after a newer one)."""
    accepted: list[Edge] = []
    rejected: list[Edge] = []
    newest = 0
    for edge in edges:
        if is_usable(edge, reader) and time_of(edge) >= newest - lateness:
            newest = max(newest, time_of(edge))
            accepted.append(edge)
        else:
            rejected.append(edge)
    return sorted(accepted, key=time_of), rejected


class Arrival(NamedTuple):
    """One arrival of an edge or vertex tuple, and when it is valid."""

    src: Vertex
    label: str
    trg: Vertex | None
    ts: int
    values: Mapping[str, Value | None]
    valid: Interval
    others: Mapping[str, Any]


def arrivals(
    stream: Stream, edges: Iterable[Edge], lateness: int = 0, reader: Reader = PLAIN
) -> list[Arrival]:
    """All arrivals of a stream, and when each is valid: until it expires, is deleted, or is replaced in a table. A
    tuple says itself when it expires."""
    # By end points and label, since no other row can end them.
    found: defaultdict[tuple[Vertex, str, Vertex | None], list[Arrival]] = defaultdict(list)
    for edge in in_order(edges, lateness, reader)[0]:
        time, values, others = time_of(edge), reader.values(edge), reader.others(edge)
        before = found[edge_key(edge)]
        if operation(edge) == "-" or stream.table:
            said = {**others, **values} if operation(edge) == "-" else {}
            for place, earlier in enumerate(before):
                known = {**earlier.others, **earlier.values}
                if all(known.get(name) == value for name, value in said.items() if value is not None):
                    start, end = earlier.valid
                    before[place] = earlier._replace(valid=(start, min(end, time)))
        if operation(edge) == "+":
            end = FOREVER if stream.table else time // stream.slide * stream.slide + stream.window
            if stream.tuples:
                expiry = read_value(fields(edge).get("exp"), "TIME")
                end = FOREVER if expiry is None else min(int(expiry), FOREVER)
            before.append(Arrival(*edge_key(edge), time, values, (time, end), others))
    return [arrival for each in found.values() for arrival in each]


def valid_intervals(
    edges: Iterable[Edge], window: int, slide: int = 1, lateness: int = 0
) -> dict[tuple[Vertex, str, Vertex], list[Interval]]:
    """When each edge `(src, label, trg)` of a stream is valid."""
    found: defaultdict[Any, list[Interval]] = defaultdict(list)
    for arrival in arrivals(Stream("", window, slide), edges, lateness):
        found[arrival.src, arrival.label, arrival.trg].append(arrival.valid)
    return {edge: valid for edge, intervals in found.items() if (valid := union(intervals))}


# ---------------------------------------------------------------------------------------------------------
# Predicates: true, false, or None for unknown

COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def number_or_text(left: Value, right: Value) -> tuple[Value, Value]:
    """An INT beside a FLOAT is converted to FLOAT; text beside a number is a TIME that the query states."""
    if isinstance(left, str) != isinstance(right, str):
        return tuple(read_value(each, "TIME") for each in (left, right))  # type: ignore[return-value]
    if isinstance(left, float) or isinstance(right, float):
        return float(left), float(right)
    return left, right


def scalar_value(scalar: Scalar, row: Mapping[str, Value | None]) -> Value | None:
    """The value of a scalar; None where it is missing, or where arithmetic has no result."""
    match scalar:
        case Var(name):
            return row.get(name)
        case Math(op, one, other):
            left, right = scalar_value(one, row), scalar_value(other, row)
            return None if left is None or right is None else calculated(op, left, right)
    return scalar


def calculated(op: str, left: Any, right: Any) -> Value | None:
    left, right = number_or_text(left, right)
    if op == "/":
        left, right = float(left), float(right)
        if right == 0:
            return None
        result = left / right
    else:
        result = {"+": operator.add, "-": operator.sub, "*": operator.mul}[op](left, right)
    if isinstance(result, float):
        return None if math.isnan(result) else result
    return result if -(2**63) <= result < 2**63 else None


def truth(
    predicate: Predicate, row: Mapping[str, Any], vertices: frozenset[str] = frozenset()
) -> bool | None:
    """The truth of a predicate; `vertices` are the names that stand for vertices."""
    match predicate:
        case Compare(op, one, other):
            for here, there in ((one, other), (other, one)):
                if isinstance(here, Var) and here.name in vertices:
                    if isinstance(there, Var):
                        return (row[here.name] == row[there.name]) == (op == "=")
                    return is_vertex(row[here.name], there) == (op == "=")
            left, right = scalar_value(one, row), scalar_value(other, row)
            return None if left is None or right is None else COMPARISONS[op](*number_or_text(left, right))
        case Among(operand, values):
            # Unknown only if the operand is: the listed values are all known.
            return any_of(truth(Compare("=", operand, value), row, vertices) for value in values)
        case Not(part):
            held = truth(part, row, vertices)
            return None if held is None else not held
        case And(parts):
            # A conjunction is false if any part is, and else unknown if any part is.
            opposite = any_of(truth(Not(part), row, vertices) for part in parts)
            return None if opposite is None else not opposite
        case Or(parts):
            return any_of(truth(part, row, vertices) for part in parts)


def any_of(truths: Iterable[bool | None]) -> bool | None:
    found = set(truths)
    return True if True in found else None if None in found else False


def is_vertex(vertex: Vertex, named: Vertex) -> bool:
    """A number in a query names the vertex of that number, and the one whose name is its digits."""
    return vertex in (named, str(named))


# ---------------------------------------------------------------------------------------------------------
# One snapshot


Join = Callable[[Rows, Rows], Rows]


def compose(first: Rows, second: Rows) -> Rows:
    onwards = defaultdict(set)
    for middle, trg in second:
        onwards[middle].add(trg)
    if sum(len(onwards.get(middle, ())) for _, middle in first) > 10 * MOST_TUPLES:
        raise TooLarge
    return {(src, trg) for src, middle in first for trg in onwards.get(middle, ())}


def compose_ascending(first: Rows, second: Rows, *, strictly: bool) -> Rows:
    """Walks `(src, trg, time of the first edge, time of the last edge)`, where the second starts when the first has
    ended, or later."""
    onwards = defaultdict(set)
    for middle, trg, start, last in second:
        onwards[middle].add((trg, start, last))
    if sum(len(onwards.get(middle, ())) for _, middle, _, _ in first) > 10 * MOST_TUPLES:
        raise TooLarge
    return {
        (src, trg, begin, last)
        for src, middle, begin, end in first
        for trg, start, last in onwards.get(middle, ())
        if (end < start if strictly else end <= start)
    }


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


def joined(
    expr: Expr, edges: Callable[[Step], Rows], join: Join = compose, *, backwards: bool = False
) -> Rows:
    """The walks of one edge or more that spell a word of the expression, each by its ends (and its first and last
    time); `backwards`: those that spell it from its end to its beginning, each edge read backwards."""
    match expr:
        case Step():
            found = edges(expr)
            return {(row[1], row[0], *row[2:]) for row in found} if backwards else found
        case Back(part):
            return joined(part, edges, join, backwards=not backwards)
        case Alt(parts):
            return set().union(*(joined(part, edges, join, backwards=backwards) for part in parts))
        case Seq((first,)):
            return joined(first, edges, join, backwards=backwards)
        case Seq((first, *others)):
            rest = Seq(tuple(others))
            one = joined(first, edges, join, backwards=backwards)
            two = joined(rest, edges, join, backwards=backwards)
            found = join(two, one) if backwards else join(one, two)
            if is_nullable(first):
                found |= two
            if is_nullable(rest):
                found |= one
            return found
        case Rep(part, low, high):
            once = joined(part, edges, join, backwards=backwards)
            # Where the part may be empty, any smaller number of non-empty ones will do.
            fewest = 1 if is_nullable(part) else max(low, 1)
            if high is not None and high < fewest:
                return set()
            power = once
            for _ in range(fewest - 1):
                power = join(power, once)
            found = set(power)
            more = None if high is None else high - fewest
            while more != 0:
                power = join(power, once) - found if more is None else join(power, once)
                if not power:
                    break
                found |= power
                more = None if more is None else more - 1
            return found
    raise AssertionError(expr)


Relations = Mapping[Step, Rows]
"""The tuples of every label and head, by its step without a predicate."""


class Snapshot:
    """What every label and every head of a query holds on one snapshot."""

    def __init__(self, query: Query, edges: Relations) -> None:
        self.query = query
        self.edges = edges
        self.found: dict[Step, Rows] = {}

    def names(self, step: Step) -> tuple[str, ...]:
        """What the values of a step's tuples are called."""
        if step.stream is None:
            return (*self.query.value_names(step.label), *self.query.path_names(step.label))
        return columns(self.query, step.stream)

    def rows(self, step: Step) -> Rows:
        """The tuples of a label or a head, whether or not they satisfy the step's predicate."""
        bare = step.bare
        if bare not in self.found:
            if step.stream is not None:
                self.found[bare] = set(self.edges.get(bare, ()))
            else:
                rules = self.query.rules_of(step.label)
                self.found[bare] = set().union(*(self.rule_answers(rule) for rule in rules))
        return self.found[bare]

    def tuples(self, step: Step) -> list[tuple[Row, dict[str, Any]]]:
        """The ends and the named values of the tuples that satisfy the step's predicate."""
        names = self.names(step)
        found = [(row[:2], dict(zip(names, row[2:], strict=True))) for row in self.rows(step)]
        return [each for each in found if step.predicate is None or truth(step.predicate, each[1])]

    def pairs(self, step: Step) -> Rows:
        """The ends of the tuples that satisfy the step's predicate."""
        if step.predicate is None and not self.names(step):
            return self.rows(step)
        return {ends for ends, _ in self.tuples(step)}

    def timed(self, step: Step) -> list[tuple[Row, dict[str, Any], int]]:
        """The same tuples with their values and times. A derived edge has that of the one edge it is derived from."""
        if step.stream is not None:
            return [(ends, values, values["ts"]) for ends, values in self.tuples(step)]
        found = []
        for rule in self.query.rules_of(step.label):
            [atom] = rule.body
            assert isinstance(atom.expr, Step)
            types, wide = variable_types(self.query, rule), head_types(self.query, rule.head)
            for ends, values, time in self.timed(atom.expr):
                known = bind(atom, ends, values, {}, types)
                if known is not None and selects(rule, known):
                    row = {name: as_type(known[var.name], wide[name]) for name, var in rule.values}
                    if step.predicate is None or truth(step.predicate, row):
                        found.append((tuple(known[var.name] for var in rule.args), row, time))
        return found

    def timed_edges(self, step: Step) -> Rows:
        """`(src, trg, time)` of the edges that satisfy the step's predicate."""
        return {(*ends, time) for ends, _, time in self.timed(step)}

    def atom_tuples(self, atom: Atom) -> list[tuple[Row, dict[str, Any]]]:
        """The ends of what an atom matches, and the named values if it is an edge: joined by edges and, where the
        empty word is one of the expression's, every end point of an edge of its inputs with itself."""
        if isinstance(atom.expr, Step):
            if atom.values or atom.paths:
                return self.tuples(atom.expr)
            return [(ends, {}) for ends in self.pairs(atom.expr)]
        if atom.order:
            join = partial(compose_ascending, strictly=atom.order.startswith("strictly"))
            walks = joined(atom.expr, lambda step: {(*row, row[2]) for row in self.timed_edges(step)}, join)
            found = {walk[:2] for walk in walks}
        else:
            found = joined(atom.expr, self.pairs)
        if is_nullable(atom.expr):
            inputs = (self.pairs(step) for step in steps(atom.expr))
            found = found | {(end, end) for pairs in inputs for edge in pairs for end in edge}
        return [(ends, {}) for ends in found]

    def rule_answers(self, rule: Rule) -> Rows:
        """The head's tuples under every binding of variables that satisfies the body."""
        types, wide = variable_types(self.query, rule), head_types(self.query, rule.head)
        names: list[str] = []
        bindings: Rows = {()}
        compared = {name for comparison in rule.comparisons for name in names_in(comparison)}
        head = {var.name for var in rule.args} | {var.name for _, var in (*rule.values, *rule.paths)}
        for place, atom in enumerate(rule.body):
            tuples = self.atom_tuples(atom)
            # A tuple is looked up by the end whose variable is bound, if there is one.
            terms = (atom.src, atom.trg)
            bound = [at for at, term in enumerate(terms) if isinstance(term, Var) and term.name in names]
            by_end = defaultdict(list)
            for each in tuples:
                by_end[each[0][bound[0]] if bound else None].append(each)
            extended: set[tuple[tuple[str, Any], ...]] = set()
            for binding in bindings:
                known = dict(zip(names, binding, strict=True))
                end = known[terms[bound[0]].name] if bound else None  # type: ignore[union-attr]
                for ends, values in by_end.get(end, ()):
                    if (found := bind(atom, ends, values, known, types)) is not None:
                        extended.add(tuple(found.items()))
                if len(extended) > MOST_TUPLES:
                    raise TooLarge
            # Only what the head, a comparison or a later atom still asks for is carried on.
            later = {var.name for atom in rule.body[place + 1 :] for var in variables_of(atom)}
            new = {var.name for var in (*variables_of(atom), *paths_of(atom))}
            names = sorted((set(names) | new) & (head | compared | later))
            bindings = {tuple(dict(bound)[name] for name in names) for bound in extended}
        found_rows = set()
        for binding in bindings:
            known = dict(zip(names, binding, strict=True))
            if selects(rule, known):
                values = [
                    as_type(known[var.name], wide[name])
                    for name, var in sorted(rule.values, key=lambda value: value[0])
                ]
                walks = [known[var.name] for _, var in sorted(rule.paths, key=lambda value: value[0])]
                found_rows.add((*(known[var.name] for var in rule.args), *values, *walks))
        return found_rows


def selects(rule: Rule, known: Mapping[str, Any]) -> bool:
    """Whether all comparisons of a rule are true of a binding."""
    ends = vertex_variables(rule)
    return all(truth(comparison, known, ends) is True for comparison in rule.comparisons)


def bind(
    atom: Atom, ends: Row, values: Mapping[str, Any], known: Mapping[str, Any], types: Mapping[str, str]
) -> dict[str, Any] | None:
    """The binding with the atom's variables added, or None where the tuple does not fit."""
    bound = dict(known)
    for term, vertex in zip((atom.src, atom.trg), ends, strict=True):
        if isinstance(term, Var):
            if bound.setdefault(term.name, vertex) != vertex:
                return None
        elif not is_vertex(vertex, term):
            return None
    if atom.name is not None:
        bound[atom.name] = Walk(atom, *ends)
    bound |= {var.name: values[name] for name, var in atom.paths}
    for name, wanted in atom.values:
        if values[name] is None:
            return None
        if isinstance(wanted, Var):
            value = as_type(values[name], types[wanted.name])
            if bound.setdefault(wanted.name, value) != value:
                return None
        elif not truth(Compare("=", wanted, Var(name)), values):
            return None
    return bound


def as_type(value: Any, kind: str | None) -> Any:
    return float(value) if kind == "FLOAT" else value


def variables_of(atom: Atom) -> Iterator[Var]:
    terms = (atom.src, atom.trg, *(value for _, value in atom.values))
    return (term for term in terms if isinstance(term, Var))


def paths_of(atom: Atom) -> list[Var]:
    """The names that stand for paths of an atom."""
    own = [] if atom.name is None else [Var(atom.name)]
    return [*own, *(var for _, var in atom.paths)]


@lru_cache(64)
def vertex_variables(rule: Rule) -> frozenset[str]:
    return frozenset(
        term.name for atom in rule.body for term in (atom.src, atom.trg) if isinstance(term, Var)
    )


@lru_cache(64)
def variable_types(query: Query, rule: Rule) -> dict[str, str]:
    """The types of the variables of a rule that stand for values: FLOAT where INT and FLOAT meet."""
    found: dict[str, str] = {}
    for atom in rule.body:
        for name, term in atom.values:
            if isinstance(term, Var):
                found[term.name] = wider(found.get(term.name), step_type(query, atom.expr, name))
    return found


def step_type(query: Query, expr: Expr, name: str) -> str:
    assert isinstance(expr, Step)
    if expr.stream is None:
        return head_types(query, expr.label)[name]
    return "TIME" if name == "ts" else query.types(expr.stream)[name]


@lru_cache(64)
def head_types(query: Query, head: str) -> dict[str, str]:
    """The types of a head's values."""
    found: dict[str, str] = {}
    for rule in query.rules_of(head):
        types = variable_types(query, rule)
        for name, var in rule.values:
            found[name] = wider(found.get(name), types[var.name])
    return found


def wider(one: str | None, other: str) -> str:
    return "FLOAT" if one == "FLOAT" else other


@lru_cache(64)
def columns(query: Query, stream: str) -> tuple[str, ...]:
    """The values of a stream's edges: the properties that the query names, and their time if it reads that."""
    return tuple(sorted(query.named(stream) | ({"ts"} if reads_time(query, stream) else set())))


def reads_time(query: Query, stream: str) -> bool:
    """Whether the time of a stream's edges tells them apart."""
    for atom in query.atoms():
        for step in steps(atom.expr):
            if step.stream == stream or step.stream is None:
                names = names_in(step.predicate) | {name for name, _ in atom.values}
                if atom.order or ("ts" in names and step.stream == stream):
                    return True
    return False


def evaluate(query: Query, snapshot: Relations) -> dict[Step, Rows]:
    """What every label and every head of the query holds on one snapshot."""
    found = Snapshot(query, snapshot)
    for rule in query.rules:
        found.rows(Step(rule.head))
    return found.found


# ---------------------------------------------------------------------------------------------------------
# All instants


History = Mapping[Row, list[Interval]]


@dataclass(frozen=True)
class Expected:
    """What a query must answer on given streams, and all that is needed to judge it."""

    query: Query
    streams: Mapping[str, Sequence[Edge]]
    accepted: Mapping[str, Sequence[Edge]]
    rejected: Mapping[str, Sequence[Edge]]
    answers: History
    """When each answer holds."""

    walks: Mapping[Answer, History]
    """By answer with path values: when it holds by these walks."""

    history: Mapping[Step, History]
    """By step of a path expression: when an edge that satisfies it joins two vertices."""

    timed: Mapping[Step, History]
    """The same for the steps of ascending paths, each edge `(src, trg, time)`."""


def expect(query: Query, streams: Mapping[str, Sequence[Edge]], lateness: int = 0) -> Expected:
    """The query's answers, and those of every head in it, at every instant."""
    edges = edge_history(query, streams, lateness)
    instants = sorted(
        {time for valid in edges.values() for times in valid.values() for ends in times for time in ends}
    )
    untimed = {step for atom in query.atoms() for step in steps(atom.expr)}
    ordered = {step for atom in query.atoms() if atom.order for step in steps(atom.expr)}
    result = Step(query.result)
    held: defaultdict[Row, list[Interval]] = defaultdict(list)
    walks: defaultdict[Answer, defaultdict[Row, list[Interval]]] = defaultdict(lambda: defaultdict(list))
    width = query.arity + len(query.value_names(query.result))
    joined_when: dict[Step, defaultdict[Row, list[Interval]]] = defaultdict(lambda: defaultdict(list))
    timed_when: dict[Step, defaultdict[Row, list[Interval]]] = defaultdict(lambda: defaultdict(list))
    for start, end in pairwise(instants):
        snapshot = Snapshot(query, snapshot_at(edges, start))
        for row in snapshot.rows(result):
            held[row[:width]].append((start, end))
            if row[width:]:
                walks[row[:width]][row[width:]].append((start, end))
        for step in untimed:
            for row in snapshot.pairs(step):
                joined_when[step][row].append((start, end))
        for step in ordered:
            for row in snapshot.timed_edges(step):
                timed_when[step][row].append((start, end))
    sorted_streams = {
        stream.input: in_order(streams.get(stream.input, ()), lateness, reader_of(query, stream))
        for stream in query.streams
    }
    return Expected(
        query,
        streams,
        {name: accepted for name, (accepted, _) in sorted_streams.items()},
        {name: rejected for name, (_, rejected) in sorted_streams.items()},
        maximal(held),
        {answer: maximal(rows) for answer, rows in walks.items()},
        {step: maximal(rows) for step, rows in joined_when.items()},
        {step: maximal(rows) for step, rows in timed_when.items()},
    )


def maximal(held: History) -> History:
    return {row: union(times) for row, times in held.items()}


def answers(
    query: Query, streams: Mapping[str, Sequence[Edge]], lateness: int = 0
) -> dict[Answer, list[Interval]]:
    """When each answer holds."""
    return dict(expect(query, streams, lateness).answers)


def edge_history(
    query: Query, streams: Mapping[str, Sequence[Edge]], lateness: int = 0
) -> dict[Step, dict[Row, list[Interval]]]:
    """When the edges of the labels that the query names are valid, in the streams that its result depends on."""
    read = query.streams_read()
    asked = {step.bare for atom in query.atoms() for step in steps(atom.expr)}
    history: dict[Step, defaultdict[Row, list[Interval]]] = defaultdict(lambda: defaultdict(list))
    for stream in (each for each in query.streams if each.name in read):
        names = columns(query, stream.name)
        reader = reader_of(query, stream)
        for each in arrivals(stream, streams.get(stream.input, ()), lateness, reader):
            step = Step(each.label, stream.name, vertex=each.trg is None)
            if step in asked:
                trg = each.src if each.trg is None else each.trg
                values = {**each.values, "ts": each.ts}
                history[step][each.src, trg, *(values[name] for name in names)].append(each.valid)
    return {
        step: {row: valid for row, times in rows.items() if (valid := union(times))}
        for step, rows in history.items()
    }


def snapshot_at(history: Mapping[Step, Mapping[Row, list[Interval]]], time: int) -> dict[Step, Rows]:
    """The edges valid at one instant."""
    return {
        step: {edge for edge, times in edges.items() if covers(times, time, time + 1)}
        for step, edges in history.items()
    }
