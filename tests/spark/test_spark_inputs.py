"""Odd inputs: streams that pause, run at different speeds or come in a thousand pieces, and files that are not there
yet, empty or broken, all give the answers of the local runner."""

import gzip
import json
import os
import time

import pytest
from incidents import (
    CLOSURE,
    assert_undisturbed,
    canonical,
    generate,
    kill_workers,
    open_session,
    read_records,
    write_tsv,
)
from pyspark.sql.types import DoubleType, LongType, ShortType, StringType, TimestampNTZType, TimestampType

import meander
from meander.dataflow.layout import StreamLayout
from meander.errors import ArgumentError, InputError
from meander.spark.compat import format_package
from meander.spark.input.dataframes import check_type
from meander.spark.session import Session
from meander.spark.settings import PROVIDER

pytestmark = pytest.mark.spark

JOIN = "STREAM s WINDOW 40\nSTREAM t WINDOW 25\nAnswer(x, z) <- s.a(x, y), t.b(y, z)."


def start(spark, folder, streams, text=CLOSURE, **options):
    session = open_session(spark, streams, {"q": (text, None)})
    return session.start(str(folder / "checkpoint"), {"q": str(folder / "out.jsonl")}, **options)


def lines_of(rows):
    return "".join("\t".join(map(str, row)) + "\n" for row in rows).encode()


def in_sequence(folder):
    """Spark reads the files of a folder by their times: those of their names' order."""
    for number, file in enumerate(sorted(folder.iterdir())):
        os.utime(file, (1_000_000 + number, 1_000_000 + number))


def pause(spark, folder, wait):
    """A stream that has something to say, then nothing, then something."""
    rows = generate(41, 600)
    write_tsv(folder / "in" / "0.tsv", rows[:300])
    run = start(spark, folder, {"s": folder / "in"})
    try:
        run.process_available()
        before = read_records(folder / "out.jsonl")
        wait(run)
        assert read_records(folder / "out.jsonl") == before
        write_tsv(folder / "in" / "1.tsv", rows[300:])
        run.finish()
    finally:
        run.stop()
    assert_undisturbed(read_records(folder / "out.jsonl"), CLOSURE, rows)
    return run


@pytest.mark.slow
def test_a_stream_may_pause_until_its_workers_have_ended(spark, tmp_path):
    """Spark ends a worker that has been idle for a minute; here that is done to it."""
    killed = []

    def wait(run):
        time.sleep(1)
        killed.append(kill_workers(run.job.run, daemon=False))

    pause(spark, tmp_path, wait)
    assert killed[0] >= 1


@pytest.mark.slow
def test_a_stream_may_pause_for_two_minutes(spark, tmp_path):
    pause(spark, tmp_path, lambda run: time.sleep(125))


@pytest.mark.slow
def test_a_thousand_tiny_files(spark, tmp_path):
    rows = generate(42, 2000)
    for number in range(1000):
        write_tsv(tmp_path / "in" / f"{number:04}.tsv", rows[2 * number : 2 * number + 2])
    run = start(spark, tmp_path, {"s": tmp_path / "in"}, follow=False)
    assert run.wait(300)
    assert run.totals["edges"] == 2000
    assert_undisturbed(read_records(tmp_path / "out.jsonl"), CLOSURE, rows)


@pytest.mark.slow
def test_a_file_of_a_million_rows(spark, tmp_path):
    with open(tmp_path / "s.tsv", "w") as file:
        file.writelines(f"v{at % 997}\ta\tv{at % 1009}\t{at // 100}\n" for at in range(1_000_000))
    text = "STREAM s WINDOW 5\nAnswer(x, z) <- a(x, y), a(y, z)."
    run = start(spark, tmp_path, {"s": tmp_path / "s.tsv"}, text, follow=False)
    assert run.wait(600)
    assert run.totals["edges"] == 1_000_000
    expected = meander.run(text, str(tmp_path / "s.tsv"))
    assert canonical(read_records(tmp_path / "out.jsonl")) == canonical(expected)


@pytest.mark.slow
def test_batches_without_edges_for_a_cell(spark, tmp_path):
    """Batches of labels that nobody asks for, of rejects alone, and of edges of one source."""
    rows = generate(43, 400)
    write_tsv(tmp_path / "in" / "0.tsv", rows[:200])
    run = start(spark, tmp_path, {"s": tmp_path / "in"}, cells=2, rejects=str(tmp_path / "rejects.jsonl"))
    try:
        run.process_available()
        write_tsv(tmp_path / "in" / "1.tsv", [("v1", "unasked", "v2", 49)])
        run.process_available()
        write_tsv(tmp_path / "in" / "2.tsv", [("v1", "a")])
        run.process_available()
        write_tsv(tmp_path / "in" / "3.tsv", [("v1", "a", "v2", 49)])
        run.process_available()
        write_tsv(tmp_path / "in" / "4.tsv", rows[200:])
        run.finish()
    finally:
        run.stop()
    edges = [*rows[:200], ("v1", "a", "v2", 49), *rows[200:]]
    assert_undisturbed(read_records(tmp_path / "out.jsonl"), CLOSURE, edges)
    rejects = read_records(tmp_path / "rejects.jsonl")
    assert [(reject["stream"], reject["reason"], reject["text"]) for reject in rejects] == [
        ("s", "missing field", "v1\ta")
    ]


@pytest.mark.slow
def test_two_streams_at_very_different_speeds(spark, tmp_path):
    """One comes whole in the first batch, the other a file at a time; nothing is answered before both are there."""
    left, right = generate(44, 600, labels="a"), generate(45, 600, labels="b")
    write_tsv(tmp_path / "left.tsv", left)
    for number in range(6):
        write_tsv(tmp_path / "right" / f"{number}.csv", right[100 * number : 100 * number + 100])
    in_sequence(tmp_path / "right")
    frame = (
        spark.readStream.schema("src string, label string, trg string, ts bigint")
        .option("sep", "\t")
        .option("maxFilesPerTrigger", 1)
        .csv(str(tmp_path / "right"))
    )
    run = start(spark, tmp_path, {"s": tmp_path / "left.tsv", "t": frame}, JOIN)
    reached = []
    run.batch_hooks.append(lambda figures: reached.append(figures["cells"][0]["time"]))
    try:
        run.process_available()
        held = canonical(read_records(tmp_path / "out.jsonl"))
        run.finish()
    finally:
        run.stop()
    assert len(set(reached[:6])) >= 5, reached
    expected = canonical(meander.run(JOIN, {"s": left, "t": right}))
    assert all(answer in expected for answer in held)
    assert_undisturbed(read_records(tmp_path / "out.jsonl"), JOIN, {"s": left, "t": right})


def test_late_edges_across_batches_and_partitions(spark, tmp_path):
    """Edges up to five late are taken, wherever the batch or the partition ends; later ones are rejected."""
    rows = generate(46, 400)
    shuffled = [
        rows[at ^ 7] for at in range(400)
    ]  # an edge is at most seven places, two instants, from its own
    late = ("v0", "a", "v1", 10)
    write_tsv(tmp_path / "in" / "0.tsv", shuffled[:203])
    run = start(
        spark,
        tmp_path,
        {"s": tmp_path / "in"},
        lateness=5,
        batch_rows=50,
        rejects=str(tmp_path / "rejects.jsonl"),
    )
    try:
        run.process_available()
        write_tsv(tmp_path / "in" / "1.tsv", [*shuffled[203:], late])
        run.finish()
    finally:
        run.stop()
    assert_undisturbed(read_records(tmp_path / "out.jsonl"), CLOSURE, [*shuffled, late], lateness=5)
    rejects = read_records(tmp_path / "rejects.jsonl")
    assert [(reject["reason"], reject["text"]) for reject in rejects] == [("too late", "v0\ta\tv1\t10")]
    assert run.totals["late"] == 1


@pytest.mark.slow
def test_late_edges_in_the_partitions_of_a_frame(spark, tmp_path):
    rows = generate(47, 400)
    shuffled = [rows[at ^ 7] for at in range(400)]
    for number in range(4):
        (tmp_path / "in").mkdir(exist_ok=True)
        lines = "".join(
            f"{ts}|{a}|{label}|{b}\n" for a, label, b, ts in shuffled[100 * number : 100 * number + 100]
        )
        (tmp_path / "in" / f"{number}.csv").write_text(lines)
    in_sequence(tmp_path / "in")
    frame = (
        spark.readStream.schema("at bigint, who string, what string, whom string")
        .option("sep", "|")
        .option("maxFilesPerTrigger", 2)
        .csv(str(tmp_path / "in"))
        .selectExpr("timestamp_seconds(at) AS at", "who", "what", "whom")
    )
    session = Session(spark)
    session.stream("s", frame, columns={"src": "who", "label": "what", "trg": "whom", "ts": "at"})
    session.query(CLOSURE, "q")
    run = session.start(str(tmp_path / "checkpoint"), {"q": str(tmp_path / "out.jsonl")}, lateness=5)
    try:
        run.finish()
    finally:
        run.stop()
    assert run.totals["late"] == 0
    assert_undisturbed(read_records(tmp_path / "out.jsonl"), CLOSURE, shuffled, lateness=5)


def test_empty_files_and_files_that_come_later(spark, tmp_path):
    rows = generate(48, 300)
    (tmp_path / "in").mkdir()
    run = start(spark, tmp_path, {"s": tmp_path / "in"})
    try:
        run.process_available()
        (tmp_path / "in" / "0.tsv").touch()
        (tmp_path / "in" / "0.jsonl").touch()
        run.process_available()
        (tmp_path / "in" / "1.tsv.gz").write_bytes(gzip.compress(lines_of(rows[:100])))
        run.process_available()
        # The empty one grows, and has half a line for a while.
        text = lines_of(rows[100:200])
        (tmp_path / "in" / "0.tsv").write_bytes(text[:-3])
        run.process_available()
        with open(tmp_path / "in" / "0.tsv", "ab") as file:
            file.write(text[-3:])
        fields = [dict(zip(("src", "label", "trg", "ts"), row, strict=True)) for row in rows[200:]]
        (tmp_path / "in" / "2.jsonl").write_text("".join(json.dumps(row) + "\n" for row in fields))
        run.finish()
    finally:
        run.stop()
    assert_undisturbed(read_records(tmp_path / "out.jsonl"), CLOSURE, rows)


def test_a_broken_file_among_good_ones_ends_the_run_after_what_came_before(spark, tmp_path):
    rows = generate(49, 300)
    (tmp_path / "in").mkdir()
    write_tsv(tmp_path / "in" / "0.tsv", rows[:100])
    (tmp_path / "in" / "1.tsv.gz").write_bytes(gzip.compress(lines_of(rows[100:200]))[:-15])
    write_tsv(tmp_path / "in" / "2.tsv", rows[200:])
    run = start(spark, tmp_path, {"s": tmp_path / "in"}, follow=False)
    with pytest.raises(InputError, match=r"1\.tsv\.gz"):
        run.wait(300)
    written = canonical(read_records(tmp_path / "out.jsonl"))
    assert set(canonical(meander.run(CLOSURE, rows[:96]))) <= set(written)


def test_a_session_of_the_users_is_used_as_it_is_or_refused_with_the_setting(spark):
    own = spark.newSession()
    own.conf.set("spark.sql.shuffle.partitions", "7")
    assert Session(own).spark is own
    assert own.conf.get("spark.sql.shuffle.partitions") == "7"
    own.conf.set(PROVIDER, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    with pytest.raises(ArgumentError, match="HDFSBackedStateStoreProvider") as refused:
        Session(own)
    assert f'spark.conf.set("{PROVIDER}"' in str(refused.value)


def test_a_sink_whose_package_is_not_there_is_refused_before_the_run_starts(spark, tmp_path):
    write_tsv(tmp_path / "s.tsv", generate(50, 10))
    session = open_session(spark, {"s": tmp_path / "s.tsv"}, {"q": (CLOSURE, None)})
    with pytest.raises(ArgumentError, match="Spark does not know the format delta") as refused:
        session.start(sinks={"q": {"format": "delta", "path": str(tmp_path / "out")}})
    package = format_package("delta", spark.version)
    assert (package or "use Spark 4.1 or 4.2") in str(refused.value)
    with pytest.raises(ArgumentError, match="Spark does not know the format nonsense"):
        session.start(sinks={"q": {"format": "nonsense"}})


@pytest.mark.parametrize(
    ("field", "kind", "wanted"),
    [
        ("src", DoubleType(), "has type double, not strings or integers"),
        ("label", LongType(), "has type bigint, not strings"),
        ("ts", StringType(), "has type string, not integers or timestamps"),
    ],
)
def test_a_column_of_another_type_is_refused_with_the_types_that_a_field_can_have(field, kind, wanted):
    with pytest.raises(ArgumentError, match=f"the column c of stream s {wanted}"):
        check_type(StreamLayout("s"), field, "c", kind)


def test_columns_of_every_type_of_a_field_are_accepted():
    for kind in (StringType(), LongType(), ShortType()):
        check_type(StreamLayout("s"), "trg", "c", kind)
    for kind in (LongType(), TimestampType(), TimestampNTZType()):
        check_type(StreamLayout("s"), "ts", "c", kind)
