"""A cell over a store: whatever is lost between two batches but the store, the answers are the same."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from cells_in_process import TransactionalStore
from incidents import instants_held

from meander.dataflow.edges import INFINITY
from meander.dataflow.tabular import edges_of
from meander.engine import compile_query, physical_plan
from meander.errors import StateError
from meander.options import RunOptions
from meander.spark.cell.ingest import forward
from meander.spark.cell.job import Job
from meander.spark.cell.manifest import CellManifest
from meander.spark.cell.recovery import StateCache
from meander.spark.cell.step import CellStep, Row
from meander.spark.checkpoint.notes import FORMAT
from meander.spark.edge_codec import decode_rejects, edges_chunk
from meander.spark.messages import PARTITION_SHIFT, Chunk, Kind, cell_failure, closed, tick
from meander.spark.workers.operator import INGEST, MANIFEST, CellOperator

CLOSURE = "STREAM s WINDOW 20 SLIDE 2\nAnswer(x, y) <- (a/b*)(x, y) as P."
TRIANGLE = "STREAM s WINDOW 12\nAnswer(x, z) <- a(x, y), b(y, z), a(x, z)."
TWO_STREAMS = "STREAM s WINDOW 20\nSTREAM t WINDOW 9\nAnswer(x, z) <- s.a(x, y), t.b(y, z)."


FIELDS = ("snapshots", "unordered", "started")


def make_job(text, *, cells=(0,), **options) -> Job:
    """A job of one stage; `options` are those of a run, or fields of the job."""
    fields = {name: options.pop(name) for name in FIELDS if name in options}
    run_options = RunOptions(**options)
    plan = physical_plan([compile_query(text, name="q")], run_options)
    return Job("run", plan, plan.streams, cells, {"q": "jsonl"}, run_options, **fields)


def arrivals_of(seed, rows, streams=("s",), delay=0) -> list[tuple[str, tuple[Any, ...]]]:
    draw = random.Random(seed)
    out = []
    for at in range(rows):
        ts = max(0, at // 3 - draw.randint(0, delay))
        edge = (f"v{draw.randint(0, 6)}", draw.choice("ab"), f"v{draw.randint(0, 6)}", ts)
        out.append((draw.choice(streams), edge + (("-",) if draw.random() < 0.1 else ())))
    return out


def batches_of(arrivals, size) -> Iterator[list[Chunk]]:
    for start in range(0, len(arrivals), size):
        part = arrivals[start : start + size]
        chunks = []
        for stream in dict.fromkeys(name for name, _ in part):
            edges = edges_of([edge for name, edge in part if name == stream])
            chunks.append(edges_chunk(stream, edges, len(chunks)))
        yield chunks
    yield [closed(name) for name in dict.fromkeys(name for name, _ in arrivals)]


class OneCell:
    """A cell with its store and the cache of its worker; the rows of all its steps are in the lists."""

    def __init__(self, job, cache=None, store=None, **step_options) -> None:
        self.job = job
        self.cache = cache or StateCache()
        self.store = store or TransactionalStore()
        self.step_options = step_options
        self.answers, self.rejects, self.figures = [], [], []

    def attempt(self, chunks) -> Iterator[Row]:
        return CellStep(self.job, 0, self.store, self.cache, **self.step_options).run(chunks)

    def fail(self, chunks, *, after=None) -> None:
        """A task that is not committed: it ends after some of its rows, or does all of its work."""
        rows = self.attempt(chunks)
        for number, _ in enumerate(rows, start=1):
            if number == after:
                break
        rows.close()
        self.store.roll_back()

    def step(self, chunks) -> list[Row]:
        rows = list(self.attempt(chunks))
        for row in rows:
            if row.kind == Kind.ANSWERS:
                self.answers += [json.loads(line) for line in row.data.splitlines()]
            elif row.kind == Kind.REJECTS:
                self.rejects += decode_rejects(row.data)
            elif row.kind == Kind.FIGURES:
                self.figures.append(json.loads(row.data))
        self.store.commit()
        return rows


def run(job, arrivals, size, disturb=lambda cell, number: None) -> OneCell:
    """All batches of some arrivals; `disturb` does something to the cell before each."""
    cell = OneCell(job)
    for number, chunks in enumerate(batches_of(arrivals, size)):
        disturb(cell, number)
        cell.step(chunks)
    assert cell.figures[-1]["time"] == INFINITY
    return cell


def forget(cell, number) -> None:
    cell.cache.forget()


@pytest.mark.parametrize("text", [CLOSURE, TRIANGLE, TWO_STREAMS])
def test_answers_do_not_depend_on_how_a_batch_is_cut_into_chunks(text) -> None:
    streams = ("s", "t") if text is TWO_STREAMS else ("s",)
    arrivals = arrivals_of(7, 300, streams, delay=3)
    outcomes = []
    for rows in (1, 7, 100):
        cell = OneCell(make_job(text, lateness=1))
        for start in range(0, 300, 100):
            *parts, ends = batches_of(arrivals[start : start + 100], rows)
            chunks = [chunk for part in parts for chunk in part] + (ends if start == 200 else [])
            cell.step([chunk._replace(position=position) for position, chunk in enumerate(chunks)])
        assert cell.answers
        assert cell.rejects
        outcomes.append((instants_held(cell.answers), sorted(cell.rejects)))
    assert outcomes[1:] == outcomes[:1] * 2


@pytest.mark.parametrize("text", [CLOSURE, TRIANGLE, TWO_STREAMS])
@pytest.mark.parametrize("seed", range(4))
def test_answers_do_not_depend_on_what_a_worker_remembers(text, seed, tmp_path) -> None:
    streams = ("s", "t") if text is TWO_STREAMS else ("s",)
    arrivals = arrivals_of(seed, 300, streams, delay=3)
    whole = run(make_job(text, lateness=2), arrivals, 7)
    assert instants_held(whole.answers)
    again = run(make_job(text, lateness=2), arrivals, 7, forget)
    assert instants_held(again.answers) == instants_held(whole.answers)
    assert sorted(again.rejects) == sorted(whole.rejects)
    assert all(figures["rebuilt"] for figures in again.figures)
    for rows in (1, 40):
        job = make_job(text, lateness=2, snapshots=str(tmp_path / str(rows)), snapshot_rows=rows)
        assert instants_held(run(job, arrivals, 7, forget).answers) == instants_held(whole.answers)


def test_a_failed_attempt_leaves_no_trace() -> None:
    """A batch is processed, its task fails before the commit, and it is processed again."""
    arrivals = arrivals_of(1, 200)
    job = make_job(CLOSURE)
    expected = instants_held(run(job, arrivals, 10).answers)
    parts = list(batches_of(arrivals, 10))

    def disturb(cell, number) -> None:
        if number % 3 < 2:
            cell.fail(parts[number], after=number % 3 or None)

    assert instants_held(run(job, arrivals, 10, disturb).answers) == expected


def test_a_lost_snapshot_is_made_up_for_by_the_window(tmp_path) -> None:
    arrivals = arrivals_of(2, 200)
    job = make_job(CLOSURE, snapshots=str(tmp_path), snapshot_rows=20)

    def disturb(cell, number) -> None:
        cell.cache.forget()
        shutil.rmtree(tmp_path, ignore_errors=True)

    expected = instants_held(run(make_job(CLOSURE), arrivals, 9).answers)
    assert instants_held(run(job, arrivals, 9, disturb).answers) == expected


def test_the_store_holds_the_window_and_no_more() -> None:
    arrivals = [("s", (f"v{at}", "a", f"v{at + 1}", at)) for at in range(2000)]
    cell = run(make_job(CLOSURE), arrivals, 5)
    assert max(figures["window_rows"] for figures in cell.figures) < 200
    assert sum(isinstance(key, int) for key in cell.store.values) == 0


def test_small_batches_of_a_long_window_stay_few_blocks() -> None:
    text = "STREAM s WINDOW 100000\nAnswer(x, y) <- a(x, y)."
    arrivals = [("s", (f"v{at}", "a", f"v{at}", at)) for at in range(1000)]
    cell = run(make_job(text), arrivals, 1)
    assert max(figures["window_pieces"] for figures in cell.figures) < 60
    assert cell.figures[-2]["window_rows"] == 1000


def test_partitions_of_a_frame_are_merged_by_time() -> None:
    """Each partition is in order of time; none of its edges is late because another partition came first."""
    chunks = []
    for partition in range(3):
        edges = edges_of([(f"v{partition}", "a", "w", ts) for ts in range(partition, 60, 3)])
        chunks.append(edges_chunk("s", edges, partition << PARTITION_SHIFT))
    chunks.append(closed("s"))
    for unordered, late in ((frozenset({"s"}), False), (frozenset(), True)):
        cell = OneCell(make_job(CLOSURE, unordered=unordered))
        cell.step(chunks)
        assert bool(cell.rejects) == late


def test_a_silent_stream_holds_the_others_back_only_for_a_while() -> None:
    now = [1000.0]
    cell = OneCell(make_job(TWO_STREAMS, idle=60.0, started=1000.0), clock=lambda: now[0])

    def push(*rows) -> tuple[list[Row], int]:
        """The rows of answers that the edges give, and the time reached."""
        chunks = [edges_chunk(name, edges_of([edge])) for name, edge in rows] or [tick()]
        rows = cell.step(chunks)
        return [row for row in rows if row.kind == Kind.ANSWERS], cell.figures[-1]["time"]

    assert push(("t", ("y", "b", "z", 1)), ("s", ("x", "a", "y", 1)))[1] == 1
    assert push(("s", ("q", "a", "y", 5))) == ([], 1)
    now[0] += 61
    answers, time = push(("s", ("r", "a", "y", 6)))
    assert answers
    assert time == 6
    answers, time = push(("t", ("y", "b", "w", 8)))
    assert time == 6
    now[0] += 500
    answers, time = push()
    assert time == 8
    assert time < INFINITY


def test_workers_leave_each_other_their_arrays(tmp_path) -> None:
    """A second worker continues from the arrays that the first left, and not from arrays that are half changed."""
    arrivals = arrivals_of(3, 200)
    expected = instants_held(run(make_job(CLOSURE), arrivals, 10).answers)
    cell = OneCell(make_job(CLOSURE, cells=(0, 1)))
    for number, chunks in enumerate(batches_of(arrivals, 10)):
        cell.cache = StateCache(tmp_path)
        if number % 4 == 3:
            cell.fail(chunks, after=1)
            cell.cache = StateCache(tmp_path)
        cell.step(chunks)
    assert instants_held(cell.answers) == expected
    assert [figures["rebuilt"] for figures in cell.figures][1:4] == [False, False, True]


def test_a_cell_over_budget_reports_it_and_every_stage_forwards_the_report() -> None:
    rows = [(f"v{at}", "a", f"v{at + 1}", at) for at in range(400)]
    cell = OneCell(make_job(CLOSURE, memory=400_000))
    *_, failure = cell.attempt([edges_chunk("s", edges_of(rows))])
    assert failure.kind == Kind.CELL_FAILED
    assert cell_failure(failure.data).message.startswith("the memory budget of 390.6 KB is reached: ")
    assert len(cell.cache) == 0
    assert list(forward(Chunk(failure.kind, "", 0, failure.data))) == [failure]


class States(dict):
    """Spark's state of one cell, as `CellOperator` uses it."""

    def getMapState(self, *_) -> States:
        return self

    def getValue(self, key) -> Any:
        return self.get(key)

    def updateValue(self, key, value) -> None:
        self[key] = value

    def removeKey(self, key) -> None:
        del self[key]


@pytest.mark.parametrize("number", [INGEST, MANIFEST, 0])
def test_a_state_store_that_returns_other_bytes_ends_the_run_with_a_sentence(number) -> None:
    first, second, *_ = batches_of(arrivals_of(52, 40), 20)
    states = States()
    store = CellOperator(make_job(CLOSURE))
    store.init(states)
    cell = OneCell(store.job, store=store)
    list(cell.attempt(first))
    content = bytearray(states[number,][0])
    content[len(content) // 2] ^= 1
    states[number,] = (bytes(content),)
    cell.cache.forget()
    (row,) = cell.attempt(second)
    assert row.kind == Kind.CELL_FAILED
    error = cell_failure(row.data)
    assert isinstance(error, StateError)
    assert error.message.endswith("of the checkpoint is damaged: it fails its checksum")
    assert error.hint.startswith("restore the checkpoint from a backup")


def test_a_state_store_of_an_older_format_ends_the_run_with_its_number() -> None:
    """As where a DataFrame of answers has Spark's checkpoint of an earlier version, and no note of ours beside it."""
    first, second, *_ = batches_of(arrivals_of(52, 40), 20)
    cell = OneCell(make_job(CLOSURE))
    cell.step(first)
    fields = json.loads(cell.store.read_manifest())
    assert fields.pop("format") == FORMAT
    cell.store.write_manifest(json.dumps(fields).encode())
    (row,) = cell.attempt(second)
    error = cell_failure(row.data)
    assert isinstance(error, StateError)
    assert (
        f"is of checkpoint format 2, and this version of Meander reads and writes format {FORMAT}"
        in error.message
    )
    assert "start over with a new --checkpoint" in error.hint
    assert CellManifest.from_bytes(json.dumps(fields | {"format": FORMAT}).encode()).blocks


def test_state_is_rebuilt_where_a_snapshot_has_flipped_bytes(tmp_path) -> None:
    arrivals = arrivals_of(53, 300)
    expected = instants_held(run(make_job(CLOSURE), arrivals, 20).answers)
    job = make_job(CLOSURE, snapshots=str(tmp_path), snapshot_rows=10)

    def damage(cell, number) -> None:
        """State is lost before each batch, and in every second case the snapshots are damaged."""
        cell.cache.forget()
        for path in tmp_path.rglob("*.snapshot") if number % 2 else ():
            content = bytearray(path.read_bytes())
            content[len(content) // 2 :: 997] = bytes(
                byte ^ 0xFF for byte in content[len(content) // 2 :: 997]
            )
            path.write_bytes(content)

    cell = run(job, arrivals, 20, damage)
    loaded = [figures["seconds"]["load"] > 0 for figures in cell.figures]
    assert instants_held(cell.answers) == expected
    assert True in loaded[2::2]
    assert True not in loaded[1::2]
