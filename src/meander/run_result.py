"""The answers of `meander.run`: as dicts, as Arrow, as a DataFrame of pandas or polars, or as a table in a notebook.

Answers are computed while they are read, and each is emitted once: what one method has read, another one does not see
again. Columns are built from the engine's arrays without a Python object per answer.
"""

from __future__ import annotations

import html
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from meander.dataflow.answers import (
    INTEGERS,
    STRINGS,
    Answers,
    AnswerSchema,
    all_integers,
    as_dicts,
    as_table,
    take_answers,
)
from meander.dataflow.sources.answers import AnswerSource
from meander.errors import ArgumentError

SHOWN_ROWS = 20
"""The answers that a notebook shows."""

VERTEX_TYPES: Mapping[str, pa.DataType | None] = {"auto": None, "string": STRINGS, "integer": INTEGERS}


class RunResult(Iterator[dict[str, Any]]):
    """The answers of one run; iterate over it for dicts.

    `rows` is the number of answer records that have been read so far.
    """

    def __init__(
        self, answers: Iterator[tuple[str, Answers]], schemas: Mapping[str, AnswerSchema], *, live: bool
    ) -> None:
        """`answers` have the name of their result. They are `live` if the input may make their reader wait."""
        self.schemas = schemas
        self.rows = 0
        self._answers = answers
        self._live = live
        self._read_ahead: deque[tuple[str, Answers]] = deque()
        # The batch of which dicts are being read, and what is left of it.
        self._current: tuple[str, Answers] | None = None
        self._dicts: Iterator[dict[str, Any]] = iter(())
        self._records = self._read_dicts()

    # -----------------------------------------------------------------------------------------------------
    # Reading

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._records

    def __next__(self) -> dict[str, Any]:
        return next(self._records)

    def _read_dicts(self) -> Iterator[dict[str, Any]]:
        for batch in self._batches():
            self._current, self._dicts = batch, as_dicts(batch[1])
            yield from self._dicts

    def batches(self, *, vertices: str = "auto") -> Iterator[pa.RecordBatch]:
        """The answers as Arrow record batches, as they come.

        `vertices` is the type of vertices: "string", "integer", or "auto": integers for as long as all of them are,
        and strings from the first batch on that has a string. Answers of several results have a batch each.
        """
        chosen = _vertex_type(vertices)
        strings = chosen == STRINGS
        for _, answers in self._rest():
            strings = strings or (chosen is None and not all_integers(answers))
            yield from as_table(answers, vertex=STRINGS if strings else INTEGERS).to_batches()

    def to_arrow(self, *, vertices: str = "auto") -> pa.Table:
        """All answers as one pyarrow Table; vertices are integers if all of them are, and strings otherwise."""
        tables = self.to_tables(vertices=vertices)
        if len(tables) > 1:
            raise ArgumentError(
                f"the query has several results: {', '.join(tables)}", hint="to_tables() has a table of each"
            )
        (table,) = tables.values()
        return table

    def to_tables(self, *, vertices: str = "auto") -> dict[str, pa.Table]:
        """All answers as a pyarrow Table for each result of the query, by name."""
        chosen = _vertex_type(vertices)
        read: dict[str, list[Answers]] = {name: [] for name in self.schemas}
        for name, answers in self._rest():
            read[name].append(answers)
        tables = {}
        for name, parts in read.items():
            vertex = chosen
            if vertex is None:
                vertex = INTEGERS if parts and all(map(all_integers, parts)) else STRINGS
            schema = replace(self.schemas[name], vertex=vertex).arrow
            tables[name] = pa.concat_tables(
                [schema.empty_table(), *(as_table(part, vertex=vertex).cast(schema) for part in parts)]
            )
        return tables

    def to_pandas(self, *, vertices: str = "auto") -> Any:
        """All answers as a pandas DataFrame; `exp` is a nullable integer."""
        import pandas as pd

        table = self.to_arrow(vertices=vertices)
        frame = table.to_pandas()
        frame["exp"] = table["exp"].to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
        return frame

    def to_polars(self, *, vertices: str = "auto") -> Any:
        """All answers as a polars DataFrame."""
        try:
            import polars as pl
        except ModuleNotFoundError:
            raise ArgumentError("polars is not installed", hint="pip install polars") from None
        return pl.from_arrow(self.to_arrow(vertices=vertices))

    def source(self) -> AnswerSource:
        """The answers that have not been read, as the edges of another run."""
        return AnswerSource(self._rest(), self.schemas, live=self._live)

    def read_all(self) -> None:
        """Read all answers, and keep none of them."""
        for _ in self._rest():
            pass

    def _batches(self) -> Iterator[tuple[str, Answers]]:
        """The batches that have answers and have not been read."""
        while True:
            batch = self._read_ahead.popleft() if self._read_ahead else next(self._answers, None)
            if batch is None:
                return
            if batch[1].rows:
                self.rows += batch[1].rows
                yield batch

    def _rest(self) -> Iterator[tuple[str, Answers]]:
        """All that has not been read, the rest of a batch of which some answers were read as dicts first."""
        left = sum(1 for _ in self._dicts)
        if left and self._current is not None:
            name, answers = self._current
            yield name, take_answers(answers, np.arange(answers.rows) >= answers.rows - left)
        yield from self._batches()

    # -----------------------------------------------------------------------------------------------------
    # Display

    def __repr__(self) -> str:
        results = "; ".join(
            f"{name}: {', '.join(schema.arrow.names)}" for name, schema in self.schemas.items()
        )
        return f"<answers of {results}; iterate, or use batches(), to_arrow(), to_pandas(), to_polars()>"

    def _repr_html_(self) -> str:
        """The first answers that have not been read, as a table. They are read again afterwards."""
        if self._live:
            return f"<code>{html.escape(repr(self))}</code>"
        names, rows, more = self._peek()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_shown(row.get(name)))}</td>" for name in names) + "</tr>"
            for row in rows
        )
        note = "more answers follow" if more else f"{len(rows)} answer{'' if len(rows) == 1 else 's'}"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{note}</p>"

    def _peek(self) -> tuple[Sequence[str], list[dict[str, Any]], bool]:
        """Columns, the next answers, and whether there are others."""
        waiting = 0
        for name, answers in self._answers:
            self._read_ahead.append((name, answers))
            waiting += answers.rows
            if waiting > SHOWN_ROWS:
                break
        rows: list[dict[str, Any]] = []
        for _, answers in self._read_ahead:
            rows += [
                row for row, _ in zip(as_dicts(answers), range(SHOWN_ROWS + 1 - len(rows)), strict=False)
            ]
        names = dict.fromkeys(name for schema in self.schemas.values() for name in schema.arrow.names)
        return list(names), rows[:SHOWN_ROWS], len(rows) > SHOWN_ROWS


def _shown(value: Any) -> str:
    """A value in a cell of a table."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {inner}" for name, inner in value.items())
    if isinstance(value, list) and all(isinstance(step, list) for step in value):
        return " ".join(f"{step[0]} -{step[1]}→ {step[2]}" for step in value)
    return str(value)


def _vertex_type(name: str) -> pa.DataType | None:
    if name not in VERTEX_TYPES:
        raise ArgumentError(f"vertices cannot be {name!r}", hint=f"accepted: {', '.join(VERTEX_TYPES)}")
    return VERTEX_TYPES[name]
