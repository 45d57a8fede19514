"""Chains of runs on Spark: the answers of one, by files, topics and DataFrames, are the tuples of the next."""

import json

import pytest
from incidents import generate, read_records
from test_spark_kafka import broker  # noqa: F401 (a fixture)

import meander
from chains import held_by
from meander.errors import MeanderError
from meander.spark.session import Session
from querytext import read_query

pytestmark = pytest.mark.spark

WHOLE = """STREAM s WINDOW 12
D(x, y, hour: t) <- a(x, z), b(z, y, at: t).
Answer(x, y, hour: t) <- D(x, z, hour: t), D(z, y, hour: t), x != y.
"""
FIRST = "STREAM s (at INT) WINDOW 12\nD(x, y, hour: t) <- a(x, z), b(z, y, at: t).\n"
SECOND = "STREAM d TUPLES (hour INT)\nAnswer(x, y, hour: t) <- D(x, z, hour: t), D(z, y, hour: t), x != y.\n"
WITHOUT_VALUES = "STREAM d TUPLES\nAnswer(x, y) <- D+(x, y) as P.\n"
WHOLE_WITHOUT = """STREAM s (at INT) WINDOW 12
D(x, y) <- a(x, z), b(z, y, at: t).
Answer(x, y) <- D+(x, y) as P.
"""


def rows_of(seed, count):
    rows = []
    for src, label, trg, ts, *op in generate(seed, count, deletions=True):
        row = {"src": src, "label": label, "trg": trg, "ts": ts, "at": ts % 3} | ({"op": op[0]} if op else {})
        rows.append(row)
    return rows


def expected(text, rows):
    typed = text.replace("STREAM s WINDOW", "STREAM s (at INT) WINDOW")
    return held_by(read_query(typed), meander.run(typed, rows))


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def answer(spark, tmp_path, text, stream, source, out, **options):
    session = Session(spark)
    session.stream(stream, source)
    session.query(text, "q")
    rejects = tmp_path / f"{out.rpartition('/')[2]}.rejects.jsonl"
    run = session.start(sinks={"q": out}, rejects=str(rejects), follow=False, **options)
    assert run.wait(300)
    assert read_records(rejects) == []


@pytest.mark.parametrize(("mode", "ending"), [("intervals", ".jsonl"), ("changes", ".parquet")])
def test_a_chain_of_two_runs_with_two_cells_gives_what_one_text_gives(spark, tmp_path, mode, ending) -> None:
    rows = rows_of(31, 900)
    write_lines(tmp_path / "in" / "0.jsonl", rows[:500])
    write_lines(tmp_path / "in" / "1.jsonl", rows[500:])
    middle, out = str(tmp_path / f"d{ending}"), str(tmp_path / "out.jsonl")
    answer(spark, tmp_path, FIRST, "s", str(tmp_path / "in"), middle, cells=2, mode=mode)
    answer(spark, tmp_path, SECOND, "d", middle, out, cells=2)
    wanted = expected(WHOLE, rows)
    assert wanted
    assert held_by(read_query(SECOND), read_records(tmp_path / "out.jsonl")) == wanted
    local = meander.run(WITHOUT_VALUES, middle)
    assert held_by(read_query(WITHOUT_VALUES), local) == expected(WHOLE_WITHOUT, rows)


@pytest.mark.parametrize("cells", [1, 2])
def test_a_frame_of_answers_is_read_as_tuples(spark, tmp_path, cells) -> None:
    rows = rows_of(32, 400)
    middle, out = tmp_path / "d" / "d.jsonl", str(tmp_path / "out.jsonl")
    middle.parent.mkdir()
    meander.run(FIRST, rows, answers=middle)
    answer(spark, tmp_path, SECOND, "d", spark.read.json(str(middle)), out, cells=cells)
    assert held_by(read_query(SECOND), read_records(tmp_path / "out.jsonl")) == expected(WHOLE, rows)
    streaming = spark.readStream.schema(spark.read.json(str(middle)).schema).json(str(middle.parent))
    out = str(tmp_path / "again.jsonl")
    session = Session(spark)
    session.stream("d", streaming)
    session.query(SECOND, "q")
    run = session.start(sinks={"q": out}, cells=cells)
    run.finish()
    assert held_by(read_query(SECOND), read_records(tmp_path / "again.jsonl")) == expected(WHOLE, rows)


def test_the_expiry_of_a_frame_under_a_window_is_warned_of(spark, tmp_path) -> None:
    meander.run(FIRST, rows_of(33, 100), answers=tmp_path / "d.jsonl")
    session = Session(spark)
    session.stream("d", spark.read.json(str(tmp_path / "d.jsonl")))
    session.query("STREAM d WINDOW 5  Answer(x, y) <- D(x, y).", "q")
    with pytest.warns(UserWarning, match="exp of the stream d is ignored"):
        session.start(sinks={"q": str(tmp_path / "out.jsonl")}).stop()


def test_a_frame_whose_properties_have_another_type_is_refused(spark) -> None:
    frame = spark.createDataFrame(
        [("u", "D", "v", 1, ("x",))],
        "src string, label string, trg string, ts int, properties struct<hour: string>",
    )
    session = Session(spark)
    session.stream("d", frame)
    session.query(SECOND, "q")
    with pytest.raises(MeanderError, match="the column hour of stream d has type string"):
        session.start(sinks={"q": "out.jsonl"})


@pytest.mark.kafka
@pytest.mark.parametrize("mode", ["intervals", "changes"])
def test_a_chain_by_a_topic_gives_what_one_text_gives(spark, broker, tmp_path, mode) -> None:  # noqa: F811
    rows = rows_of(34, 600)
    write_lines(tmp_path / "in" / "0.jsonl", rows)
    topic = f"kafka://127.0.0.1:{broker.port}/derived-{mode}"
    answer(spark, tmp_path, FIRST, "s", str(tmp_path / "in"), topic, cells=2, mode=mode)
    session = Session(spark)
    session.stream("d", topic)
    session.query(SECOND, "q")
    out, rejects = tmp_path / "out.jsonl", tmp_path / "rejects.jsonl"
    run = session.start(sinks={"q": str(out)}, rejects=str(rejects), cells=2)
    run.process_available()
    run.finish()
    assert read_records(rejects) == []
    assert held_by(read_query(SECOND), read_records(out)) == expected(WHOLE, rows)
