"""Large answers reach the driver as files, in the order of their rows, and leave none behind."""

import pytest
from pyspark.sql import Row

from meander.physical.plan import build
from meander.physical.planning import plan_query
from meander.spark.cells import Job, Output
from meander.spark.chunks import ANSWERS, REJECTS, SPOOLED
from meander.spark.formats import ARROW_STRINGS, JSONL
from meander.spark.spool import LEAST_BYTES, contents, empty_spool, set_aside

PLAN = build(plan_query("STREAM s WINDOW 9\nAnswer(x, y) <- a(x, y)."))
LARGE, SMALL = b"x" * LEAST_BYTES, b"few"


def job(spool, how=JSONL):
    return Job(run="r", plan=PLAN, streams=("s",), cells=(0,), formats={"q": how}, spool=str(spool))


def answers(data, kind=ANSWERS):
    return Output(kind, "q", "Answer", 1, data)


def test_rows_give_back_what_was_set_aside_in_their_order(tmp_path):
    rows = [Row(**set_aside(answers(data), job(tmp_path))._asdict()) for data in (SMALL, LARGE, SMALL)]
    assert [row.kind for row in rows] == [ANSWERS, SPOOLED, ANSWERS]
    with contents(rows) as parts:
        assert parts == [SMALL, LARGE, SMALL]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("output", "how", "has_spool"),
    [
        (answers(LARGE, REJECTS), JSONL, True),
        (answers(LARGE), ARROW_STRINGS, True),
        (answers(LARGE), JSONL, False),
    ],
)
def test_what_others_than_the_driver_read_stays_in_its_row(tmp_path, output, how, has_spool):
    assert set_aside(output, job(tmp_path if has_spool else "", how)) is output


def test_a_sink_that_fails_finds_the_file_again(tmp_path):
    row = Row(**set_aside(answers(LARGE), job(tmp_path))._asdict())
    with pytest.raises(OSError, match="full"), contents([row]):
        raise OSError("the disk is full")
    with contents([row]) as parts:
        assert parts == [LARGE]


def test_files_of_failed_attempts_go_with_the_next_start(tmp_path):
    set_aside(answers(LARGE), job(tmp_path / "spool"))
    empty_spool(str(tmp_path / "spool"))
    assert not (tmp_path / "spool").exists()
