"""Spark Connect: the tests of `connect/on_connect.py`, in a process whose sessions are remote."""

from __future__ import annotations

import pytest
from apart import NEEDS_JAVA, run_apart


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.spark
@NEEDS_JAVA
def test_a_session_of_spark_connect_runs_what_a_classic_one_runs() -> None:
    run_apart("connect/on_connect.py")
