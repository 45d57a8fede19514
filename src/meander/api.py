"""Meander from Python, in one process: `run` answers a query over edges, `plans` lists its equivalent plans.

for answer in meander.run(text, [("ann", "follows", "bob", 1), …], paths=True): …
frame = meander.run(text, "edges.parquet").to_pandas()
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Unpack

from meander.algebra.printing import notation
from meander.dataflow.answers import Answers, AnswerSchema
from meander.dataflow.edges import Reject
from meander.dataflow.ingest import Jump
from meander.dataflow.layout import (
    StreamLayout,
    check_mappings,
    expiry_warning,
    ignores_expiry,
    stream_layouts,
)
from meander.dataflow.runner import run_local
from meander.dataflow.sinks.writer import open_answers, open_rejects
from meander.dataflow.sources.columns import InputTypes, property_types
from meander.dataflow.sources.objects import source_of
from meander.dataflow.sources.source import ReadOptions, Source
from meander.dataflow.tabular import Chunk
from meander.dataflow.tally import Tally, jump_message, rejects_summary
from meander.engine import compile_query, open_dataflow, physical_plan
from meander.errors import ArgumentError, MeanderError
from meander.options import DEFAULTS, LOCAL_BATCH_ROWS, OptionValues, RunOptions
from meander.run_result import RunResult
from meander.syntax.values import ValueType

if TYPE_CHECKING:
    from meander.dataflow.dataflow import Dataflow

Edges = Any
"""Tuples or mappings, a table of pyarrow, pandas or polars, or the path of a file or folder."""

REJECTS_HINT = 'rejects=[] or rejects="FILE.jsonl" keeps all of them, each with its reason and its text'


def run(
    query: str,
    edges: Edges | Mapping[str, Edges],
    *,
    columns: Mapping[str, Mapping[str, str]] | None = None,
    labels: Mapping[str, str] | None = None,
    answers: str | PathLike[str] | Mapping[str, str | PathLike[str]] | None = None,
    rejects: list[dict[str, str]] | str | PathLike[str] | None = None,
    **options: Unpack[OptionValues],
) -> RunResult:
    """Answer a Datalog or G-CORE query over edges, in this process, without Spark.

    `edges` is an iterable of (src, label, trg, ts[, op]) tuples, or of mappings with these keys and properties; a
    table of pyarrow, pandas or polars with these columns; the path of a file or folder; or, for a stream of TUPLES,
    the result of another run. For a query of several streams it is a mapping from stream names to such. `columns` has
    by stream the columns of fields and properties under other names, `{"bank": {"src": "account_from"}}`, and
    `labels` the label of all rows, `{"bank": "transfer"}`.

    The result is iterated over for dicts with the fields of an answer record, in order of time; it also gives Arrow
    record batches and tables, and DataFrames of pandas and polars. With `answers` (what the command's `--out` names,
    or a mapping from the names of several results to such) the run is made at once, to its end, and the answers are
    written there.

    `rejects` receives the edges that could not be used: a list of dicts, or the path of a .jsonl file. A time that is
    suspiciously far ahead of those before it is a `UserWarning`, unless `max_jump` decides what is too far. At the
    end of the run so is a label or a property that no edge has had and, without `rejects`, the number of rejected
    rows with the first of each reason.

    Options have the names of the command's: `paths`, `mode`, `lateness`, `max_jump`, `time_unit`, `plan`,
    `path_operator`, `batch_rows`, `memory`, `demand`, `threads`. The query is checked at once, not with the first
    answer.
    """
    if not isinstance(query, str):
        raise ArgumentError(f"the query is {query!r}", hint="it must be str")
    chosen = RunOptions.of(**options)
    chosen.check_local(hint="leave it out, or use meander.Session")
    opened: dict[str, Source] = {}

    def types_of(stream: str) -> Mapping[str, ValueType | None]:
        source = edges.get(stream) if isinstance(edges, Mapping) else edges
        mapped = (columns or {}).get(stream)
        try:
            opened[stream] = _open(source, stream)
            return property_types(
                opened[stream].column_types(), mapped if isinstance(mapped, Mapping) else None
            )
        except MeanderError:  # reported when the source is checked
            return {}

    compiled = compile_query(query, chosen, types=InputTypes(types_of))
    plan = physical_plan([compiled], chosen)
    dataflow = open_dataflow(plan, chosen)
    given = _by_stream(edges, compiled.streams, plan.streams)
    check_mappings(columns, labels, compiled.streams)
    layouts = stream_layouts(plan.schemas, given, time_unit=chosen.time_unit, columns=columns, labels=labels)
    # A source that has been asked for its types may be one that can be opened only once.
    read_from = {name: opened.get(name) or _open(source, name) for name, source in given.items()}
    for name, source in read_from.items():
        source.check(layouts[name])
        if ignores_expiry(layouts[name], source.column_names(layouts[name])):
            warnings.warn("\nhint: ".join(expiry_warning(name)), stacklevel=2)
    live = any(source.is_live() for source in read_from.values())
    batch_rows = chosen.batch_rows or LOCAL_BATCH_ROWS
    sources = {
        name: source.chunks(ReadOptions(layouts[name], batch_rows)) for name, source in read_from.items()
    }
    schemas = {
        result.head: AnswerSchema.of(result, paths=chosen.paths, proofs=chosen.proofs)
        for result in plan.results
    }
    read = _answers(dataflow, sources, layouts, chosen, live, rejects)
    waits = any(
        isinstance(source, Iterator) or (isinstance(source, str | PathLike) and read_from[name].is_live())
        for name, source in given.items()
    )
    result = RunResult(read if answers is None else _written(read, answers, schemas), schemas, live=waits)
    if answers is not None:
        result.read_all()
    return result


def _open(edges: Edges, stream: str) -> Source:
    return edges.source() if isinstance(edges, RunResult) else source_of(edges, stream)


def plans(query: str, *, time_unit: str = DEFAULTS.time_unit) -> list[str]:
    """The equivalent plans of a query's first result, in the paper's notation; their numbers are `plan`'s."""
    first, *_ = compile_query(query, RunOptions.of(time_unit=time_unit)).plans.values()
    return [notation(plan) for plan in first]


def _answers(
    dataflow: Dataflow,
    sources: Mapping[str, Iterator[Chunk]],
    layouts: Mapping[str, StreamLayout],
    options: RunOptions,
    live: bool,
    rejects: list[dict[str, str]] | str | PathLike[str] | None,
) -> Iterator[tuple[str, Answers]]:
    """The answers of the run, each with the name of its result."""
    sink = open_rejects(fspath(rejects)) if isinstance(rejects, str | PathLike) else None

    def reject(rows: list[Reject]) -> None:
        tally.add_rejects(rows)
        if sink is not None:
            sink.write(rows)
        elif isinstance(rejects, list):
            rejects.extend(row.record for row in rows)

    def note(edges: int, rejected: int) -> None:
        tally.edges += edges

    def warn(jump: Jump) -> None:
        warnings.warn(jump_message(jump, options.time_unit), stacklevel=2)

    tally = Tally()
    tally.read_properties(layouts)
    try:
        for result, answers in run_local(
            dataflow,
            {name: tally.counting(name, chunks) for name, chunks in sources.items()},
            lateness=options.lateness,
            max_jump=options.max_jump,
            live=live,
            reject=reject,
            note=note,
            warn=warn,
        ):
            yield result.head, answers
        for message in [
            *tally.unseen(dataflow.labels_unseen()),
            *(rejects_summary(tally, REJECTS_HINT) if rejects is None else ()),
        ]:
            warnings.warn(message, stacklevel=2)
    finally:
        if sink is not None:
            sink.close()


def _written(
    read: Iterator[tuple[str, Answers]],
    targets: str | PathLike[str] | Mapping[str, str | PathLike[str]],
    schemas: Mapping[str, AnswerSchema],
) -> Iterator[tuple[str, Answers]]:
    """The answers, each batch after it has been written."""
    if not isinstance(targets, Mapping):
        if len(schemas) > 1:
            raise ArgumentError(
                f"the query has several results: {', '.join(schemas)}",
                hint="give the answers of each a target, as a mapping from its name",
            )
        targets = dict.fromkeys(schemas, targets)
    if unknown := sorted(set(targets) - set(schemas)):
        raise ArgumentError(
            f"the query has no result {unknown[0]}", hint=f"its results are {', '.join(schemas)}"
        )
    with ExitStack() as opened:
        sinks = {
            name: opened.enter_context(open_answers(fspath(target), schemas[name]))
            for name, target in targets.items()
        }
        for name, answers in read:
            if name in sinks:
                sinks[name].write(answers)
            yield name, answers


def _by_stream(
    edges: Edges | Mapping[str, Edges], names: Sequence[str], needed: Sequence[str]
) -> dict[str, Edges]:
    """The given edges by stream: all streams that are `needed`, and perhaps others that the query declares."""
    if not isinstance(edges, Mapping):
        if len(names) != 1:
            raise ArgumentError(
                f"the query reads the streams {', '.join(names)}",
                hint="give the edges of each, as a mapping from its name",
            )
        return {names[0]: edges}
    unknown = sorted(set(edges) - set(names))
    missing = [name for name in needed if name not in edges]
    if unknown or missing:
        wrong = (
            f"there is no stream {unknown[0]}" if unknown else f"the edges of stream {missing[0]} are missing"
        )
        raise ArgumentError(wrong, hint=f"the query reads the streams {', '.join(names)}")
    return {name: edges[name] for name in names if name in edges}
