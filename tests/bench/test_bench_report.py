"""What a reader gets: charts, tables and the page, all of it from the results."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from meander.bench.report.charts import dot_chart, line_chart, ranking
from meander.bench.report.page import render, sections_of, write_page
from meander.bench.report.published import SNB, SO, TABLE_2, TABLE_3
from meander.bench.report.sections import Plot, Table, listed, span
from meander.bench.results import Results
from meander.bench.workloads import QUERIES

DAY = 86_400
MACHINE: dict[str, str | int] = {
    "cores": 2,
    "memory_gib": 24,
    "processor": "a processor",
    "system": "Linux x86_64",
    "python": "3.11",
}


def measured(edges: int, seconds: float, p99: float | None = 0.002, **more: Any) -> dict[str, Any]:
    return {
        "edges": edges,
        "seconds": seconds,
        "p99": p99,
        "state_bytes": 5e6,
        "version": "9",
        "slides": {"number": 10, "seconds": 1.0},
    } | more


def record(
    experiment: str, kind: str, query: str, settings: dict[str, Any], result: dict[str, Any]
) -> dict[str, Any]:
    return {
        "experiment": experiment,
        "kind": kind,
        "data": "snb",
        "about": "a social network",
        "dense": False,
        "query": query,
        "name": "",
        "settings": settings,
        "version": "1.0+abc",
        "date": "2026-01-31",
        "took": 1.0,
        "result": result,
    }


def results(*records: dict[str, Any]) -> Results:
    return Results(MACHINE, {str(number): record for number, record in enumerate(records)})


def variants(*names: str, **more: Any) -> dict[str, Any]:
    return {
        "variants": [
            {"name": name, "marks": [], **{key: value[name] for key, value in more.items()}} for name in names
        ]
    }


def tables(stored: Results, experiment: str) -> list[Table]:
    sections = sections_of(stored, [experiment]).values()
    return [part for section in sections for part in section.parts if isinstance(part, Table)]


def main_table(peer_seconds: float) -> Results:
    own = record(
        "engines",
        "meander",
        "Q1",
        variants("Meander"),
        {"edges": 10_000, "variants": {"Meander": measured(10_000, 1.0)}},
    )
    compared = {
        "edges": 10_000,
        "peer": measured(1_000, peer_seconds, 0.1),
        "meander": measured(1_000, 0.2),
        "slides_checked": 9,
    }
    return results(own, record("engines", "peer", "Q1", {"engine": "DuckDB"}, compared))


def test_the_main_table_has_every_engine_beside_the_published_figures_and_compares_equal_edges() -> None:
    whole, same_edges = tables(main_table(2.0), "engines")
    assert dict(zip(*whole.rows, strict=False)) | {"p99": None} == {
        "query": "Q1",
        "edges": "10,000",
        "Meander edges/s": "10,000",
        "p99": None,
        "DuckDB edges/s": "500",
        "paper: SGA edges/s": "97,187",
        "paper: DD edges/s": "121,133",
    }
    assert [cell for name, cell in zip(*whole.rows, strict=True) if name == "p99"] == [
        "2.0 ms",
        "100.0 ms",
        "1.5 s",
        "0.8 s",
    ]
    assert same_edges.rows[1] == ["Q1", "1,000", "500", "5,000", "10.0"]


def test_the_page_says_where_a_peer_is_faster() -> None:
    slower, _ = render(main_table(2.0), "")
    faster, _ = render(main_table(0.1), "")
    sentence = "Q1 on snb: DuckDB is faster on the same edges, by a factor of 2.0."
    assert sentence not in slower
    assert sentence in faster
    assert "10.0 times the rate of DuckDB" in slower


def test_plans_have_the_names_of_the_paper_and_the_choice_is_compared_with_the_best() -> None:
    seconds = {"0": 2.0, "1": 1.0, "4": 0.5, "5": 4.0}
    marks = {"0": ["SGA"], "1": ["P1", "chosen"], "4": ["P3"], "5": ["P2"]}
    result = {"edges": 1_000, "variants": {name: measured(1_000, spent) for name, spent in seconds.items()}}
    stored = results(record("plans", "meander", "Q4", variants(*seconds, marks=marks), result))
    (table,) = tables(stored, "plans")
    assert table.rows[1] == [
        "Q4",
        "4",
        "plan 5: 250, 2.0 ms",
        "500, 2.0 ms",
        "1,000, 2.0 ms",
        "250, 2.0 ms",
        "2,000, 2.0 ms",
        "plan 1: 1,000, 2.0 ms",
        "plan 4: 2,000, 2.0 ms",
        "0.50",
    ]
    assert sections_of(stored)["Plan space"].findings == [
        "The plan that Meander chooses reaches 0.50 of the rate of the fastest plan of its query, and 2.0 times "
        "that of the canonical plan (SGA)."
    ]
    plots = [part.name for part in sections_of(stored)["Plan space"].parts if isinstance(part, Plot)]
    assert plots == ["plans-q4-snb", "plans-p99-q4-snb"]
    assert sections_of(stored)["Plan space"].limits == [
        "Q4 on snb: plan 4 is 2.0 times as fast as the plan that is chosen (`--plan 4`)."
    ]


def test_windows_give_lines_of_throughput_latency_and_memory() -> None:
    sizes = {"10d": 10 * DAY, "30d": 30 * DAY}
    result = {
        "edges": 1_000,
        "variants": {"10d": measured(1_000, 0.1), "30d": measured(1_000, 0.2, 0.008, state_bytes=2e7)},
    }
    stored = results(record("windows", "meander", "Q1", variants(*sizes, window=sizes), result))
    text, plots = render(stored, "plots/")
    assert set(plots) == {"windows-throughput-snb.svg", "windows-p99-snb.svg", "memory-snb.svg"}
    assert all(f"](plots/{name})" in text for name in plots)
    assert "| Q1 | 10,000, 2.0 ms | 5,000, 8.0 ms |" in text
    assert "| Q1 | 5.0 MB | 20.0 MB |" in text
    assert "throughput is 0.50 times as high, and the p99 of a slide 4.0 times as long" in " ".join(
        text.split()
    )


def test_operators_stand_beside_table_3() -> None:
    names = ("s-path", "negative-tuple", "closure", "auto")
    result = {
        "edges": 1_000,
        "variants": {name: measured(1_000, spent) for name, spent in zip(names, (1, 2, 0.1, 1), strict=True)},
    }
    stored = results(record("operators", "meander", "Q1", variants(*names), result))
    (table,) = tables(stored, "operators")
    assert table.rows[1][-4:] == ["2.0", "95,903", "1.4 s", "0.99"]
    assert sections_of(stored)["Path operators"].limits == [
        "On snb another `--path-operator` is better than `auto`: closure in Q1 (10.0 times as fast)."
    ]


def test_a_variant_that_reached_its_time_limit_has_the_number_of_its_edges() -> None:
    result = {"edges": 2_000, "variants": {"1": measured(1_000, 1.0), "2": measured(2_000, 1.0)}}
    (table,) = tables(results(record("threads", "meander", "Q1", variants("1", "2"), result)), "threads")
    assert table.rows[1][3:] == ["1,000 (1,000)", "2,000", "2.0"]


def test_a_variant_that_failed_is_listed_beside_the_figures_of_the_others() -> None:
    result = {"edges": 1_000, "variants": {"1": measured(1_000, 1.0), "2": {"failure": "out of luck"}}}
    stored = results(record("operators", "meander", "Q1", variants("1", "2"), result))
    text, _ = render(stored, "")
    assert "## Failures\n\n- operators snb Q1, 2: FAILED: out of luck\n" in text
    (table,) = tables(stored, "operators")
    assert table.rows[1][1:3] == ["1,000, 2.0 ms", "–, –"]


def test_s_path_is_compared_with_negative_tuples_beside_the_paper() -> None:
    result = {
        "edges": 1_000,
        "variants": {"s-path": measured(1_000, 1.0), "negative-tuple": measured(1_000, 2.0)},
    }
    stored = results(record("operators", "meander", "Q1", variants("s-path", "negative-tuple"), result))
    assert sections_of(stored)["Path operators"].findings == [
        "On snb S-PATH has 2.0 times the rate of negative tuples (the paper, on SNB SF10: 0.99 times)."
    ]


def test_the_parts_of_a_profile_are_in_the_order_in_which_an_edge_meets_them() -> None:
    parts = {"writing": 5.0, "operator #1 PATH P: a*": 3.0, "interning": 1.0, "reading": 1.0}
    result = {"edges": 100, "records": 5_000, "seconds": 10.0, "parts": parts, "kernels": []}
    runs, shares, _ = tables(results(record("profile", "profile", "Q1", {}, result)), "profile")
    assert runs.rows[1] == ["snb Q1", "100", "5,000", "50", "10.00"]
    assert shares.rows[1:] == [
        ["reading", "10%"],
        ["interning", "10%"],
        ["operator PATH", "30%"],
        ["writing", "50%"],
    ]


def test_a_failure_is_shown_and_has_no_figures() -> None:
    stored = main_table(2.0)
    failed = stored.measurements["1"]
    failed["failure"] = "the engines disagree"
    del failed["result"]
    text, _ = render(stored, "")
    assert "engines snb Q1: FAILED: the engines disagree" in text
    assert "DuckDB edges/s" not in text


def test_the_published_tables_are_whole() -> None:
    for graph in (SO, SNB):
        rows = [*TABLE_2[graph].values(), TABLE_3[graph]]
        assert len(rows) == 3
        assert all(list(row) == list(QUERIES) for row in rows)
    # Table 3 of the paper prints the improvement of S-PATH over Table 2: 4.4% for Q1, 67.1% for Q6.
    for query, improvement in (("Q1", 0.044), ("Q3", -0.053), ("Q6", 0.671)):
        assert TABLE_3[SO][query].rate / TABLE_2[SO]["SGA"][query].rate - 1 == pytest.approx(
            improvement, abs=6e-4
        )
    assert TABLE_3[SNB]["Q5"].rate / TABLE_2[SNB]["SGA"]["Q5"].rate - 1 == pytest.approx(0.049, abs=6e-4)


def test_the_page_is_written_with_its_plots(tmp_path: Path) -> None:
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots" / "mine.svg").write_text("mine")
    write_page(main_table(2.0), tmp_path / "page.md", plots=tmp_path / "plots")
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"\]\(plots/(.+?\.svg)\)", text))
    assert len(shown) == 2
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {"mine.svg", *shown}
    words = " ".join(text.split())
    assert (
        "Measured on 2026-01-31 on a machine with 2 cores and 24 GiB of memory (a processor, Linux x86_64)"
        in words
    )
    assert "with Meander 1.0+abc and DuckDB 9" in words


def test_an_empty_page_says_so() -> None:
    text, plots = render(Results({}, {}), "")
    assert "Nothing has been measured yet." in text
    assert plots == {}


def texts(svg: str) -> dict[str, float]:
    """The words of a picture, and how far down they stand."""
    elements = [element for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("}text")]
    return {str(element.text): float(element.attrib["y"]) for element in elements}


def dots(svg: str) -> list[tuple[float, float]]:
    circles = [element for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("}circle")]
    return [(float(circle.attrib["cx"]), float(circle.attrib["cy"])) for circle in circles]


def test_a_line_chart_has_a_line_and_a_name_for_each_series_and_stays_inside() -> None:
    lines = {f"Q{n}": [(10.0 * k, 1_000.0 + n) for k in (1, 2, 4)] for n in range(1, 8)}
    svg = line_chart("a & b", "window", "edges per second", lines)
    heights = sorted(y for name, y in texts(svg).items() if name in lines)
    assert len(heights) == 7
    assert all(later - earlier > 14 for earlier, later in pairwise(heights))
    assert heights[0] > 0
    assert heights[-1] < float(ElementTree.fromstring(svg).attrib["height"])
    assert len(dots(svg)) == 21
    assert {"a & b", "window", "edges per second", "1,000", "10,000"} <= set(texts(svg))


def test_a_dot_chart_has_a_dot_in_each_category_and_a_legend() -> None:
    svg = dot_chart(
        "engines", "query", "edges per second", {"A": {"Q1": 10.0, "Q2": 100.0}, "B": {"Q2": 1_000.0}}
    )
    assert {"A", "B", "Q1", "Q2"} <= set(texts(svg))
    assert len(dots(svg)) == 3 + 2
    low, middle, high = sorted((y for x, y in dots(svg) if x < 530), reverse=True)
    assert low - middle == pytest.approx(middle - high, abs=0.2)


def test_a_dot_chart_can_pair_a_series_with_rings_of_the_same_color() -> None:
    svg = dot_chart(
        "paths", "query", "edges", {"A": {"Q1": 10.0}, "A with": {"Q1": 5.0}}, rings={"A with": "A"}
    )
    circles = [element for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("}circle")]
    filled = {circle.attrib["fill"] for circle in circles if "stroke" not in circle.attrib}
    rings = {circle.attrib["stroke"] for circle in circles if "stroke" in circle.attrib}
    assert len(circles) == 4
    assert filled == rings


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ((12.0, 30.0), ["10", "20", "50", "100"]),
        ((0.3, 25.0), ["0.2", "0.5", "1", "2", "5", "10", "20", "50"]),
        ((200.0, 900_000.0), ["1,000", "10,000", "100,000", "1,000,000"]),
    ],
)
def test_an_axis_has_round_values_and_is_just_large_enough(
    values: tuple[float, float], shown: list[str]
) -> None:
    svg = ranking("plans", "plans", "edges", [(value, "") for value in values])
    heights = texts(svg)
    assert sorted(set(heights) - {"plans", "edges"}, key=lambda name: -heights[name]) == shown
    assert all(44 <= y <= 360 - 52 for _, y in dots(svg))


def test_a_ranking_has_all_values_in_order_and_names_apart() -> None:
    values = [(float(value), f"plan {value}" if value in (7, 8, 9) else "") for value in range(1, 11)]
    svg = ranking("plans", "plans", "edges per second", values)
    assert len(dots(svg)) == 10
    assert all(right[1] < left[1] for left, right in pairwise(sorted(dots(svg))))
    heights = sorted(y for name, y in texts(svg).items() if name.startswith("plan "))
    assert len(heights) == 3
    assert all(later - earlier > 14 for earlier, later in pairwise(heights))


def test_words_for_values() -> None:
    assert span([3.14, 25.4]) == "3.1 to 25"
    assert span([1.0, 1.001]) == "1.00"
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
