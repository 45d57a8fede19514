"""Errors that a worker raises on purpose reach the user as they were raised."""

from meander.errors import MemoryBudgetError, StateError
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


OF_A_CHECKPOINT = """
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due to stage failure: Task 0 in stage
1.0 failed 4 times: org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred.
\tat org.apache.Spark
Caused by: org.apache.hadoop.fs.ChecksumException: Checksum error: file:/c/spark/state/0/0/1.changelog at 1024 exp: 3
"""


def test_damage_of_sparks_part_of_a_checkpoint_is_named():
    error = translate_error(RuntimeError(OF_A_CHECKPOINT))
    assert isinstance(error, StateError)
    said = "Spark's part of the checkpoint is damaged: Checksum error: file:/c/spark/state/0/0/1.changelog"
    assert error.message == said
    assert error.hint.startswith("restore the checkpoint from a backup, or start over")
