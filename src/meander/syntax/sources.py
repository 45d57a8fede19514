"""The streams and views that a query reads: the same rules for both languages, whose words differ."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from meander.errors import QueryError, Span
from meander.syntax.expressions import Name
from meander.syntax.parsing import TextErrors
from meander.syntax.printing import short_list
from meander.syntax.query import Label, RegularQuery, Rule, Stream
from meander.syntax.views import splice


@dataclass(frozen=True, slots=True)
class SourceClause:
    """`STREAM name [WINDOW window] [SLIDE slide]` in Datalog, `ON name [WINDOW(window)] [SLIDE(slide)]` in G-CORE."""

    name: Name
    window: int | None
    slide: int | None
    span: Span


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
        self.view_labels: dict[str, tuple[str, ...]] = {}

    def declare(self, clause: SourceClause) -> tuple[Rule, ...]:
        """Add a stream or view; returns the rules of a view that was not declared before."""
        name = clause.name.value
        rules: tuple[Rule, ...] = ()
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
        elif clause.window is not None:
            self._add_streams([Stream(name, clause.window, clause.slide or 1, clause.span)], clause.span)
        elif clause.slide is not None or name not in self.streams:
            raise self._missing_window(name, clause.span)
        return rules

    def label(self, label: Label, source: str) -> Label:
        """A label of a declared stream or view."""
        if source not in self.view_labels:
            return Label(label.name, source, label.span)
        if label.name not in self.view_labels[source]:
            raise self.error(
                f"the view {source} has no label {label.name}",
                label.span,
                f"its labels are {short_list(self.view_labels[source])}",
            )
        return Label(f"{source}.{label.name}", None, label.span)

    def _add_streams(self, streams: Iterable[Stream], span: Span) -> None:
        """A stream that is known already must have the same window and slide."""
        for stream in streams:
            known = self.streams.setdefault(stream.name, stream)
            if known != stream:
                raise self.error(
                    f"the stream {stream.name} has two windows in this query: {_window(known)} and {_window(stream)}",
                    span,
                    "a stream has one window in a query, in its views as well: use the same one",
                )

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


def _window(stream: Stream) -> str:
    return f"WINDOW {stream.window} SLIDE {stream.slide}"
