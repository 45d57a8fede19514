"""`meander run` in one process: answers out, everything else on standard error, and what is refused."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import meander as library
from command import EXAMPLES, environment, meander, refused
from meander.options import LOCAL_BATCH_ROWS

NOTIFY = str(EXAMPLES / "notify.dl")
SOCIAL = str(EXAMPLES / "social.tsv")
CHAIN = "STREAM s WINDOW 10 Answer(x, y) <- a+(x, y) as P."
ONE = "STREAM s WINDOW 1h Answer(x, y) <- a(x, y)."
TWO = "STREAM s WINDOW 1h STREAM t WINDOW 1h Answer(x, y) <- s.a(x, z), t.b(z, y)."


def local(query: str, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[str]:
    return meander("run", query, "--runner", "local", *arguments, given=given)


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_answers_go_to_standard_output_and_figures_to_standard_error() -> None:
    done = local(NOTIFY, "--stream", f"social={SOCIAL}", "--out", "-")
    assert done.returncode == 0
    assert records(done.stdout) == list(library.run(Path(NOTIFY).read_text(), SOCIAL))
    assert "11 edges" in done.stderr
    assert "9 answers" in done.stderr


def test_paths_are_given_when_asked_for(tmp_path: Path) -> None:
    stream, out = tmp_path / "s.tsv", tmp_path / "answers.jsonl"
    stream.write_text("x\ta\ty\t1\ny\ta\tz\t2\n")
    assert local(CHAIN, "--stream", str(stream), "--out", str(out), "--paths").returncode == 0
    by_ends = {(answer["src"], answer["trg"]): answer for answer in records(out.read_text())}
    assert by_ends["x", "z"]["path"] == [["x", "a", "y"], ["y", "a", "z"]]
    assert (by_ends["x", "z"]["ts"], by_ends["x", "z"]["exp"]) == (2, 11)


@pytest.mark.parametrize(("plan", "operator"), [("0", "s-path"), ("1", "negative-tuple")])
def test_other_plans_and_path_operators_have_the_same_answers(plan: str, operator: str) -> None:
    done = local(
        NOTIFY,
        "--stream",
        SOCIAL,
        "--out",
        "-",
        "--plan",
        plan,
        "--path-operator",
        operator,
        "--batch-rows",
        "2",
    )
    expected = list(library.run(Path(NOTIFY).read_text(), SOCIAL))
    assert done.returncode == 0
    assert sorted(map(str, records(done.stdout))) == sorted(map(str, expected))


def test_changes_say_when_an_answer_begins_and_ends(tmp_path: Path) -> None:
    stream = tmp_path / "s.tsv"
    stream.write_text("x\ta\ty\t1\nx\ta\ty\t5\n")
    done = local(
        "STREAM s WINDOW 10 Answer(x, y) <- a(x, y).",
        "--stream",
        str(stream),
        "--out",
        "-",
        "--mode",
        "changes",
    )
    assert [(record["op"], record["ts"], record["exp"]) for record in records(done.stdout)] == [
        ("+", 1, None),
        ("-", 15, None),
    ]


def test_rejects_are_kept_with_their_reason_and_counted(tmp_path: Path) -> None:
    stream, rejects = tmp_path / "s.tsv", tmp_path / "rejects.jsonl"
    stream.write_text("x\ta\ty\t1\nx\ta\ty\nx\ta\ty\t12:30\n")
    done = local(ONE, "--stream", str(stream), "--out", "-", "--rejects", str(rejects))
    assert done.returncode == 0
    assert len(records(done.stdout)) == 1
    assert [reject["text"] for reject in records(rejects.read_text())] == ["x\ta\ty", "x\ta\ty\t12:30"]
    assert "2 rejected" in done.stderr
    assert "hint: --rejects" in local(ONE, "--stream", str(stream), "--out", "-").stderr


def test_packed_input_and_parquet_output(tmp_path: Path) -> None:
    stream, out = tmp_path / "s.tsv.gz", tmp_path / "answers.parquet"
    stream.write_bytes(gzip.compress(b"1\ta\t2\t7\n"))
    assert local(ONE, "--stream", str(stream), "--out", str(out)).returncode == 0
    assert pq.read_table(out).to_pylist() == [
        {"src": "1", "trg": "2", "label": "Answer", "ts": 7, "exp": 3607, "op": "+"}
    ]


def test_several_streams_are_named(tmp_path: Path) -> None:
    (tmp_path / "s.tsv").write_text("x\ta\ty\t1\n")
    (tmp_path / "t.csv").write_text("src,label,trg,ts\ny,b,z,2\n")
    done = local(
        TWO, "--stream", f"t={tmp_path / 't.csv'}", "--stream", f"s={tmp_path / 's.tsv'}", "--out", "-"
    )
    assert [(record["src"], record["trg"], record["ts"]) for record in records(done.stdout)] == [
        ("x", "z", 2)
    ]


def test_a_stream_that_no_result_reads_needs_no_data(tmp_path: Path) -> None:
    (tmp_path / "s.tsv").write_text("x\ta\ty\t1\n")
    done = local(
        "STREAM s WINDOW 1h STREAM t WINDOW 1h Answer(x, y) <- s.a(x, y).",
        "--stream",
        f"s={tmp_path / 's.tsv'}",
        "--out",
        "-",
    )
    assert (done.returncode, len(records(done.stdout))) == (0, 1)


def test_the_query_may_come_from_standard_input() -> None:
    done = local("-", "--stream", SOCIAL, "--out", "-", given=Path(NOTIFY).read_bytes())
    assert len(records(done.stdout)) == 9


def test_a_memory_budget_that_is_too_small_fails_and_names_the_operator() -> None:
    done = local(NOTIFY, "--stream", SOCIAL, "--out", "-", "--memory", "1KB")
    assert done.returncode == 1
    assert "the memory budget of 1.0 KB is reached" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broken_file_fails_the_run(tmp_path: Path) -> None:
    stream = tmp_path / "s.tsv.gz"
    stream.write_bytes(gzip.compress(b"x\ta\ty\t1\n" * 9)[:-9])
    done = local(ONE, "--stream", str(stream), "--out", "-")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_a_reader_of_answers_may_leave_early(tmp_path: Path) -> None:
    stream = tmp_path / "s.tsv"
    stream.write_text("".join(f"{n}\ta\t{n + 1}\t{n}\n" for n in range(50_000)))
    command = f"{sys.executable} -m meander run '{ONE}' --runner local --stream {stream} --out - | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, env=environment())
    assert len(done.stdout.splitlines()) == 1
    assert b"Traceback" not in done.stderr
    # The edges that led to the answers are counted.
    assert b"no rows" not in done.stderr
    assert b"50,000 edges" in done.stderr


def test_a_label_is_not_missed_where_the_reader_of_answers_left_early(tmp_path: Path) -> None:
    stream = tmp_path / "s.tsv"
    edges = 4 * LOCAL_BATCH_ROWS
    stream.write_text("".join(f"{n}\ta\t{n + 1}\t{n}\n" for n in range(edges)) + f"x\tb\ty\t{edges}\n")
    query = "STREAM s WINDOW 1h Answer(x, y) <- (a|b)(x, y)."
    command = (
        f"{sys.executable} -m meander run '{query}' --runner local --stream {stream} --out - | head -n 1"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, env=environment())
    assert f"{edges:,} edges".encode() not in done.stderr  # the last ones were not read
    assert b"no edge" not in done.stderr


@pytest.mark.spark
def test_spark_is_the_default_runner_and_has_the_same_answers(tmp_path: Path) -> None:
    out = tmp_path / "answers.jsonl"
    done = meander("run", NOTIFY, "--stream", f"social={SOCIAL}", "--out", str(out))
    assert done.returncode == 0, done.stderr
    expected = list(library.run(Path(NOTIFY).read_text(), SOCIAL))
    assert sorted(map(str, records(out.read_text()))) == sorted(map(str, expected))


# -- what is refused


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        (ONE, ["--stream", "t=x.tsv"], "the query has no stream t\nhint: its streams are s"),
        (ONE, ["--stream", "s="], "--stream s= has no path\nhint: write --stream s=PATH"),
        (ONE, ["--stream", "s=a.tsv", "--stream", "s=b.tsv"], "the stream s is given twice"),
        (TWO, ["--stream", "x.tsv"], "does not name its stream"),
        (TWO, ["--stream", "s=x.tsv"], "no data for the stream t\nhint: add --stream t=PATH"),
        (ONE, ["--stream", "x.tsv", "--runner", "flink"], "accepted: spark, local"),
        (ONE, ["--stream", "x.tsv", "--mode", "all"], "accepted: intervals, changes"),
        (ONE, ["--stream", "x.tsv", "--lateness", "soon"], "--lateness: invalid duration: soon"),
        (ONE, ["--stream", "x.tsv", "--idle", "-5s"], "--idle"),
        (ONE, ["--stream", "x.tsv", "--memory", "much"], "accepted: a size such as 4GB"),
        (ONE, ["--stream", "x.tsv", "--memory", "0"], "accepted: a size such as 4GB"),
        (ONE, ["--stream", "x.tsv", "--batch-rows", "0"], "--batch-rows"),
        (ONE, ["--stream", "x.tsv", "--cells", "0"], "--cells"),
        (ONE, ["--stream", "x.tsv", "--runner", "local", "--cells", "2"], "--cells needs Spark"),
        (ONE, ["--stream", "x.tsv", "--runner", "local", "--checkpoint", "d"], "--checkpoint needs Spark"),
        (ONE, ["--stream", "x.tsv", "--runner", "local", "--idle", "5m"], "--idle needs Spark"),
        (ONE, ["--stream", "x.tsv", "--rejects", "-"], "answers and rejects cannot both go to -"),
        (ONE, [], "--stream"),
    ],
)
def test_bad_arguments_are_refused_with_what_is_accepted(
    query: str, options: list[str], message: str
) -> None:
    assert message in refused("run", query, "--out", "-", *options)


def test_nothing_that_is_read_is_written_over(tmp_path: Path) -> None:
    stream = tmp_path / "s.jsonl"
    stream.write_text("")
    both = ["--stream", str(stream), "--out", str(tmp_path / "." / "s.jsonl")]
    assert "--out would overwrite" in refused("run", ONE, *both)
    both = ["--stream", str(stream), "--out", "-", "--rejects", str(stream)]
    assert "--rejects would overwrite" in refused("run", ONE, *both)


def test_a_run_needs_an_output_for_its_answers() -> None:
    assert "--out" in refused("run", ONE, "--stream", "x.tsv")


def test_an_output_of_no_known_format_is_refused() -> None:
    assert "a .jsonl" in refused(
        "run", NOTIFY, "--runner", "local", "--stream", SOCIAL, "--out", "answers.docx"
    )


def test_a_label_that_no_edge_has_is_pointed_out(tmp_path: Path) -> None:
    stream = tmp_path / "s.tsv"
    stream.write_text("x\tas\ty\t1\n")
    done = local(ONE, "--stream", str(stream), "--out", "-")
    assert "note: no edge had the label a, which the query reads" in done.stderr
    stream.write_text("x\ta\ty\t1\n")
    assert "note" not in local(ONE, "--stream", str(stream), "--out", "-").stderr


def test_a_label_is_judged_before_predicates_and_a_property_by_its_values(tmp_path: Path) -> None:
    stream = tmp_path / "s.csv"
    query = "STREAM s WINDOW 1h\nAnswer(x, y, out: m) <- pays[amount > 5](x, z), paid(z, y, sum: m), shop(y), m > 1."

    def notes(*rows: str) -> list[str]:
        stream.write_text("\n".join(["src,label,trg,ts,amount,sum", *rows]) + "\n")
        done = local(query, "--stream", str(stream), "--out", "-")
        return [line for line in done.stderr.splitlines() if line.startswith("note: ")]

    unread = "had a value of {}, which the query reads"
    assert notes("x,pay,y,1,,") == [
        "note: no edge had the label pays or paid or shop (of a vertex), which the query reads",
        f"note: no edge of the stream s {unread.format('amount')}",
        f"note: no edge of the stream s {unread.format('sum')}",
    ]
    # None of these edges satisfies a predicate, and an edge to a shop is no shop.
    assert notes("x,pays,y,1,2,", "y,paid,z,2,,1", "a,shop,b,3,,") == [
        "note: no edge had the label shop (of a vertex), which the query reads",
    ]
    assert notes("x,pays,y,1,2,", "y,paid,z,2,,1", "z,shop,,3,,") == []


def test_a_stream_under_two_windows_is_given_once(tmp_path: Path) -> None:
    stream = tmp_path / "s.tsv"
    stream.write_text("x\ta\ty\t1\nx\tb\ty\t3\nx\ta\ty\t9\n")
    query = "STREAM s WINDOW 10 STREAM recent FROM s WINDOW 2 Answer(x, y) <- recent.a(x, y), s.b(x, y)."
    done = local(query, "--stream", f"s={stream}", "--out", "-")
    [record] = [json.loads(line) for line in done.stdout.splitlines()]
    assert (record["src"], record["ts"], record["exp"]) == ("x", 9, 11)
    assert "note" not in done.stderr
    assert local(query, "--stream", str(stream), "--out", "-").stdout == done.stdout
    assert "recent" in refused(
        "run", query, "--stream", f"recent={stream}", "--out", "-", "--runner", "local"
    )


def test_a_rule_that_is_read_by_nothing_is_pointed_out(tmp_path: Path) -> None:
    stream = tmp_path / "s.tsv"
    stream.write_text("a\tl\tb\t1\n")
    query = "STREAM s WINDOW 10 Anser(x, y) <- D+(x, y) as P. D(x, y) <- l(x, y)."
    done = local(query, "--stream", str(stream), "--out", "-")
    assert done.returncode == 0
    assert "warning: Anser is read by nothing: the result is D" in done.stderr


@pytest.mark.parametrize("exists", [False, True])
def test_rejects_and_answers_do_not_share_a_file(tmp_path: Path, exists: bool) -> None:
    stream, out = tmp_path / "s.tsv", tmp_path / "out.jsonl"
    stream.write_text("x\ta\ty\t1\n")
    if exists:
        out.touch()
    options = ("--stream", str(stream), "--out", str(out), "--rejects", str(out), "--runner", "local")
    assert refused("run", ONE, *options) == (
        "error: --rejects and --out are one file\nhint: name another file for the rejects\n"
    )


def test_an_empty_query_is_named_as_such() -> None:
    assert refused("run", "", "--stream", "s.tsv", "--out", "-").startswith("error: the query is empty\n")


def test_it_is_said_when_kernels_are_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = tmp_path / "s.tsv"
    stream.write_text("x\ta\ty\t1\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    first, second = (local(ONE, "--stream", str(stream), "--out", "-").stderr for _ in range(2))
    assert first.startswith("compiling")
    assert "compiling" not in second
