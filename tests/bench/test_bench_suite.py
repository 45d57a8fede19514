"""The command: small real runs of every experiment, what is stored, and how a run is continued."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from command import environment
from meander.bench import run, suite
from meander.bench.__main__ import main
from meander.bench.experiments import EXPERIMENTS, FULL, QUICK, Scope, tasks_of
from meander.bench.isolation import perform
from meander.bench.results import Results
from meander.bench.suite import Inputs, Pace, measure
from meander.bench.tasks import Task
from meander.bench.workloads import DATA_SETS, QUERIES, generated
from meander.errors import ArgumentError, InputError

DAY = 86_400
TINY = replace(
    QUICK,
    whole=300,
    own=30.0,
    enough=0.0,
    peer=0.3,
    dense=200,
    sparse=300,
    variant=0.3,
    values=0.002,
    cells=300,
    peer_queries=tuple(QUERIES),
)


def scope(*queries: str, **more: Any) -> Scope:
    settings: dict[str, Any] = {
        "data": [generated("cyclic", 400), generated("trees", 400)],
        "queries": queries or tuple(QUERIES),
        "window": 30 * DAY,
        "slide": DAY,
        "windows": [10 * DAY, 30 * DAY],
        "slides": [DAY, 7 * DAY],
        "cells": [2],
        "prefix": None,
        "peers": ["DuckDB"],
        "limits": TINY,
    }
    return Scope(**settings | more)


def measured(tmp_path: Path, tasks: list[Task], stored: Results | None = None) -> tuple[Results, str]:
    """The results of these tasks, and what was printed."""
    out = StringIO()
    stored = stored or Results({}, {})
    measure(tasks, stored, tmp_path / "results.json", Console(file=out, width=300))
    return stored, out.getvalue()


def results_of(stored: Results) -> list[dict[str, Any]]:
    assert [record.get("failure") for record in stored.measurements.values()] == [None] * len(
        stored.measurements
    )
    return [record["result"] for record in stored.measurements.values()]


# -- small real runs of each experiment


def test_engines_are_compared_on_the_edges_that_the_peer_processed(tmp_path: Path) -> None:
    stored, _ = measured(tmp_path, tasks_of(["engines"], scope("Q4")))
    for whole, peer in zip(results_of(stored)[:2], results_of(stored)[2:], strict=True):
        assert whole["variants"]["Meander"]["edges"] == whole["edges"] > 0
        assert whole["variants"]["Meander"]["p99"] > 0
        assert 0 < peer["peer"]["edges"] == peer["meander"]["edges"] <= peer["edges"]
        assert peer["slides_checked"] > 0


@pytest.mark.parametrize(("experiment", "names"), [("windows", ["10d", "30d"]), ("slides", ["1d", "1w"])])
def test_sensitivity_has_every_size_for_every_query(
    experiment: str, names: list[str], tmp_path: Path
) -> None:
    tasks = [task for task in tasks_of([experiment], scope("Q1", "Q5")) if task.kind == "meander"]
    stored, _ = measured(tmp_path, tasks)
    assert [record["query"] for record in stored.measurements.values()] == ["Q1", "Q5"]
    for result in results_of(stored):
        assert list(result["variants"]) == names
        assert all(variant["edges"] == result["edges"] for variant in result["variants"].values())


def test_every_plan_of_q4_is_measured_and_those_of_the_paper_are_marked(tmp_path: Path) -> None:
    stored, _ = measured(tmp_path, tasks_of(["plans"], scope("Q4")))
    (record,) = stored.measurements.values()
    marks = {
        variant["name"]: variant["marks"] for variant in record["settings"]["variants"] if variant["marks"]
    }
    assert sorted(mark for some in marks.values() for mark in some) == ["P1", "P2", "P3", "SGA", "chosen"]
    assert set(record["result"]["variants"]) == {"0", "1", "2", "3", "4", "5"}
    assert all(variant["edges"] for variant in record["result"]["variants"].values())


def test_all_plans_of_a_query_are_in_the_full_run() -> None:
    (q2, *q3) = tasks_of(["plans"], scope("Q2", "Q3", limits=replace(FULL, sparse_too=False)))
    numbers = {variant["name"] for task in q3 for variant in task.settings["variants"]}
    assert len(q2.settings["variants"]) == 3
    assert numbers == {str(number) for number in range(64)}
    chosen = [
        [variant for variant in task.settings["variants"] if "chosen" in variant["marks"]] for task in q3
    ]
    assert [len(some) for some in chosen] == [1] * len(q3)


@pytest.mark.parametrize(
    ("experiment", "names"),
    [
        ("operators", {"s-path", "negative-tuple", "closure", "auto"}),
        (
            "paths",
            {
                f"{operator}{words}"
                for operator in ("s-path", "negative-tuple", "closure", "auto")
                for words in ("", " with paths")
            },
        ),
        ("threads", {"1", "2"}),
    ],
)
def test_variants_take_turns(experiment: str, names: set[str], tmp_path: Path) -> None:
    stored, _ = measured(tmp_path, tasks_of([experiment], scope("Q1", data=[generated("cyclic", 400)])))
    (result,) = results_of(stored)
    assert set(result["variants"]) == names
    assert all("failure" not in variant for variant in result["variants"].values())


def test_a_profile_has_the_shares_of_all_parts(tmp_path: Path) -> None:
    tasks = [task for task in tasks_of(["profile"], scope("Q4")) if task.kind == "profile"]
    stored, _ = measured(tmp_path, tasks[:1])
    (result,) = results_of(stored)
    assert {"reading", "interning", "naming", "writing"} <= set(result["parts"])
    assert any(part.startswith("operator #") and "PATH" in part for part in result["parts"])
    assert sum(result["parts"].values()) == pytest.approx(result["seconds"], abs=1e-4)
    kernels = {kernel["kernel"].rpartition(".")[2] for kernel in result["kernels"]}
    assert {"name_rows"} <= kernels
    for kernel in result["kernels"]:
        assert 0 < kernel["seconds"] <= result["parts"][kernel["part"]] + 1e-4
    assert (result["edges"], result["records"] > 0) == (result["edges"], True)


def test_properties_and_fraud_are_measured(tmp_path: Path) -> None:
    tasks = tasks_of(["values"], scope("Q1", limits=replace(TINY, values=0.02, peer=5.0)))
    stored, _ = measured(tmp_path, [task for task in tasks if task.name in ("columns", "ring")])
    columns, ring = results_of(stored)
    assert [ratio["ratio"] > 0 for ratio in columns["ratios"]] == [True, True]
    assert ring["slides"] > 0
    assert ring["Meander"] > 0 < ring["DuckDB"]


def test_cells_spread_the_work(tmp_path: Path) -> None:
    stored, _ = measured(tmp_path, tasks_of(["cells"], scope("Q2", data=[generated("trees", 400)])))
    (result,) = results_of(stored)
    assert [spread["cells"] for spread in result["spreads"]] == [1, 2]


# -- what is stored, and how a run is continued


def test_a_run_measures_only_what_is_not_stored_yet(tmp_path: Path) -> None:
    tasks = tasks_of(["threads"], scope("Q1"))
    first, printed = measured(tmp_path, tasks)
    assert printed.startswith("[1/1] threads cyclic:400 Q1: ")
    again = Results.load(tmp_path / "results.json")
    assert again.measurements == first.measurements
    _, printed = measured(tmp_path, tasks, again)
    assert printed == "1 of 1 measurements are there already\n"


def test_a_measurement_of_other_settings_or_another_version_is_made_again(tmp_path: Path) -> None:
    (task,) = tasks_of(["threads"], scope("Q1"))
    stored, _ = measured(tmp_path, [task])
    assert stored.has(task)
    assert not stored.has(replace(task, settings={**task.settings, "prefix": 100}))
    for change in ({"version": "0.0.1"}, {"failure": "out of luck"}):
        changed = Results(stored.machine, {task.key: stored.measurements[task.key] | change})
        assert not changed.has(task)
    elsewhere = Results({**stored.machine, "cores": 999}, dict(stored.measurements))
    elsewhere.start()
    assert elsewhere.measurements == {}


def test_measurements_of_other_experiments_stay_and_those_that_are_no_longer_asked_for_go(
    tmp_path: Path,
) -> None:
    stored, _ = measured(tmp_path, tasks_of(["threads"], scope("Q1")))
    measured(tmp_path, tasks_of(["operators"], scope("Q5", data=[generated("trees", 400)])), stored)
    assert set(stored.measurements) == {"threads meander cyclic:400 Q1", "operators meander trees:400 Q5"}
    stored.drop_others(tasks_of(["operators"], scope("Q6", data=[generated("trees", 400)])))
    assert set(stored.measurements) == {"threads meander cyclic:400 Q1"}


def test_a_task_that_fails_is_recorded_and_the_others_go_on(tmp_path: Path) -> None:
    good = tasks_of(["operators"], scope("Q5", data=[generated("trees", 400)]))
    bad = [replace(task, kind="nobody", name="bad") for task in good]
    slow = [replace(task, name="slow", patience=0.01) for task in good]
    stored, printed = measured(tmp_path, [*bad, *slow, *good])
    failures = [record.get("failure") for record in stored.measurements.values()]
    assert failures == ["KeyError: 'nobody'", "not done after 0 s", None]
    assert "operators trees:400 Q5 bad: FAILED: KeyError: 'nobody'" in printed


def test_a_graph_without_the_labels_is_a_failure_of_its_tasks(tmp_path: Path) -> None:
    (task,) = tasks_of(["threads"], scope("Q1"))
    mislabeled = replace(task, data=replace(task.data, bindings={"Q1": ("nosuch",)}))
    stored, _ = measured(tmp_path, [mislabeled])
    (failure,) = [record["failure"] for record in stored.failures]
    assert failure == "cyclic:400 has no edges with the labels nosuch"


def test_wrong_answers_are_a_failure(tmp_path: Path) -> None:
    (task,) = [task for task in tasks_of(["engines"], scope("Q1")) if task.kind == "peer"][:1]
    variants = [{"name": "Meander", "slide": DAY, "window": 10 * DAY}]
    file = Inputs(tmp_path).file(task)
    outcome = perform(replace(task, settings={**task.settings, "variants": variants}), file)
    assert "cyclic:400 Q1: at the end of slide" in outcome["failure"]


def test_an_interrupted_run_is_continued_by_the_same_command(tmp_path: Path) -> None:
    results = tmp_path / "out" / "results.json"
    command = [
        *(sys.executable, "-m", "meander.bench", "--quick", "--only", "windows", "--data", "cyclic:300"),
        *("--no-peers", "--results", str(results)),
    ]
    process = subprocess.Popen(
        command, env=environment(), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    begun = time.monotonic()
    while not results.is_file() and time.monotonic() - begun < 120:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == suite.INTERRUPTED, errors
    assert errors.endswith("interrupted: the same command continues with what is left\n")
    before = json.loads(results.read_text(encoding="utf-8"))["measurements"]
    assert 0 < len(before) < len(QUERIES)
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{len(before)} of 7 measurements are there already" in done.stderr
    after = json.loads(results.read_text(encoding="utf-8"))["measurements"]
    assert len(after) == 7
    assert {key: after[key] for key in before} == before


def test_the_time_left_follows_how_long_tasks_take() -> None:
    pace = Pace([30.0, 60.0, 60.0])
    assert pace.left() == "about 2 min left"
    pace.done(90.0)
    assert pace.seconds == 120 * 120 / 60
    pace.done(60.0)
    pace.done(60.0)
    assert pace.left() == "less than a minute left"


def test_nothing_of_a_task_outlives_it(tmp_path: Path) -> None:
    (task, *_) = tasks_of(["engines"], scope("Q1", limits=FULL))
    file = Inputs(tmp_path).file(task)
    before = time.monotonic()
    assert perform(replace(task, patience=0.5), file) == {"failure": "not done after 0 s"}
    assert time.monotonic() - before < 20
    children = subprocess.run(
        ["ps", "-o", "args", "--ppid", str(os.getpid())], capture_output=True, text=True, check=True
    ).stdout
    assert "measures.worker" not in children


# -- the whole


def test_the_full_run_takes_less_than_an_hour_and_the_quick_one_some_minutes() -> None:
    both = [DATA_SETS["mathoverflow"], DATA_SETS["snb"]]
    days = [days * DAY for days in (10, 20, 30, 60, 120)]
    full = scope(
        data=both,
        windows=days,
        slides=[3600, 6 * 3600, DAY, 7 * DAY],
        cells=[2, 3, 8],
        peers=["Pathway", "DuckDB"],
        limits=FULL,
    )
    quick = scope(
        data=both,
        windows=days[::2],
        slides=[6 * 3600, DAY, 7 * DAY],
        peers=["Pathway", "DuckDB"],
        limits=QUICK,
    )
    assert sum(task.seconds for task in tasks_of(list(EXPERIMENTS), full)) < 3_600
    assert sum(task.seconds for task in tasks_of(list(EXPERIMENTS), quick)) < 240


def test_meander_alone_is_measured_before_what_depends_on_other_engines() -> None:
    tasks = tasks_of(list(EXPERIMENTS), scope(peers=["Pathway", "DuckDB"]))
    kinds = list(dict.fromkeys(task.kind for task in tasks))
    assert kinds == ["meander", "profile", "values", "peer", "spark", "cells"]
    alone = list(dict.fromkeys(task.experiment for task in tasks if task.kind == "meander"))
    assert alone == ["engines", "windows", "slides", "plans", "operators", "paths", "threads"]


def test_every_task_has_a_key_of_its_own_and_plain_settings() -> None:
    tasks = tasks_of(list(EXPERIMENTS), scope(peers=["Pathway", "DuckDB"]))
    assert len({task.key for task in tasks}) == len(tasks)
    for task in tasks:
        assert json.loads(json.dumps(task.as_dict())) == task.as_dict()


def test_the_command_measures_prints_and_writes_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.json"
    words = "--quick --only threads,operators --data cyclic:300 --queries Q1 --results"
    assert main([*words.split(), str(results)]) == 0
    shown = capsys.readouterr()
    assert "Path operators" in shown.out
    assert "[2/2] operators cyclic:300 Q1: " in shown.err
    page = (tmp_path / "benchmarks.md").read_text(encoding="utf-8")
    assert "## Path operators" in page
    assert (tmp_path / "operators-cyclic-300.svg").is_file()
    assert (
        main(["--show", "--only", "threads", "--results", str(results), "--page", str(tmp_path / "again.md")])
        == 0
    )
    assert "Path operators" not in capsys.readouterr().out
    assert (tmp_path / "again.md").read_text(encoding="utf-8") == page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": "1h"}, "a window of 1h is shorter than its slide of 1d"),
        ({"slide": "0"}, "--slide: a duration of zero"),
        ({"window": "thirty"}, "--window: invalid duration: thirty"),
        ({"windows": "10d,many"}, "--windows: invalid duration: many"),
        ({"prefix": 0}, "--prefix 0 leaves no edges"),
        ({"queries": "Q8"}, "unknown query 'Q8'"),
        ({"data": "imdb"}, "unknown data set 'imdb'"),
        ({"only": "sleep"}, "unknown experiment 'sleep'\nhint: experiments are engines, windows"),
        ({"cells": "0"}, "--cells 0\nhint: write numbers from 1 on"),
        ({"cells": "two"}, "--cells two"),
        ({"only": "plans", "queries": "Q5"}, "there is nothing to measure"),
    ],
)
def test_options_that_cannot_be_used_are_refused(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ArgumentError) as caught:
        run(results=tmp_path / "results.json", **{"data": "trees", "peers": False} | options)
    assert message in str(caught.value)


@pytest.mark.parametrize("content", ["no JSON", "[]", '{"format": 99}', "{}"])
def test_a_file_with_something_else_is_not_touched(content: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(content)
    with pytest.raises(InputError, match="does not have the results of this benchmark"):
        Results.load(path)
    assert path.read_text() == content
