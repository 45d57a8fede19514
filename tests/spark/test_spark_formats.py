"""Any format that Spark writes can be named where a path can: on the command line and in Python."""

import json

import pytest
from incidents import CLOSURE, canonical, generate, open_session, write_tsv

import meander
from command import meander as command
from meander.errors import ArgumentError
from meander.spark.output.dataframes import parse_format

pytestmark = pytest.mark.spark


def test_a_format_is_a_name_and_options():
    assert parse_format("format:console") == ("console", {})
    assert parse_format("format:delta?path=/x/y&mergeSchema=true") == (
        "delta",
        {"path": "/x/y", "mergeSchema": "true"},
    )
    url = "jdbc:postgresql://host/db?user=a+b&ssl=true"
    assert parse_format(f"format:jdbc?url={url.replace('&', '%26')}&dbtable=t") == (
        "jdbc",
        {"url": url, "dbtable": "t"},
    )
    assert parse_format("format:csv?nullValue=&path=/x") == ("csv", {"nullValue": "", "path": "/x"})
    assert parse_format({"format": "delta", "path": "/x", "mergeSchema": True}) == (
        "delta",
        {"path": "/x", "mergeSchema": True},
    )


@pytest.mark.parametrize(
    ("target", "message"),
    [("format:", "the name of the format is missing"), ("format:csv?path", "an option has no value")],
)
def test_a_format_that_is_not_complete_is_refused_with_an_example(target, message):
    with pytest.raises(ArgumentError, match=message) as refused:
        parse_format(target)
    assert refused.value.hint.startswith("write format:NAME?OPTION=VALUE")


def test_answers_are_written_in_formats_of_spark(spark, tmp_path):
    rows = generate(71, 200)
    write_tsv(tmp_path / "s.tsv", rows)
    names = ("parquet", "csv", "json", "console")
    session = open_session(spark, {"s": tmp_path / "s.tsv"}, dict.fromkeys(names, (CLOSURE, None)))
    sinks = {
        "parquet": f"format:parquet?path={tmp_path / 'parquet'}&compression=gzip",
        "csv": f"format:csv?path={tmp_path / 'csv'}&header=true&sep=%26",
        "json": {"format": "json", "path": str(tmp_path / "json")},
        "console": "format:console",
    }
    run = session.start(sinks=sinks, follow=False)
    assert run.wait(300)
    expected = canonical(meander.run(CLOSURE, rows))
    assert list((tmp_path / "parquet").glob("*.gz.parquet"))
    frames = {
        "parquet": spark.read.parquet(str(tmp_path / "parquet")),
        "csv": spark.read.csv(str(tmp_path / "csv"), header=True, sep="&", inferSchema=True),
    }
    for frame in frames.values():
        assert canonical(row.asDict() for row in frame.collect()) == expected
    lines = [line for file in (tmp_path / "json").glob("*.json") for line in file.read_text().splitlines()]
    assert canonical({"exp": None} | json.loads(line) for line in lines) == expected


def test_the_command_line_writes_a_format_of_spark_and_refuses_one_that_spark_does_not_know(spark, tmp_path):
    rows = generate(72, 100)
    write_tsv(tmp_path / "s.tsv", rows)
    arguments = ["run", CLOSURE, "--stream", f"s={tmp_path / 's.tsv'}", "--out"]
    written = command(*arguments, f"format:parquet?path={tmp_path / 'out'}")
    assert written.returncode == 0, written.stderr
    records = [row.asDict() for row in spark.read.parquet(str(tmp_path / "out")).collect()]
    assert canonical(records) == canonical(meander.run(CLOSURE, rows))
    session = open_session(spark, {"s": tmp_path / "s.tsv"}, {"q": (CLOSURE, None)})
    with pytest.raises(ArgumentError, match="Spark does not know the format nonsense"):
        session.start(sinks={"q": "format:nonsense?path=/x"})
    local = command(*arguments, "format:delta?path=/x", "--runner", "local")
    assert local.returncode == 2
    assert local.stderr == (
        "error: format:delta?path=/x cannot be written by the local runner\n"
        "hint: a format of Spark needs --runner spark\n"
    )
