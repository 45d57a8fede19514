"""Meander from Python, in one process: `run` a query over edges, `plans` it can be run by.

for answer in meander.run(text, [("ann", "follows", "bob", 1), …], paths=True): …
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from typing import Any

import pyarrow as pa

from meander.algebra.printing import notation
from meander.algebra.translate import translate
from meander.dataflow.answers import as_dicts
from meander.dataflow.dataflow import Dataflow
from meander.dataflow.edges import Reject
from meander.dataflow.ingest import Jump
from meander.dataflow.runner import run_local
from meander.dataflow.sinks.writer import open_rejects
from meander.dataflow.sources.reader import is_live, open_source
from meander.dataflow.tabular import Chunk, from_table, from_tuples
from meander.dataflow.tally import jump_message
from meander.errors import ArgumentError
from meander.physical.plan import build
from meander.physical.planning import plan_query
from meander.rewrite import enumerate_plans
from meander.syntax import parse
from meander.syntax.durations import parse_duration, parse_max_jump, parse_size

Edges = Any
"""Tuples, a pyarrow Table, or the path of a file or folder."""


def run(
    query: str,
    edges: Edges | Mapping[str, Edges],
    *,
    paths: bool = False,
    mode: str = "intervals",
    lateness: int | str = 0,
    max_jump: int | str | None = None,
    rejects: list[dict[str, str]] | str | PathLike[str] | None = None,
    time_unit: str = "s",
    plan: int | None = None,
    path_operator: str = "auto",
    batch_rows: int = 65536,
    memory: int | str | None = None,
    demand: bool = True,
    threads: int = 1,
) -> Iterator[dict[str, Any]]:
    """Answer a Datalog or G-CORE query over edges, in this process, without Spark.

    `edges` is an iterable of (src, label, trg, ts[, op]) tuples, a pyarrow Table with those columns, or the path
    of a file or folder; for a query of several streams, a mapping from stream names to such. The answers are
    dicts with the fields of an answer record, in order of time. `rejects` receives the edges that could not be
    used: a list of dicts, or the path of a .jsonl file. A time that is suspiciously far ahead of those before it is a
    `UserWarning`, unless `max_jump` decides what is too far. The other arguments carry the names of the command's
    options; the query is checked at once, not with the first answer.
    """
    _check("the query", query, str)
    _check("plan", plan, int, type(None))
    _check("memory", memory, int, str, type(None))
    if batch_rows < 1:
        raise ArgumentError(f"batch_rows is {batch_rows}\nhint: a batch has at least one row")
    regular = parse(query, unit=time_unit)
    chosen = plan_query(regular, plan=plan, path_operator=path_operator, demand=demand)
    physical = build(chosen, path_operator=path_operator, paths=paths)
    limit = parse_size(memory) if isinstance(memory, str) else memory
    dataflow = Dataflow(physical, mode=mode, paths=paths, memory=limit, threads=threads)
    late = lateness if isinstance(lateness, int) else parse_duration(lateness, time_unit)
    jump = parse_max_jump(max_jump, time_unit)
    given = _by_stream(edges, [stream.name for stream in regular.streams], physical.streams)
    sources = {name: _source(source, name, batch_rows, time_unit) for name, source in given.items()}
    live = not all(isinstance(one, str | PathLike) and not is_live(fspath(one)) for one in given.values())
    return _answers(dataflow, sources, late, jump, live, rejects, time_unit)


def plans(query: str, *, time_unit: str = "s") -> list[str]:
    """The equivalent plans of a query's first result, in the paper's notation; their numbers are `plan`'s."""
    canonical = next(iter(translate(parse(query, unit=time_unit)).values()))
    return [notation(plan) for plan in enumerate_plans(canonical)]


def _answers(
    dataflow: Dataflow,
    sources: Mapping[str, Iterator[Chunk]],
    lateness: int,
    max_jump: int | None,
    live: bool,
    rejects: list[dict[str, str]] | str | PathLike[str] | None,
    time_unit: str,
) -> Iterator[dict[str, Any]]:
    sink = open_rejects(fspath(rejects)) if isinstance(rejects, str | PathLike) else None

    def reject(found: list[Reject]) -> None:
        if sink is not None:
            sink.write(found)
        elif isinstance(rejects, list):
            rejects.extend(one.record for one in found)

    def warn(jump: Jump) -> None:
        warnings.warn(jump_message(jump, time_unit), stacklevel=2)

    try:
        for _, answers in run_local(
            dataflow,
            sources,
            lateness=lateness,
            max_jump=max_jump,
            live=live,
            reject=reject,
            warn=warn,
        ):
            yield from as_dicts(answers)
    finally:
        if sink is not None:
            sink.close()


def _by_stream(
    edges: Edges | Mapping[str, Edges], names: Sequence[str], needed: Sequence[str]
) -> dict[str, Edges]:
    """The edges of each stream that are given: all that are needed, and perhaps others that the query declares."""
    if not isinstance(edges, Mapping):
        if len(names) != 1:
            raise ArgumentError(
                f"the query reads the streams {', '.join(names)}\n"
                "hint: give the edges of each, as a mapping from its name"
            )
        return {names[0]: edges}
    unknown = sorted(set(edges) - set(names))
    missing = [name for name in needed if name not in edges]
    if unknown or missing:
        wrong = (
            f"there is no stream {unknown[0]}" if unknown else f"the edges of stream {missing[0]} are missing"
        )
        raise ArgumentError(f"{wrong}\nhint: the query reads the streams {', '.join(names)}")
    return {name: edges[name] for name in names if name in edges}


def _source(edges: Edges, name: str, batch_rows: int, time_unit: str) -> Iterator[Chunk]:
    if isinstance(edges, str | PathLike):
        return open_source(fspath(edges), stream=name, batch_rows=batch_rows, time_unit=time_unit)
    if isinstance(edges, pa.Table):
        return from_table(edges, stream=name, batch_rows=batch_rows, time_unit=time_unit)
    if not isinstance(edges, Iterable):
        raise ArgumentError(
            f"the edges of stream {name} are {edges!r}",
            hint="give tuples (src, label, trg, ts), a pyarrow Table, or the path of a file or folder",
        )
    return from_tuples(edges, stream=name, batch_rows=batch_rows)


def _check(name: str, value: object, *types: type) -> None:
    """Refuse an argument of another type, by its name."""
    if not isinstance(value, types):
        wanted = " or ".join("None" if one is type(None) else one.__name__ for one in types)
        raise ArgumentError(f"{name} is {value!r}", hint=f"it must be {wanted}")
