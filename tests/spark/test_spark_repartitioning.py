"""A run continues from its checkpoint with another number of cells, and every answer is there exactly once."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from incidents import (
    CLOSURE,
    TRIANGLE,
    assert_undisturbed,
    generate,
    held_with_values,
    open_session,
    read_records,
    replaced_rows,
    write_tsv,
)
from run_processes import PATIENCE, Command

import meander
from meander.engine import compile_query, staged_plan
from meander.errors import ArgumentError, StateError
from meander.options import RunOptions
from meander.spark.checkpoint.generations import current_generation
from meander.spark.checkpoint.identity import record_queries, recorded_cells, run_identity
from meander.spark.checkpoint.notes import write_note
from meander.spark.run import Run
from meander.spark.session import Session

DERIVED = (
    "STREAM s WINDOW 30 SLIDE 3\n"
    "D(x, z) <- a+(x, y), b(y, z), a(x, z).\nAnswer(x, y) <- D+(x, z) as P, b(y, z)."
)
TABLE = "STREAM s WINDOW 20\nTABLE t (w INT)\nAnswer(x, z, w: w) <- s.a(x, y), t.a(y, z, w: w), w > 3."


def late(rows) -> list[Any]:
    """The rows, of which some arrive a few instants later."""
    draw = random.Random(len(rows))
    order = sorted(range(len(rows)), key=lambda at: at + draw.choice([0, 0, 0, 12]))
    return [rows[at] for at in order]


def without_last_deletions(rows, parts) -> list[Any]:
    """The rows without deletions at the end of each of some parts of equal length."""
    size = len(rows) // parts
    return [row[:4] if at % size >= size - 8 else row for at, row in enumerate(rows)]


def start(spark, folder, text, cells=None, *, out=None, **options) -> Run:
    streams = {path.name: path for path in sorted((folder / "in").iterdir())}
    session = open_session(spark, streams, {"q": (text, None)})
    if cells is not None:
        options["cells"] = cells
    sinks = {"q": out or str(folder / "out.jsonl")}
    return session.start(str(folder / "checkpoint"), sinks, batch_rows=100, snapshot_rows=150, **options)


def write_part(folder, streams: Mapping[str, Sequence[Any]], number, parts) -> None:
    for name, rows in streams.items():
        size = -(-len(rows) // parts)
        part = rows[size * number : size * (number + 1)]
        if isinstance(part[0], tuple):
            write_tsv(folder / "in" / name / f"{number}.tsv", part)
        else:
            (folder / "in" / name).mkdir(parents=True, exist_ok=True)
            lines = "".join(json.dumps(row) + "\n" for row in part)
            (folder / "in" / name / f"{number}.jsonl").write_text(lines)


def hold(spark, folder, text, streams, numbers, **options) -> list[Any]:
    """Answer one part of the streams after the other, each with another number of cells."""
    for number, cells in enumerate(numbers):
        write_part(folder, streams, number, len(numbers))
        run = start(spark, folder, text, cells, **options)
        try:
            run.process_available() if number < len(numbers) - 1 else run.finish()
        finally:
            run.stop()
        assert recorded_cells(folder / "checkpoint" / "meander") == cells
    records = read_records(folder / "out.jsonl")
    options = {name: value for name, value in options.items() if name in ("mode", "lateness", "paths")}
    expected = held_with_values(meander.run(text, streams, **options))
    assert expected
    assert held_with_values(records) == expected
    return records


@pytest.mark.spark
def test_a_run_continues_in_other_numbers_of_cells(spark, tmp_path) -> None:
    rows = late(generate(5, 600))
    folder = tmp_path / "checkpoint" / "meander"
    write_part(tmp_path, {"s": rows}, 0, 3)
    run = start(spark, tmp_path, DERIVED, 1, lateness=5)
    run.process_available()
    run.stop()
    batches = [figures["batch"] for figures in run.figures]
    run = start(spark, tmp_path, DERIVED, 3, lateness=5)
    assert run.notes == ["1 cell of the checkpoint became 3: they hold the same edges"]
    assert run.resumed
    run.stop()
    # It had nothing to read, so its cells have not begun with their seeds: others can begin with these.
    assert current_generation(folder).seeded
    write_part(tmp_path, {"s": rows}, 1, 3)
    run = start(spark, tmp_path, DERIVED, 2, lateness=5)
    run.process_available()
    run.stop()
    batches += [figures["batch"] for figures in run.figures]
    write_part(tmp_path, {"s": rows}, 2, 3)
    # Only a number that is named is another one.
    run = start(spark, tmp_path, DERIVED, lateness=5)
    assert run.notes == ["2 cells, as the checkpoint has"]
    run.finish()
    batches += [figures["batch"] for figures in run.figures]
    assert batches == list(range(len(batches)))
    expected = held_with_values(meander.run(DERIVED, rows, lateness=5))
    assert expected
    assert held_with_values(read_records(tmp_path / "out.jsonl")) == expected
    assert {path.name for path in folder.parent.iterdir()} == {"meander", "spark-2"}
    assert not (folder / "seeds").exists()
    # A run that has ended has nothing to do for other cells.
    run = start(spark, tmp_path, DERIVED, 1, lateness=5, follow=False)
    assert run.notes == ["all input has been answered: the checkpoint keeps its 2 cells"]
    run.wait()


@pytest.mark.spark
def test_a_batch_that_was_begun_is_ended_by_the_cells_that_began_it(spark, tmp_path) -> None:
    rows = generate(6, 400)
    records: list[dict[str, Any]] = []
    batches: list[tuple[int, int]] = []
    failing = True

    def collect(frame, batch) -> None:
        if failing and batch:
            raise ValueError("the disk is full")
        batches.append((batch, recorded_cells(tmp_path / "checkpoint" / "meander")))
        records.extend(row.asDict() for row in frame.collect())

    write_part(tmp_path, {"s": rows}, 0, 4)
    run = start(spark, tmp_path, CLOSURE, 2, out=collect)
    run.process_available()
    write_part(tmp_path, {"s": rows}, 1, 4)
    with pytest.raises(meander.MeanderError, match="the disk is full"):
        run.process_available()
    for number in (2, 3):
        write_part(tmp_path, {"s": rows}, number, 4)
    failing = False
    run = start(spark, tmp_path, CLOSURE, 1, out=collect)
    run.finish()
    assert [batch for batch, _ in batches] == list(range(len(batches)))
    assert batches[:3] == [(0, 2), (1, 2), (2, 1)]
    # Both numbers of cells have read for this start.
    assert run.totals["edges"] == 300
    assert_undisturbed(records, CLOSURE, rows)


CASES: dict[str, tuple[str, dict[str, Any], list[int], dict[str, Any]]] = {
    "paths": (CLOSURE, {"s": generate(7, 900)}, [2, 3, 1], {"paths": True}),
    "changes": (
        CLOSURE,
        {"s": without_last_deletions(generate(8, 900, deletions=True), 3)},
        [1, 2, 3],
        {"mode": "changes"},
    ),
    "patterns": (TRIANGLE, {"s": late(generate(9, 900))}, [2, 3, 1], {"lateness": 6}),
    "derived": (DERIVED, {"s": generate(10, 900)}, [3, 1, 2], {"path_operator": "negative-tuple"}),
    "a table": (TABLE, {"s": generate(11, 900), "t": replaced_rows(130)}, [2, 1, 3], {"idle": 1e9}),
}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", CASES)
def test_cells_of_all_kinds_of_queries_continue_in_other_numbers(spark, tmp_path, name) -> None:
    text, streams, numbers, options = CASES[name]
    hold(spark, tmp_path, text, streams, numbers, **options)


# ---------------------------------------------------------------------------------------------------------
# Refusals


ENTRY = {"segments": [], "closed": [], "error": "", "files": {}}


def record_run(folder, *queries, **options) -> None:
    """A checkpoint of which Spark has begun no batch."""
    compiled = [compile_query(text, name=name) for name, text in queries]
    chosen = RunOptions.of(**options)
    staged = staged_plan(compiled, chosen)
    (folder / "meander").mkdir(parents=True)
    record_queries(folder / "meander", run_identity(compiled, chosen, staged.exchanges), "run")


def test_cells_and_queries_change_one_after_the_other(tmp_path) -> None:
    record_run(tmp_path / "checkpoint", ("q", CLOSURE), cells=2)
    write_tsv(tmp_path / "s.tsv", generate(1, 10))
    session = Session()
    session.stream("s", str(tmp_path / "s.tsv"))
    session.query(TRIANGLE, "other")
    with pytest.raises(StateError, match="now it would read others"):
        session.start(str(tmp_path / "checkpoint"), {}, cells=3)
    with pytest.raises(StateError, match=r"proofs need one cell, and the checkpoint .* has 2"):
        session.start(str(tmp_path / "checkpoint"), {}, proofs=True)
    record_run(tmp_path / "of one cell", ("q", CLOSURE))
    with pytest.raises(StateError) as refused:
        session.start(str(tmp_path / "of one cell"), {}, cells=2)
    assert refused.value.message == (
        f"the number of cells of the checkpoint {tmp_path / 'of one cell'} cannot change while queries are added or "
        "left out: q, other"
    )
    assert refused.value.hint == (
        "change one, and at the next start the other; or use --cells 1, or a new checkpoint"
    )


def test_a_change_of_cells_that_is_refused_leaves_the_checkpoint_as_it_was(tmp_path) -> None:
    record_run(tmp_path / "checkpoint", ("q", CLOSURE))
    write_tsv(tmp_path / "s.tsv", generate(1, 10))
    (tmp_path / "other.jsonl").write_text("{}\n")
    session = Session()
    session.stream("s", str(tmp_path / "s.tsv"))
    session.query(CLOSURE, "q")
    before = (tmp_path / "checkpoint" / "meander" / "run.json").read_bytes()
    with pytest.raises(ArgumentError, match="has content already"):
        session.start(str(tmp_path / "checkpoint"), {"q": str(tmp_path / "other.jsonl")}, cells=2)
    for log in ("offsets", "commits"):
        (tmp_path / "checkpoint" / "spark" / log).mkdir(parents=True)
        for batch in range(2):
            (tmp_path / "checkpoint" / "spark" / log / str(batch)).write_text('{"entry": 1}')
    (tmp_path / "checkpoint" / "spark" / "offsets" / "1").unlink()
    (tmp_path / "checkpoint" / "meander" / "ledger").mkdir(exist_ok=True)
    write_note(tmp_path / "checkpoint" / "meander" / "ledger" / "000000001.json", ENTRY)
    (tmp_path / "checkpoint" / "spark" / "metadata").touch()
    with pytest.raises(StateError, match=r"spark/offsets/1 is missing"):
        session.start(str(tmp_path / "checkpoint"), {}, cells=2)
    assert (tmp_path / "checkpoint" / "meander" / "run.json").read_bytes() == before


def test_a_later_generation_without_the_record_of_its_run_is_refused(tmp_path) -> None:
    (tmp_path / "checkpoint" / "spark-2" / "offsets").mkdir(parents=True)
    (tmp_path / "checkpoint" / "spark-2" / "offsets" / "0").write_text('{"entry": 1}')
    write_tsv(tmp_path / "s.tsv", generate(1, 10))
    session = Session()
    session.stream("s", str(tmp_path / "s.tsv"))
    session.query(CLOSURE, "q")
    with pytest.raises(StateError, match="meander is missing"):
        session.start(str(tmp_path / "checkpoint"), {})


@pytest.mark.spark
def test_cells_of_a_stream_that_spark_reads_keep_their_number(spark, tmp_path) -> None:
    compiled = compile_query(CLOSURE, name="q")
    options = RunOptions(cells=1)
    folder = tmp_path / "checkpoint" / "meander"
    folder.mkdir(parents=True)
    record_queries(folder, run_identity([compiled], options, frames=["s"]), "run")
    session = Session(spark)
    (tmp_path / "in").mkdir()
    rows = spark.readStream.schema("src string, label string, trg string, ts long").json(str(tmp_path / "in"))
    session.stream("s", rows)
    session.query(CLOSURE, "q")
    with pytest.raises(StateError) as refused:
        session.start(str(tmp_path / "checkpoint"), {}, cells=2)
    assert refused.value.message == (
        f"the number of cells of the checkpoint {tmp_path / 'checkpoint'} cannot change: how far s was read is known "
        "to Spark alone"
    )
    assert refused.value.hint == "use --cells 1, or a new checkpoint; it can change for files and folders"


# ---------------------------------------------------------------------------------------------------------
# Kills

KILLED = """
import os
import signal
import sys
from meander.cli import main
from meander.spark import repartitioning
step, when = sys.argv.pop(1), sys.argv.pop(1)
original = getattr(repartitioning, step)

def strike(*arguments, **options):
    if when == "after":
        original(*arguments, **options)
    os.killpg(0, signal.SIGKILL)

setattr(repartitioning, step, strike)
main()
"""
STEPS = [
    ("redistribute", "before"),
    ("write_seed", "after"),
    ("write_note", "before"),
    ("begin_generation", "before"),
    ("begin_generation", "after"),
    ("remove_folder", "after"),
    ("change_cells", "after"),
]


def command(folder, cells, *more) -> list[str]:
    return [
        *("run", CLOSURE, "--stream", f"s={folder / 'in' / 's'}", "--out", str(folder / "out.jsonl")),
        *("--checkpoint", str(folder / "checkpoint"), "--batch-rows", "100", "--cells", str(cells), *more),
    ]


@pytest.mark.slow
@pytest.mark.spark
def test_a_start_that_is_killed_between_the_steps_of_a_change_can_be_repeated(tmp_path) -> None:
    rows = generate(41, 2400)
    write_part(tmp_path, {"s": rows}, 0, 2)
    sink = tmp_path / "checkpoint" / "meander" / "sinks" / "query.json"
    with Command(tmp_path, "-m", "meander", *command(tmp_path, 1, "--follow")) as run:
        run.wait_for_batch(sink)
        os.killpg(run.process.pid, signal.SIGKILL)
    for step, when in STEPS:
        # A generation that the start before has begun had no batch yet.
        cells = 2 if recorded_cells(tmp_path / "checkpoint" / "meander") != 2 else 3
        with Command(tmp_path, "-c", KILLED, step, when, *command(tmp_path, cells)) as run:
            assert run.process.wait(PATIENCE) == -signal.SIGKILL, run.said()
    write_part(tmp_path, {"s": rows}, 1, 2)
    with Command(tmp_path, "-m", "meander", *command(tmp_path, 2)) as run:
        assert run.process.wait(PATIENCE) == 0, run.said()
    assert_undisturbed(read_records(tmp_path / "out.jsonl"), CLOSURE, rows)


@pytest.mark.slow
@pytest.mark.spark
def test_a_run_that_is_killed_in_any_batch_continues_in_other_numbers_of_cells(tmp_path) -> None:
    numbers = [1, 2, 3, 1, 3, 2]
    rows = generate(42, 1500 * len(numbers))
    draw = random.Random(42)
    sink = tmp_path / "checkpoint" / "meander" / "sinks" / "query.json"
    for number, cells in enumerate(numbers):
        write_part(tmp_path, {"s": rows}, number, len(numbers))
        more = ["--follow"] if number < len(numbers) - 1 else []
        with Command(tmp_path, "-m", "meander", *command(tmp_path, cells, *more)) as run:
            if more:
                for _ in range(draw.choice([1, 2, 3])):
                    run.wait_for_batch(sink)
                os.killpg(run.process.pid, signal.SIGKILL)
            else:
                assert run.process.wait(PATIENCE) == 0, run.said()
    assert_undisturbed(read_records(tmp_path / "out.jsonl"), CLOSURE, rows)
