"""Warnings about queries that are legal but probably unintended.

A warning names the oddity and its cost. It never stops a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from meander.errors import Span, mark
from meander.syntax.durations import format_duration, parse_duration
from meander.syntax.printing import and_list, atom_text, name_text, predicate_text
from meander.syntax.query import Atom, Label, RegularQuery, Rule, Variable, labels_of
from meander.syntax.values import conjuncts, refs

WILDCARDS = ("_", "*")
UNBOUNDED_WINDOW = "3650d"
"""A window of at least this length is taken to be meant as unbounded."""


@dataclass(frozen=True, slots=True)
class QueryWarning:
    """An oddity of a query, and its position in the text; `span` is None for parts that come from a view."""

    message: str
    span: Span | None = None

    def show(self, text: str) -> str:
        """The message with the position marked under the query's text."""
        return f"{self.message}\n{mark(text, self.span)}" if self.span is not None else self.message


def warnings_of(query: RegularQuery, unit: str = "s", *, input_known: bool = False) -> list[QueryWarning]:
    """All warnings about a query, in the order of `WARNINGS`; where the input is known, without those about what it
    decides."""
    finders = [find for find in WARNINGS if not (input_known and find is undecided_type)]
    return [warning for find in finders for warning in find(query, unit)]


def endless_window(query: RegularQuery, unit: str) -> Iterator[QueryWarning]:
    """A window so long that it bounds nothing."""
    longest = parse_duration(UNBOUNDED_WINDOW, unit)
    for stream in query.streams:
        if stream.window >= longest and stream.has_window:
            yield QueryWarning(
                f"the window of {stream.name} is {format_duration(stream.window, unit)}: almost no edge will "
                "expire, and the state grows with the stream",
                stream.span,
            )


def slide_beyond_window(query: RegularQuery, unit: str) -> Iterator[QueryWarning]:
    """A slide longer than the window leaves gaps in which edges have an empty interval."""
    for stream in query.streams:
        if stream.slide > stream.window:
            lost = 1 - stream.window / stream.slide
            window, slide = format_duration(stream.window, unit), format_duration(stream.slide, unit)
            yield QueryWarning(
                f"the slide of {stream.name} ({slide}) is longer than its window ({window}): edges in the last "
                f"{format_duration(stream.slide - stream.window, unit)} of each slide never become valid, "
                f"{lost:.0%} of all times",
                stream.span,
            )


def cross_product(query: RegularQuery, unit: str) -> Iterator[QueryWarning]:
    """Atoms of one body that share no variable: every match of one side meets every match of the other."""
    for rule in query.rules:
        groups = _connected(rule)
        if len(groups) > 1:
            sides = [and_list(_written(atom) for atom in group) for group in groups]
            yield QueryWarning(
                f"the body of {rule.head} is a cross product: no variable ties {sides[0]} to "
                f"{and_list(sides[1:])}, so every match of one meets every match of the other",
                rule.span,
            )


def unused_stream(query: RegularQuery, unit: str) -> Iterator[QueryWarning]:
    """A stream that no rule reads."""
    read = {label.stream for rule in query.rules for atom in rule.body for label in labels_of(atom.expr)}
    for stream in query.streams:
        if stream.name not in read:
            yield QueryWarning(f"the stream {stream.name} is declared and read by no rule", stream.span)


def unread_rule(query: RegularQuery, unit: str) -> Iterator[QueryWarning]:
    """A head that no result builds on."""
    needed: set[str] = set()
    pending = list(query.results)
    while pending:
        head = pending.pop()
        if head not in needed:
            needed.add(head)
            pending += [used for rule in query.rules if rule.head == head for used in _heads_read(rule)]
    for rule in query.rules:
        # All rules of a view are part of the query; not reading some of them is not a mistake.
        if rule.head not in needed and rule.span is not None:
            yield QueryWarning(
                f"{rule.head} is read by nothing: the result is {and_list(query.results)}, and does not build on it",
                rule.span,
            )


def vertex_label_in_path(query: RegularQuery, unit: str) -> Iterator[QueryWarning]:
    """A label of vertices that an expression reads as one of edges, too."""
    labels = [label for rule in query.rules for atom in rule.body for label in labels_of(atom.expr)]
    vertices = {(label.stream, label.name) for label in labels if label.vertex}
    for label in labels:
        if not label.vertex and (label.stream, label.name) in vertices:
            yield QueryWarning(
                f"{label.name} is a label of vertices elsewhere in the query: here it is read as one of edges, and a "
                "vertex tuple is no edge",
                label.span,
            )


def loose_end_in_table(query: RegularQuery, unit: str) -> Iterator[QueryWarning]:
    """An edge of a table whose one end nothing else names: perhaps a vertex is meant, which has but one."""
    tables = {stream.name for stream in query.streams if stream.is_table}
    for rule in query.rules:
        terms = [*rule.args, *(term for atom in rule.body for term in (atom.src, atom.trg))]
        for atom in rule.body:
            label = atom.expr
            if not isinstance(label, Label) or label.vertex or label.stream not in tables or not atom.values:
                continue
            compared = {ref.name for ref in refs(rule.predicate)}
            for end, other in ((atom.trg, atom.src), (atom.src, atom.trg)):
                if not isinstance(end, Variable) or end.name in compared or end.name.startswith("_"):
                    continue
                if terms.count(end) == 1:
                    vertex = atom_text(replace(atom, expr=replace(label, vertex=True), src=other, trg=other))
                    yield QueryWarning(
                        f"{atom_text(atom)} reads edges, and nothing else names {end.name}: a row without trg is a "
                        f"vertex, whose atom has one end, {vertex}",
                        atom.span,
                    )
                    break


def constant_comparison(query: RegularQuery, unit: str) -> Iterator[QueryWarning]:
    """A comparison that names no value: it is always true, or never."""
    for rule in query.rules:
        for term in conjuncts(rule.predicate):
            if not any(refs(term)):
                yield QueryWarning(
                    f"{predicate_text(term)} compares no value of an edge: it is the same for all", rule.span
                )


def undecided_type(query: RegularQuery, unit: str) -> Iterator[QueryWarning]:
    """Properties whose types only the input decides: a text format does not, and such a run is refused."""
    for stream in {stream.input: stream for stream in query.streams}.values():
        for name, kind in stream.properties:
            if kind is None:
                written = name_text(name)
                yield QueryWarning(
                    f"the type of {written} is not known until the input of {stream.input} is: Parquet and "
                    f"DataFrames bring it; for other input, declare it: {name_text(stream.input)} ({written} FLOAT)",
                    stream.span,
                )


def label_like_a_wildcard(query: RegularQuery, unit: str) -> Iterator[QueryWarning]:
    """A label that is written as if it stood for all labels."""
    labels = [label for rule in query.rules for atom in rule.body for label in labels_of(atom.expr)]
    for name in WILDCARDS:
        label = next((label for label in labels if label.name == name and label.stream is not None), None)
        if label is not None:
            yield QueryWarning(
                f"{name} is a label like any other, not a wildcard: it matches edges whose label is {name}; "
                "alternatives are written out, as in (a|b)",
                label.span,
            )


WARNINGS: tuple[Callable[[RegularQuery, str], Iterator[QueryWarning]], ...] = (
    endless_window,
    slide_beyond_window,
    cross_product,
    unused_stream,
    unread_rule,
    label_like_a_wildcard,
    vertex_label_in_path,
    loose_end_in_table,
    constant_comparison,
    undecided_type,
)


def _connected(rule: Rule) -> list[list[Atom]]:
    """The atoms of a body in groups that share variables. An atom between two constants is in no group: it
    holds or it does not, and multiplies nothing."""
    groups: list[tuple[set[str], list[Atom]]] = []
    for atom in rule.body:
        names = {term.name for term in (atom.src, atom.trg) if isinstance(term, Variable)}
        names |= {variable.name for _, variable in atom.values}
        if not names:
            continue
        atoms = [atom]
        apart = []
        for other_names, other_atoms in groups:
            if names & other_names:
                names |= other_names
                atoms = other_atoms + atoms
            else:
                apart.append((other_names, other_atoms))
        groups = [*apart, (names, atoms)]
    return [atoms for _, atoms in groups]


def _heads_read(rule: Rule) -> list[str]:
    return [label.name for atom in rule.body for label in labels_of(atom.expr) if label.stream is None]


def _written(atom: Atom) -> str:
    return atom_text(replace(atom, name=None), lambda label: name_text(label.name))
