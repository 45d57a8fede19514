"""What a reader gets: tables, a file updated in place, and a chart."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path

import pytest

from meander.bench import run
from meander.bench.__main__ import main
from meander.bench.measurement import Measurement
from meander.bench.plots import line_chart
from meander.bench.tables import BEGIN, END, Comparison, Report, Row, as_markdown, write_markdown
from meander.bench.workloads import DATA_SETS, Workload
from meander.errors import ArgumentError

MACHINE: dict[str, str | int] = {
    "cores": 2,
    "memory_gib": 24,
    "processor": "a processor",
    "system": "Linux x86_64",
    "python": "3.11",
    "date": "2026-01-31",
}


def report() -> Report:
    parts = {"read": 0.5, "process": 0.5}
    whole = Measurement("Meander", 10_000, 1.0, 0.5, {}, 0.002, "1", {"parts": parts})
    part = Measurement("Meander", 1_000, 0.2, 0.1, {9: 4}, 0.001, "1")
    peer = Measurement("DuckDB", 1_000, 2.0, 2.0, {9: 4}, 0.1, "2.0")
    row = Row(Workload(DATA_SETS["snb"], "Q1"), 10_000, whole, {"DuckDB": Comparison(peer, part, 1)})
    return Report(MACHINE, 2_592_000, 86_400, "auto", "wall", "meander bench", [row])


def test_the_table_compares_equal_edges_and_says_how_far_a_peer_came() -> None:
    _, (header, cells) = report().sections()[0]
    assert dict(zip(header[:5], cells[:5], strict=True)) == {
        "query": "Q1",
        "edges": "10,000",
        "Meander edges/s": "10,000",
        "of that, reading": "50%",
        "p99 of a slide": "2.0 ms",
    }
    assert header[5:] == ["DuckDB edges/s", "Meander, same edges", "times"]
    assert cells[5:] == ["500 (1,000)", "5,000", "10.0"]


def test_processor_time_gives_other_figures() -> None:
    measured = report()
    measured.clock = "cpu"
    _, (_, cells) = measured.sections()[0]
    assert cells[5:] == ["500 (1,000)", "10,000", "20.0"]


def test_a_failure_is_reported_and_leaves_no_figures() -> None:
    measured = report()
    measured.rows = [Row(Workload(DATA_SETS["snb"], "Q1"), 10_000, fault="the engines disagree")]
    assert "| Q1 | 10,000 | – | – | – |" in as_markdown(measured)
    assert "snb Q1: the engines disagree" in as_markdown(measured)


def test_the_tables_replace_the_old_ones_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Before\n\n{BEGIN}\nold\n{END}\n\nAfter.\n", encoding="utf-8")
    write_markdown(report(), page)
    once = page.read_text(encoding="utf-8")
    write_markdown(report(), page)
    assert page.read_text(encoding="utf-8") == once
    assert once.startswith("# Before\n")
    assert once.endswith("After.\n")
    assert "old" not in once
    assert "2 cores and 24 GiB of memory" in once


def test_a_page_without_marks_is_left_as_it_is(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("mine\n", encoding="utf-8")
    with pytest.raises(ArgumentError, match="has no marks for the tables\nhint: put the lines"):
        write_markdown(report(), page)
    assert page.read_text(encoding="utf-8") == "mine\n"


def test_a_chart_has_a_line_and_a_name_for_each_series_and_stays_inside() -> None:
    lines = {f"Q{n}": [(10.0 * k, 1_000.0 + n) for k in (1, 2, 4)] for n in range(1, 8)}
    root = ElementTree.fromstring(line_chart("a & b", "window", "edges/s", lines))
    texts = [element for element in root.iter() if element.tag.endswith("}text")]
    names = {element.text: float(element.attrib["y"]) for element in texts if element.text in lines}
    assert set(names) == set(lines)
    heights = sorted(names.values())
    assert all(later - earlier > 14 for earlier, later in pairwise(heights))
    assert heights[0] > 0
    assert heights[-1] < float(root.attrib["height"])
    assert sum(element.tag.endswith("}circle") for element in root.iter()) == 21


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": "1h"}, "a window of 1h is shorter than its slide of 1d"),
        ({"slide": "0"}, "--slide: a duration of zero"),
        ({"window": "thirty"}, "--window: invalid duration: thirty"),
        ({"prefix": 0}, "--prefix 0 leaves no edges"),
        ({"path_operator": "fast"}, "--path-operator fast is unknown\nhint: it is one of auto, s-path"),
        ({"path_operator": "s-path,closure"}, "hint: several can be compared with --windows alone"),
        ({"clock": "sun"}, "--clock sun is unknown\nhint: it is one of wall, cpu"),
        ({"queries": "Q8"}, "unknown query 'Q8'"),
        ({"data": "imdb"}, "unknown data set 'imdb'"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        run(**options)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_a_benchmark_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures, page = tmp_path / "figures.json", tmp_path / "page.md"
    words = "--data trees --queries Q1 --prefix 300 --no-peers --path-operator s-path"
    assert main([*words.split(), "--json", str(figures), "--write", str(page)]) == 0
    shown = capsys.readouterr()
    assert "Meander edges/s" in shown.out
    assert "trees Q1: Meander" in shown.err
    loaded = json.loads(figures.read_text(encoding="utf-8"))
    assert [workload["query"] for workload in loaded["workloads"]] == ["Q1"]
    assert loaded["command"] == "meander bench --data trees --queries Q1 --prefix 300 --path-operator s-path"
    assert BEGIN in page.read_text(encoding="utf-8")


def test_throughput_against_window_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chart = tmp_path / "chart.svg"
    words = (
        "--data trees --queries Q1 --prefix 300 --windows 5d,10d --path-operator s-path,negative-tuple --plot"
    )
    assert main([*words.split(), str(chart)]) == 0
    shown = capsys.readouterr().out
    assert "trees Q1 negative-tuple, window 10d:" in shown
    assert shown.count("(1.00 of the fastest)") >= 2
    for drawn in (chart, tmp_path / "chart-p99.svg"):
        assert drawn.read_text(encoding="utf-8").count("<circle") == 4


def test_a_kind_of_graph_is_generated_where_its_file_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEANDER_DATA", str(tmp_path))
    figures = tmp_path / "figures.json"
    words = "--data social --queries Q1 --prefix 300 --no-peers --path-operator s-path --json"
    assert main([*words.split(), str(figures)]) == 0
    messages = capsys.readouterr().err
    assert "ldbc-snb-sf0.1.tsv.gz is not in" in messages
    assert "trees, a generated graph, is measured instead" in messages
    loaded = json.loads(figures.read_text(encoding="utf-8"))
    assert [workload["data"] for workload in loaded["workloads"]] == ["trees"]


def test_bad_arguments_end_with_status_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--queries", "Q8"]) == 2
    assert "error: unknown query 'Q8'" in capsys.readouterr().err
