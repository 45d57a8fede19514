"""Values, vertex tuples and tables on a real Spark: the answers are those of a local run over the same rows."""

from __future__ import annotations

import datetime
import json
import random
import shutil
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq
import pytest
from incidents import held_with_values, kill_workers, read_records, replaced_rows

import meander
from meander.errors import MeanderError
from meander.spark.session import Session

pytestmark = pytest.mark.spark

TRANSFERS = """STREAM bank (amount FLOAT, due TIME, currency STRING, urgent BOOL, number INT) WINDOW 40
Answer(x, z, total: n, at: t, late: d, in: c, now: u, of: k) <-
    transfer(x, y, amount: n, ts: t, currency: c, urgent: u), transfer(y, z, amount: m, due: d, number: k),
    m > n, k < 90.
"""


def transfers(rows: int, seed: int = 3) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    return [
        {
            "src": f"a{draw.randint(0, 7)}",
            "label": "transfer",
            "trg": f"a{draw.randint(0, 7)}",
            "ts": at // 3,
            "amount": None if at % 11 == 0 else draw.randint(0, 400) / 4,
            "due": None if at % 13 == 0 else at + 5,
            "currency": draw.choice(("EUR", "€", "", None)),
            "urgent": draw.choice((True, False, None)),
            "number": draw.choice((None, *range(100))),
        }
        for at in range(rows)
    ]


def moment(seconds: int | None) -> datetime.datetime | None:
    return None if seconds is None else datetime.datetime.fromtimestamp(seconds, datetime.UTC)


def typed_rows(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (
            row["src"],
            row["trg"],
            moment(row["ts"]),
            None if row["amount"] is None else Decimal(str(row["amount"])),
            moment(row["due"]),
            *(row[name] for name in ("currency", "urgent", "number")),
        )
        for row in rows
    ]


TYPED = (
    "who string, whom string, at timestamp, amount decimal(9,2), due timestamp, currency string, "
    "urgent boolean, number int"
)
COLUMNS = {"src": "who", "trg": "whom", "ts": "at"}


def in_unit(rows: list[dict[str, Any]], per_second: int) -> list[dict[str, Any]]:
    """The rows with their times in another unit."""
    return [
        row | {name: row[name] if row[name] is None else row[name] * per_second for name in ("ts", "due")}
        for row in rows
    ]


@pytest.mark.parametrize(("unit", "per_second"), [pytest.param("s", 1, marks=pytest.mark.slow), ("ms", 1000)])
def test_timestamps_and_decimals_of_a_frame_are_times_and_floats(
    spark: Any, tmp_path: Any, unit: str, per_second: int
) -> None:
    rows = transfers(240)
    session = Session(spark, time_unit=unit)
    frame = spark.createDataFrame(typed_rows(rows), TYPED).repartition(2)
    session.stream("bank", frame, columns=COLUMNS, label="transfer")
    text = TRANSFERS.replace("WINDOW 40", "WINDOW 40s")
    # What the query does not declare the columns decide.
    undeclared = text.replace("(amount FLOAT, due TIME, currency STRING, urgent BOOL, number INT) ", "")
    session.query(undeclared, "q")
    run = session.start(sinks={"q": str(tmp_path / "out.jsonl")})
    assert run.wait(300)
    expected = list(meander.run(text, in_unit(rows, per_second), time_unit=unit))
    assert expected
    assert held_with_values(read_records(tmp_path / "out.jsonl")) == held_with_values(expected)


def test_a_column_of_another_type_than_the_query_reads_is_refused(spark: Any) -> None:
    session = Session(spark)
    frame = spark.createDataFrame(typed_rows(transfers(3)), TYPED)
    session.stream("bank", frame, columns=COLUMNS, label="transfer")
    for kind in ("STRING", "INT", "TIME", "BOOL"):
        session.query(
            f"STREAM bank (amount {kind}) WINDOW 9\nAnswer(x, y, n: n) <- transfer(x, y, amount: n).", kind
        )
        with pytest.raises(MeanderError, match="has type decimal"):
            session.start(queries=[kind])
    with pytest.raises(MeanderError, match='amount is FLOAT, and "much" is STRING'):
        session.query("STREAM bank WINDOW 9\nAnswer(x, y) <- transfer[amount = 'much'](x, y).")


def test_a_streaming_frame_with_values_gives_a_frame_with_a_struct(spark: Any, tmp_path: Any) -> None:
    rows = transfers(240)
    # A stream has no end: without a later edge, edges of the last instant would wait for others.
    rows.append(rows[-1] | {"ts": 1000})
    folder = tmp_path / "in"
    spark.createDataFrame(typed_rows(rows), TYPED).coalesce(1).write.parquet(str(folder))
    session = Session(spark)
    frame = spark.readStream.schema(TYPED).parquet(str(folder))
    session.stream("bank", frame, columns=COLUMNS, label="transfer")
    answers = session.query(TRANSFERS, "q").dataframe()
    kinds = {field.name: field.dataType.simpleString() for field in answers.schema.fields}
    assert kinds["properties"] == (
        "struct<at:bigint,in:string,late:bigint,now:boolean,of:bigint,total:double>"
    )
    sink = answers.writeStream.format("memory").queryName("values")
    started = sink.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        started.processAllAvailable()
        found = [row.asDict(recursive=True) for row in spark.table("values").collect()]
    finally:
        started.stop()
    expected = held_with_values(meander.run(TRANSFERS, rows))
    assert expected
    assert held_with_values(found) == expected


def test_parquet_and_lines_of_json_have_properties(spark: Any, tmp_path: Any) -> None:
    rows = transfers(240)
    path = tmp_path / "bank.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    expected = held_with_values(meander.run(TRANSFERS, rows))
    assert expected
    session = Session(spark)
    session.stream("bank", str(path))
    names = ("parquet", "jsonl", "spark")
    for name in names:
        session.query(TRANSFERS, name)
    run = session.start(
        sinks={
            "parquet": str(tmp_path / "out.parquet"),
            "jsonl": str(tmp_path / "out.jsonl"),
            "spark": {"format": "parquet", "path": str(tmp_path / "spark")},
        },
        follow=False,
    )
    assert run.wait(300)
    assert held_with_values(read_records(tmp_path / "out.jsonl")) == expected
    assert held_with_values(pq.read_table(tmp_path / "out.parquet").to_pylist()) == expected
    written = spark.read.parquet(str(tmp_path / "spark")).collect()
    assert held_with_values(row.asDict(recursive=True) for row in written) == expected


MIXED = """STREAM bank (amount INT) WINDOW 30
TABLE known (rank INT)
Answer(x, y, z, n: n, r: r) <-
    bank.person(x, amount: m), bank.*(x, y, amount: n), known.in(y, z, rank: r), m > 2, n >= r.
"""


def mixed_rows(seed: int) -> dict[str, list[dict[str, Any]]]:
    draw = random.Random(seed)
    bank = []
    for at in range(200):
        kind = draw.choice(("person", "pays", "sees"))
        row = {"src": f"v{draw.randint(0, 4)}", "label": kind, "ts": at // 2, "amount": draw.randint(0, 9)}
        bank.append(row | {"trg": None if kind == "person" else f"v{draw.randint(0, 4)}"})
    known = []
    for at in range(120):
        row = {"src": f"v{draw.randint(0, 4)}", "label": "in", "trg": f"k{draw.randint(0, 1)}", "ts": at}
        known.append(row | ({"op": "-"} if draw.random() < 0.2 else {"rank": draw.randint(0, 9)}))
    return {"bank": bank, "known": known}


@pytest.mark.parametrize("cells", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_any_label_vertices_and_a_table_as_frames_and_files(spark: Any, tmp_path: Any, cells: int) -> None:
    streams = mixed_rows(cells)
    expected = held_with_values(meander.run(MIXED, streams))
    assert expected
    path = tmp_path / "known.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in streams["known"]))
    session = Session(spark)
    frame = spark.createDataFrame(
        [tuple(row[name] for name in ("src", "label", "trg", "ts", "amount")) for row in streams["bank"]],
        "src string, label string, trg string, ts bigint, amount int",
    )
    session.stream("bank", frame)
    session.stream("known", str(path))
    session.query(MIXED, "q")
    run = session.start(sinks={"q": str(tmp_path / "out.jsonl")}, follow=False, cells=cells)
    assert run.wait(300)
    assert held_with_values(read_records(tmp_path / "out.jsonl")) == expected


TABLE = "TABLE s (w INT)\nAnswer(x, y, v: v) <- a(x, y, w: v), v > 3."


def test_a_table_that_is_replaced_often_stays_small_and_survives_a_kill(spark: Any, tmp_path: Any) -> None:
    rows = replaced_rows(1000)
    parts = [rows[start : start + 4000] for start in (0, 4000)]
    counts: list[int] = []

    def start(number: int) -> Any:
        folder = tmp_path / "in"
        folder.mkdir(exist_ok=True)
        lines = "".join(json.dumps(row) + "\n" for row in parts[number])
        (folder / f"{number}.jsonl").write_text(lines)
        session = Session(spark)
        session.stream("s", str(folder))
        session.query(TABLE, "q")
        run = session.start(
            str(tmp_path / "checkpoint"),
            {"q": str(tmp_path / "out.jsonl")},
            batch_rows=200,
            snapshot_rows=500,
        )
        run.batch_hooks.append(
            lambda figures: counts.append(sum(cell["window_rows"] for cell in figures["cells"]))
        )
        return run

    first = start(0)
    try:
        first.process_available()
        assert kill_workers(first.job.run, daemon=True)
    finally:
        first.stop()
    shutil.rmtree(tmp_path / "checkpoint" / "meander" / "snapshots")
    second = start(1)
    try:
        second.finish()
    finally:
        second.stop()
    assert second.figures[0]["cells"][0]["rebuilt"]
    assert len(counts) > 20
    assert max(counts) < 2000
    expected = held_with_values(meander.run(TABLE, rows))
    assert expected
    assert held_with_values(read_records(tmp_path / "out.jsonl")) == expected
