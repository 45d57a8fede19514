"""The sections about the experiments of the paper: Table 2, window and slide, the plan space, Table 3."""

from __future__ import annotations

from typing import Any

from meander.bench.report.charts import dot_chart, line_chart, ranking
from meander.bench.report.published import TABLE_2, TABLE_3, Published, graph_like
from meander.bench.report.sections import (
    NONE,
    Cells,
    Graph,
    Plot,
    Section,
    Table,
    duration,
    edges_of,
    graphs,
    listed,
    milliseconds,
    rate,
    records,
    shown_p99,
    shown_rate,
    span,
    times,
    variants,
)
from meander.bench.results import Record, Results

PEERS = ("Pathway", "DuckDB")
PAPER_PLANS = ("SGA", "P1", "P2", "P3")
PLAN_NAMES = ("slowest", *PAPER_PLANS, "chosen", "fastest")
CLOSE = 0.9
"""A choice that reaches this share of the best one is as good."""


def engines(results: Results) -> Section | None:
    """Table 2."""
    section = Section(
        "Throughput and tail latency",
        "The paper's Table 2: every query on every graph, by every engine. `p99` is the 99th percentile of the "
        "time for a slide. A peer's figures are of the prefix that it processed in its time limit, Meander's of all "
        "edges; the second table of each graph has both on the same edges. The paper's own figures (SGA: its "
        "prototype; DD: Differential Dataflow) are from other hardware, a server with 32 cores and 256 GB of "
        "memory, and from graphs over a hundred times (StackOverflow) and some forty times (SNB) as large; its Q6 "
        "and Q7 on SNB leave out the closure over a.",
    )
    for graph in graphs(results, "engines"):
        own = {record["query"]: record for record in records(results, "engines", "meander", graph)}
        peers = {
            (record["query"], record["settings"]["engine"]): record["result"]
            for record in records(results, "engines", "peer", graph)
        }
        if own:
            _engine_tables(section, graph, own, peers)
    return section if section.parts else None


def _engine_tables(
    section: Section, graph: Graph, own: dict[str, Record], peers: dict[tuple[str, str], dict[str, Any]]
) -> None:
    engines = [name for name in PEERS if any(name == engine for _, engine in peers)]
    like = graph_like(graph.name)
    published = TABLE_2[like] if like else {}
    header = ["query", "edges", "Meander edges/s", "p99"]
    for engine in engines:
        header += [f"{engine} edges/s", "p99"]
    for system in published:
        header += [f"paper: {system} edges/s", "p99"]
    rows = [header]
    compared = [
        [
            "query",
            *(
                f"{engine}{what}"
                for engine in engines
                for what in (": edges", ", edges/s", ": Meander, edges/s", ": times")
            ),
        ]
    ]
    ratios: dict[str, list[float]] = {engine: [] for engine in engines}
    dots: dict[str, dict[str, float]] = {"Meander": {}}
    tails: dict[str, dict[str, float]] = {"Meander": {}}
    for query, record in own.items():
        measured = variants(record).get("Meander")
        cells = [query, f"{record['result']['edges']:,}", shown_rate(measured), shown_p99(measured)]
        if measured is not None:
            dots["Meander"][query] = rate(measured)
            tails["Meander"][query] = 1e3 * measured["p99"]
        line = [query]
        for engine in engines:
            result = peers.get((query, engine))
            peer = result and result["peer"]
            cells += [shown_rate(peer), shown_p99(peer)]
            line += _same_edges(result)
            if result is not None and peer:
                dots.setdefault(engine, {})[query] = rate(peer)
                if peer["p99"] is not None:
                    tails.setdefault(engine, {})[query] = 1e3 * peer["p99"]
                ratios[engine].append(rate(result["meander"]) / rate(peer))
                if rate(result["meander"]) < rate(peer):
                    section.limits.append(
                        f"{query} on {graph.name}: {engine} is faster on the same edges, "
                        f"by a factor of {times(rate(peer) / rate(result['meander']))}."
                    )
        for system, figures in published.items():
            cells += _paper(figures.get(query))
            dots.setdefault(f"paper: {system}", {})[query] = figures[query].rate
            tails.setdefault(f"paper: {system}", {})[query] = 1e3 * figures[query].p99
        rows.append(cells)
        compared.append(line)
    section.parts.append(Table(f"{graph.about}", rows))
    if engines:
        section.parts.append(
            Table(f"{graph.name}: on exactly the edges that the peer processed in its time limit", compared)
        )
    for what, upward, series in (
        ("throughput", "edges per second", dots),
        ("p99", "p99 of a slide, milliseconds", tails),
    ):
        known = {name: values for name, values in series.items() if values}
        if known:
            chart = dot_chart(f"{graph.name}: {what} (paper: other hardware)", "query", upward, known)
            about = f"Every engine on {graph.name}: {upward}"
            section.parts.append(Plot(f"engines-{what}-{graph.name}", about, chart))
    _engine_findings(section, graph, own, ratios)


def _engine_findings(
    section: Section, graph: Graph, own: dict[str, Record], ratios: dict[str, list[float]]
) -> None:
    measured = [variants(record)["Meander"] for record in own.values() if "Meander" in variants(record)]
    if not measured:
        return
    factors = [
        f"{span(values)} times the rate of {engine} on the same edges"
        for engine, values in ratios.items()
        if values
    ]
    section.findings.append(
        f"On {graph.name} Meander processes {span([rate(one) for one in measured], lambda value: f'{value:,.0f}')} "
        f"edges per second on one core{': ' + listed(factors) if factors else ''}. "
        f"The p99 of a slide is {span([one['p99'] for one in measured], milliseconds)}."
    )


def _same_edges(result: dict[str, Any] | None) -> Cells:
    if result is None:
        return [NONE] * 4
    if result["peer"] is None:
        return ["no slide in time", NONE, NONE, NONE]
    ratio = rate(result["meander"]) / rate(result["peer"])
    return [
        f"{result['peer']['edges']:,}",
        shown_rate(result["peer"]),
        shown_rate(result["meander"]),
        times(ratio),
    ]


def _paper(published: Published | None) -> Cells:
    if published is None:
        return [NONE, NONE]
    return [f"{published.rate:,.0f}", f"{published.p99:g} s"]


def windows(results: Results) -> Section | None:
    """Figure 10a, and memory."""
    return _sensitivity(
        results,
        "windows",
        "window",
        Section(
            "Window size",
            "The paper's figure 10a: throughput and the p99 of a slide against the size of the window. There, "
            "too, throughput falls and latency rises with the window; its values are in a picture only.",
        ),
    )


def slides(results: Results) -> Section | None:
    """Figures 10b and 11."""
    section = _sensitivity(
        results,
        "slides",
        "slide",
        Section(
            "Slide",
            "The paper's figures 10b and 11: throughput and the p99 of a slide against the slide. The paper's "
            "prototype takes one slide as one batch; Meander's batches are of 65,536 edges whatever the slide. "
            "The last table has Meander's rate with one batch per slide, which is what p99 is of. In the paper "
            "the throughput of SGA is stable over slides, and that of DD grows with them.",
        ),
    )
    if section is not None:
        for graph in graphs(results, "slides"):
            _slide_batches(results, section, graph)
            _slide_peers(results, section, graph)
    return section


def _sensitivity(results: Results, experiment: str, parameter: str, section: Section) -> Section | None:
    for graph in graphs(results, experiment):
        measured = [
            record for record in records(results, experiment, "meander", graph) if len(variants(record)) > 1
        ]
        if not measured:
            continue
        sizes = {variant["name"]: variant[parameter] for variant in measured[0]["settings"]["variants"]}
        rows = [["query", *(f"{size}: edges/s, p99" for size in sizes)]]
        rates: dict[str, list[tuple[float, float]]] = {}
        p99s: dict[str, list[tuple[float, float]]] = {}
        for record in measured:
            known = variants(record)
            rows.append(
                [
                    record["query"],
                    *(f"{shown_rate(known.get(size))}, {shown_p99(known.get(size))}" for size in sizes),
                ]
            )
            rates[record["query"]] = [
                (seconds, rate(known[size])) for size, seconds in sizes.items() if size in known
            ]
            p99s[record["query"]] = [
                (seconds, 1e3 * known[size]["p99"]) for size, seconds in sizes.items() if size in known
            ]
        section.parts.append(
            Table(f"{graph.name}, the first {edges_of(measured)} edges of each query's labels", rows)
        )
        for what, upward, lines in (
            ("throughput", "edges per second", rates),
            ("p99", "p99 of a slide, milliseconds", p99s),
        ):
            section.parts.append(
                Plot(
                    f"{experiment}-{what}-{graph.name}",
                    f"By {parameter}, on {graph.name}: {upward}",
                    line_chart(
                        f"{graph.name}: {what} by {parameter}", parameter, upward, lines, show=duration
                    ),
                )
            )
        _sensitivity_findings(section, graph, parameter, list(sizes), rates, p99s)
    return section if section.parts else None


def _sensitivity_findings(
    section: Section,
    graph: Graph,
    parameter: str,
    sizes: list[str],
    rates: dict[str, list[tuple[float, float]]],
    p99s: dict[str, list[tuple[float, float]]],
) -> None:
    changes = {query: line[-1][1] / line[0][1] for query, line in rates.items()}
    slower = {query: line[-1][1] / line[0][1] for query, line in p99s.items()}
    section.findings.append(
        f"On {graph.name}, with a {parameter} of {sizes[-1]} instead of {sizes[0]}, throughput is "
        f"{span(list(changes.values()))} times as high, and the p99 of a slide {span(list(slower.values()))} "
        "times as long "
        f"(most in {max(slower, key=slower.__getitem__)})."
    )


def _slide_batches(results: Results, section: Section, graph: Graph) -> None:
    measured = list(records(results, "slides", "meander", graph))
    if not measured:
        return
    sizes = [variant["name"] for variant in measured[0]["settings"]["variants"]]
    rows = [["query", *sizes]]
    for record in measured:
        known = variants(record)
        by_slide = (
            known[size]["edges"] / max(known[size]["slides"]["seconds"], 1e-9) if size in known else None
            for size in sizes
        )
        rows.append([record["query"], *(NONE if value is None else f"{value:,.0f}" for value in by_slide)])
    section.parts.append(Table(f"{graph.name}: edges/s with one batch per slide, by slide", rows))


def _slide_peers(results: Results, section: Section, graph: Graph) -> None:
    measured = list(records(results, "slides", "peer", graph))
    for engine in PEERS:
        of_engine = [record for record in measured if record["settings"]["engine"] == engine]
        sizes = sorted({record["settings"]["slide"] for record in of_engine})
        lines: dict[str, list[tuple[float, float]]] = {}
        rows = [["query", *(f"{duration(size)}: edges/s, Meander, times" for size in sizes)]]
        for query in dict.fromkeys(record["query"] for record in of_engine):
            by_size = {
                record["settings"]["slide"]: record["result"]
                for record in of_engine
                if record["query"] == query
            }
            cells = [query]
            for size in sizes:
                result = by_size.get(size)
                if result is None or result["peer"] is None:
                    cells.append(NONE)
                else:
                    lines.setdefault(query, []).append((size, rate(result["peer"])))
                    cells.append(", ".join(_same_edges(result)[1:]))
            rows.append(cells)
        if lines:
            section.parts.append(
                Table(f"{graph.name}: {engine}, and Meander on the same edges, by slide", rows)
            )
            section.parts.append(
                Plot(
                    f"slides-{engine.lower()}-{graph.name}",
                    f"Edges per second of {engine} by slide, on {graph.name}",
                    line_chart(
                        f"{graph.name}: throughput of {engine} by slide",
                        "slide",
                        "edges per second",
                        lines,
                        show=duration,
                    ),
                )
            )


def plans(results: Results) -> Section | None:
    """Figures 12 to 14."""
    section = Section(
        "Plan space",
        "The paper's figures 12 to 14: equivalent plans of Q2, Q3 and Q4, found by the laws of the algebra. "
        "Every plan that Meander enumerates is measured (it stops at 64, and a `--quick` run at 8); the plots "
        "show all of them in order, with the paper's names: SGA is the canonical plan, and P1, P2 and P3 are "
        "those of its section 7.4 for Q4. For Q2 and Q3 the paper does not print its alternatives. There, the "
        "plans differ by up to 60% in throughput for Q4, and by up to 50% for Q2 and Q3. The numbers of "
        "answers of all plans agreed.",
    )
    shares: list[float] = []
    gains: list[float] = []
    for graph in graphs(results, "plans"):
        rows = [["query", "plans", *(f"{name}: edges/s, p99" for name in PLAN_NAMES), "chosen / fastest"]]
        plots = []
        for query in dict.fromkeys(record["query"] for record in records(results, "plans", graph=graph)):
            known, marks, failed = _plans_of(results, graph, query)
            numbers = {mark: number for number, some in marks.items() for mark in some if number in known}
            if "chosen" not in numbers:
                continue
            numbers["fastest"] = max(known, key=lambda number: rate(known[number]))
            numbers["slowest"] = min(known, key=lambda number: rate(known[number]))
            share = rate(known[numbers["chosen"]]) / rate(known[numbers["fastest"]])
            shares.append(share)
            if "SGA" in numbers:
                gains.append(rate(known[numbers["chosen"]]) / rate(known[numbers["SGA"]]))
            cells = [query, f"{len(known)}{f' ({failed} failed)' if failed else ''}"]
            for name in PLAN_NAMES:
                plan = known[numbers[name]] if name in numbers else None
                number = f"plan {numbers[name]}: " if plan and name not in PAPER_PLANS else ""
                cells.append(f"{number}{shown_rate(plan)}, {shown_p99(plan)}" if plan else NONE)
            rows.append([*cells, f"{share:.2f}"])
            if share < CLOSE:
                section.limits.append(
                    f"{query} on {graph.name}: plan {numbers['fastest']} is {times(1 / share)} times as fast as the "
                    f"plan that is chosen (`--plan {numbers['fastest']}`)."
                )
            plots += _plan_plots(graph, query, known, marks)
        measured = list(records(results, "plans", graph=graph))
        if len(rows) > 1:
            title = f"{graph.name}, the first {edges_of(measured)} edges of each query's labels"
            section.parts += [Table(title, rows), *plots]
    if shares:
        section.findings.append(
            f"The plan that Meander chooses reaches {span(shares)} of the rate of the fastest plan of its query"
            + (f", and {span(gains)} times that of the canonical plan (SGA)." if gains else ".")
        )
    return section if section.parts else None


def _plan_plots(
    graph: Graph, query: str, plans: dict[int, dict[str, Any]], marks: dict[int, list[str]]
) -> list[Plot]:
    names = {number: ", ".join(marks.get(number, [])) for number in plans}
    by_rate = [(rate(plan), names[number]) for number, plan in plans.items()]
    by_p99 = [(1e3 * plan["p99"], names[number]) for number, plan in plans.items()]
    what = f"the plans of {query}"
    return [
        Plot(
            f"plans-{query.lower()}-{graph.name}",
            f"Edges per second of each plan of {query}, on {graph.name}",
            ranking(
                f"{graph.name}: throughput of {what}",
                f"{len(plans)} plans, from the slowest",
                "edges per second",
                by_rate,
            ),
        ),
        Plot(
            f"plans-p99-{query.lower()}-{graph.name}",
            f"The p99 of a slide of each plan of {query}, on {graph.name}",
            ranking(
                f"{graph.name}: p99 of {what}",
                f"{len(plans)} plans, from the shortest p99",
                "p99 of a slide, milliseconds",
                by_p99,
            ),
        ),
    ]


def _plans_of(
    results: Results, graph: Graph, query: str
) -> tuple[dict[int, dict[str, Any]], dict[int, list[str]], int]:
    """The plans and their marks by number, and how many failed. Of a plan that was measured often, the median."""
    runs: dict[int, list[dict[str, Any]]] = {}
    marks: dict[int, list[str]] = {}
    for record in records(results, "plans", graph=graph):
        if record["query"] == query:
            known = variants(record)
            for variant in record["settings"]["variants"]:
                number = int(variant["name"])
                marks[number] = variant["marks"]
                runs.setdefault(number, []).extend(
                    [known[variant["name"]]] if variant["name"] in known else []
                )
    plans = {number: sorted(some, key=rate)[len(some) // 2] for number, some in runs.items() if some}
    return plans, {number: some for number, some in marks.items() if some}, len(runs) - len(plans)


def operators(results: Results) -> Section | None:
    """Table 3."""
    section = Section(
        "Path operators",
        "The paper's Table 3: S-PATH, which keeps the largest expiry of each path and finds it directly, "
        "beside negative tuples, which derive paths again when they expire; and the two that the paper does "
        "not have: the closure, which works on all paths of a slide at once, and `auto`, which starts with S-PATH "
        "and switches between both at run time. Q5 has no path: its figures show the variation between runs. The "
        "paper's figures are from other hardware and larger graphs: compare the ratios.",
    )
    for graph in graphs(results, "operators"):
        measured = list(records(results, "operators", "meander", graph))
        if not measured:
            continue
        names = [variant["name"] for variant in measured[0]["settings"]["variants"]]
        like = graph_like(graph.name)
        header = ["query", *(f"{name}: edges/s, p99" for name in names), "S-PATH / negative tuples"]
        header += (
            [f"paper: {what}" for what in ("S-PATH edges/s", "p99", "S-PATH / negative tuples")]
            if like
            else []
        )
        rows = [header]
        dots: dict[str, dict[str, float]] = {name: {} for name in names}
        shares = {}
        ratios: dict[str, float] = {}
        better = []
        for record in measured:
            query, known = record["query"], variants(record)
            cells = [
                query,
                *(f"{shown_rate(known.get(name))}, {shown_p99(known.get(name))}" for name in names),
            ]
            both = "s-path" in known and "negative-tuple" in known
            if both and query != "Q5":
                ratios[query] = rate(known["s-path"]) / rate(known["negative-tuple"])
            cells.append(times(rate(known["s-path"]) / rate(known["negative-tuple"])) if both else NONE)
            if like:
                direct, negative = TABLE_3[like][query], TABLE_2[like]["SGA"][query]
                cells += [*_paper(direct), times(direct.rate / negative.rate)]
            for name, variant in known.items():
                dots[name][query] = rate(variant)
            rows.append(cells)
            best = max(known, key=lambda name: rate(known[name]))
            if "auto" in known and query != "Q5":
                shares[query] = rate(known["auto"]) / rate(known[best])
                if shares[query] < CLOSE:
                    better.append(f"{best} in {query} ({times(1 / shares[query])} times as fast)")
        section.parts.append(
            Table(f"{graph.name}, the first {edges_of(measured)} edges of each query's labels", rows)
        )
        section.parts.append(
            Plot(
                f"operators-{graph.name}",
                f"Edges per second of each path operator, on {graph.name}",
                dot_chart(f"{graph.name}: path operators", "query", "edges per second", dots),
            )
        )
        if ratios:
            published = (
                span([TABLE_3[like][query].rate / TABLE_2[like]["SGA"][query].rate for query in ratios])
                if like
                else ""
            )
            section.findings.append(
                f"On {graph.name} S-PATH has {span(list(ratios.values()))} times the rate of negative tuples"
                + (f" (the paper, on {like}: {published} times)." if like else ".")
            )
        if better:
            section.limits.append(
                f"On {graph.name} another `--path-operator` is better than `auto`: {listed(better)}."
            )
        if shares:
            section.findings.append(
                f"On {graph.name} `auto` reaches {span(list(shares.values()))} of the rate of the best path "
                "operator for the query."
            )
    return section if section.parts else None
