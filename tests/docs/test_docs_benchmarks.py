"""The page of the benchmarks is what the program makes of the results beside it.

`MEANDER_REGENERATE=1 pytest tests/docs/test_docs_benchmarks.py` writes it again; `make bench` measures again.
"""

from __future__ import annotations

import os
from pathlib import Path

from meander.bench.report.page import SECTIONS, render, write_page
from meander.bench.results import Results

DOCS = Path(__file__).parents[2] / "docs"
PLOTS = DOCS / "benchmarks"


def test_the_page_of_the_benchmarks_and_its_plots_are_those_of_the_results() -> None:
    results = Results.load(PLOTS / "results.json")
    if os.environ.get("MEANDER_REGENERATE"):
        write_page(results, DOCS / "benchmarks.md", plots=PLOTS)
    text, plots = render(results, "benchmarks/")
    assert (DOCS / "benchmarks.md").read_text(encoding="utf-8") == text
    assert {path.name for path in PLOTS.iterdir()} == {"results.json", *plots}
    for name, svg in plots.items():
        assert (PLOTS / name).read_text(encoding="utf-8") == svg


def test_the_results_are_of_every_experiment() -> None:
    results = Results.load(PLOTS / "results.json")
    assert {record["experiment"] for record in results.measurements.values()} == set(SECTIONS)
    assert results.failures == []
