"""Errors that a worker raises on purpose reach the user as they were raised."""

from meander.errors import MemoryBudgetError
from meander.spark.runs import translate_error

FROM_A_WORKER = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [PYTHON_EXCEPTION] Traceback:
  File "advance.py", line 1, in advance
    raise MemoryBudgetError(
meander.errors.MemoryBudgetError: the memory budget of 1.0 KB is reached
hint: a larger --memory
 SQLSTATE: 38000 SQLSTATE: XXKST
=== Streaming Query ===
"""


def test_an_error_of_ours_keeps_its_class_message_and_hint():
    error = translate_error(RuntimeError(FROM_A_WORKER))
    assert isinstance(error, MemoryBudgetError)
    assert error.message == "the memory budget of 1.0 KB is reached"
    assert error.hint == "a larger --memory"


def test_any_other_failure_is_told_in_one_line():
    error = translate_error(RuntimeError("\n[STREAM_FAILED] the disk is on fire\n\tat org.apache.Spark\n"))
    assert str(error) == "the Spark query failed: [STREAM_FAILED] the disk is on fire"
