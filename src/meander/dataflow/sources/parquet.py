"""`.parquet`: columns `src`, `label`, `trg`, `ts` and perhaps `op`. Only the columns that are used are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from meander.dataflow.layout import StreamLayout
from meander.dataflow.property_columns import value_type
from meander.dataflow.records import edge_schema, nested_types
from meander.dataflow.sources.source import FileFormat, ReadOptions
from meander.dataflow.tabular import Chunk, check_schema, from_arrow
from meander.errors import InputError
from meander.syntax.values import ValueType


class StoredFile(Protocol):
    """A file that is not on a disk, with those methods of a path that reading it takes."""

    def stat(self) -> Any: ...
    def open(self) -> Any: ...


class ParquetFormat(FileFormat):
    row_hint = "an edge has src, label, trg, ts and perhaps op"

    def check(self, path: Path, layout: StreamLayout) -> None:
        with open_parquet(path, layout):
            pass

    def read(self, path: Path | StoredFile, options: ReadOptions) -> Iterator[Chunk]:
        meter, layout = options.meter, options.layout
        before, size = meter.bytes, path.stat().st_size
        read = 0
        with open_parquet(path, layout) as file:
            names = set(file.schema_arrow.names)
            columns = [name for name in layout.columns_wanted if name in names]
            for batch in file.iter_batches(batch_size=options.batch_rows, columns=columns):
                chunk = from_arrow(batch, layout=layout, where=str(path), path=str(path), first=read + 1)
                read += batch.num_rows
                meter.bytes = before + size * read // max(1, file.metadata.num_rows)
                yield chunk

    def column_names(self, path: Path, layout: StreamLayout) -> list[str]:
        return list(edge_schema(read_schema(path), layout).names)

    def column_types(self, path: Path) -> Mapping[str, ValueType | None]:
        return {name: value_type(kind) for name, kind in nested_types(read_schema(path)).items()}


def read_schema(path: Path) -> pa.Schema:
    """The columns; none if the file cannot be read."""
    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError):
        return pa.schema([])


@contextmanager
def open_parquet(path: Path | StoredFile, layout: StreamLayout) -> Iterator[pq.ParquetFile]:
    """A Parquet file with the columns of edges; damage met while it is open is an error that names it."""
    try:
        with pq.ParquetFile(path if isinstance(path, Path) else path.open()) as file:
            check_schema(file.schema_arrow, layout, str(path))
            yield file
    except (pa.ArrowException, OSError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{path} cannot be read as Parquet: {first}") from None
