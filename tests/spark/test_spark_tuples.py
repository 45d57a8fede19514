"""Chains of runs on Spark: the answers of one, by files, topics and DataFrames, are the tuples of the next."""

import json
from dataclasses import replace

import pytest
from cells_in_process import forget, run_case
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from incidents import generate, read_records
from test_spark_kafka import broker  # noqa: F401 (a fixture)

import meander
from chains import CUT, cut_at, cuts, held_by, inputs
from judge import judge_path_values
from law import naming, plans_enumerated_once
from meander.errors import MeanderError
from meander.spark.session import Session
from oracle import TooLarge, expect
from querytext import Query, read_query
from strategies import Case, cases, path_value_cases, property_cases

pytestmark = pytest.mark.spark

drawn = settings(deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
drawn_cases = st.one_of(cases(), property_cases(), path_value_cases())

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


def run_cells(case: Case, query: Query, streams, cells, size, **given):
    """The records of a query over some streams, in order of time, as a run writes them."""
    returns_paths = any(rule.paths for rule in query.rules)
    part = replace(case, query=query, streams=streams, paths=False, **given)
    run = run_case(part, 1 if returns_paths else cells, size, incident=forget if size == 3 else None)
    assert not [reject for reject in run.rejects if reject.stream == CUT]
    return sorted(run.records, key=lambda record: record["ts"])


@pytest.mark.parametrize("mode", ["intervals", "changes"])
@given(
    case=drawn_cases.filter(lambda case: bool(cuts(case.query))),
    cells=st.sampled_from([1, 2, 3]),
    size=st.sampled_from([1, 3, 1000]),
    data=st.data(),
)
@settings(drawn, max_examples=10)
def test_a_chain_of_two_runs_in_cells_gives_what_one_text_gives(mode, case, cells, size, data) -> None:
    """All cells in this process, with the steps of Spark; some forget their state in every batch."""
    chain = cut_at(case.query, data.draw(st.sampled_from(cuts(case.query)), label="cut at"))
    try:
        expected = expect(case.query, case.streams, case.lateness)
    except TooLarge:
        assume(False)
    with naming(case), plans_enumerated_once():
        read = {name: case.streams[name] for name in inputs(chain.first)}
        tuples = run_cells(case, chain.first, read, cells, size, mode=mode)
        read = {name: case.streams[name] for name in inputs(chain.second) - {CUT}} | {CUT: tuples}
        records = run_cells(case, chain.second, read, cells, size)
        wanted = {answer: held for answer, held in expected.answers.items() if held}
        assert held_by(case.query, records) == wanted
        judge_path_values(records, expected, mode=case.mode, lasting=mode == "intervals")


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


@pytest.mark.parametrize(
    ("mode", "ending"), [pytest.param("intervals", ".jsonl", marks=pytest.mark.slow), ("changes", ".parquet")]
)
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


@pytest.mark.parametrize("cells", [pytest.param(1, marks=pytest.mark.slow), 2])
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


def test_a_frame_brings_paths_and_is_given_them(spark, tmp_path) -> None:
    first = "STREAM s (at INT) WINDOW 12\nD(x, y, P) <- a+(x, z) as P, b(z, y, at: t), t < 2."
    second = "STREAM d TUPLES (P PATH)\nAnswer(x, y, P) <- D(x, y, P), D(y, x)."
    whole = f"{first}\nAnswer(x, y, P) <- D(x, y, P), D(y, x)."
    rows = rows_of(35, 300)
    wanted = expect(read_query(whole), {"s": rows})
    assert wanted.answers
    for ending in ("jsonl", "parquet"):
        middle, out = str(tmp_path / f"d.{ending}"), str(tmp_path / f"{ending}.out.jsonl")
        meander.run(first, rows, answers=middle)
        source = middle if ending == "jsonl" else spark.read.parquet(middle)
        answer(spark, tmp_path, second, "d", source, out)
        records = read_records(tmp_path / f"{ending}.out.jsonl")
        assert held_by(read_query(whole), records) == {
            key: held for key, held in wanted.answers.items() if held
        }
        judge_path_values(records, wanted)


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
@pytest.mark.parametrize("mode", [pytest.param("intervals", marks=pytest.mark.slow), "changes"])
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
