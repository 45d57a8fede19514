"""Hypothesis strategies for the law: regular queries, streams of edges, and ways to run the one over the
other.

Everything is small, so that things meet: few vertices, few labels, times close together and windows of about
as many instants as the stream has. A drawn `Case` prints itself as a call that runs it again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from oracle import FIELDS, Edge
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
    Term,
    Value,
    Var,
    Vertex,
    names_in,
    query_text,
    steps,
    type_of,
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
    proofs: bool = False
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
            for name in ("lateness", "mode", "paths", "proofs", "batch_rows", "plan", "demand", "threads")
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


def draw_names(draw: st.DrawFn, rules: Sequence[Rule], *, often: bool = False) -> list[Rule]:
    """The rules with names for some of their paths, none used twice."""
    named: list[Rule] = []
    count = 0
    for rule in rules:
        body = []
        for atom in rule.body:
            if not isinstance(atom.expr, Step) and (often or once_in(draw, 2)):
                count += 1
                atom = replace(atom, name=f"P{count}")
            body.append(atom)
        named.append(replace(rule, body=tuple(body)))
    return named


PATH_VALUE_NAMES = ("why", "via")


def draw_path_values(draw: st.DrawFn, rules: Sequence[Rule]) -> list[Rule]:
    """The rules with paths as values of heads, wherever each rule of a head has a path: one of its body, or one that
    it reads of another head. Rules come after those that they build on."""
    returned: dict[str, tuple[str, ...]] = {}
    valued: dict[str, list[Rule]] = {}
    for head in dict.fromkeys(rule.head for rule in rules):
        read = [reading_paths(draw, rule, returned) for rule in rules if rule.head == head]
        known = [[*(name for atom in rule.body for name in names_of_paths(atom))] for rule in read]
        names: list[str] = []
        if all(known) and not once_in(draw, 5):
            # Two names may stand for one path. A path may have its own name if it is the only one of its head.
            names = list(PATH_VALUE_NAMES[: pick(draw, (1, 2))])
            if len(read) == 1 and once_in(draw, 2):
                names = [known[0][0]]
        valued[head] = [
            replace(
                rule,
                paths=tuple(
                    (name, Var(name if name in paths else pick(draw, paths))) for name in sorted(names)
                ),
            )
            for rule, paths in zip(read, known, strict=True)
        ]
        returned[head] = tuple(sorted(names))
    return [valued[rule.head].pop(0) for rule in rules]


def names_of_paths(atom: Atom) -> list[str]:
    """The names that stand for paths of an atom."""
    return [*([atom.name] if atom.name else []), *(var.name for _, var in atom.paths)]


def reading_paths(draw: st.DrawFn, rule: Rule, returned: Mapping[str, tuple[str, ...]]) -> Rule:
    """The rule with its atoms reading paths of the heads that return some."""
    body = []
    taken = {name for atom in rule.body for name in names_of_paths(atom)}
    for atom in rule.body:
        names: tuple[str, ...] = ()
        if isinstance(atom.expr, Step) and atom.expr.stream is None and atom.name is None:
            names = returned.get(atom.expr.label, ())
        paths = []
        for name in names:
            if not once_in(draw, 4):
                var = name if name not in taken else f"{name}{len(taken)}"
                taken.add(var)
                paths.append((name, Var(var)))
        body.append(replace(atom, paths=tuple(paths)))
    return replace(rule, body=tuple(body))


def draw_uses(draw: st.DrawFn, rules: Sequence[Rule]) -> list[Rule]:
    """The rules with the names of earlier rules' paths in place of some of their steps. Rules of a single edge
    keep it, since a path in order of time may be over them."""
    paths: list[str] = []
    changed: list[Rule] = []
    for rule in rules:
        body = [
            replace(atom, expr=draw_use(draw, atom.expr, paths))
            if paths and not atom.values and not atom.order and not is_edge_rule(rule)
            else atom
            for atom in rule.body
        ]
        changed.append(replace(rule, body=tuple(body)))
        if rule.head not in [later.head for later in rules[len(changed) :]]:
            paths += [
                atom.name for each in changed for atom in each.body if atom.name and each.head == rule.head
            ]
    return changed


def is_edge_rule(rule: Rule) -> bool:
    return len(rule.body) == 1 and isinstance(rule.body[0].expr, Step)


def draw_use(draw: st.DrawFn, expr: Expr, paths: Sequence[str]) -> Expr:
    """The expression with the name of a path in place of its first step, or as it is."""
    match expr:
        case Step(predicate=None, vertex=False) if once_in(draw, 3):
            return Step(pick(draw, paths))
        case Back(part):
            return Back(draw_use(draw, part, paths))
        case Rep(part, low, high):
            return Rep(draw_use(draw, part, paths), low, high)
        case Seq((first, *rest)):
            return Seq((draw_use(draw, first, paths), *rest))
        case Alt((first, *rest)):
            return Alt((draw_use(draw, first, paths), *rest))
    return expr


def draw_streams(draw: st.DrawFn) -> tuple[Stream, ...]:
    """One stream, or two or three with windows of their own, perhaps on the first; slides that fit, that do not, and
    that are too large."""
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
        source = "social" if asked and once_in(draw, 3) else ""
        asked.append(Stream(name, window, slide, source=source))
    return tuple(asked)


def draw_query(
    draw: st.DrawFn, vertices: Sequence[Vertex], *, properties: bool = False, path_values: bool = False
) -> Query:
    """A regular query of one to three heads, each a union of one or two rules, later ones built on earlier
    ones; with `properties`, one that reads values; with `path_values`, one whose heads return paths."""
    streams = draw_streams(draw)
    count = pick(draw, (1, 1, 2, 2, 3))
    labels = [Step(label, pick(draw, streams).name) for label in LABELS[:count]]
    if once_in(draw, 4):
        labels[-1] = Step(LABELS[0], streams[-1].name)
    dress: Callable[[st.DrawFn, list[Rule]], list[Rule]] = lambda draw, rules: rules  # noqa: E731
    if properties:
        dresser = draw_dresser(draw, streams, labels, vertices)
        streams, labels, dress = dresser.streams, dresser.labels, dresser.dress
    rules: list[Rule] = []
    for head in ("D", "E")[: pick(draw, (0, 0, 1, 1, 2))]:
        derived = []
        for _ in range(pick(draw, (1, 1, 2))):
            if properties and once_in(draw, 3):
                derived.append(draw_edge_rule(draw, head, labels))
            else:
                derived.append(draw_rule(draw, head, 2, labels, vertices))
        rules += dress(draw, derived)
        # Twice, so that what stands on derived edges is drawn as often as what stands on the input.
        labels = [*labels, Step(head), Step(head)]
    result = pick(draw, ("Answer", "Answer", "Answer", "Outcome"))
    arity = pick(draw, (2, 2, 2, 2, 1, 3, 0))
    final = []
    for _ in range(pick(draw, (1, 1, 1, 2))):
        if properties and arity == 2 and once_in(draw, 4):
            final.append(draw_edge_rule(draw, result, labels))
        else:
            final.append(draw_rule(draw, result, arity, labels, vertices))
    rules = draw_names(draw, rules + dress(draw, final), often=path_values)
    if once_in(draw, 3):
        rules = draw_uses(draw, rules)
    if path_values:
        rules = draw_path_values(draw, rules)
    if result == "Answer" and once_in(draw, 3):
        rules.reverse()
    query = Query(streams, tuple(rules))
    return draw_declarations(draw, query) if properties else query


def draw_edge_rule(draw: st.DrawFn, head: str, labels: Sequence[Step]) -> Rule:
    """A head that is one edge, as the steps of a path in order of time have to be."""
    x, y = VARIABLES[:2]
    return Rule(head, (x, y), (Atom(pick(draw, labels), x, y),))


# ---------------------------------------------------------------------------------------------------------
# Values

# Names of properties that are also variables and labels; no value is rare, so that values meet.
PROPERTY_NAMES = ("w", "x", "a")
LITERALS: Mapping[str, tuple[Value, ...]] = {
    "INT": (1, 2, 1, 0, 2, -1, 2**63 - 1),
    "FLOAT": (1.0, 0.5, 1.0, 2.0, 0.0, -0.5),
    "STRING": ("EUR", "", "é", "1", "EUR"),
    "BOOL": (True, False),
    "TIME": (10, 5, 20, 0, "1970-01-01T00:00:10Z"),
}
GIVEN: Mapping[str, tuple[Any, ...]] = {
    **LITERALS,
    "FLOAT": (1, 0.5, 1.0, 2, -0.0, 0, float("nan")),
    "TIME": (10, 5, 20, 10, 0, "1970-01-01T00:00:10Z"),
}
BAD: Mapping[str, tuple[Any, ...]] = {
    "INT": ("one", 0.5, True, 2**63),
    "FLOAT": ("half", False),
    "STRING": (1, True, 0.5),
    "BOOL": (1, "perhaps"),
    "TIME": ("soon", 0.5, True),
}
NUMBERS = ("INT", "FLOAT")
COMPARED = ("<", "<=", ">", ">=", "=", "!=")
ORDERS = ("ascending", "strictly ascending")
TIME = ("ts", "TIME")

Types = dict[str, str]


def draw_properties(draw: st.DrawFn) -> tuple[tuple[str, str], ...]:
    """One to three properties with their types."""
    names = PROPERTY_NAMES[: pick(draw, (2, 1, 3, 0))]
    return tuple((name, pick(draw, ("INT", "FLOAT", "INT", "STRING", "BOOL", "TIME"))) for name in names)


def draw_scalar(draw: st.DrawFn, name: str, names: Types) -> tuple[Scalar, str]:
    """A value, or a calculation with it, and the type of what it can be compared with."""
    kind = names[name]
    if kind in NUMBERS and once_in(draw, 3):
        other = pick(draw, [each for each, of in names.items() if of in NUMBERS])
        right = Var(other) if once_in(draw, 2) else pick(draw, LITERALS[kind][:5])
        return Math(pick(draw, "+-*/"), Var(name), right), pick(draw, NUMBERS)
    return Var(name), kind


def draw_predicate(draw: st.DrawFn, names: Types, depth: int = 2) -> Predicate:
    """A predicate over values of these names."""
    kind = pick(draw, ("compare", "compare", "compare", "among", "and", "or", "not")) if depth else "compare"
    match kind:
        case "and" | "or":
            parts = tuple(draw_predicate(draw, names, depth - 1) for _ in range(2))
            return And(parts) if kind == "and" else Or(parts)
        case "not":
            return Not(draw_predicate(draw, names, depth - 1))
        case "among":
            name = pick(draw, sorted(names))
            listed = pick(draw, (2, 1, 3))
            return Among(
                Var(name), tuple(dict.fromkeys(pick(draw, LITERALS[names[name]]) for _ in range(listed)))
            )
    name = pick(draw, sorted(names))
    left, kind = draw_scalar(draw, name, names)
    alike = sorted(
        each for each, of in names.items() if each != name and (of == kind or {of, kind} == {*NUMBERS})
    )
    operator = pick(draw, COMPARED)
    if alike and once_in(draw, 3):
        return Compare(operator, left, Var(pick(draw, alike)))
    if kind == "INT" and once_in(draw, 6):
        return Compare(operator, left, pick(draw, LITERALS["FLOAT"]))
    return Compare(operator, left, pick(draw, LITERALS[kind]))


def fitting(bound: Types, kind: str) -> list[str]:
    """The variables whose values can stand for a type."""
    return sorted(var for var, of in bound.items() if of == kind or (of, kind) == ("INT", "FLOAT"))


@dataclass
class Dresser:
    """Adds values to plain rules: named arguments, predicates of steps, comparisons, vertex tuples, orders of
    time, and properties of derived edges."""

    streams: tuple[Stream, ...]
    labels: list[Step]
    vertex_labels: list[Step]
    vertices: Sequence[Vertex]
    types: dict[Step, Types]
    """The properties of each label and head."""

    timed: set[Step]
    """The labels and heads whose edges have a time."""

    def dress(self, draw: st.DrawFn, rules: list[Rule]) -> list[Rule]:
        """The rules of one head, dressed."""
        head = Step(rules[0].head)
        dressed: list[Rule] = []
        given: list[Types] = []
        for rule in rules:
            rule, bound = self.dress_rule(draw, rule)
            dressed.append(rule)
            given.append(bound)
        types: Types = {}
        named = [rule.values for rule in dressed]
        if not once_in(draw, 3):
            for name in PROPERTY_NAMES[: pick(draw, (1, 2))]:
                kinds = [kind for kind in LITERALS if all(fitting(bound, kind) for bound in given)]
                if kinds:
                    kind = pick(draw, kinds)
                    chosen = [pick(draw, fitting(bound, kind)) for bound in given]
                    # A FLOAT of one rule makes those of the others FLOATs.
                    found = {bound[var] for bound, var in zip(given, chosen, strict=True)}
                    types[name] = "FLOAT" if len(found) > 1 else found.pop()
                    named = [(*values, (name, Var(var))) for values, var in zip(named, chosen, strict=True)]
        dressed = [replace(rule, values=values) for rule, values in zip(dressed, named, strict=True)]
        self.types[head] = types
        if all(self.is_timed(rule) for rule in dressed):
            self.timed.add(head)
        return dressed

    def is_timed(self, rule: Rule) -> bool:
        """Whether a rule is a single edge that has a time."""
        [first, *others] = rule.body
        ends = (first.src, first.trg)
        return (
            not others
            and isinstance(first.expr, Step)
            and first.expr.bare in self.timed
            and rule.args in (ends, ends[::-1])
        )

    def dress_rule(self, draw: st.DrawFn, rule: Rule) -> tuple[Rule, Types]:
        """The rule, and the types of the values that it binds."""
        bound: Types = {}
        body = [self.dress_atom(draw, atom, bound) for atom in rule.body]
        ends = variables(body)
        if self.vertex_labels and ends and once_in(draw, 2):
            var = pick(draw, ends)
            label = pick(draw, self.vertex_labels)
            values = self.draw_values(draw, label, bound)
            body.insert(draw(_below(len(body) + 1)), Atom(label, var, var, values=values))
        comparisons: list[Predicate] = []
        if bound and once_in(draw, 3):
            comparisons.append(draw_predicate(draw, bound))
        if ends and once_in(draw, 3):
            left = pick(draw, ends)
            others = [var for var in ends if var != left]
            if once_in(draw, 6):
                among: Predicate = Among(
                    left, tuple(dict.fromkeys(pick(draw, self.vertices) for _ in range(3)))
                )
                comparisons.append(Not(among) if once_in(draw, 2) else among)
            else:
                right = pick(draw, others) if others and not once_in(draw, 4) else pick(draw, self.vertices)
                comparisons.append(Compare(pick(draw, ("!=", "!=", "!=", "=")), left, right))
        return replace(rule, body=tuple(body), comparisons=tuple(comparisons)), bound

    def dress_atom(self, draw: st.DrawFn, atom: Atom, bound: Types) -> Atom:
        if isinstance(atom.expr, Step):
            values = self.draw_values(draw, atom.expr, bound) if not once_in(draw, 3) else ()
            expr: Expr = self.dress_step(draw, atom.expr, rarely=4)
            return replace(atom, expr=expr, values=values)
        order = ""
        if steps(atom.expr) <= self.timed and once_in(draw, 3):
            order = pick(draw, ORDERS)
        return replace(atom, expr=self.dress_expr(draw, atom.expr), order=order)

    def dress_expr(self, draw: st.DrawFn, expr: Expr) -> Expr:
        match expr:
            case Step():
                return self.dress_step(draw, expr, rarely=3)
            case Back(part):
                return Back(self.dress_expr(draw, part))
            case Rep(part, low, high):
                return Rep(self.dress_expr(draw, part), low, high)
            case Seq(parts):
                return Seq(tuple(self.dress_expr(draw, part) for part in parts))
            case Alt(parts):
                return Alt(tuple(self.dress_expr(draw, part) for part in parts))

    def dress_step(self, draw: st.DrawFn, step: Step, *, rarely: int) -> Step:
        types = self.readable(step) if once_in(draw, 4) else self.types[step]
        if types and once_in(draw, rarely):
            return replace(step, predicate=draw_predicate(draw, types, depth=draw(_below(2))))
        return step

    def readable(self, step: Step) -> Types:
        """What a query can read of a step's edges."""
        return self.types[step] | (dict([TIME]) if step.stream is not None else {})

    def draw_values(self, draw: st.DrawFn, step: Step, bound: Types) -> tuple[tuple[str, Var | Value], ...]:
        """Named arguments: variables, new or bound before, and a literal now and then."""
        readable = self.readable(step)
        values: list[tuple[str, Var | Value]] = []
        # The time comes first now and then.
        for name in sorted(readable, reverse=once_in(draw, 2))[: pick(draw, (1, 1, 2, 3))]:
            kind = readable[name]
            known = sorted(var for var, of in bound.items() if of == kind or {of, kind} == {*NUMBERS})
            if name != "ts" and once_in(draw, 6):
                values.append((name, pick(draw, LITERALS[kind])))
            elif known and once_in(draw, 4):
                var = pick(draw, known)
                bound[var] = "FLOAT" if "FLOAT" in (kind, bound[var]) else bound[var]
                values.append((name, Var(var)))
            else:
                var = f"{'mnpqrs'[len(bound) % 6]}{len(bound) // 6 or ''}"
                bound[var] = kind
                values.append((name, Var(var)))
        return tuple(values)


def draw_dresser(
    draw: st.DrawFn, streams: tuple[Stream, ...], labels: Sequence[Step], vertices: Sequence[Vertex]
) -> Dresser:
    """Streams with properties, perhaps a table beside them, and vertex tuples in some of them."""
    given = {stream.input: draw_properties(draw) for stream in streams}
    streams = tuple(replace(stream, properties=given[stream.input]) for stream in streams)
    # An input that is read through several windows has no tuples.
    shared = {stream.source for stream in streams}
    streams = tuple(
        Stream(stream.name, properties=stream.properties, tuples=True)
        if not stream.source and stream.name not in shared and once_in(draw, 4)
        else stream
        for stream in streams
    )
    tuples = {stream.name for stream in streams if stream.tuples}
    labels = list(labels)
    vertex_labels = []
    if once_in(draw, 3):
        streams = (*streams, Stream("ref", properties=draw_properties(draw), table=True))
        if once_in(draw, 2):
            labels.append(Step("k", "ref"))
        else:
            vertex_labels.append(Step("k", "ref", vertex=True))
    if once_in(draw, 4):
        vertex_labels.append(Step(pick(draw, ("n", "a")), pick(draw, streams).name, vertex=True))
    declared = {stream.name: dict(stream.properties) for stream in streams}
    types = {label: declared[label.stream or ""] for label in (*labels, *vertex_labels)}
    timed = {label for label in labels if label.stream not in tuples}
    return Dresser(streams, labels, vertex_labels, vertices, types, timed)


def draw_declarations(draw: st.DrawFn, query: Query) -> Query:
    """The query with its streams declaring the properties that it names, and no others; or none of them, where all
    follow from the literals that they are compared with."""
    streams = []
    for stream in query.streams:
        named = tuple(each for each in stream.properties if each[0] in query.named(stream.name))
        decided = all(is_decided(query, stream.name, *each) for each in named)
        streams.append(replace(stream, properties=() if decided and once_in(draw, 2) else named))
    return replace(query, streams=tuple(streams))


def is_decided(query: Query, stream: str, name: str, kind: str) -> bool:
    """Whether a property would have this type undeclared, as all it is compared with are literals."""
    windows = query.windows(stream)
    for atom in query.atoms():
        for step in steps(atom.expr):
            if step.stream in windows:
                bound = any(isinstance(value, Var) for named, value in atom.values if named == name)
                if bound or not all(is_literal_beside(name, part) for part in compared(step.predicate)):
                    return False
    return {type_of(literal) for literal in query.literals_beside(stream, name)} == {kind}


def compared(predicate: Predicate | None) -> Iterator[Compare | Among]:
    """The comparisons of a predicate."""
    match predicate:
        case Compare() | Among():
            yield predicate
        case Not(part):
            yield from compared(part)
        case And(parts) | Or(parts):
            for part in parts:
                yield from compared(part)


def is_literal_beside(name: str, comparison: Compare | Among) -> bool:
    """Whether a comparison, if it names the property, is with literals alone."""
    match comparison:
        case Among():
            return True
        case Compare(_, left, right):
            beside = left == Var(name) and not isinstance(right, Var | Math)
            return beside or name not in names_in(comparison)


@st.composite
def queries(draw: st.DrawFn, vertices: Sequence[Vertex] = VERTICES[0]) -> Query:
    return draw_query(draw, vertices)


@st.composite
def property_queries(draw: st.DrawFn, vertices: Sequence[Vertex] = VERTICES[0]) -> Query:
    """Queries that read values, vertex tuples, tables and times."""
    return draw_query(draw, vertices, properties=True)


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
) -> list[tuple[Any, ...]]:
    """A stream in order of arrival: equal times, gaps, repeats, self-loops, a label that nobody asked for; where
    asked, deletions (of absent edges too) and edges that come late, some of them too late or unusable."""
    time = draw(_below(30))
    stream: list[tuple[Any, ...]] = []
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
def edges(draw: st.DrawFn, vertices: Sequence[Vertex], labels: Sequence[str]) -> list[tuple[Any, ...]]:
    return draw_edges(draw, vertices, labels)


def draw_rows(
    draw: st.DrawFn,
    edges: Sequence[tuple[Any, ...]],
    stream: Stream,
    vertex_labels: Sequence[str],
    types: Mapping[str, str],
    reads: Mapping[tuple[str, bool], frozenset[str]],
) -> list[Edge]:
    """The edges as rows with values, most of them of the properties' types, some null or missing; vertex tuples where
    there are labels for them. A deletion repeats the values of an edge before it, or some, or none. Now and then a
    property has values of another type on all labels of which it is not read, by `reads`. Tuples have an expiry, and
    perhaps their values in one field."""
    # A table's rows may have no time at all; where they have, some start without.
    timeless = stream.table and once_in(draw, 2)
    worst = once_in(draw, 3)
    pools = {
        name: [*GIVEN[kind], None, MISSING, *([pick(draw, BAD[kind])] if worst else [])]
        for name, kind in types.items()
    }
    if once_in(draw, 3):
        pools["unread"] = [1, "x", None]
    strange = {name: pick(draw, BAD[kind]) for name, kind in types.items() if once_in(draw, 4)}
    rows: list[dict[str, Any]] = []
    numbers = draw(st.lists(_below(5040), min_size=len(edges), max_size=len(edges)))
    for edge, number in zip(edges, numbers, strict=True):
        src, label, trg, ts, *op = edge
        row = {"src": src, "label": label, "trg": trg, "ts": ts} | ({"op": op[0]} if op else {})
        if vertex_labels and number % 5 < 2:
            row["label"] = vertex_labels[number % len(vertex_labels)]
            row["trg"] = None
            if number % 2:
                del row["trg"]
        for name, pool in pools.items():
            row[name] = pool[number % len(pool)]
            number //= len(pool)
        of = (row["label"], row.get("trg") is None)
        if op != ["-"] or of not in reads:
            row |= {name: value for name, value in strange.items() if name not in reads.get(of, ())}
        if op == ["-"]:
            alike = [each for each in rows if each["src"] == src and each.get("trg") == row.get("trg")]
            if alike and number % 4 < 3:
                names = list(pools)[: (len(pools), 1, 0)[number % 4]]
                row |= dict.fromkeys(pools, MISSING) | {name: alike[-1].get(name, MISSING) for name in names}
        row = {name: value for name, value in row.items() if value is not MISSING}
        if timeless:
            del row["ts"]
        rows.append(row)
    return draw_tuples(draw, rows, list(pools)) if stream.tuples else rows


def draw_tuples(draw: st.DrawFn, rows: Sequence[dict[str, Any]], names: Sequence[str]) -> list[Edge]:
    """The rows as records of answers: most expire after a while, some never, at once, or before their time."""
    nested = once_in(draw, 2)
    lengths: list[Any] = [5, 12, 1, 30, None, MISSING, 0, -3, 2**62, *(["soon"] if once_in(draw, 3) else [])]
    tuples: list[Edge] = []
    chosen = draw(st.lists(_below(len(lengths)), min_size=len(rows), max_size=len(rows)))
    for row, number in zip(rows, chosen, strict=True):
        length, record = lengths[number], dict(row)
        if length is not MISSING:
            is_time = type(length) is int and type(row["ts"]) is int
            record["exp"] = max(0, row["ts"] + length) if is_time else length
        # Not all records of a stream need to be of one kind.
        if nested and number != 2:
            record["properties"] = {name: record.pop(name) for name in names if name in record}
        tuples.append(record)
    return tuples


MISSING = object()


def changed(edge: Edge, **fields: Any) -> Edge:
    """The row with some of its fields replaced."""
    if isinstance(edge, Mapping):
        return {**edge, **fields}
    row = dict(zip(FIELDS, edge, strict=False)) | fields
    return tuple(row[name] for name in FIELDS if name in row)


@st.composite
def property_cases(draw: st.DrawFn) -> Case:
    """A case whose query reads values, vertex tuples, tables and times."""
    return draw_case(draw, properties=True)


@st.composite
def path_value_cases(draw: st.DrawFn) -> Case:
    """A case whose query returns paths as values, some of them beside values of properties."""
    return draw_case(draw, properties=once_in(draw, 3), path_values=True)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A query without properties, streams for it, and a way to run it."""
    return draw_case(draw)


def draw_case(draw: st.DrawFn, *, properties: bool = False, path_values: bool = False) -> Case:
    """A query, streams for it, and a way to run it."""
    vertices = pick(draw, VERTICES)[: pick(draw, (3, 4, 2, 5, 6))]
    query = draw_query(draw, vertices, properties=properties, path_values=path_values)
    deletions = once_in(draw, 2)
    disorder = once_in(draw, 4)
    lateness = draw(_below(7)) if disorder else 0
    named = {step for atom in query.atoms() for step in steps(atom.expr)}
    # Predicates and values that must meet select, so there is more to select from.
    least = pick(draw, (5, 10, 16, 24, 24) if properties else (0, 5, 10, 16, 24)) // len(query.streams)
    streams = {}
    for stream in (each for each in query.streams if not each.source):
        windows = query.windows(stream.name)
        labels = sorted({step.label for step in named if step.stream in windows and not step.vertex})
        drawn = draw_edges(
            draw,
            vertices,
            labels or [UNASKED],
            least=least,
            deletions=deletions,
            lateness=lateness if disorder else None,
        )
        if properties:
            of_vertices = sorted({step.label for step in named if step.stream in windows and step.vertex})
            types = dict(sorted(query.types(stream.name).items()))
            reads = query.reads(stream.name)
            streams[stream.name] = draw_rows(draw, drawn, stream, of_vertices, types, reads)
        else:
            streams[stream.name] = drawn
    return Case(
        query,
        streams,
        lateness=lateness,
        mode=pick(draw, ("intervals", "intervals", "changes")),
        paths=once_in(draw, 4 if path_values else 2),
        batch_rows=pick(draw, BATCH_ROWS),
        plan=None if once_in(draw, 2) else draw(_below(40)),
        demand=not once_in(draw, 4),
        threads=pick(draw, (1, 1, 1, 2, 3)),
        moves=draw(_below(100)),
        capacity=pick(draw, CAPACITIES),
    )
