"""The benchmark: all tasks that are not stored yet, one after the other, and then the page.

Each task runs in a process of its own. Its result is stored before the next one starts, so a run that was interrupted
is continued by the same command. A task that fails leaves its failure among the results, and is tried again
next time.
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from meander.bench.data import Graph, choose_data, load
from meander.bench.experiments import EXPERIMENTS, FULL, QUICK, Scope, tasks_of
from meander.bench.isolation import perform
from meander.bench.peers import pathway
from meander.bench.report.page import write_page
from meander.bench.report.summary import outline
from meander.bench.report.terminal import print_sections
from meander.bench.results import Results
from meander.bench.tasks import Task
from meander.bench.workloads import QUERIES, choose_queries
from meander.errors import ArgumentError, MeanderError
from meander.syntax.durations import parse_duration

HOUR, DAY = 3_600, 86_400
INTERRUPTED = 130


def run(
    *,
    only: str = "all",
    profile: bool = False,
    quick: bool = False,
    data: str = "all",
    labels: str = "",
    queries: str = "all",
    prefix: int | None = None,
    window: str = "30d",
    slide: str = "1d",
    windows: str = "10d,20d,30d,60d,120d",
    slides: str = "1h,6h,1d,7d",
    cells: str = "2,3,8",
    time_limit: str | None = None,
    peers: bool = True,
    results: Path = Path("meander-bench/results.json"),
    page: Path | None = None,
    again: bool = False,
    show: bool = False,
) -> int:
    """Measure what is not stored in `results` yet, write the page, print the tables; returns the exit status.

    `page` is by default `benchmarks.md` beside the results; its plots are in the folder of the results. With `again`
    stored measurements are made again; with `show` nothing is measured, and the page is made of what is stored.
    """
    console = Console(stderr=True, highlight=False)
    stored = Results.load(results)
    names = ["profile"] if profile else _experiments(only)
    page = page or results.parent / "benchmarks.md"
    if not show:
        scope = _scope(
            console,
            quick,
            data,
            labels,
            queries,
            prefix,
            window,
            slide,
            windows,
            slides,
            cells,
            time_limit,
            peers,
        )
        tasks = tasks_of(names, scope)
        if not tasks:
            raise ArgumentError(
                "there is nothing to measure",
                hint="the chosen queries, graphs and experiments do not go together",
            )
        try:
            measure(tasks, stored, results, console, again=again)
        except KeyboardInterrupt:
            console.print("interrupted: the same command continues with what is left", soft_wrap=True)
            return INTERRUPTED
    write_page(stored, page, plots=results.parent)
    print_sections(stored, names)
    failures = [record for record in stored.failures if record["experiment"] in names]
    for record in failures:
        console.print(f"failed: {outline(record)}", soft_wrap=True)
    console.print(f"results: {results}\npage: {page}", soft_wrap=True)
    return 1 if failures else 0


def measure(
    tasks: Sequence[Task], stored: Results, path: Path, console: Console, *, again: bool = False
) -> None:
    """Perform the tasks of which nothing is stored, and store each result at once."""
    stored.start()
    stored.drop_others(tasks)
    waiting = [task for task in tasks if again or not stored.has(task)]
    if len(waiting) < len(tasks):
        console.print(f"{len(tasks) - len(waiting)} of {len(tasks)} measurements are there already")
    pace = Pace([stored.expected_seconds(task) for task in waiting])
    with tempfile.TemporaryDirectory(prefix="meander-bench-", ignore_cleanup_errors=True) as folder:
        inputs = Inputs(Path(folder))
        for number, task in enumerate(waiting):
            at = f"[{number + 1}/{len(waiting)}]"
            with console.status(f"{at} {task.key} · {pace.left()}"):
                begun = time.perf_counter()
                try:
                    outcome = perform(task, inputs.file(task))
                except MeanderError as error:
                    outcome = {"failure": str(error)}
                seconds = time.perf_counter() - begun
            stored.add(task, outcome, seconds)
            stored.save(path)
            pace.done(seconds)
            record = stored.measurements[task.key]
            console.print(
                f"{at} {outline(record)} ({seconds:,.1f} s) · {pace.left()}", markup=False, soft_wrap=True
            )


class Pace:
    """The time that is left: what tasks are expected to take, times how that has held so far."""

    def __init__(self, expected: list[float]) -> None:
        self.expected = expected
        self.number = 0
        self.spent = 0.0

    def done(self, seconds: float) -> None:
        self.number += 1
        self.spent += seconds

    @property
    def seconds(self) -> float:
        so_far, rest = sum(self.expected[: self.number]), sum(self.expected[self.number :])
        # Until some of it is done, expectation counts more than experience.
        return rest * (self.spent + 30) / (so_far + 30)

    def left(self) -> str:
        minutes = self.seconds / 60
        return f"about {minutes:,.0f} min left" if minutes >= 1 else "less than a minute left"


class Inputs:
    """The edges of tasks as files, each written once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.graphs: dict[str, Graph] = {}
        self.files: dict[tuple[object, ...], Path] = {}

    def file(self, task: Task) -> Path:
        settings = task.settings
        key = (task.data.name, tuple(task.labels), settings["prefix"], settings["aligned"])
        if key not in self.files:
            if task.data.name not in self.graphs:
                self.graphs[task.data.name] = load(task.data)
            graph = self.graphs[task.data.name]
            if task.labels:
                graph = graph.of(task.labels)
            if not graph.edges:
                raise ArgumentError(f"{task.data.name} has no edges with the labels {', '.join(task.labels)}")
            if settings["prefix"] is not None:
                graph = graph.prefix(settings["prefix"], settings["aligned"])
            self.files[key] = self.folder / f"{len(self.files)}.tsv"
            graph.write(self.files[key])
        return self.files[key]


def _scope(
    console: Console,
    quick: bool,
    data: str,
    labels: str,
    queries: str,
    prefix: int | None,
    window: str,
    slide: str,
    windows: str,
    slides: str,
    cells: str,
    time_limit: str | None,
    peers: bool,
) -> Scope:
    """What the options ask for."""
    if prefix is not None and prefix < 1:
        raise ArgumentError(f"--prefix {prefix} leaves no edges", hint="it is a number of edges, 1 or more")
    limits = QUICK if quick else FULL
    if time_limit is not None:
        limit = float(_duration("--time-limit", time_limit))
        limits = replace(
            limits, peer=limit, slide_peer=limit, variant=limit, plan=limit, own=max(limits.own, limit)
        )
    if quick:
        windows = "10d,30d,120d" if windows == "10d,20d,30d,60d,120d" else windows
        slides = "6h,1d,7d" if slides == "1h,6h,1d,7d" else slides
        cells = "2" if cells == "2,3,8" else cells
    size, step = _duration("--window", window), _duration("--slide", slide)
    if size < step:
        raise ArgumentError(
            f"a window of {window} is shorter than its slide of {slide}",
            hint="answers are compared at the ends of slides, where such a window is empty",
        )
    return Scope(
        data=choose_data(data, _names(labels), lambda text: console.print(text, soft_wrap=True)),
        queries=list(QUERIES) if queries == "all" else choose_queries(_names(queries)),
        window=size,
        slide=step,
        windows=sorted(_duration("--windows", name) for name in _names(windows)),
        slides=sorted(_duration("--slides", name) for name in _names(slides)),
        cells=_numbers("--cells", cells),
        prefix=prefix,
        peers=_installed_peers(console) if peers else [],
        limits=limits,
    )


def _installed_peers(console: Console) -> list[str]:
    """The peers that are installed; prints which are not."""
    installed = []
    if pathway.interpreter() is not None:
        installed.append("Pathway")
    else:
        console.print(f"Pathway is skipped: it is not installed ({pathway.INSTALL})", soft_wrap=True)
    if importlib.util.find_spec("duckdb") is not None:
        installed.append("DuckDB")
    else:
        console.print("DuckDB is skipped: it is not installed (pip install duckdb)", soft_wrap=True)
    return installed


def _experiments(only: str) -> list[str]:
    names = list(EXPERIMENTS) if only == "all" else _names(only)
    for name in names:
        if name not in EXPERIMENTS:
            raise ArgumentError(
                f"unknown experiment {name!r}", hint=f"experiments are {', '.join(EXPERIMENTS)}, all"
            )
    return names


def _numbers(option: str, text: str) -> list[int]:
    try:
        numbers = [int(name) for name in _names(text)]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise ArgumentError(
            f"{option} {text}", hint="write numbers from 1 on, separated by commas, such as 2,3,8"
        )
    return numbers


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _duration(option: str, text: str) -> int:
    try:
        duration = parse_duration(text)
    except ArgumentError as error:
        raise ArgumentError(f"{option}: {error.message}", hint=error.hint) from None
    if duration == 0:
        raise ArgumentError(f"{option}: a duration of zero", hint="write 30d, 12h or 60s")
    return duration
