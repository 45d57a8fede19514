"""DuckDB on transfers, asked again at the end of every slide: joins and recursive SQL over the rows of the window."""

from __future__ import annotations

import threading
import time
from typing import Any

import duckdb
import pyarrow as pa

from meander.bench.measures.transfers import Transfers

WINDOW = """t AS MATERIALIZED (
    SELECT DISTINCT src, trg, amount, ts FROM transfers WHERE slide BETWEEN $first AND $last
)"""


def open_database(transfers: Transfers, slide: int) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    columns = {**transfers._asdict(), "slide": transfers.ts // slide}
    connection.register("loaded", pa.table(columns))
    connection.execute("CREATE TABLE transfers AS SELECT * FROM loaded")
    connection.unregister("loaded")
    return connection


def answers_by_slide(
    transfers: Transfers, named: str, answers: str, *, window: int, slide: int, limit: float
) -> tuple[dict[int, set[tuple[Any, ...]]], float]:
    """The answers at the end of each slide within the time limit, and the processor time of all of them.

    `answers` is a SELECT over `t`, the rows of the window, and over what `named` names on the way; only counting the
    answers is measured.
    """
    connection = open_database(transfers, slide)
    begin = f"WITH RECURSIVE {', '.join(filter(None, (WINDOW, named)))}"
    counted: dict[int, set[tuple[Any, ...]]] = {}
    seconds = 0.0
    timer = threading.Timer(limit, connection.interrupt)
    timer.start()
    try:
        for last in range(int(transfers.ts[0] // slide), int(transfers.ts[-1] // slide) + 1):
            bounds = {"first": last - window // slide + 1, "last": last}
            started = time.process_time()
            row = connection.execute(f"{begin} SELECT count(*) FROM ({answers})", bounds).fetchone()
            took = time.process_time() - started
            found = set(connection.execute(f"{begin} {answers}", bounds).fetchall())
            assert row is not None
            assert row[0] == len(found)
            counted[last] = found
            seconds += took
            if seconds > limit:
                break
    except duckdb.InterruptException:
        pass  # the slide that was cut off does not count
    finally:
        timer.cancel()
        connection.close()
    return counted, seconds
