"""Queries on a real Spark: streams in, answers out, equal to those of the in-process runner."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from incidents import CLOSURE, generate, instants_held, read_records, write_tsv

import meander
from judge import judge
from meander.errors import ArgumentError, InputError, MeanderError, MemoryBudgetError, StateError
from meander.spark.run import Run
from meander.spark.session import Session
from oracle import expect
from querytext import read_query

pytestmark = pytest.mark.spark

JOIN = "STREAM s WINDOW 40\nSTREAM t WINDOW 25\nAnswer(x, z) <- s.a(x, y), t.b(y, z)."


def answer(spark, folder, text, streams, *, out="out.jsonl", follow=False, **options) -> Run:
    """Run the query on Spark over bounded streams, to the end."""
    session = Session(spark)
    for name, location in streams.items():
        session.stream(name, str(location))
    session.query(text, "q", plan=options.pop("plan", None))
    started = session.start(str(folder / "checkpoint"), {"q": str(folder / out)}, follow=follow, **options)
    try:
        assert started.wait(300)
    finally:
        started.stop()
    return started


def test_a_file_gives_the_answers_of_the_local_runner(spark, tmp_path) -> None:
    rows = generate(1, 2000)
    write_tsv(tmp_path / "s.tsv", rows)
    done = answer(
        spark, tmp_path, CLOSURE, {"s": tmp_path / "s.tsv"}, batch_rows=500, metrics=str(tmp_path / "m.jsonl")
    )
    assert instants_held(read_records(tmp_path / "out.jsonl")) == instants_held(meander.run(CLOSURE, rows))
    assert done.totals["edges"] == 2000
    metrics = read_records(tmp_path / "m.jsonl")
    assert len(metrics) >= 4
    assert sum(line["edges"] for line in metrics) == 2000
    assert sum(line["answers"] for line in metrics) == len(read_records(tmp_path / "out.jsonl"))
    assert metrics[0]["cells"][0]["operators"]
    assert "addBatch" in metrics[-1]["spark"]["durations_ms"]
    # A run that has ended stays so: nothing is written twice, more input is refused.
    before = (tmp_path / "out.jsonl").read_bytes()
    answer(spark, tmp_path, CLOSURE, {"s": tmp_path / "s.tsv"})
    assert (tmp_path / "out.jsonl").read_bytes() == before
    write_tsv(tmp_path / "s.tsv", [*rows, ("x", "a", "y", 10_000)])
    with pytest.raises(StateError, match="has ended with its input"):
        answer(spark, tmp_path, CLOSURE, {"s": tmp_path / "s.tsv"})
    with pytest.raises(StateError, match="belongs to another query; it was"):
        answer(spark, tmp_path, CLOSURE.replace("40", "41"), {"s": tmp_path / "s.tsv"})
    with pytest.raises(StateError, match="--mode intervals, not changes"):
        answer(spark, tmp_path, CLOSURE, {"s": tmp_path / "s.tsv"}, mode="changes")


def test_two_streams_in_all_formats_and_their_rejects(spark, tmp_path) -> None:
    left, right = generate(2, 900, labels="a"), generate(3, 300, labels="b")
    folder = tmp_path / "left"
    folder.mkdir()
    write_tsv(folder / "0.tsv", left[:300])
    with open(folder / "0.tsv", "a") as file:
        file.write("no\ta\n")
    (folder / "1.csv").write_text(
        "ts,src,trg,label\n" + "".join(f"{ts},{src},{trg},{label}\n" for src, label, trg, ts in left[300:500])
    )
    (folder / "2.jsonl.gz").write_bytes(
        gzip.compress(
            "".join(
                json.dumps(dict(zip(("src", "label", "trg", "ts"), row, strict=True))) + "\n"
                for row in left[500:700]
            ).encode()
        )
    )
    columns = dict(zip(("src", "label", "trg", "ts"), map(list, zip(*left[700:], strict=True)), strict=True))
    pq.write_table(pa.table(columns), folder / "3.parquet")
    write_tsv(tmp_path / "t.tsv", [*right, ("late", "b", "late", 3)])
    done = answer(
        spark,
        tmp_path,
        JOIN,
        {"s": folder, "t": tmp_path / "t.tsv"},
        out="out.parquet",
        rejects=str(tmp_path / "rejects.jsonl"),
    )
    records = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert instants_held(records) == instants_held(meander.run(JOIN, {"s": left, "t": right}))
    assert sorted(
        (reject["stream"], reject["reason"], reject["text"])
        for reject in read_records(tmp_path / "rejects.jsonl")
    ) == [
        ("s", "missing field", "no\ta"),
        ("t", "too late", "late\tb\tlate\t3"),
    ]
    assert done.totals["late"] == 1
    assert done.totals["rejected"] == 1


def test_a_users_frames_columns_and_timestamps_and_frames_back(spark, tmp_path) -> None:
    rows = generate(4, 400)
    text = "".join(f"{a[1:]},{label},{b[1:]},{1_000 + ts}\n" for a, label, b, ts in rows)
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "0.csv").write_text(text)
    frame = (
        spark.readStream.schema("who bigint, what string, whom bigint, at bigint")
        .csv(str(folder))
        .selectExpr("who", "what", "whom", "timestamp_seconds(at) AS at")
    )
    session = Session(spark)
    session.stream("s", frame, columns={"src": "who", "label": "what", "trg": "whom", "ts": "at"})
    query = session.query(CLOSURE, "q")
    with pytest.warns(UserWarning, match="has 1 partition for 2 cells") as warned:
        query.dataframe(cells=2)
    assert warned[0].filename == __file__
    answers = query.dataframe(paths=True)
    assert answers.isStreaming
    assert answers.schema.simpleString().startswith("struct<src:bigint,trg:bigint,label:string,ts:bigint")
    sink = (
        answers.writeStream.format("memory")
        .queryName("answers")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
    )
    started = sink.start()
    try:
        started.processAllAvailable()
        got = [row.asDict(recursive=True) for row in spark.table("answers").collect()]
    finally:
        started.stop()
    expected = instants_held(
        meander.run(CLOSURE, [(int(a[1:]), k, int(b[1:]), 1_000 + ts) for a, k, b, ts in rows])
    )
    assert instants_held(got) == expected
    assert all(record["path"][0]["src"] == record["src"] for record in got)


def test_static_frames_and_sinks_that_spark_writes(spark, tmp_path) -> None:
    rows = generate(5, 300)
    frame = spark.createDataFrame(rows, "src string, label string, trg string, ts bigint").repartition(3)
    session = Session(spark)
    session.stream("s", frame)
    session.query(CLOSURE, "closure")
    session.query("STREAM s WINDOW 7\nAnswer(x, y) <- a(x, y).", "edges")
    seen = []
    run = session.start(
        sinks={
            "closure": lambda answers, batch: seen.extend(row.asDict() for row in answers.collect()),
            "edges": {"format": "json", "path": str(tmp_path / "edges")},
        },
    )
    assert run.wait(300)
    assert run.queries == ("closure", "edges")
    assert instants_held(seen) == instants_held(meander.run(CLOSURE, rows))
    written = [row.asDict() for row in spark.read.json(str(tmp_path / "edges")).collect()]
    expected = meander.run("STREAM s WINDOW 7\nAnswer(x, y) <- a(x, y).", rows)
    assert instants_held(written) == instants_held(expected)


def test_proofs_reach_files_and_frames(spark, tmp_path) -> None:
    rows = generate(6, 300)
    rows.append((*rows[250][:3], rows[-1][3], "-"))
    session = Session(spark)
    session.stream(
        "s",
        spark.createDataFrame(
            [(*row, "+")[:5] for row in rows], "src string, label string, trg string, ts bigint, op string"
        ),
    )
    text = "STREAM s WINDOW 7\nD(x, y) <- a(x, u), a(u, y).\nAnswer(x, y) <- D+(x, y) as P."
    for name in ("lines", "frames"):
        session.query(text, name)
    seen = []
    run = session.start(
        str(tmp_path / "checkpoint"),
        {
            "lines": str(tmp_path / "lines.jsonl"),
            "frames": lambda answers, batch: seen.extend(row.asDict() for row in answers.collect()),
        },
        proofs=True,
    )
    assert run.wait(300)
    expected = expect(read_query(text), {"s": rows})
    judge(read_records(tmp_path / "lines.jsonl"), expected, proofs=True)
    judge(
        [{**row, "proof": row["proof"] and json.loads(row["proof"])} for row in seen], expected, proofs=True
    )


def test_what_cannot_be_run_is_refused_at_once(spark, tmp_path) -> None:
    session = Session(spark)
    query = session.query(CLOSURE, "q")
    with pytest.raises(ArgumentError, match="the stream s is not known"):
        session.start()
    session.stream("s", spark.readStream.format("rate").load())
    with pytest.raises(ArgumentError, match="has no column src: it has timestamp, value"):
        query.dataframe(paths=True)
    with pytest.raises(ArgumentError, match="there is no query other"):
        session.start(queries=["other"])
    with pytest.raises(ArgumentError, match="a sink is for p"):
        session.start(sinks={"p": "-"})


def test_damage_ends_the_run_after_what_came_before_it(spark, tmp_path) -> None:
    rows = generate(6, 400)
    packed = gzip.compress("".join("\t".join(map(str, row)) + "\n" for row in rows).encode())
    (tmp_path / "s.tsv.gz").write_bytes(packed[:-20])
    with pytest.raises(InputError, match="is damaged"):
        answer(spark, tmp_path, CLOSURE, {"s": tmp_path / "s.tsv.gz"})
    assert read_records(tmp_path / "out.jsonl")
    # What could not be read is lost to this checkpoint, whatever has come since.
    with pytest.raises(InputError, match=r"could not read all of its input: .* is damaged.*\nhint: mend"):
        answer(spark, tmp_path, CLOSURE, {"s": tmp_path / "s.tsv.gz"})


def test_rows_that_were_lost_are_not_forgotten_by_later_batches(spark, tmp_path) -> None:
    """A damaged file and then a good one, each a batch of its own."""
    data = tmp_path / "in"
    data.mkdir()
    rows = generate(7, 400)
    packed = gzip.compress("".join("\t".join(map(str, row)) + "\n" for row in rows).encode())
    (data / "a.tsv.gz").write_bytes(packed[:-20])
    (data / "b.tsv.gz").write_bytes(gzip.compress(b"x\ta\ty\t900\n"))
    for message in (
        r"a.tsv.gz is damaged",
        r"could not read all of its input",
        r"could not read all of its input",
    ):
        with pytest.raises(InputError, match=message):
            answer(spark, tmp_path, CLOSURE, {"s": data}, batch_rows=10)


def test_a_run_that_failed_leaves_its_checkpoint_to_others(spark, tmp_path) -> None:
    write_tsv(tmp_path / "s.tsv", generate(8, 40))

    def start(sink) -> Run:
        session = Session(spark)
        session.stream("s", str(tmp_path / "s.tsv"))
        session.query(CLOSURE, "q")
        return session.start(str(tmp_path / "checkpoint"), {"q": sink})

    def fail(answers, batch) -> None:
        raise ValueError("no such table")

    with pytest.raises(MeanderError, match="no such table"):
        start(fail).process_available()
    seen = []
    again = start(lambda answers, batch: seen.extend(answers.collect()))
    again.process_available()
    again.stop()
    assert seen


def test_an_output_to_replace_survives_arguments_that_are_refused(spark, tmp_path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("of another run\n")
    session = Session(spark)
    session.query(CLOSURE, "q")
    with pytest.raises(ArgumentError, match="the stream s is not known"):
        session.start(sinks={"q": str(out)}, overwrite=True)
    with pytest.raises(ArgumentError, match=r"rejects cannot go to .*r.parquet"):
        session.start(sinks={"q": str(out)}, rejects=str(tmp_path / "r.parquet"), overwrite=True)
    assert out.read_text() == "of another run\n"


def test_a_budget_that_is_reached_ends_the_run_at_once_and_it_goes_on_with_more(
    spark, tmp_path, capfd
) -> None:
    rows = [(f"v{at:03}", "a", f"v{at + 1:03}", at) for at in range(200)]
    (tmp_path / "in").mkdir()
    for first in range(0, 200, 50):
        write_tsv(tmp_path / "in" / f"{first:03}.tsv", rows[first : first + 50])
    text = "STREAM s WINDOW 300\nAnswer(x, y) <- a+(x, y)."
    run = {"batch_rows": 50, "path_operator": "s-path"}
    with pytest.raises(MemoryBudgetError, match="PATH a"):
        answer(spark, tmp_path, text, {"s": tmp_path / "in"}, memory="500000", **run)
    assert "Traceback" not in capfd.readouterr().err
    expected = instants_held(meander.run(text, rows))
    before = instants_held(read_records(tmp_path / "out.jsonl"))
    assert 0 < len(before) < len(expected)
    answer(spark, tmp_path, text, {"s": tmp_path / "in"}, **run)
    records = read_records(tmp_path / "out.jsonl")
    assert instants_held(records) == expected
    assert len(records) == len(list(meander.run(text, rows, path_operator="s-path")))
