"""The seven queries as a Python user would write them with Pathway: a program of its own, not imported.

It runs under whichever interpreter has Pathway, so it leans on nothing of Meander. The edges are preloaded:
each relation is a table whose rows carry the slide at which they come and, once more with a negative
difference, the slide at which they go. All changes of a slide share one logical time, so that Pathway updates
the answer once a slide. A closure is `pw.iterate` over "the edges, or a known path and one more edge", made
distinct in each round; that form was the fastest of those tried (keeping the known paths in the union takes
twice as long, doubling the paths ten times).

Preloaded input is processed many slides at once, so the time of a slide is from another run, over a connector: the
edges that come and go with a slide are committed together, and the next slide waits for its answers.

Called as `python pathway_program.py INPUT.npz QUERY OUTPUT.json`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pathway as pw
from pathway.internals import api

Table = Any


EDGE = pw.schema_from_types(src=int, trg=int)


def preload(src: np.ndarray, trg: np.ndarray, slide: np.ndarray, slides: int, last: int) -> Table:
    """The edges of one relation as a table that changes: in at `slide`, out `slides` later, up to `last`."""
    gone = slide + slides
    leaves = np.flatnonzero(gone <= last)
    row = np.concatenate([np.arange(len(src)), leaves])
    when = np.concatenate([slide, gone[leaves]])
    sign = np.concatenate([np.ones(len(src), np.int64), np.full(len(leaves), -1)])
    order = np.argsort(when, kind="stable")
    row, when, sign = row[order], when[order], sign[order]
    # Logical times are even numbers; those at 0 are taken for a backlog, so slides are counted from 1.
    changes = pd.DataFrame(
        {"src": src[row], "trg": trg[row], "__time__": 2 * (when + 1), "__diff__": sign}, index=row
    )
    return pw.debug.table_from_pandas(changes, schema=EDGE)


class Loading:
    """How long Pathway takes to turn data frames into rows: a Python loop inside `pw.run`, not its engine's work."""

    def __init__(self) -> None:
        self.seconds = self.cpu_seconds = 0.0
        self.load = api.static_table_from_pandas
        api.static_table_from_pandas = self

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        begin, begin_cpu = time.perf_counter(), time.process_time()
        table = self.load(*arguments, **options)
        self.seconds += time.perf_counter() - begin
        self.cpu_seconds += time.process_time() - begin_cpu
        return table


class Row(pw.Schema):  # type: ignore[misc]
    id: int = pw.column_definition(primary_key=True)
    relation: str
    src: int
    trg: int


CONVERTING = 4
"""How many times its limit a run slide by slide may take, with what is not measured."""

TICK = ""
"""The relation of one row per slide, without which a slide that changes nothing would have no end."""


class SlideBySlide(pw.io.python.ConnectorSubject):  # type: ignore[misc]
    """The edges of one slide after the other, each after the answers of the one before, for `limit` seconds.

    To convert rows takes time that is not measured; that, too, is limited.
    """

    def __init__(
        self, relations: dict[str, dict[str, np.ndarray]], slides: int, last: int, limit: float
    ) -> None:
        super().__init__()
        self.relations, self.slides, self.last, self.limit = relations, slides, last, limit
        self.answered, self.ended = threading.Event(), threading.Event()
        self.is_cut_off = False
        self.seconds: list[float] = []
        self.counts: list[int] = []
        self.count = 0

    def rows_of(self, slide: int) -> list[tuple[bool, dict[str, Any]]]:
        """The edges that come and go with a slide: whether they come, and the values of their rows."""
        rows = []
        first = 0
        for name, columns in self.relations.items():
            for at, comes in ((slide, True), (slide - self.slides, False)):
                numbers = np.arange(*np.searchsorted(columns["slide"], (at, at + 1)))
                ends = zip(
                    numbers.tolist(),
                    columns["src"][numbers].tolist(),
                    columns["trg"][numbers].tolist(),
                    strict=True,
                )
                rows += [
                    (comes, {"id": first + number, "relation": name, "src": src, "trg": trg})
                    for number, src, trg in ends
                ]
            first += len(columns["slide"])
        return [*rows, (True, {"id": -2 - slide, "relation": TICK, "src": 0, "trg": 0})]

    def run(self) -> None:
        latest = time.perf_counter() + CONVERTING * self.limit
        try:
            # Before the first slide one without edges, for all to have started.
            for slide in range(-1, self.last + 1):
                for comes, values in self.rows_of(slide):
                    if comes:
                        self.next(**values)
                    else:
                        self.delete(**values)
                self.answered.clear()
                begin = time.perf_counter()
                self.commit()
                if not self.answered.wait(max(0.0, self.limit - sum(self.seconds)) if slide >= 0 else None):
                    self.is_cut_off = True
                    break
                now = time.perf_counter()
                if slide >= 0:
                    self.seconds.append(now - begin)
                    self.counts.append(self.count)
                if now > latest and slide < self.last:
                    self.is_cut_off = True
                    break
        finally:
            self.ended.set()


def measure_slides(
    query: str, plan: dict[str, Any], arrays: dict[str, np.ndarray], limit: float
) -> dict[str, Any]:
    """The seconds of each slide, and the number of answers at its end, as far as the time limit lets it get."""
    names = sorted(set(plan["roles"].values()))
    relations = {
        name: {column: arrays[f"{name}.{column}"] for column in ("src", "trg", "slide")} for name in names
    }
    feed = SlideBySlide(relations, plan["slides"], int(plan["last"]), limit)
    rows = pw.io.python.read(feed, schema=Row, autocommit_duration_ms=None)
    tables = {name: rows.filter(rows.relation == name).select(pw.this.src, pw.this.trg) for name in names}
    tables = {name: distinct(table) if name in plan["repeating"] else table for name, table in tables.items()}
    answer = QUERIES[query](*(tables[name] for _, name in sorted(plan["roles"].items())))
    ticks = rows.filter(rows.relation == TICK).select(n=-1)

    def on_change(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        if row["n"] >= 0:
            changes.append((is_addition, row["n"]))

    def on_time_end(time: int) -> None:
        counted = [n for is_addition, n in changes if is_addition]
        feed.count = counted[-1] if counted else 0 if changes else feed.count
        changes.clear()
        feed.answered.set()

    changes: list[tuple[bool, int]] = []
    counted = answer.reduce(n=pw.reducers.count()).concat_reindex(ticks)
    pw.io.subscribe(counted, on_change=on_change, on_time_end=on_time_end)
    runner = threading.Thread(
        target=pw.run, kwargs={"monitoring_level": pw.MonitoringLevel.NONE}, daemon=True
    )
    runner.start()
    feed.ended.wait()
    if not feed.is_cut_off and len(feed.seconds) <= feed.last:
        sys.exit(f"the input ended with slide {len(feed.seconds)} of {feed.last + 1}")
    return {"slide_seconds": feed.seconds, "slide_counts": feed.counts}


def distinct(table: Table) -> Table:
    return table.groupby(table.src, table.trg).reduce(table.src, table.trg)


def then(left: Table, right: Table) -> Table:
    """Pairs that a step of `left` and a step of `right` lead from and to, repeats included."""
    return left.join(right, left.trg == right.src).select(src=pw.left.src, trg=pw.right.trg)


def extend(start: Table, steps: Table) -> Table:
    """The pairs of `start/steps*`."""

    def once_more(paths: Table, start: Table, steps: Table) -> dict[str, Table]:
        return {"paths": distinct(start.concat_reindex(then(paths, steps))), "start": start, "steps": steps}

    return pw.iterate(once_more, paths=pw.iterate_universe(start), start=start, steps=steps).paths


def closure(edges: Table) -> Table:
    """The pairs of `edges+`."""

    def once_more(paths: Table, edges: Table) -> dict[str, Table]:
        return {"paths": distinct(edges.concat_reindex(then(paths, edges))), "edges": edges}

    return pw.iterate(once_more, paths=pw.iterate_universe(edges), edges=edges).paths


def both(left: Table, right: Table) -> Table:
    """The pairs that `left` and `right` have in common."""
    return left.join(right, left.src == right.src, left.trg == right.trg).select(
        src=pw.left.src, trg=pw.left.trg
    )


def q1(a: Table) -> Table:
    here = a.select(src=a.src, trg=a.src).concat_reindex(a.select(src=a.trg, trg=a.trg))
    return distinct(closure(a).concat_reindex(here))


def q2(a: Table, b: Table) -> Table:
    return extend(a, b)


def q3(a: Table, b: Table, c: Table) -> Table:
    return extend(extend(a, b), c)


def q4(a: Table, b: Table, c: Table) -> Table:
    return closure(distinct(then(then(a, b), c)))


def q5(a: Table, b: Table, c: Table) -> Table:
    first = c.join(b, c.trg == b.src).select(m1=c.trg, m2=c.src, x=b.trg)
    second = first.join(b, first.m2 == b.src).select(first.m1, first.m2, first.x, y=b.trg)
    met = second.join(a, second.x == a.src, second.y == a.trg).select(src=second.m1, trg=second.m2)
    return distinct(met)


def q6(a: Table, b: Table, c: Table) -> Table:
    return both(closure(a), distinct(then(b, c)))


def q7(a: Table, b: Table, c: Table) -> Table:
    reached = closure(q6(a, b, c))
    return distinct(reached.join(c, reached.trg == c.trg).select(src=reached.src, trg=c.src))


QUERIES: dict[str, Callable[..., Table]] = {
    "Q1": q1, "Q2": q2, "Q3": q3, "Q4": q4, "Q5": q5, "Q6": q6, "Q7": q7,
}  # fmt: skip


def main(source: str, query: str, target: str) -> None:
    with np.load(source) as loaded:
        arrays = dict(loaded)
    plan = json.loads(str(arrays["plan"]))
    if plan["slide_limit"] is not None:
        result = measure_slides(query, plan, arrays, plan["slide_limit"])
        with open(target, "w", encoding="utf-8") as file:
            json.dump(result, file)
        # Pathway may still be at a slide that takes longer than the limit.
        os._exit(0)
    last = int(plan["last"])
    tables = {}
    for name in sorted(set(plan["roles"].values())):
        src, trg, slide = (arrays[f"{name}.{column}"] for column in ("src", "trg", "slide"))
        edges = preload(src, trg, slide, plan["slides"], last)
        # Where no edge comes twice, whoever knows the data leaves this step out.
        tables[name] = distinct(edges) if name in plan["repeating"] else edges
    answer = QUERIES[query](*(tables[name] for _, name in sorted(plan["roles"].items())))
    counts: dict[int, int] = {}

    def on_change(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        slide = time // 2 - 1
        if is_addition:
            counts[slide] = row["n"]
        else:
            counts.setdefault(slide, 0)

    pw.io.subscribe(answer.reduce(n=pw.reducers.count()), on_change=on_change)
    pairs: set[tuple[int, int]] = set()
    if plan["pairs"]:

        def on_pair(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
            (pairs.add if is_addition else pairs.discard)((row["src"], row["trg"]))

        pw.io.subscribe(answer, on_change=on_pair)
    loading = Loading()
    begin, begin_cpu = time.perf_counter(), time.process_time()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    seconds = time.perf_counter() - begin - loading.seconds
    cpu_seconds = time.process_time() - begin_cpu - loading.cpu_seconds
    result = {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "loading_seconds": loading.seconds,
        "counts": sorted(counts.items()),
        "pairs": sorted(pairs),
        "version": pw.__version__,
    }
    with open(target, "w", encoding="utf-8") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
