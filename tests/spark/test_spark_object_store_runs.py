"""Runs whose checkpoint is in an object store, killed and started again."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from incidents import CLOSURE, assert_undisturbed, generate, read_records, write_tsv
from kafka_broker import NoKafka
from run_processes import PATIENCE, Command
from s3_server import BUCKET, S3Server, cluster_variables, s3a_jars

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    try:
        s3a_jars()
    except NoKafka as reason:
        pytest.skip(f"S3 is left out: {reason}")
    server = S3Server(tmp_path_factory.mktemp("s3") / "log")
    yield server
    server.stop()


def start(server: S3Server, folder: Path, *more: str) -> Command:
    arguments = ["-m", "meander", "run", CLOSURE, "--stream", f"s={folder / 'in'}"]
    arguments += ["--out", str(folder / "out.jsonl"), "--batch-rows", "100"]
    arguments += ["--checkpoint", f"s3a://{BUCKET}/{folder.name}", *more]
    return Command(folder, *arguments, MEANDER_S3_JARS=str(s3a_jars()), **server.environment)


def test_a_killed_run_goes_on_from_its_checkpoint_in_a_store(server: S3Server, tmp_path: Path) -> None:
    rows = generate(71, 800)
    write_tsv(tmp_path / "in" / "0.tsv", rows[:500])
    checkpoint = server.folder(tmp_path.name)
    with start(server, tmp_path) as run:
        run.wait_for_batch(checkpoint / "meander" / "sinks" / "query.json")
        os.killpg(run.process.pid, signal.SIGKILL)
    answers = read_records(tmp_path / "out.jsonl")
    assert answers
    write_tsv(tmp_path / "in" / "1.tsv", rows[500:])
    with start(server, tmp_path) as run:
        assert run.process.wait(PATIENCE) == 0, run.said()
    records = read_records(tmp_path / "out.jsonl")
    assert records[: len(answers)] == answers
    assert_undisturbed(records, CLOSURE, rows)
    stored = server.objects(tmp_path.name)
    for part in ("meander/run.json", "meander/ended", "meander/ledger/000000001.json", "spark/offsets/0"):
        assert part in stored
    assert "meander/lock" not in stored
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "log", "out.jsonl"]


def test_the_cells_of_a_checkpoint_in_a_store_continue_in_another_number(
    server: S3Server, tmp_path: Path
) -> None:
    rows = generate(73, 1200)
    checkpoint = server.folder(tmp_path.name)
    for number, cells in enumerate((1, 2, 3)):
        write_tsv(tmp_path / "in" / f"{number}.tsv", rows[400 * number : 400 * (number + 1)])
        more = ["--follow"] if number < 2 else []
        with start(server, tmp_path, "--cells", str(cells), *more) as run:
            if number < 2:
                run.wait_for_file(checkpoint / ("spark", "spark-1")[number] / "commits" / "0")
                os.killpg(run.process.pid, signal.SIGKILL)
            else:
                assert run.process.wait(PATIENCE) == 0, run.said()
    assert_undisturbed(read_records(tmp_path / "out.jsonl"), CLOSURE, rows)
    stored = server.objects(tmp_path.name)
    assert "spark-2/offsets/0" in stored
    assert not any(name.startswith("spark/") for name in stored)


@pytest.mark.parametrize("cells", [1, 2])
def test_the_copy_of_a_static_dataframe_is_in_the_store(server: S3Server, tmp_path: Path, cells: int) -> None:
    rows = generate(72, 400)
    write_tsv(tmp_path / "s.tsv", rows)
    script = str(Path(__file__).with_name("static_copy.py"))
    with Command(tmp_path, script, str(tmp_path), str(cells), **cluster_variables(server, tmp_path)) as run:
        assert run.process.wait(PATIENCE) == 0, run.said()
    assert_undisturbed(read_records(tmp_path / "out.jsonl"), CLOSURE, rows)
    stored = server.objects(tmp_path.name)
    assert "meander/static/s/_SUCCESS" in stored
    assert not (tmp_path / "checkpoint").exists()
