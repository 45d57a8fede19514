"""What a session of our own says on standard error: nothing that is not for the user."""

import io

import pytest

from meander.spark.workers.java import filter_lines, held_lines


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: Using incubator modules: jdk.incubator.vector",
        "Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties",
        "26/11/15 12:49:05 WARN NativeCodeLoader: Unable to load native-hadoop library",
        "Starting Streaming TransformWithStateInPandas Python worker.",
        "Streaming TransformWithStateInPandas Python worker finish init stage of Python runner.",
        "",
    ],
)
def test_noise_ends_here(line, capsys) -> None:
    filter_lines(io.BytesIO(f"{line}\n".encode()))
    assert capsys.readouterr().err == ""


FAILURE = (
    "26/11/15 12:49:05 ERROR Executor: Exception in task\n\tat org.apache.spark.X\n"
    "meander.errors.OutputError: out.jsonl cannot be written\nhint: free some space\n"
)


def test_errors_of_sparks_log_are_held_for_the_error_that_sums_them_up(capsys) -> None:
    filter_lines(io.BytesIO(FAILURE.encode()))
    assert capsys.readouterr().err == ""
    assert "".join(held_lines()).endswith(FAILURE)


def test_errors_of_sparks_log_are_shown_when_debugging(capsys, monkeypatch) -> None:
    monkeypatch.setenv("MEANDER_DEBUG", "1")
    filter_lines(io.BytesIO(FAILURE.encode()))
    assert capsys.readouterr().err == FAILURE


def test_all_else_goes_on_as_it_is(capsys) -> None:
    message = "out of memory\n"
    filter_lines(io.BytesIO(message.encode()))
    assert capsys.readouterr().err == message
