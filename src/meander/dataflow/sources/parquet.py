"""`.parquet`: columns `src`, `label`, `trg`, `ts` and perhaps `op`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from meander.dataflow.sources.source import FileFormat, ReadOptions
from meander.dataflow.tabular import EDGE_FIELDS, Chunk, check_columns, from_arrow
from meander.errors import InputError


class ParquetFormat(FileFormat):
    row_hint = "an edge has src, label, trg, ts and perhaps op"

    def check(self, path: Path) -> None:
        with open_parquet(path):
            pass

    def read(self, path: Path, options: ReadOptions) -> Iterator[Chunk]:
        meter = options.meter
        before, size = meter.bytes, path.stat().st_size
        read = 0
        with open_parquet(path) as file:
            columns = [name for name in file.schema_arrow.names if name in EDGE_FIELDS]
            for batch in file.iter_batches(batch_size=options.batch_rows, columns=columns):
                chunk = from_arrow(
                    batch,
                    stream=options.stream,
                    time_unit=options.time_unit,
                    where=str(path),
                    path=str(path),
                    first=read + 1,
                )
                read += batch.num_rows
                meter.bytes = before + size * read // max(1, file.metadata.num_rows)
                yield chunk

    def column_names(self, path: Path) -> list[str]:
        try:
            return list(pq.read_schema(path).names)
        except (pa.ArrowException, OSError):
            return []


@contextmanager
def open_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """A Parquet file with the columns of edges; damage met while it is open is an error that names it."""
    try:
        with pq.ParquetFile(path) as file:
            check_columns(file.schema_arrow, str(path))
            yield file
    except (pa.ArrowException, OSError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{path} cannot be read as Parquet: {first}") from None
