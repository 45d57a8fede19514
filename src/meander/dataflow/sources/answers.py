"""The answers of a run in the same program, as the tuples of another: columns stay columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from meander.dataflow.answers import Answers, AnswerSchema, as_dicts
from meander.dataflow.edges import Edges, Reason, Reject, by_time, concat_edges
from meander.dataflow.layout import StreamLayout
from meander.dataflow.property_columns import READABLE
from meander.dataflow.records import edges_of_answers
from meander.dataflow.sources.source import ReadOptions, Source
from meander.dataflow.tabular import Chunk, from_tuples
from meander.errors import InputError
from meander.syntax.values import ValueType

Batches = Iterable[tuple[str, Answers]]
"""Answers, each with the name of their result; a batch has those of every result in the order of `schemas`."""


class AnswerSource(Source):
    def __init__(self, batches: Batches, schemas: Mapping[str, AnswerSchema], *, live: bool) -> None:
        super().__init__("")
        self.batches = batches
        self.schemas = schemas
        self.live = live

    def check(self, layout: StreamLayout, *, follow: bool = False) -> None:
        known = self.column_types()
        for name in layout.named_properties:
            column, wanted = layout.column(name), layout.types[name]
            if column in known and known[column] not in READABLE[wanted]:
                raise InputError(
                    f"the answers have {column} of type {known[column]}, and the query reads it as {wanted}",
                    hint=f"declare the property as {known[column]}",
                )
        layout.check_properties(known, "the answers")

    def column_types(self) -> Mapping[str, ValueType | None]:
        types: dict[str, ValueType | None] = {}
        for schema in self.schemas.values():
            types |= {"path": ValueType.PATH} if schema.paths else {}
            types |= dict(schema.values)
        return types

    def column_names(self, layout: StreamLayout) -> list[str]:
        return [name for schema in self.schemas.values() for name in schema.arrow.names]

    def is_live(self) -> bool:
        return self.live

    def chunks(self, options: ReadOptions) -> Iterator[Chunk]:
        layout = options.layout
        if not layout.schema.tuples:
            rows = (row for _, answers in self.batches for row in as_dicts(answers))
            yield from from_tuples(rows, batch_rows=options.batch_rows, layout=layout)
            return
        for batch in self._whole_batches():
            parts: list[Edges] = []
            rejects: list[Reject] = []
            for answers in batch:
                edges = edges_of_answers(answers, layout)
                if edges is not None:
                    parts.append(edges)
                else:
                    rejects += [Reject(layout.stream, Reason.NO_EDGE, repr(row)) for row in as_dicts(answers)]
            edges = by_time(concat_edges(parts))
            for start in range(0, max(1, edges.rows), options.batch_rows):
                yield edges.take(slice(start, start + options.batch_rows)), rejects
                rejects = []

    def _whole_batches(self) -> Iterator[Sequence[Answers]]:
        """The answers of all results to each batch of edges."""
        order = list(self.schemas)
        batch: list[Answers] = []
        last = len(order)
        for name, answers in self.batches:
            if order.index(name) <= last and batch:
                yield batch
                batch = []
            batch.append(answers)
            last = order.index(name)
        if batch:
            yield batch
