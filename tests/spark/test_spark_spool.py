"""Large answers reach the driver as files, in the order of their rows, and leave none behind."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import Row

from meander.dataflow.answers import Answers, Paths
from meander.dataflow.edges import as_text
from meander.dataflow.sinks.lines import LineFile
from meander.dataflow.sinks.sink import Encoding
from meander.engine import compile_query, physical_plan
from meander.spark.cell.job import Job
from meander.spark.messages import Kind
from meander.spark.output.encode import MANY, Encoder, decode_table
from meander.spark.output.journal import CheckpointJournal
from meander.spark.output.spool import contents, empty_spool, set_aside

PLAN = physical_plan([compile_query("STREAM s WINDOW 9\nAnswer(x, y) <- a(x, y).", name="q")])
SIZES = (3, MANY, 1, 3 * MANY, 2 * MANY, 5)


def job(spool, how=Encoding.LINES) -> Job:
    return Job(run="r", plan=PLAN, streams=("s",), cells=(0,), formats={"q": how}, spool=str(spool))


def answers(first, rows) -> Answers:
    names = as_text([f"v{number}" for number in range(first, first + rows)])
    numbers = pa.array(range(first, first + rows)).to_numpy()
    return Answers("Answer", (names, names), numbers, numbers + 9, (0 * numbers + 1).astype("i1"))


def encoded(sizes, job) -> list[Row]:
    """The rows that answers of these sizes become, one after the other."""
    encoder = Encoder(job.formats, job.spool)
    outputs = [
        result
        for at, rows in enumerate(sizes)
        for result in encoder.put(PLAN.results[0], answers(at * 10**6, rows))
    ]
    return [Row(**output._asdict()) for output in (*outputs, *encoder.rest())]


def expected(sizes) -> list[int]:
    return [at * 10**6 + row for at, rows in enumerate(sizes) for row in range(rows)]


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz"])
def test_a_file_gets_the_answers_in_their_order_and_nothing_is_left_of_the_spool(tmp_path, name) -> None:
    rows = encoded(SIZES, job(tmp_path / "spool"))
    assert [row.kind for row in rows] == [Kind.SPOOLED if size >= MANY else Kind.ANSWERS for size in SIZES]
    sink = LineFile(tmp_path / name, CheckpointJournal(tmp_path / "record.json"))
    sink.begin()
    with contents(rows) as parts:
        sink.write(0, parts)
    assert not list((tmp_path / "spool").iterdir())
    with pa.input_stream(str(tmp_path / name)) as file:
        lines = file.read().decode().splitlines()
    assert [json.loads(line)["ts"] for line in lines] == expected(SIZES)


def test_tables_are_read_from_rows_and_from_files(tmp_path) -> None:
    rows = encoded(SIZES, job(tmp_path, Encoding.TABLES))
    with contents(rows) as parts:
        times = [time for part in parts for time in decode_table(part).column("ts").to_pylist()]
    assert times == expected(SIZES)


@pytest.mark.parametrize(("how", "has_spool"), [(Encoding.STRING_FRAME, True), (Encoding.LINES, False)])
def test_what_others_than_the_driver_read_stays_in_its_row(tmp_path, how, has_spool) -> None:
    rows = encoded(SIZES, job(tmp_path if has_spool else "", how))
    assert {row.kind for row in rows} == {Kind.ANSWERS}
    assert [row.rows for row in rows] == list(SIZES)
    assert not list(tmp_path.iterdir())


def test_answers_that_no_sink_waits_for_are_not_set_aside(tmp_path) -> None:
    rows = encoded([MANY], replace(job(tmp_path), formats={}))
    assert [row.kind for row in rows] == [Kind.ANSWERS]
    assert not list(tmp_path.iterdir())


def test_a_few_answers_with_long_paths_are_large(tmp_path) -> None:
    edges = as_text([f"v{number}" for number in range(MANY)])
    path = Paths(np.array([0, MANY]), edges, edges, edges, np.ones(1, np.bool_))
    encoder = Encoder({"q": Encoding.LINES}, str(tmp_path))
    rows = [*encoder.put(PLAN.results[0], answers(0, 1)._replace(path=path)), *encoder.rest()]
    assert [row.kind for row in rows] == [Kind.SPOOLED]


def test_a_sink_that_fails_finds_the_file_again(tmp_path) -> None:
    rows = encoded([MANY], job(tmp_path))
    with pytest.raises(OSError, match="full"), contents(rows):
        raise OSError("the disk is full")
    with contents(rows) as (part,):
        assert len(part.read_bytes().splitlines()) == MANY


def test_files_of_failed_attempts_go_with_the_next_start(tmp_path) -> None:
    set_aside([b"some"], str(tmp_path / "spool"))
    empty_spool(str(tmp_path / "spool"))
    assert not (tmp_path / "spool").exists()
