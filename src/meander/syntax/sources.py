"""The streams and views that a query reads: the same rules for both languages, whose words differ."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count

from meander.errors import QueryError, Span
from meander.syntax.durations import LONGEST
from meander.syntax.expressions import Name
from meander.syntax.parsing import TextErrors
from meander.syntax.printing import name_text, short_list
from meander.syntax.query import Label, RegularQuery, Rule, Stream
from meander.syntax.values import TIME_PROPERTY, Property, ValueType, refs
from meander.syntax.views import splice

_BESIDE = (
    "; a predicate of a step compares these and literals, and what compares with a variable of the rule stands "
    "beside the atoms: a(x, y, amount: n), n > m"
)


@dataclass(frozen=True, slots=True)
class DeclaredProperty:
    """`amount FLOAT`; the input decides the type of a property without one."""

    name: Name
    type: ValueType | None


@dataclass(frozen=True, slots=True)
class SourceClause:
    """`STREAM name [(properties)] [FROM source] [WINDOW window] [SLIDE slide]`, `STREAM name TUPLES [(properties)]`
    or `TABLE name [(properties)]` in Datalog, `ON name …` likewise in G-CORE."""

    name: Name
    window: int | None
    slide: int | None
    span: Span
    properties: tuple[DeclaredProperty, ...] | None = None
    is_table: bool = False
    is_tuples: bool = False
    source: Name | None = None


class Sources(TextErrors):
    """The declared streams, and the labels of the declared views.

    `keyword`, `window` and `slide` show in hints how the query's language writes a declaration.
    """

    def __init__(
        self, text: str, views: Mapping[str, RegularQuery], *, keyword: str, window: str, slide: str
    ) -> None:
        self.text = text
        self.views = views
        self.keyword, self.window, self.slide = keyword, window, slide
        self.streams: dict[str, Stream] = {}
        self.reserved: set[str] = set()
        """Names that the text gives streams: another window of one of them is named otherwise."""
        self.view_labels: dict[str, tuple[str, ...]] = {}
        self.declared_properties: dict[str, tuple[str, ...]] = {}

    def declare(self, clause: SourceClause) -> tuple[Rule, ...]:
        """Add a stream or view; returns the rules of a view that was not declared before."""
        name = clause.name.value
        rules: tuple[Rule, ...] = ()
        if clause.source is not None:
            self._check_source(clause, clause.source)
        if clause.properties is not None:
            self.declared_properties[name] = tuple(declared.name.value for declared in clause.properties)
        self._check_paths(clause)
        if name in self.views and name not in self.view_labels:
            rules = splice(name, self.views[name])
            self.view_labels[name] = tuple(dict.fromkeys(rule.head.partition(".")[2] for rule in rules))
            self._add_streams(self.views[name].streams, clause.span)
        if name in self.view_labels:
            if clause.window is not None or clause.slide is not None:
                raise self.error(
                    f"{name} is a view, which has no window of its own",
                    clause.span,
                    f"its tuples keep their validity: write {self.keyword} {name}",
                )
            if clause.is_tuples:
                raise self.error(
                    f"{name} is a view, whose tuples keep their validity anyway",
                    clause.span,
                    f"write {self.keyword} {name}; TUPLES is for the output of another run",
                )
            if clause.properties is not None or clause.is_table:
                raise self.error(
                    f"{name} is a view, whose properties are those of its heads",
                    clause.span,
                    f"write {self.keyword} {name}",
                )
        elif clause.is_table or clause.is_tuples:
            stream = Stream(
                name,
                LONGEST,
                1,
                clause.span,
                _properties(clause),
                is_table=clause.is_table,
                is_tuples=clause.is_tuples,
            )
            self._add_streams([stream], clause.span)
        elif clause.window is not None:
            source = None if clause.source is None else clause.source.value
            stream = Stream(
                name, clause.window, clause.slide or 1, clause.span, _properties(clause), source=source
            )
            self._add_streams([stream], clause.span)
        elif clause.slide is not None or name not in self.streams:
            raise self._missing_window(name, clause.span)
        return rules

    def _check_paths(self, clause: SourceClause) -> None:
        """Refuse paths among the properties of edges."""
        for declared in clause.properties or ():
            if declared.type is ValueType.PATH and not clause.is_tuples:
                raise self.error(
                    f"{clause.name.value} has no paths: {declared.name.value} is declared as one",
                    declared.name.span,
                    f"only answers of a run have paths: {self.keyword} {clause.name.value} TUPLES "
                    f"({declared.name.value} PATH)",
                )

    def _check_source(self, clause: SourceClause, source: Name) -> None:
        name = clause.name.value
        for view in (name, source.value):
            if view in self.views:
                raise self.error(
                    f"{view} is a view, whose tuples keep their validity",
                    clause.span,
                    f"write {self.keyword} {view}; only a stream can be read through another window",
                )
        if source.value == name:
            raise self.error(f"{name} is read from itself", clause.span, another_window_hint(name))
        if clause.window is None:
            raise self._missing_window(f"{name} FROM {source.value}", clause.span)

    def windowed(self, clause: SourceClause) -> SourceClause:
        """The clause; under another name, if its stream has another window already."""
        name = clause.name.value
        if clause.window is None or clause.is_table or name in self.views or name in self.view_labels:
            return clause
        source = Name(name, clause.name.span)
        window = clause.window, clause.slide or 1
        for stream in self.streams.values():
            if stream.input == name and (stream.window, stream.slide) == window and stream.has_window:
                own_name = replace(source, value=stream.name)
                return replace(clause, name=own_name, source=None if stream.source is None else source)
        if name not in self.streams or not self.streams[name].has_window:
            return clause
        taken = {*self.streams, *self.views, *self.view_labels, *self.reserved}
        fresh = next(other for number in count(2) if (other := f"{name}_{number}") not in taken)
        return replace(clause, name=replace(source, value=fresh), source=source)

    def check_inputs(self) -> None:
        """Refuse streams of one input that do not go together."""
        types: dict[tuple[str, str], ValueType] = {}
        for stream in self.streams.values():
            source = None if stream.source is None else self.streams.get(stream.source)
            if source is not None and source.source is not None:
                raise self.error(
                    f"{stream.source} is itself read from {source.source}",
                    stream.span,
                    f"name the input: {self.keyword} {stream.name} FROM {source.source}",
                )
            if source is not None and not source.has_window:
                raise self.error(
                    f"{stream.source} is a table, whose rows do not expire"
                    if source.is_table
                    else f"{stream.source} has TUPLES, which keep their validity",
                    stream.span,
                    "only a stream with a window can be read through another one",
                )
            for name, kind in stream.properties:
                if kind is not None and types.setdefault((stream.input, name), kind) is not kind:
                    raise self.error(
                        f"the property {name} of {stream.input} has two types in this query: "
                        f"{types[stream.input, name]} and {kind}",
                        stream.span,
                        "declare it with one type, or once",
                    )

    def label(self, label: Label, source: str) -> Label:
        """A label of a declared stream or view."""
        if label.is_any and source in self.view_labels:
            raise self.error(
                f"{source} is a view: its labels are known",
                label.span,
                f"name one of them: {short_list(self.view_labels[source])}",
            )
        if source not in self.view_labels:
            self._check_properties(label, source)
            return replace(label, stream=source)
        if label.name not in self.view_labels[source]:
            raise self.error(
                f"the view {source} has no label {label.name}",
                label.span,
                f"its labels are {short_list(self.view_labels[source])}",
            )
        return replace(label, name=f"{source}.{label.name}", stream=None)

    def check_property(self, source: str, name: str, span: Span | None, advice: str = "") -> None:
        """Refuse a property that a declared stream does not list, if it lists any; the `advice` is for a name that is
        like none of them."""
        declared = self.declared_properties.get(source)
        if declared is None and source in self.streams:
            declared = self.declared_properties.get(self.streams[source].input)
        if declared is None or name in declared or name == TIME_PROPERTY:
            return
        close = difflib.get_close_matches(name, declared, n=1)
        raise self.error(
            f"{source} has no property {name}",
            span,
            f"its properties are {short_list(declared)}"
            + (f"; did you mean {close[0]}?" if close else advice),
        )

    def _check_properties(self, label: Label, source: str) -> None:
        for ref in refs(label.predicate):
            self.check_property(source, str(ref.name), ref.span, _BESIDE)

    def _add_streams(self, streams: Iterable[Stream], span: Span) -> None:
        """A stream that is known already must have the same window and slide; its properties add up."""
        for stream in streams:
            known = self.streams.setdefault(stream.name, stream)
            if known is stream:
                continue
            if _bounds(known) != _bounds(stream):
                raise self.error(
                    f"the stream {stream.name} has two windows in this query: {_window(known)} and {_window(stream)}",
                    span,
                    "a name has one window in a query, in its views as well: "
                    + (
                        another_window_hint(stream.name)
                        if known.has_window and stream.has_window
                        else "use the same one, or none"
                    ),
                )
            types = {value.name: value.type for value in known.properties}
            for name, kind in stream.properties:
                if types.setdefault(name, kind) is None:
                    types[name] = kind
                elif kind not in (None, types[name]):
                    raise self.error(
                        f"the property {name} of {stream.name} has two types in this query: {types[name]} and {kind}",
                        span,
                        "declare it with one type, in the stream's views as well",
                    )
            merged = tuple(Property(name, kind) for name, kind in sorted(types.items()))
            self.streams[stream.name] = replace(known, properties=merged)

    def _missing_window(self, name: str, span: Span) -> QueryError:
        views = list(dict.fromkeys([*self.view_labels, *self.views]))
        close = difflib.get_close_matches(name, views, n=1)
        if close:
            return self.error(
                f"unknown view {name}",
                span,
                f"did you mean {close[0]}? A stream needs a window: {self.keyword} {name} {self.window}",
            )
        return self.error(
            f"the stream {name} is missing its window",
            span,
            f"write {self.keyword} {name} {self.window}, or with a slide: {self.window} {self.slide}"
            + (f"; a view needs none, and views are {short_list(views)}" if views else ""),
        )


def another_window_hint(stream: str) -> str:
    """How Datalog reads a stream through a second window."""
    return f"read it under another name: STREAM recent FROM {name_text(stream)} WINDOW 1h"


def _properties(clause: SourceClause) -> tuple[Property, ...]:
    declared = clause.properties or ()
    properties = [Property(entry.name.value, entry.type) for entry in declared]
    return tuple(sorted(properties, key=lambda value: value.name))


def _bounds(stream: Stream) -> tuple[int, int, bool, bool, str]:
    """What decides how long a stream's edges are valid, and which edges these are."""
    return stream.window, stream.slide, stream.is_table, stream.is_tuples, stream.input


def _window(stream: Stream) -> str:
    if not stream.has_window:
        return "TABLE" if stream.is_table else "TUPLES"
    origin = "" if stream.source is None else f"FROM {stream.source} "
    return f"{origin}WINDOW {stream.window} SLIDE {stream.slide}"
