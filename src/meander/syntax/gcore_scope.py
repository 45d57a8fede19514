"""What the queries of one G-CORE text share: streams, views, rules so far, and which names are taken."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from itertools import count

from meander.errors import QueryError, Span
from meander.syntax.gcore_tree import Source
from meander.syntax.printing import short_list
from meander.syntax.query import Label, RegularQuery, Rule, Stream
from meander.syntax.views import merge_streams, splice


class Scope:
    """The regular query that a text grows into."""

    def __init__(self, text: str, views: Mapping[str, RegularQuery]) -> None:
        self.text = text
        self.views = views
        self.streams: list[Stream] = []
        self.rules: list[Rule] = []
        self.view_labels: dict[str, tuple[str, ...]] = {}
        self.coming: set[str] = set()
        self.taken = {"Answer"}

    def fresh(self, name: str) -> str:
        """The name, or the name with a number, that no head and no path has."""
        names = (name if number == 1 else f"{name}_{number}" for number in count(1))
        found = next(candidate for candidate in names if candidate not in self.taken)
        self.taken.add(found)
        return found

    def declare(self, source: Source) -> str:
        """The name of the stream or view that a MATCH is on, now known to the query."""
        name = source.name.value
        if name in self.coming:
            raise self.error(
                f"the view {name} is used before it is defined",
                source.span,
                "a view can read streams and the views before it; a stream needs a name of its own",
            )
        windowed = source.window is not None or source.slide is not None
        if name not in self.view_labels and name in self.views:
            spliced = splice(name, self.views[name])
            self.rules += spliced
            self.streams = merge_streams(self.streams, self.views[name].streams, self.text, source.span)
            self.view_labels[name] = tuple(dict.fromkeys(rule.head.partition(".")[2] for rule in spliced))
        if name in self.view_labels:
            if windowed:
                raise self.error(
                    f"{name} is a view, which has no window of its own",
                    source.span,
                    f"its tuples keep their validity: write ON {name}",
                )
            return name
        if source.window is not None:
            stream = Stream(name, source.window, source.slide or 1, source.span)
            self.streams = merge_streams(self.streams, [stream], self.text, source.span)
        elif windowed or name not in {stream.name for stream in self.streams}:
            raise self._missing_window(name, source.span)
        return name

    def _missing_window(self, name: str, span: Span) -> QueryError:
        views = [*self.view_labels, *self.views]
        close = difflib.get_close_matches(name, views, n=1)
        if close:
            return self.error(
                f"unknown view {name}",
                span,
                f"did you mean {close[0]}? A stream needs a window: ON {name} WINDOW(24h)",
            )
        return self.error(
            f"the stream {name} is missing its window",
            span,
            f"write ON {name} WINDOW(24h), or with a slide: WINDOW(24h) SLIDE(1h)"
            + (f"; a view needs none, and views are {short_list(views)}" if views else ""),
        )

    def label(self, label: Label, source: str) -> Label:
        """A label as it is to be read from a stream or view."""
        if source not in self.view_labels:
            return Label(label.name, source, label.span)
        if label.name not in self.view_labels[source]:
            raise self.error(
                f"the view {source} has no label {label.name}",
                label.span,
                f"its labels are {short_list(self.view_labels[source])}",
            )
        return Label(f"{source}.{label.name}", None, label.span)

    def error(self, message: str, span: Span | None, hint: str) -> QueryError:
        return QueryError(message, text=self.text, span=span, hint=hint)
