"""The type of every value of a query.

A type is declared, known from the input, or follows from use: from what a property is bound to, and from the values
that it is compared with. Equal variables may bind an INT and a FLOAT: the variable is a FLOAT then. A literal that
may be of several types decides only what nothing else decides: first a text in ISO 8601, which may be a time, and at
last an integer, since every number compares with it. What stays undecided is left to the input (None).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import IntEnum

from meander.errors import QueryError, Span
from meander.syntax.durations import MICROSECONDS
from meander.syntax.printing import reference_text, scalar_text
from meander.syntax.query import Atom, Label, PathExpr, RegularQuery, Rule, Variable, labels_of, map_labels
from meander.syntax.values import (
    NUMBERS,
    TIME_PROPERTY,
    And,
    Arithmetic,
    Comparison,
    Const,
    Membership,
    Not,
    Or,
    Predicate,
    Property,
    Ref,
    Scalar,
    ValueType,
    refs,
)

KnownTypes = Mapping[str, Mapping[str, ValueType]]
"""What the inputs know: the types of properties, by stream."""

Key = tuple[str, str]
"""A property of a stream, `("s.bank", "amount")`, of a head, `("h.Big", "out")`, or a variable of a rule, `("3",
"m")`."""

Link = tuple[Key, Key, Span | None]
"""A property, the variable that it is bound to, and where."""

_WIDER = {ValueType.INT: 0, ValueType.TIME: 1, ValueType.FLOAT: 2}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def infer_types(
    query: RegularQuery, unit: str = "s", text: str = "", known: KnownTypes | None = None
) -> RegularQuery:
    """The query with the type of every value decided as far as can be, and its streams with the properties that it
    names. Raises `QueryError` for types that do not go together."""
    return _Inference(query, unit, text, {} if known is None else known).typed()


def value_types(query: RegularQuery) -> ValueTypes:
    """The types of the variables and heads of a query whose types have been inferred."""
    inference = _Inference(query, "s", "", {})
    return ValueTypes(inference.types)


@dataclass(frozen=True)
class ValueTypes:
    """Types by what has them; None where undecided."""

    types: Mapping[Key, ValueType]

    def variable(self, rule: int, name: str) -> ValueType | None:
        """A variable of a rule, given by its position in the query."""
        return self.types.get((str(rule), name))

    def head(self, head: str, name: str) -> ValueType | None:
        return self.types.get((f"h.{head}", name))


def converts(found: ValueType, wanted: ValueType) -> bool:
    """Whether a value of an input's type can be read as the type that a query wants."""
    return found is wanted or (found is ValueType.INT and wanted in (ValueType.FLOAT, ValueType.TIME))


@dataclass(frozen=True, slots=True)
class _Site:
    """A predicate of the query, and whose properties or variables it names."""

    owner: str
    predicate: Predicate
    located: bool  # whether its spans are of this text


class _Doubt(IntEnum):
    """How doubtful it is that what is compared with a literal has the literal's type."""

    NONE = 0
    TIME_OR_TEXT = 1
    ANY_NUMBER = 2


def _doubt(literal: Const) -> _Doubt:
    match literal:
        case Const(_, ValueType.INT):
            return _Doubt.ANY_NUMBER
        case Const(str(text), ValueType.STRING) if _moment(text) is not None:
            return _Doubt.TIME_OR_TEXT
    return _Doubt.NONE


class _Inference:
    def __init__(self, query: RegularQuery, unit: str, text: str, known: KnownTypes) -> None:
        self.query = query
        self.unit = unit
        self.text = text
        self.types: dict[Key, ValueType] = {}
        self.links: list[Link] = []  # of properties that are bound in bodies, and of the values of heads
        self.heads: list[Link] = []  # the latter
        self.sites: list[_Site] = []
        self.named: dict[Key, None] = {}
        self.inputs = {stream.name: stream.input for stream in query.streams}
        self._collect(known)
        self._solve()

    def _owner(self, label: Label) -> str:
        """What has the properties of a label: a head, or the input of a stream."""
        if label.stream is None:
            return f"h.{label.name}"
        return f"s.{self.inputs.get(label.stream, label.stream)}"

    # -- what the query says

    def _collect(self, known: KnownTypes) -> None:
        for stream in self.query.streams:
            for name, kind in known.get(stream.input, {}).items():
                self.types[f"s.{stream.input}", name] = kind
        for stream in self.query.streams:
            for name, declared in stream.properties:
                if declared is not None:
                    self.types[f"s.{stream.input}", name] = declared
            self.types[f"s.{stream.input}", TIME_PROPERTY] = ValueType.TIME
        for number, rule in enumerate(self.query.rules):
            owner = str(number)
            for atom in rule.body:
                for end in (atom.src, atom.trg):
                    if isinstance(end, Variable):
                        self.types[owner, end.name] = ValueType.VERTEX
                for label in labels_of(atom.expr):
                    if label.predicate is not None:
                        located = rule.span is not None
                        self.sites.append(_Site(self._owner(label), label.predicate, located))
                        for ref in refs(label.predicate):
                            self.named[self._owner(label), str(ref.name)] = None
                if isinstance(atom.expr, Label) and atom.expr.stream is not None:
                    for name, _ in atom.paths:
                        self.named[self._owner(atom.expr), name] = None
                if atom.values and isinstance(atom.expr, Label):
                    for name, variable in atom.values:
                        key = (self._owner(atom.expr), name)
                        self.named[key] = None
                        self.links.append((key, (owner, variable.name), variable.span))
            if rule.predicate is not None:
                self.sites.append(_Site(owner, rule.predicate, rule.span is not None))
        for number, rule in enumerate(self.query.rules):
            for name, variable in rule.values:
                self.heads.append(((f"h.{rule.head}", name), (str(number), variable.name), variable.span))
        self.links += self.heads

    # -- inference

    def _solve(self) -> None:
        for doubt in _Doubt:
            changed = True
            while changed:
                # A head's values have the types of what its rules bind, whatever they are compared with later.
                while self._bind() or self._push(self.heads):
                    pass
                compared = [self._compare(site, doubt) for site in self.sites]
                changed = any(compared) or self._push(self.links)

    def _bind(self) -> bool:
        """Variables get the types of what they are bound to: of several number types, the widest."""
        changed = False
        for prop, variable, _ in self.links:
            kind, now = self.types.get(prop), self.types.get(variable)
            if kind is None or kind is now:
                continue
            if now is None or (kind in _WIDER and now in _WIDER and _WIDER[kind] > _WIDER[now]):
                self.types[variable] = kind
                changed = True
        return changed

    def _push(self, links: Iterable[Link]) -> bool:
        """A property without a type gets that of a variable that is bound to it."""
        changed = False
        for prop, variable, _ in links:
            kind, now = self.types.get(variable), self.types.get(prop)
            if kind in (None, ValueType.VERTEX):
                continue
            is_head = prop[0].startswith("h.")
            wider = is_head and now in _WIDER and kind in _WIDER and _WIDER[kind] > _WIDER[now]
            if now is None or wider:
                self.types[prop] = kind
                changed = True
        return changed

    def _compare(self, site: _Site, most: _Doubt) -> bool:
        changed = False
        for comparison in _comparisons(site.predicate):
            match comparison:
                case Comparison(_, left, right):
                    pairs = [(left, right), (right, left)]
                case Membership(operand, values):
                    pairs = [(operand, value) for value in values]
            for target, source in pairs:
                hint = self._hinted(site.owner, source, most)
                changed |= self._hint(site.owner, target, hint, most)
                changed |= self._hint(site.owner, target, None, most)
        return changed

    def _hinted(self, owner: str, scalar: Scalar, most: _Doubt) -> ValueType | None:
        """The type that a scalar suggests for what is compared with it."""
        if isinstance(scalar, Const) and _doubt(scalar) > most:
            return None
        return self._type(owner, scalar)

    def _hint(self, owner: str, scalar: Scalar, kind: ValueType | None, most: _Doubt) -> bool:
        """Give a type to the references of a scalar that have none."""
        match scalar:
            case Ref(name) if kind not in (None, ValueType.VERTEX) and (owner, str(name)) not in self.types:
                assert kind is not None
                self.types[owner, str(name)] = kind
                return True
            case Arithmetic(op, left, right):
                changed = False
                for part, other in ((left, right), (right, left)):
                    hint = self._hinted(owner, other, most) or (kind if op in "+-" else None)
                    if hint in NUMBERS and not (hint is ValueType.TIME and kind is not ValueType.TIME):
                        changed |= self._hint(owner, part, hint, most)
                    else:
                        changed |= self._hint(owner, part, None, most)
                return changed
        return False

    def _type(self, owner: str, scalar: Scalar) -> ValueType | None:
        match scalar:
            case Const(_, kind):
                return kind
            case Ref(name):
                return self.types.get((owner, str(name)))
            case Arithmetic(op, left, right):
                kinds = [self._type(owner, left), self._type(owner, right)]
                if op == "/" or ValueType.FLOAT in kinds:
                    return ValueType.FLOAT
                if None in kinds:
                    return None
                if op in "+-" and kinds.count(ValueType.TIME) == 1:
                    return ValueType.TIME
                return ValueType.INT

    # -- the typed query

    def typed(self) -> RegularQuery:
        for prop, variable, span in self.links:
            self._check_link(prop, variable, span)
        streams = tuple(
            replace(
                stream,
                properties=tuple(
                    Property(name, self.types.get((owner, name)))
                    for owner, name in sorted(self.named)
                    if owner == f"s.{stream.input}" and name != TIME_PROPERTY
                ),
            )
            for stream in self.query.streams
        )
        rules = tuple(self._typed_rule(number, rule) for number, rule in enumerate(self.query.rules))
        return replace(self.query, streams=streams, rules=rules)

    def _typed_rule(self, number: int, rule: Rule) -> Rule:
        located = rule.span is not None

        def typed_label(label: Label) -> PathExpr:
            if label.predicate is None:
                return label
            return replace(label, predicate=self._checked(self._owner(label), label.predicate, located))

        body: list[Atom] = [replace(atom, expr=map_labels(atom.expr, typed_label)) for atom in rule.body]
        predicate = None if rule.predicate is None else self._checked(str(number), rule.predicate, located)
        return replace(rule, body=tuple(body), predicate=predicate)

    def _check_link(self, prop: Key, variable: Key, span: Span | None) -> None:
        kind, bound = self.types.get(prop), self.types.get(variable)
        if kind is ValueType.PATH:
            stream, name = prop[0].removeprefix("s."), prop[1]
            raise QueryError(
                f"{name} of {stream} is a path",
                text=self.text,
                span=span,
                hint=f"declare it as one, in Datalog as STREAM {stream} TUPLES ({name} PATH), in G-CORE as "
                f"ON {stream} TUPLES ({name} PATH)",
            )
        if bound is None or kind is bound or (kind in NUMBERS and bound in NUMBERS):
            return
        name = variable[1]
        if bound is ValueType.VERTEX:
            raise QueryError(
                f"{name} is a vertex, and {prop[1]} is a value",
                text=self.text,
                span=span,
                hint="a vertex and a value are never equal: give the value a variable of its own",
            )
        raise QueryError(
            f"{name} is bound to values of two types: {prop[1]} is {kind}, and {name} is {bound} elsewhere",
            text=self.text,
            span=span,
            hint="values of one variable are equal, so they have one type; INT and FLOAT may be mixed",
        )

    # -- checks

    def _checked(self, owner: str, predicate: Predicate, located: bool) -> Predicate:
        """The predicate with types, its literals converted; raises `QueryError` for a mixture of types."""

        def checked(part: Predicate) -> Predicate:
            return self._checked(owner, part, located)

        match predicate:
            case And(parts):
                return And(tuple(map(checked, parts)))
            case Or(parts):
                return Or(tuple(map(checked, parts)))
            case Not(part):
                return Not(checked(part))
            case Membership(operand, values):
                typed = self._scalar(owner, operand, located)
                pairs = [self._pair("=", owner, typed, value, located)[1] for value in values]
                return Membership(typed, tuple(value for value in pairs if isinstance(value, Const)))
            case Comparison(op, left, right):
                sides = (self._scalar(owner, left, located), self._scalar(owner, right, located))
                return Comparison(op, *self._pair(op, owner, *sides, located))

    def _pair(self, op: str, owner: str, left: Scalar, right: Scalar, located: bool) -> tuple[Scalar, Scalar]:
        """Both sides of a comparison; a literal beside a TIME or a vertex is one, too."""
        kinds = (self._type(owner, left), self._type(owner, right))
        left, right = self._converted(left, kinds[1], located), self._converted(right, kinds[0], located)
        kinds = (self._type(owner, left), self._type(owner, right))
        span = _span((left, right)) if located else None
        if ValueType.VERTEX in kinds and op not in ("=", "!="):
            raise QueryError(
                f"vertices do not compare by {op}",
                text=self.text,
                span=span,
                hint="vertices have no order, only = and !=; "
                "a value is bound in its atom, as amount: m is, and m compares",
            )
        is_vertex = ValueType.VERTEX in kinds
        if kinds[0] is kinds[1] or (None in kinds and not is_vertex) or set(kinds) <= NUMBERS:
            return left, right
        if is_vertex:
            value, kind = (right, kinds[1]) if kinds[0] is ValueType.VERTEX else (left, kinds[0])
            raise QueryError(
                f"a vertex is compared with {self._written(value, located)}, which is {kind or 'a value'}",
                text=self.text,
                span=span,
                hint='a vertex compares with a vertex: x != y, x = "alice", x = 7',
            )
        raise QueryError(
            f"{self._written(left, located)} is {kinds[0]}, and {self._written(right, located)} is {kinds[1]}",
            text=self.text,
            span=span,
            hint=_mixture_hint(left, right, kinds),
        )

    def _written(self, scalar: Scalar, located: bool) -> str:
        """A scalar as the text has it: `e.amount` is a variable of another name by now."""

        def reference(ref: Ref) -> str:
            in_text = located and ref.span is not None and self.text
            return self.text[ref.span.start : ref.span.end] if in_text and ref.span else reference_text(ref)

        return scalar_text(scalar, reference)

    def _converted(self, scalar: Scalar, beside: ValueType | None, located: bool) -> Scalar:
        match scalar:
            case Const(value, ValueType.STRING | ValueType.INT, span) if beside is ValueType.VERTEX:
                return Const(value, ValueType.VERTEX, span)
            case Const(str(value), ValueType.STRING, span) if beside is ValueType.TIME:
                return Const(self._time(value, span if located else None), ValueType.INT, span)
        return scalar

    def _time(self, value: str, span: Span | None) -> int:
        try:
            return iso_time(value, self.unit)
        except ValueError as error:
            raise QueryError(
                f"{error}",
                text=self.text,
                span=span,
                hint='a time is an integer in the stream\'s unit, or ISO 8601: "2024-05-01T12:00:00Z"',
            ) from None

    def _scalar(self, owner: str, scalar: Scalar, located: bool) -> Scalar:
        match scalar:
            case Ref(name, _, span):
                return Ref(name, self.types.get((owner, str(name))), span)
            case Arithmetic(op, left, right):
                sides = (self._scalar(owner, left, located), self._scalar(owner, right, located))
                for side in sides:
                    kind = self._type(owner, side)
                    if kind is not None and kind not in NUMBERS:
                        raise QueryError(
                            f"{self._written(side, located)} is {kind}: {op} takes numbers",
                            text=self.text,
                            span=_span((side,)) if located else None,
                            hint="INT, FLOAT and TIME are numbers",
                        )
                return Arithmetic(op, *sides)
        return scalar


def iso_time(text: str, unit: str) -> int:
    """ISO 8601 text as an integer in a stream's unit; without a time zone it is in UTC. ValueError if it is not
    one."""
    moment = _moment(text)
    if moment is None:
        raise ValueError(f"{text[:60]} is not a time")
    micros = (moment - _EPOCH) // timedelta(microseconds=1)
    number, rest = divmod(micros, MICROSECONDS[unit])
    if rest:
        raise ValueError(f"{text[:60]} is not a whole number of {unit}")
    return number


def _moment(text: str) -> datetime | None:
    """The moment of an ISO 8601 text; None if it is not one."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _comparisons(predicate: Predicate) -> Iterator[Comparison | Membership]:
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _comparisons(part)
        case Not(part):
            yield from _comparisons(part)
        case _:
            yield predicate


def _leaves(scalar: Scalar) -> Iterator[Ref | Const]:
    if isinstance(scalar, Arithmetic):
        yield from _leaves(scalar.left)
        yield from _leaves(scalar.right)
    else:
        yield scalar


def _span(scalars: tuple[Scalar, ...]) -> Span | None:
    spans = [leaf.span for scalar in scalars for leaf in _leaves(scalar) if leaf.span is not None]
    return Span(min(span.start for span in spans), max(span.end for span in spans)) if spans else None


def _mixture_hint(left: Scalar, right: Scalar, kinds: tuple[ValueType | None, ...]) -> str:
    for scalar, other in ((left, kinds[1]), (right, kinds[0])):
        if not isinstance(scalar, Const):
            continue
        looks_like_number = isinstance(scalar.value, str) and re.fullmatch(r"-?\d+(\.\d+)?", scalar.value)
        if looks_like_number and other in NUMBERS:
            return f"write the number without quotes: {scalar.value}"
        if scalar.type in NUMBERS and other is ValueType.STRING:
            return f'write the text in quotes: "{scalar.value}"; or declare the property with another type'
    return "INT, FLOAT and TIME compare as numbers; any other types compare with their own only"
