"""`--columns` and `--label`: how they are written, and what is wrong with those that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from meander.cli.arguments import read_columns, read_labels
from meander.cli.commands import app
from meander.errors import ArgumentError

STREAMS = ("bank", "kyc")


@pytest.mark.parametrize(
    ("options", "columns"),
    [
        (["bank:src=from,trg=to"], {"bank": {"src": "from", "trg": "to"}}),
        (
            ["bank:src=from", "bank:trg=to", "kyc:ts=at"],
            {"bank": {"src": "from", "trg": "to"}, "kyc": {"ts": "at"}},
        ),
        (['bank:amount="paid, in ""EUR""",ts=a:b'], {"bank": {"amount": 'paid, in "EUR"', "ts": "a:b"}}),
        (["bank: src=Account From, trg=Account.To"], {"bank": {"src": "Account From", "trg": "Account.To"}}),
    ],
)
def test_columns_are_by_stream(options: list[str], columns: dict[str, dict[str, str]]) -> None:
    assert read_columns(options, STREAMS) == columns


def test_with_one_stream_its_name_may_be_omitted() -> None:
    assert read_columns(["src=from,ts={at}"], ("bank",)) == {"bank": {"src": "from", "ts": "{at}"}}
    assert read_labels(["sent"], ("bank",)) == {"bank": "sent"}
    assert read_labels(["bank=sent", "kyc=a=b"], STREAMS) == {"bank": "sent", "kyc": "a=b"}


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("src=from", "--columns src=from does not name its stream"),
        ("shop:src=from", "the query has no stream shop"),
        ("bank:src", "--columns bank:src cannot be read from 'src' on"),
        ("bank:src=,trg=to", "--columns bank:src=,trg=to cannot be read from 'src=,trg=to' on"),
        ("bank:src=a,src=b", "--columns gives src of the stream bank twice"),
    ],
)
def test_columns_that_cannot_be_read_are_refused(option: str, message: str) -> None:
    with pytest.raises(ArgumentError) as error:
        read_columns([option], STREAMS)
    assert error.value.message == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["sent"], "--label sent does not name its stream"),
        (["bank="], "--label bank= has no label"),
        (["bank=a", "bank=b"], "the label of the stream bank is given twice"),
        (["shop=a"], "the query has no stream shop"),
    ],
)
def test_labels_that_cannot_be_read_are_refused(options: list[str], message: str) -> None:
    with pytest.raises(ArgumentError) as error:
        read_labels(options, STREAMS)
    assert error.value.message == message


def test_a_file_is_read_by_its_own_columns(tmp_path: Path) -> None:
    (tmp_path / "bank.csv").write_text("account_from,account_to,time,note\na,b,2026-01-01,x\n")
    out = tmp_path / "out.jsonl"
    options = ["--stream", str(tmp_path / "bank.csv"), "--out", str(out), "--runner", "local"]
    options += ["--columns", "src=account_from,trg=account_to,ts=time", "--label", "sent"]
    query = "STREAM bank WINDOW 1h  Answer(x, y) <- sent(x, y)."
    result = CliRunner().invoke(app, ["run", query, *options])
    assert result.exit_code == 0, result.output
    assert "bank.csv that are ignored: note\n" in result.output
    (answer,) = [json.loads(line) for line in out.read_text().splitlines()]
    assert (answer["src"], answer["trg"], answer["ts"]) == ("a", "b", 1_767_225_600)


@pytest.mark.parametrize("runner", ["local", "spark"])
def test_a_field_that_does_not_exist_is_refused_with_those_that_do(tmp_path: Path, runner: str) -> None:
    (tmp_path / "bank.csv").write_text("src,label,trg,ts,amount,note\na,sent,b,1,2,x\n")
    options = ["--stream", str(tmp_path / "bank.csv"), "--out", "-", "--runner", runner]
    query = "STREAM bank (amount INT, note STRING) WINDOW 1h  Answer(x, y) <- sent[amount > 1](x, y)."
    for field in ("sorce", "note", "exp"):
        result = CliRunner().invoke(app, ["run", query, *options, "--columns", f"bank:{field}=src"])
        assert isinstance(result.exception, ArgumentError)
        assert result.exception.exit_status == 2
        assert str(result.exception).splitlines() == [
            f"columns: the stream bank has no field {field}",
            "hint: its fields are src, label, trg, ts, op, amount; properties are those that the query reads",
        ]
