"""The sections about what the paper leaves out: paths, memory, threads, a profile, properties, Spark, cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from meander.bench.report.charts import dot_chart, line_chart
from meander.bench.report.paper import CLOSE
from meander.bench.report.sections import (
    NONE,
    Cells,
    Plot,
    Section,
    Table,
    duration,
    edges_of,
    graphs,
    listed,
    megabytes,
    rate,
    records,
    shown_rate,
    span,
    times,
    variants,
)
from meander.bench.results import Results

SHOWN_KERNELS, SHOWN_SHARE = 8, 0.01
WITH = " with paths"
PARTS = (
    "reading",
    "interning",
    "graph of the window",
    "operator",
    "naming",
    "writing",
    "opening the dataflow",
    "ordering, cutting and the rest",
)
"""The parts of a run, as `measures.profile` names them."""


def memory(results: Results) -> Section | None:
    """From the runs over windows of several sizes."""
    section = Section(
        "Memory",
        "The most that all state took in the runs of the section on window sizes: the window's graph, the "
        "operators, and the names of vertices. A Python process with Meander's libraries takes some 200 MB "
        "more.",
    )
    for graph in graphs(results, "windows"):
        measured = list(records(results, "windows", "meander", graph))
        if not measured:
            continue
        sizes = {variant["name"]: variant["window"] for variant in measured[0]["settings"]["variants"]}
        rows = [["query", *sizes]]
        lines: dict[str, list[tuple[float, float]]] = {}
        for record in measured:
            known = variants(record)
            rows.append(
                [
                    record["query"],
                    *(megabytes(known[size]["state_bytes"]) if size in known else NONE for size in sizes),
                ]
            )
            lines[record["query"]] = [
                (seconds, known[size]["state_bytes"] / 1e6)
                for size, seconds in sizes.items()
                if size in known
            ]
        section.parts.append(
            Table(f"{graph.name}: state by window, the first {edges_of(measured)} edges", rows)
        )
        lines = {query: line for query, line in lines.items() if line}
        section.parts.append(
            Plot(
                f"memory-{graph.name}",
                f"Memory by window, on {graph.name}",
                line_chart(f"{graph.name}: state by window", "window", "megabytes", lines, show=duration),
            )
        )
        growth = {query: line[-1][1] / line[0][1] for query, line in lines.items()}
        names = list(sizes)
        section.findings.append(
            f"On {graph.name} a window of {names[-1]} takes {span(list(growth.values()))} times the memory of "
            f"one of {names[0]}."
        )
    return section if section.parts else None


def paths(results: Results) -> Section | None:
    section = Section(
        "Paths",
        "Throughput without paths in the answers, with them (`--paths`), and the ratio of the two, for the "
        "queries whose answers are paths.",
    )
    for graph in graphs(results, "paths"):
        measured = list(records(results, "paths", "meander", graph))
        if not measured:
            continue
        names = [
            variant["name"]
            for variant in measured[0]["settings"]["variants"]
            if not variant["name"].endswith(WITH)
        ]
        rows = [["query", *(f"{name}: without, with, ratio" for name in names)]]
        dots: dict[str, dict[str, float]] = {name + words: {} for name in names for words in ("", WITH)}
        shares: dict[str, float] = {}
        for record in measured:
            known = variants(record)
            cells = [record["query"]]
            for name in names:
                off, on = known.get(name), known.get(name + WITH)
                share = f"{rate(on) / rate(off):.2f}" if on and off else NONE
                cells.append(f"{shown_rate(off)}, {shown_rate(on)}, {share}")
                if on and off:
                    shares[f"{record['query']} with {name}"] = rate(on) / rate(off)
                for label, variant in ((name, off), (name + WITH, on)):
                    if variant:
                        dots[label][record["query"]] = rate(variant)
            rows.append(cells)
        section.parts.append(
            Table(f"{graph.name}, the first {edges_of(measured)} edges of each query's labels; edges/s", rows)
        )
        section.parts.append(
            Plot(
                f"paths-{graph.name}",
                f"Edges per second with and without paths, on {graph.name}",
                dot_chart(
                    f"{graph.name}: without and with paths",
                    "query",
                    "edges per second",
                    dots,
                    rings={name + WITH: name for name in names},
                ),
            )
        )
        if not shares:
            continue
        section.findings.append(
            f"On {graph.name} runs that return paths have {span(list(shares.values()))} of the rate of those "
            "that do not."
        )
        slow = {name: share for name, share in shares.items() if share < 0.5}
        if slow:
            worst = min(slow, key=slow.__getitem__)
            section.limits.append(
                f"On {graph.name} paths cost more than half of the rate in {len(slow)} of {len(shares)} cases "
                f"(most in {worst}: a factor "
                f"of {times(1 / slow[worst])}). Ask for them where they are read."
            )
    return section if section.parts else None


def threads(results: Results) -> Section | None:
    section = Section(
        "Threads", "The closure alone divides its work among threads; [its page](closure.md) describes how."
    )
    rows = [["graph", "query", "edges", "1 thread, edges/s", "2 threads", "times"]]
    for record in records(results, "threads"):
        known = variants(record)
        if "1" in known and "2" in known:
            one, two = rate(known["1"]), rate(known["2"])
            rows.append(
                [
                    record["data"],
                    record["query"],
                    f"{record['result']['edges']:,}",
                    shown_rate(known["1"]),
                    shown_rate(known["2"]),
                    times(two / one),
                ]
            )
            section.findings.append(
                f"With two threads a closure has {times(two / one)} times the rate of one ({record['query']} on "
                f"{record['data']})."
            )
            if two < one / CLOSE:
                section.limits.append(
                    f"A second thread does not pay for {record['query']} on {record['data']}."
                )
    section.parts.append(Table("`--path-operator closure`, one and two threads", rows))
    return section if len(rows) > 1 else None


def profile(results: Results) -> Section | None:
    """Shares of the time, by part and by kernel."""
    section = Section(
        "Where the time goes",
        "A run from a file of edges to a file of answers (`meander bench --profile`), on all edges of SNB and at "
        "most the first 60,000 of a dense graph. Each part has the time that no part inside of it takes. Naming is "
        "from numbers to names and intervals. On a dense graph each edge makes many answers, and most of the time "
        "is spent on them: finding paths, and writing a line of JSON per record; `--mode changes` has fewer "
        "records. The last table has the compiled kernels that take most; they are part of the time above.",
    )
    columns = []
    density: dict[str, float] = {}
    sizes = [["workload", "edges", "answer records", "records per edge", "seconds"]]
    kernels = [["kernel", "part", "calls", "share"]]
    for record in records(results, "profile", "profile"):
        result = record["result"]
        what = f"{record['data']} {record['query']}"
        per_edge = result["records"] / max(result["edges"], 1)
        sizes.append(
            [
                what,
                f"{result['edges']:,}",
                f"{result['records']:,}",
                f"{per_edge:,.3g}",
                f"{result['seconds']:.2f}",
            ]
        )
        density[what] = per_edge
        columns.append(
            (what, {part: seconds / result["seconds"] for part, seconds in result["parts"].items()})
        )
        for kernel in result["kernels"][:SHOWN_KERNELS]:
            share = kernel["seconds"] / result["seconds"]
            if share >= SHOWN_SHARE:
                kernels.append(
                    [
                        f"{what}: `{kernel['kernel']}`",
                        _short(kernel["part"]),
                        f"{kernel['calls']:,}",
                        f"{share:.0%}",
                    ]
                )
    if columns:
        grouped = [(what, _grouped(parts)) for what, parts in columns]
        names = sorted({part for _, parts in grouped for part in parts}, key=_position)
        rows = [["part", *(what for what, _ in grouped)]]
        rows += [
            [name, *(f"{parts[name]:.0%}" if name in parts else NONE for _, parts in grouped)]
            for name in names
        ]
        section.parts += [
            Table("The runs", sizes),
            Table("Shares of the time", rows),
            Table("Kernels that take at least 1% of a run", kernels),
        ]
        most = [
            f"{parts[part]:.0%} {part} in {what} ({density[what]:,.3g} records per edge)"
            for what, parts in grouped
            for part in [max(parts, key=parts.__getitem__)]
        ]
        section.findings.append(f"Of the time from a file to a file, the largest part is {listed(most)}.")
    for record in records(results, "profile", "spark"):
        parts = dict(record["result"])
        total = parts.pop("total")
        rows = [["part", "seconds", "share"]]
        rows += [[name, f"{seconds:.2f}", f"{seconds / total:.0%}"] for name, seconds in parts.items()]
        section.parts.append(Table(f"On Spark, one cell: Q6 on {record['data']}, {total:.2f} s in all", rows))
    return section if section.parts else None


def _position(part: str) -> tuple[int, str]:
    """Where a part stands on the way from the file to the answers."""
    return PARTS.index("operator" if part.startswith("operator ") else part), part


def _short(part: str) -> str:
    return part if len(part) <= 60 else part[:59] + "…"


def _grouped(parts: Mapping[str, float]) -> dict[str, float]:
    """Shares by part, the operators by their kind."""
    grouped: dict[str, float] = {}
    for part, share in parts.items():
        words = part.split()
        name = f"operator {words[2]}" if words[0] == "operator" and len(words) > 2 else part
        grouped[name] = grouped.get(name, 0.0) + share
    return grouped


def values(results: Results) -> Section | None:
    section = Section(
        "Properties",
        "What properties cost and spare, in processor time of both sides, which take turns in one process; and "
        "three queries about fraud on generated transfers, beside DuckDB, which is asked again for every "
        "slide. Their answers are compared at every slide.",
    )
    ratios = [["what is compared", "first, s", "second, s", "first / second", "wanted"]]
    fraud = [["query", "edges", "DuckDB edges/s", "Meander edges/s", "times", "slides with equal answers"]]
    factors = []
    for record in records(results, "values"):
        result = record["result"]
        for ratio in result.get("ratios", []):
            ratios.append(
                [
                    ratio["what"],
                    f"{ratio['first']:.3f}",
                    f"{ratio['second']:.3f}",
                    f"{ratio['ratio']:.2f}",
                    ratio["wanted"],
                ]
            )
        if "about" in result:
            cells = [f"{result['query']}: {result['about']}", f"{result['edges']:,}"]
            if "Meander" in result:
                factors.append(result["Meander"] / result["DuckDB"])
                cells += [
                    f"{result['DuckDB']:,.0f}",
                    f"{result['Meander']:,.0f}",
                    times(factors[-1]),
                    f"{result['slides']:,}",
                ]
            else:
                cells += ["no slide in time", NONE, NONE, NONE]
            fraud.append(cells)
    if len(ratios) > 1:
        section.parts.append(Table("Properties: processor time of both sides in one run", ratios))
    if len(fraud) > 1:
        section.parts.append(Table("Fraud queries beside DuckDB, asked again per slide", fraud))
    if factors:
        section.findings.append(f"On the fraud queries Meander has {span(factors)} times the rate of DuckDB.")
        if min(factors) < 1:
            section.limits.append(
                "One of the fraud queries is faster in DuckDB, asked again for every slide."
            )
    return section if section.parts else None


def spark(results: Results) -> Section | None:
    section = Section(
        "On Spark",
        "The overhead of the pipeline over Spark itself, with one cell. *Throughput* is measured from the "
        "arrival of a file until its last answer is committed to a `.jsonl` file, after a warm-up file of "
        "5,000 edges, beside the same file read by the same Spark session and written to `noop`; in a Spark "
        "that has just started, Java code is not compiled yet. *A batch of ten edges* is beside ten rows that "
        "Spark reads and passes to a function that writes them. *A restart* has the state of Q5 over a window "
        "of up to 500,000 edges, with a snapshot and ten edges after it: `state is back` is the time from the "
        "worker's first batch until it has loaded the snapshot and replayed the later edges; `whole start` is "
        "from the call of `start` until the first batch is answered, in a running Spark session.",
    )
    for record in records(results, "spark"):
        result, data = record["result"], record["data"]
        if record["name"] == "rates":
            rows = [
                [
                    "query",
                    "edges",
                    "Meander edges/s",
                    "Spark to noop, rows/s",
                    "ratio",
                    "ratio in a young Spark",
                ]
            ]
            rows += [
                [
                    query,
                    *(f"{row[name]:,.0f}" for name in ("edges", "meander", "noop")),
                    f"{row['ratio']:.2f}",
                    f"{row['young']:.2f}",
                ]
                for query, row in result.items()
            ]
            section.parts.append(
                Table(f"{data}: edges to answers, beside reading the same file to noop", rows)
            )
            section.findings.append(
                "On Spark, from a file to committed answers, Meander has "
                f"{span([row['ratio'] for row in result.values()])} of the rate at which "
                "Spark alone reads the file."
            )
        elif record["name"] == "batch":
            rows = [["part", "ms"], *([name, f"{value:,.0f}"] for name, value in result.items())]
            section.parts.append(Table(f"{data}: a batch of 10 edges, median of its parts", rows))
            section.limits.append(
                f"On Spark a batch of ten edges takes {result['with Meander']:,.0f} ms, of which "
                f"{result['the same without']:,.0f} ms are Spark's own: "
                "where answers have to be there within milliseconds, use `meander.run` or the local runner."
            )
        else:
            rows = [
                list(result),
                [f"{value:,}" if isinstance(value, int) else f"{value:,.2f}" for value in result.values()],
            ]
            section.parts.append(Table(f"{data}: a restart, in seconds", rows))
    return section if section.parts else None


CELL_COLUMNS = (
    "query",
    "cells",
    "stages",
    "broadcast",
    "rows per edge",
    "derived",
    "edges",
    "state",
    "answers",
    "gain at most",
    "work",
)


def cells(results: Results) -> Section | None:
    section = Section(
        "Cells",
        "How work and edges spread over cells, all in one process, one after the other, in ten batches, or "
        "fewer of at least 5,000 edges. [Cells](cells.md#balance-and-broadcast) explains the columns; gain "
        "and work are relative to one cell.",
    )
    gains: dict[str, list[float]] = {}
    for graph in graphs(results, "cells"):
        rows = [list(CELL_COLUMNS)]
        for record in records(results, "cells", graph=graph):
            alone, *others = record["result"]["spreads"]
            rows += [_cell_row(alone, spread) for spread in others]
            gains.setdefault(graph.name, []).append(
                max(alone["seconds"] / spread["seconds"] for spread in others)
            )
            edges = alone["edges"]
        if len(rows) > 1:
            section.parts.append(
                Table(f"{graph.name}, about the first {edges:,} edges of each query's labels", rows)
            )
    if gains:
        section.findings.append(
            "With a core for each cell, the best number of cells gains at most "
            + listed([f"{span(values)} times on {name}" for name, values in gains.items()])
            + ", before Spark's own overhead."
        )
        poor = [name for name, values in gains.items() if max(values) < 1 / CLOSE]
        if poor:
            section.limits.append(
                f"More than one cell does not pay on {listed(poor)}: each reads most of the edges."
            )
    return section if section.parts else None


def _cell_row(alone: dict[str, Any], spread: dict[str, Any]) -> Cells:
    return [
        spread["query"],
        str(spread["cells"]),
        str(spread["stages"]),
        f"{spread['broadcast']:.0%}",
        f"{spread['rows_per_edge']:.2f}",
        f"{spread['derived']:,}",
        f"{spread['edges_even']:.2f}",
        f"{spread['state_even']:.2f}",
        f"{spread['answers_even']:.2f}",
        f"{alone['seconds'] / spread['seconds']:.1f}",
        f"{spread['all_seconds'] / alone['all_seconds']:.1f}",
    ]
