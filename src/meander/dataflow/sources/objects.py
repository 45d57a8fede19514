"""Edges that a Python program holds: rows, and tables of pyarrow, pandas, polars or whatever else speaks Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from typing import Any

import pyarrow as pa

from meander.dataflow.layout import StreamLayout
from meander.dataflow.property_columns import value_type
from meander.dataflow.records import edge_schema, nested_types
from meander.dataflow.sources.registry import check_local_source, open_url
from meander.dataflow.sources.source import ReadOptions, Source
from meander.dataflow.tabular import Chunk, check_schema, from_arrow, from_tuples
from meander.errors import ArgumentError, InputError
from meander.syntax.values import ValueType

TABLE = "the table"


class RowSource(Source):
    """Tuples and mappings. Whatever iterates over them may wait for them."""

    def __init__(self, rows: Iterable[Any]) -> None:
        super().__init__("")
        self.rows = rows

    def check(self, layout: StreamLayout, *, follow: bool = False) -> None:
        """Nothing: a row that cannot be used is a reject."""

    def column_names(self, layout: StreamLayout) -> list[str]:
        first = self.rows[0] if isinstance(self.rows, Sequence) and self.rows else None
        return [str(name) for name in first] if isinstance(first, Mapping) else []

    def chunks(self, options: ReadOptions) -> Iterator[Chunk]:
        return from_tuples(self.rows, batch_rows=options.batch_rows, layout=options.layout)


class TableSource(Source):
    """Record batches, each with its columns; `live` if they are still being produced."""

    def __init__(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, live: bool) -> None:
        super().__init__("")
        self.batches = batches
        self.schema = schema
        self.live = live

    def check(self, layout: StreamLayout, *, follow: bool = False) -> None:
        check_schema(self.schema, layout, TABLE)
        layout.check_properties(edge_schema(self.schema, layout).names, TABLE)

    def column_types(self) -> Mapping[str, ValueType | None]:
        return {name: value_type(kind) for name, kind in nested_types(self.schema).items()}

    def column_names(self, layout: StreamLayout) -> list[str]:
        return list(self.schema.names)

    def is_live(self) -> bool:
        return self.live

    def chunks(self, options: ReadOptions) -> Iterator[Chunk]:
        first = 1
        with arrow_errors():
            for batch in self.batches:
                for start in range(0, batch.num_rows, options.batch_rows):
                    part = batch.slice(start, options.batch_rows)
                    yield from_arrow(part, layout=options.layout, where=TABLE, first=first)
                    first += part.num_rows


@contextmanager
def arrow_errors() -> Iterator[None]:
    """Errors of Arrow as errors of the input."""
    try:
        yield
    except pa.ArrowException as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            f"{TABLE} cannot be read by Arrow: {first}", hint="give each column values of one type"
        ) from error


def source_of(edges: Any, stream: str) -> Source:
    """The source of the edges that a program gives for a stream."""
    if isinstance(edges, str | PathLike):
        url = fspath(edges)
        check_local_source(url)
        return open_url(url)
    if isinstance(edges, pa.Table):
        return TableSource(edges.to_batches(), edges.schema, live=False)
    if isinstance(edges, pa.RecordBatch):
        return TableSource([edges], edges.schema, live=False)
    if hasattr(edges, "__arrow_c_stream__"):
        with arrow_errors():
            try:
                reader = pa.RecordBatchReader.from_stream(edges)
            except pa.ArrowException:
                raise
            except ValueError as error:  # of pandas, whose columns may have one name
                raise InputError(
                    f"the edges of stream {stream} are no table: {error}",
                    hint="give each column a name of its own",
                ) from error
        # Frames are in memory; of anything else that gives batches nothing is known.
        return TableSource(reader, reader.schema, live=not hasattr(edges, "columns"))
    if hasattr(edges, "__arrow_c_array__"):
        with arrow_errors():
            batch = pa.record_batch(edges)
        return TableSource([batch], batch.schema, live=False)
    if isinstance(edges, Iterable):
        return RowSource(edges)
    raise ArgumentError(
        f"the edges of stream {stream} are {edges!r}",
        hint="give tuples (src, label, trg, ts), mappings, a table of pyarrow, pandas or polars, or the path of a "
        "file or folder",
    )
