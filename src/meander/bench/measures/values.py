"""What properties cost and spare: predicates, columns that nothing reads, time-respecting paths, and fraud queries.

Both sides of a ratio take turns in one process, and the least processor time of each counts.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

import meander
from meander.bench.data import Graph
from meander.bench.measurement import BenchError
from meander.bench.measures.transfers import HOUR, make_transfers
from meander.dataflow.files import Meter
from meander.dataflow.sources.reader import open_source
from meander.syntax.durations import format_duration

ROUNDS = 5
KEPT_OF = 100
"""The selective predicate keeps one edge of this number."""

FRAUD_ACCOUNTS, FRAUD_TRANSFERS = 5_000, 60_000
ACCOUNTS, TRANSFERS = 50_000, 1_000_000
WIDE = 400_000
"""The transfers of the file with columns that nothing reads."""


class FraudQuery(NamedTuple):
    """A query over transfers: its rules, and as SQL over `t`, the rows of a window."""

    about: str
    window: int
    slide: int
    rules: str
    answers: str
    named: str = ""
    values: tuple[str, ...] = ()


FRAUD = {
    "pass-through": FraudQuery(
        "two hops within an hour that pass on at least nine tenths of 500 or more",
        24 * HOUR,
        HOUR // 6,
        """Answer(x, y, received: m1, sent: m2) <-
               transfer(x, z, amount: m1, ts: t1), transfer(z, y, amount: m2, ts: t2),
               t1 < t2, t2 - t1 <= 1h, m1 >= 500, m2 >= 0.9 * m1, m2 <= m1, x != y.""",
        """SELECT DISTINCT a.src, b.trg, a.amount, b.amount FROM t a JOIN t b ON a.trg = b.src
           WHERE a.ts < b.ts AND b.ts - a.ts <= 3600 AND a.amount >= 500 AND b.amount >= 0.9 * a.amount
           AND b.amount <= a.amount AND a.src <> b.trg""",
        values=("received", "sent"),
    ),
    "reach": FraudQuery(
        "whom money in transfers above 300 can have reached, each transfer later than the one before",
        24 * HOUR,
        HOUR // 6,
        "Answer(x, y) <- transfer[amount > 300]+(x, y) as P strictly ascending.",
        "SELECT DISTINCT src, trg FROM r",
        named="""r(src, trg, ts) AS (
            SELECT src, trg, ts FROM t WHERE amount > 300
            UNION
            SELECT r.src, t.trg, t.ts FROM r JOIN t ON r.trg = t.src WHERE t.amount > 300 AND t.ts > r.ts
        )""",
    ),
    "ring": FraudQuery(
        "three transfers above 100 in a ring within an hour, one after the other",
        HOUR,
        HOUR // 12,
        """Answer(x, y, z) <-
               transfer(x, y, amount: m1, ts: t1), transfer(y, z, amount: m2, ts: t2),
               transfer(z, x, amount: m3, ts: t3), t1 < t2, t2 < t3, m1 > 100, m2 > 100, m3 > 100.""",
        """SELECT DISTINCT a.src, b.src, c.src FROM t a JOIN t b ON a.trg = b.src
           JOIN t c ON b.trg = c.src AND c.trg = a.src
           WHERE a.ts < b.ts AND b.ts < c.ts AND a.amount > 100 AND b.amount > 100 AND c.amount > 100""",
    ),
}


Ratio = dict[str, Any]


def ratio(what: str, sides: tuple[float, float], wanted: str) -> Ratio:
    """Two sides in seconds of processor time, the first over the second, and what that should be."""
    return {
        "what": what,
        "first": sides[0],
        "second": sides[1],
        "ratio": sides[0] / sides[1],
        "wanted": wanted,
    }


PARTS = ("predicates", "columns", "ascending", *FRAUD)


def measure(part: str, graph: Graph, *, size: float, limit: float) -> dict[str, Any]:
    """One of `PARTS`: ratios, or a fraud query beside DuckDB.

    `graph` has the edges of one label of a dense graph, over which closures are measured. `size` is the share of the
    generated transfers to use.
    """
    with tempfile.TemporaryDirectory(prefix="meander-bench-") as name:
        folder = Path(name)
        if part in FRAUD:
            return _measure_fraud(part, FRAUD[part], folder, size, limit)
        if part == "columns":
            return {"ratios": _measure_columns(folder, size)}
        dense = folder / "dense.csv"
        _write_dense(graph, dense)
        if part == "predicates":
            return {"ratios": _measure_predicates(dense)}
        return {"ratios": _measure_ascending(dense, folder, size)}


def _write_dense(graph: Graph, path: Path) -> None:
    """The edges with a property `w`, uniform from 0 to 99."""
    weights = np.random.default_rng(3).integers(0, KEPT_OF, graph.edges)
    table = pa.table(
        {
            "src": graph.names.take(pa.array(graph.src)),
            "label": pa.repeat("e", graph.edges),
            "trg": graph.names.take(pa.array(graph.trg)),
            "ts": graph.ts,
            "w": weights,
        }
    )
    csv.write_csv(table, path, csv.WriteOptions(quoting_style="none"))


def _query(rules: str, *, window: str = "30d", slide: str = "1d", declared: str = "") -> str:
    return f"STREAM s {declared} WINDOW {window} SLIDE {slide}\n{rules}\n"


def _read_all(query: str, edges: Path | pa.Table, **options: Any) -> Callable[[], object]:
    return lambda: meander.run(query, edges, **options).read_all()


def in_turns(
    first: Callable[[], object], second: Callable[[], object], rounds: int = ROUNDS
) -> tuple[float, float]:
    """The least processor time of both, which take turns; each has been called once before."""
    first()
    second()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for side, run in zip(times, (first, second), strict=True):
            begin = time.process_time()
            run()
            side.append(time.process_time() - begin)
    return min(times[0]), min(times[1])


def _measure_predicates(dense: Path) -> list[Ratio]:
    declared = "(w INT)"
    plain = _query("Answer(x, y) <- e*(x, y) as P.")
    few = _query("Answer(x, y) <- e[w = 7]*(x, y) as P.", declared=declared)
    every = _query("Answer(x, y) <- e[w >= 0]*(x, y) as P.", declared=declared)

    def filtered_afterwards() -> None:
        for batch in meander.run(plain, dense).batches(vertices="string"):
            batch.filter(pc.not_equal(batch["src"], batch["trg"]))

    return [
        ratio(
            "Q1, predicate applied to its answers / Q1 with a predicate that keeps one edge in a hundred",
            in_turns(filtered_afterwards, _read_all(few, dense)),
            "≥ 10",
        ),
        ratio(
            "Q1 with a predicate that keeps all edges / Q1",
            in_turns(_read_all(every, dense), _read_all(plain, dense)),
            "≤ 1.15",
        ),
    ]


def _measure_columns(folder: Path, size: float) -> list[Ratio]:
    transfers = make_transfers(int(WIDE * size), ACCOUNTS)
    narrow, wide = folder / "narrow.csv", folder / "wide.csv"
    transfers.write(narrow)
    transfers.write(wide, extra_columns=10)

    def read(path: Path) -> Callable[[], object]:
        return lambda: [chunk for chunk, _ in open_source(str(path), stream="s", meter=Meter())]

    def by_arrow(path: Path) -> Callable[[], object]:
        return lambda: csv.read_csv(path, csv.ReadOptions(use_threads=False))

    ours = in_turns(read(wide), read(narrow))
    arrows = in_turns(by_arrow(wide), by_arrow(narrow))
    plain = _query("Answer(x, y) <- transfer(x, y).", window="24h", slide="1h")
    return [
        ratio(
            "what ten columns that nothing reads add to reading a .csv / what they add to Arrow's reader",
            (max(ours[0] - ours[1], 1e-6), max(arrows[0] - arrows[1], 1e-6)),
            "≤ 1",
        ),
        ratio(
            "a scan of the file with ten more columns / without them",
            in_turns(_read_all(plain, wide), _read_all(plain, narrow)),
            "",
        ),
    ]


def _measure_ascending(dense: Path, folder: Path, size: float) -> list[Ratio]:
    transfers, count = folder / "transfers.csv", int(TRANSFERS * size)
    make_transfers(count, max(10, int(ACCOUNTS * size)), span=30 * 24 * HOUR).write(transfers)
    plain = _query("Answer(x, y) <- transfer+(x, y) as P.", window="24h", slide="1h")
    ordered = _query("Answer(x, y) <- transfer+(x, y) as P ascending.", window="24h", slide="1h")
    return [
        ratio(
            "the plus of one label by the closure / the same, ascending",
            in_turns(
                _read_all(_query("Answer(x, y) <- e+(x, y) as P."), dense, path_operator="closure"),
                _read_all(_query("Answer(x, y) <- e+(x, y) as P ascending."), dense),
            ),
            "≥ 1",
        ),
        ratio(
            f"transfer+ / transfer+ ascending, {count:,} transfers, 24h by 1h",
            in_turns(_read_all(plain, transfers), _read_all(ordered, transfers), rounds=1),
            "≥ 2",
        ),
    ]


def _measure_fraud(name: str, query: FraudQuery, folder: Path, size: float, limit: float) -> dict[str, Any]:
    from meander.bench.peers import duckdb_values

    transfers = make_transfers(int(FRAUD_TRANSFERS * size), max(10, int(FRAUD_ACCOUNTS * size)))
    expected, seconds = duckdb_values.answers_by_slide(
        transfers, query.named, query.answers, window=query.window, slide=query.slide, limit=limit
    )
    measured: dict[str, Any] = {
        "query": name,
        "about": query.about,
        "edges": transfers.edges,
        "slides": len(expected),
    }
    if not expected:
        return measured
    part = transfers.before((max(expected) + 1) * query.slide)
    path = folder / f"{name}.csv"
    part.write(path)
    text = _query(
        query.rules,
        window=format_duration(query.window),
        slide=format_duration(query.slide),
        declared="(amount FLOAT)",
    )
    own = min(_time_of(text, path) for _ in range(3))
    compare(meander.run(text, path).to_arrow(), expected, query)
    return {**measured, "edges": part.edges, "DuckDB": part.edges / seconds, "Meander": part.edges / own}


def _time_of(text: str, path: Path) -> float:
    begin = time.process_time()
    meander.run(text, path).read_all()
    return time.process_time() - begin


def compare(answers: pa.Table, expected: Mapping[int, set[tuple[Any, ...]]], query: FraudQuery) -> int:
    """Hold Meander's answers against another engine's at the end of every slide; returns the number of slides."""
    if "answer" in answers.column_names:
        ends = list(zip(*answers["answer"].to_pylist(), strict=True))
    else:
        ends = [answers["src"].to_pylist(), answers["trg"].to_pylist()]
    values = [pc.struct_field(answers["properties"], name).to_pylist() for name in query.values]
    tuples = list(zip(*ends, *values, strict=True))
    ts, exp = answers["ts"].to_numpy(), answers["exp"].to_numpy()
    for slide, answers_of_slide in expected.items():
        # Vertices of a .csv file are strings.
        wanted = {(*map(str, answer[: len(ends)]), *answer[len(ends) :]) for answer in answers_of_slide}
        instant = (slide + 1) * query.slide - 1
        holding = np.flatnonzero((ts <= instant) & (instant < exp))
        found = {tuples[row] for row in holding.tolist()}
        if found != wanted:
            example = next(iter(found ^ wanted))
            raise BenchError(
                f"Meander and DuckDB differ at the end of slide {slide}: {len(found)} and {len(wanted)} answers, "
                f"such as {example}"
            )
    return len(expected)
