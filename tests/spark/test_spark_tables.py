"""Delta and Iceberg: the tests of `tables/on_tables.py`, in a process whose Spark has their jars.

They need a Spark for which there are jars: `make test-spark SPARK=4.1` has one.
"""

from __future__ import annotations

import pyspark
import pytest
from apart import HERE, NEEDS_JAVA, run_apart
from maven import NoJars, jars


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.tables
@NEEDS_JAVA
def test_answers_go_to_delta_and_iceberg_as_far_as_they_are_made_for_this_spark() -> None:
    version = ".".join(pyspark.__version__.split(".")[:2])
    files = sorted((HERE / "tables").glob(f"*-{version}.xml"))
    if not files:
        pytest.skip(f"Delta and Iceberg have no jars for Spark {version}")
    try:
        for file in files:
            jars(file)
    except (NoJars, OSError) as reason:
        pytest.skip(f"tables are left out: {reason}")
    run_apart("tables/on_tables.py")
