"""A cell over a store: whatever is lost between two batches but the store, the answers are the same."""

import json
import random

import pytest

from meander.dataflow.edges import INFINITY
from meander.dataflow.tabular import edges_of
from meander.physical.plan import build
from meander.physical.planning import plan_query
from meander.spark.cell import step as steps
from meander.spark.cell.ingest import passed_on
from meander.spark.cell.job import HEAD, INGEST, Cell, Job
from meander.spark.cell.local_cells import Memory
from meander.spark.cell.step import LIVE, advance
from meander.spark.edge_codec import decode_rejects, encode_edges
from meander.spark.messages import (
    ANSWERS,
    CLOSED,
    EDGES,
    FIGURES,
    FULL,
    PARTITION_SHIFT,
    REJECTS,
    TICK,
    Chunk,
)

CLOSURE = "STREAM s WINDOW 20 SLIDE 2\nAnswer(x, y) <- (a/b*)(x, y) as P."
TRIANGLE = "STREAM s WINDOW 12\nAnswer(x, z) <- a(x, y), b(y, z), a(x, z)."
TWO_STREAMS = "STREAM s WINDOW 20\nSTREAM t WINDOW 9\nAnswer(x, z) <- s.a(x, y), t.b(y, z)."


def make_job(text, **more):
    plan = build(plan_query(text, name="q"), paths=more.get("paths", False))
    return Job("run", plan, plan.streams, (0,), {"q": "jsonl"}, **more)


def generate(seed, rows, streams=("s",), delay=0):
    draw = random.Random(seed)
    out = []
    for at in range(rows):
        ts = max(0, at // 3 - draw.randint(0, delay))
        edge = (f"v{draw.randint(0, 6)}", draw.choice("ab"), f"v{draw.randint(0, 6)}", ts)
        out.append((draw.choice(streams), edge + (("-",) if draw.random() < 0.1 else ())))
    return out


def batches_of(arrivals, size):
    for start in range(0, len(arrivals), size):
        part = arrivals[start : start + size]
        chunks = []
        for stream in dict.fromkeys(name for name, _ in part):
            edges = edges_of([edge for name, edge in part if name == stream])
            chunks.append(Chunk(EDGES, stream, len(chunks), encode_edges(edges, lines=False)))
        yield chunks
    yield [Chunk(TICK, name, 0, CLOSED) for name in dict.fromkeys(name for name, _ in arrivals)]


def run(job, arrivals, size, disturb=lambda store, number: None):
    LIVE.clear()
    store = Memory()
    answers, rejects, figures = [], [], []
    for number, chunks in enumerate(batches_of(arrivals, size)):
        disturb(store, number)
        for output in advance(job, 0, store, chunks):
            if output.kind == ANSWERS:
                answers += [json.loads(line) for line in output.data.splitlines()]
            elif output.kind == REJECTS:
                rejects += decode_rejects(output.data)
            elif output.kind == FIGURES:
                figures.append(json.loads(output.data))
        store.commit()
    assert figures[-1]["time"] == INFINITY
    return answers, rejects, figures, store


def instants(answers):
    """For each answer the instants at which it holds."""
    held = {}
    for record in answers:
        key = (record["src"], record["trg"])
        times = held.setdefault(key, set())
        if record["op"] == "+":
            times.update(range(record["ts"], record["exp"]))
        else:
            held[key] = {time for time in times if time < record["ts"]}
    return {key: times for key, times in held.items() if times}


def forget(store, number):
    LIVE.clear()


@pytest.mark.parametrize("text", [CLOSURE, TRIANGLE, TWO_STREAMS])
def test_answers_do_not_depend_on_how_a_batch_is_cut_into_chunks(text):
    streams = ("s", "t") if text is TWO_STREAMS else ("s",)
    arrivals = generate(7, 300, streams, delay=3)
    outcomes = []
    for rows in (1, 7, 100):
        LIVE.clear()
        store = Memory()
        answers, late = [], []
        for start in range(0, 300, 100):
            *parts, ticks = batches_of(arrivals[start : start + 100], rows)
            chunks = [one for part in parts for one in part] + (ticks if start == 200 else [])
            numbered = [one._replace(place=place) for place, one in enumerate(chunks)]
            for output in advance(make_job(text, lateness=1), 0, store, numbered):
                if output.kind == ANSWERS:
                    answers += [json.loads(line) for line in output.data.splitlines()]
                elif output.kind == REJECTS:
                    late += decode_rejects(output.data)
        assert answers
        assert late
        outcomes.append((instants(answers), sorted(late)))
    assert outcomes[1:] == outcomes[:1] * 2


@pytest.mark.parametrize("text", [CLOSURE, TRIANGLE, TWO_STREAMS])
@pytest.mark.parametrize("seed", range(4))
def test_answers_do_not_depend_on_what_a_worker_remembers(text, seed, tmp_path):
    streams = ("s", "t") if text is TWO_STREAMS else ("s",)
    arrivals = generate(seed, 300, streams, delay=3)
    whole, late, _, _ = run(make_job(text, lateness=2), arrivals, 7)
    assert instants(whole)
    again, late_again, figures, _ = run(make_job(text, lateness=2), arrivals, 7, forget)
    assert instants(again) == instants(whole)
    assert sorted(late_again) == sorted(late)
    assert all(one["rebuilt"] for one in figures)
    for rows in (1, 40):
        job = make_job(text, lateness=2, snapshots=str(tmp_path / str(rows)), snapshot_rows=rows)
        assert instants(run(job, arrivals, 7, forget)[0]) == instants(whole)


def test_a_failed_attempt_leaves_no_trace():
    """A batch is processed, its task fails before the commit, and it is processed again."""
    arrivals = generate(1, 200)
    job = make_job(CLOSURE)
    expected = instants(run(job, arrivals, 10)[0])
    parts = list(batches_of(arrivals, 10))

    def disturb(store, number):
        if number % 3 == 0:
            list(advance(job, 0, store, parts[number]))
            store.roll_back()
        elif number % 3 == 1:
            half = advance(job, 0, store, parts[number])
            next(half)
            half.close()
            store.roll_back()

    assert instants(run(job, arrivals, 10, disturb)[0]) == expected


def test_a_lost_snapshot_is_made_up_for_by_the_window(tmp_path):
    import shutil

    arrivals = generate(2, 200)
    job = make_job(CLOSURE, snapshots=str(tmp_path), snapshot_rows=20)

    def disturb(store, number):
        LIVE.clear()
        shutil.rmtree(tmp_path, ignore_errors=True)

    assert instants(run(job, arrivals, 9, disturb)[0]) == instants(run(make_job(CLOSURE), arrivals, 9)[0])


def test_the_store_holds_the_window_and_no_more():
    arrivals = [("s", (f"v{at}", "a", f"v{at + 1}", at)) for at in range(2000)]
    _, _, figures, store = run(make_job(CLOSURE), arrivals, 5)
    assert max(one["window_rows"] for one in figures) < 200
    assert sum(isinstance(key, int) for key in store.values) == 0


def test_small_batches_of_a_long_window_stay_few_pieces():
    text = "STREAM s WINDOW 100000\nAnswer(x, y) <- a(x, y)."
    arrivals = [("s", (f"v{at}", "a", f"v{at}", at)) for at in range(1000)]
    _, _, figures, _ = run(make_job(text), arrivals, 1)
    assert max(one["window_pieces"] for one in figures) < 60
    assert figures[-2]["window_rows"] == 1000


def test_partitions_of_a_frame_are_merged_by_time():
    """Each partition is in order of time; none of its edges is late because another partition came first."""
    chunks = []
    for partition in range(3):
        edges = edges_of([(f"v{partition}", "a", "w", ts) for ts in range(partition, 60, 3)])
        place = partition << PARTITION_SHIFT
        chunks.append(Chunk(EDGES, "s", place, encode_edges(edges, lines=False)))
    chunks.append(Chunk(TICK, "s", 0, CLOSED))
    LIVE.clear()
    outputs = list(advance(make_job(CLOSURE, merged=frozenset({"s"})), 0, Memory(), chunks))
    assert not [one for one in outputs if one.kind == REJECTS]
    LIVE.clear()
    outputs = list(advance(make_job(CLOSURE), 0, Memory(), chunks))
    assert [one for one in outputs if one.kind == REJECTS]


def test_a_silent_stream_holds_the_others_back_only_for_a_while(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(steps.time, "time", lambda: now[0])
    job = make_job(TWO_STREAMS, idle=60.0, started=1000.0)
    store = Memory()
    LIVE.clear()

    def push(*rows):
        chunks = [
            Chunk(EDGES, name, 0, encode_edges(edges_of([edge]), lines=False)) for name, edge in rows
        ] or [Chunk(TICK, "", 0, b"")]
        outputs = list(advance(job, 0, store, chunks))
        return [one for one in outputs if one.kind == ANSWERS], json.loads(outputs[-1].data)["time"]

    assert push(("t", ("y", "b", "z", 1)), ("s", ("x", "a", "y", 1)))[1] == 1
    answers, time = push(("s", ("q", "a", "y", 5)))
    assert (answers, time) == ([], 1)
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


def test_workers_leave_each_other_their_arrays(tmp_path, monkeypatch):
    """A second worker goes on from the arrays that the first left, and not from arrays that are half changed."""
    monkeypatch.setattr(steps, "cell_folder", lambda run, number: tmp_path / str(number))
    plan = build(plan_query(CLOSURE, name="q"))
    job = Job("run", plan, plan.streams, (0, 1), {"q": "jsonl"}, in_full=frozenset())
    arrivals = generate(3, 200)
    parts = list(batches_of(arrivals, 10))
    expected = instants(run(make_job(CLOSURE), arrivals, 10)[0])
    LIVE.clear()
    store = Memory()
    answers, taken_over = [], []
    for number, chunks in enumerate(parts):
        LIVE.clear()
        if number % 4 == 3:
            half = advance(job, 0, store, chunks)
            next(half)
            half.close()
            store.roll_back()
            LIVE.clear()
        for output in advance(job, 0, store, chunks):
            if output.kind == ANSWERS:
                answers += [json.loads(line) for line in output.data.splitlines()]
            elif output.kind == FIGURES:
                taken_over.append(not json.loads(output.data)["rebuilt"])
        store.commit()
    assert instants(answers) == expected
    assert taken_over[1:3] == [True, True]
    assert taken_over[3] is False


def test_a_cell_that_is_full_says_so_and_every_stage_hands_it_on():
    rows = [(f"v{at}", "a", f"v{at + 1}", at) for at in range(400)]
    chunks = [Chunk(EDGES, "s", 0, encode_edges(edges_of(rows), lines=False))]
    LIVE.clear()
    *_, said = advance(make_job(CLOSURE, memory=400_000), 0, Memory(), chunks)
    assert said.kind == FULL
    assert b"the memory budget of 390.6 KB is reached: " in said.data
    assert LIVE == {}
    assert list(passed_on(Chunk(FULL, "", 0, said.data))) == [said._replace(rows=1)]


class States(dict):
    """Spark's state of one cell, as `Cell` uses it."""

    def getMapState(self, *_):
        return self

    def getValue(self, key):
        return self.get(key)

    def updateValue(self, key, value):
        self[key] = value

    def removeKey(self, key):
        del self[key]


@pytest.mark.parametrize("number", [INGEST, HEAD, 0])
def test_a_state_store_that_gives_back_something_else_ends_the_run_with_a_sentence(number):
    job = make_job(CLOSURE)
    first, second, *_ = batches_of(generate(52, 40), 20)
    states = States()
    cell = Cell(job)
    cell.init(states)
    LIVE.clear()
    list(advance(job, 0, cell, first))
    content = bytearray(states[number,][0])
    content[len(content) // 2] ^= 1
    states[number,] = (bytes(content),)
    LIVE.clear()
    (output,) = advance(job, 0, cell, second)
    assert output.kind == FULL
    told = json.loads(output.data)
    assert told["error"] == "StateError"
    assert told["message"].endswith("of the checkpoint is damaged: it fails its checksum")
    assert told["hint"].startswith("restore the checkpoint from a backup")


def test_state_is_rebuilt_where_a_snapshot_has_flipped_bytes(tmp_path):
    arrivals = generate(53, 300)
    expected = instants(run(make_job(CLOSURE), arrivals, 20)[0])
    job = make_job(CLOSURE, snapshots=str(tmp_path), snapshot_rows=10)

    def damage(store, number):
        """State is lost before each batch, and in every second case the snapshots are damaged."""
        LIVE.clear()
        for path in tmp_path.rglob("*.snapshot") if number % 2 else ():
            content = bytearray(path.read_bytes())
            content[len(content) // 2 :: 997] = bytes(one ^ 0xFF for one in content[len(content) // 2 :: 997])
            path.write_bytes(content)

    answers, _, figures, _ = run(job, arrivals, 20, damage)
    loaded = [one["seconds"]["load"] > 0 for one in figures]
    assert instants(answers) == expected
    assert True in loaded[2::2]
    assert True not in loaded[1::2]
