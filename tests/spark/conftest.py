"""One Spark session for all tests of this folder."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parent.parent))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, and there is none")
    from kafka_broker import NoKafka, jars

    from meander.spark.settings import local_spark

    settings = {}
    try:
        settings["spark__jars"] = ",".join(str(file) for file in sorted(jars("connector").glob("*.jar")))
    except (NoKafka, OSError) as reason:
        settings["spark__meander__noKafka"] = str(reason)
    session = local_spark("local[2,4]", **settings)
    yield session
    session.stop()
