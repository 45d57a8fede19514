"""DuckDB, asked again at the end of every slide: recursive SQL over the edges of the window.

All edges are loaded beforehand into in-memory tables, in order of time, one thread. A slide is then one statement,
which picks the window's edges by the number of their slide (DuckDB skips the blocks of a table that cannot have any)
and counts the answers. Window tables that are filled and emptied slide by slide, tables created again for each slide,
and prepared statements were tried: none is faster.
"""

from __future__ import annotations

import threading
import time

import duckdb
import numpy as np
import pyarrow as pa

from meander.bench.data import Graph, relations
from meander.bench.measurement import Measurement
from meander.bench.workloads import ROLES, Workload

CLOSURE = """{name}(src, trg) AS (
    SELECT src, trg FROM {start}
    UNION
    SELECT {name}.src, {steps}.trg FROM {name} JOIN {steps} ON {name}.trg = {steps}.src
)"""


def _closure(name: str, start: str, steps: str) -> str:
    """The pairs of `start/steps*`."""
    return CLOSURE.format(name=name, start=start, steps=steps)


_PROBED = """AS MATERIALIZED (
    SELECT DISTINCT p.src, p.trg FROM b JOIN c ON b.trg = c.src JOIN p ON p.src = b.src AND p.trg = c.trg
)"""

SQL: dict[str, tuple[tuple[str, ...], str]] = {
    "Q1": (
        (_closure("p", "a", "a"),),
        "SELECT src, trg FROM p UNION SELECT src, src FROM a UNION SELECT trg, trg FROM a",
    ),
    "Q2": ((_closure("p", "a", "b"),), "SELECT src, trg FROM p"),
    "Q3": ((_closure("p", "a", "b"), _closure("r", "p", "c")), "SELECT src, trg FROM r"),
    "Q4": (
        (
            "d AS MATERIALIZED (SELECT DISTINCT a.src, c.trg FROM a JOIN b ON a.trg = b.src JOIN c ON b.trg = c.src)",
            _closure("p", "d", "d"),
        ),
        "SELECT src, trg FROM p",
    ),
    "Q5": (
        (),
        "SELECT DISTINCT c.trg AS src, c.src AS trg FROM c JOIN b AS b1 ON b1.src = c.trg"
        " JOIN b AS b2 ON b2.src = c.src JOIN a ON a.src = b1.trg AND a.trg = b2.trg",
    ),
    "Q6": ((_closure("p", "a", "a"), f"rl {_PROBED}"), "SELECT src, trg FROM rl"),
    "Q7": (
        (_closure("p", "a", "a"), f"rl {_PROBED}", _closure("s", "rl", "rl")),
        "SELECT DISTINCT s.src, c.src AS trg FROM s JOIN c ON c.trg = s.trg",
    ),
}
"""For each query the tables that are named on the way, and what then gives the answers."""


def statement(workload: Workload, *, answers: bool = False) -> str:
    """The statement for one slide, with the parameters $first and $last: how many answers, or which."""
    windows = [
        f'{role} AS MATERIALIZED (SELECT DISTINCT src, trg FROM "{name}" WHERE slide BETWEEN $first AND $last)'
        for role, name in zip(ROLES, workload.relations, strict=False)
    ]
    named, answer = SQL[workload.query]
    chosen = "src, trg" if answers else "count(*)"
    return f"WITH RECURSIVE {', '.join([*windows, *named])}\nSELECT {chosen} FROM ({answer})"


def open_database(graph: Graph, workload: Workload, slide: int) -> duckdb.DuckDBPyConnection:
    """An in-memory database with a table for each relation."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for name, relation in relations(graph, workload, slide).items():
        columns = {
            "src": relation.src.astype(np.int32),
            "trg": relation.trg.astype(np.int32),
            "slide": relation.slide.astype(np.int64),
        }
        connection.register("loaded", pa.table(columns))
        connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM loaded')
        connection.unregister("loaded")
    return connection


def measure(graph: Graph, workload: Workload, *, window: int, slide: int, limit: float) -> Measurement:
    """Slide after slide to the end of the graph or of the time limit, whichever comes first."""
    connection = open_database(graph, workload, slide)
    query = statement(workload)
    slides = graph.ts // slide
    counts: dict[int, int] = {}
    took: list[float] = []
    timer = threading.Timer(limit, connection.interrupt)
    timer.start()
    begin, begin_cpu = time.perf_counter(), time.process_time()
    seconds = cpu_seconds = 0.0
    try:
        for last in range(int(slides[0]), int(slides[-1]) + 1):
            row = connection.execute(query, {"first": last - window // slide + 1, "last": last}).fetchone()
            now = time.perf_counter() - begin
            took.append(now - seconds)
            seconds, cpu_seconds = now, time.process_time() - begin_cpu
            counts[last] = int(row[0]) if row else 0
            if seconds > limit:
                break
    except duckdb.InterruptException:
        pass  # the slide that was cut off does not count
    finally:
        timer.cancel()
        connection.close()
    reached = max(counts, default=int(slides[0]) - 1)
    edges = int(np.searchsorted(slides, reached, side="right"))
    p99 = float(np.percentile(took, 99)) if took else None
    return Measurement("DuckDB", edges, seconds, cpu_seconds, counts, p99, duckdb.__version__)


def answers_at(
    graph: Graph, workload: Workload, *, window: int, slide: int, last: int
) -> set[tuple[int, int]]:
    """The answers at the end of slide `last`, as pairs of vertices."""
    connection = open_database(graph, workload, slide)
    query = statement(workload, answers=True)
    with connection:
        rows = connection.execute(query, {"first": last - window // slide + 1, "last": last}).fetchall()
    return {(int(src), int(trg)) for src, trg in rows}
