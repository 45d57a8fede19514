"""One Spark session for all tests of this folder."""

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))


@pytest.fixture(scope="session")
def spark():
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, and there is none")
    from meander.spark.settings import local_spark

    session = local_spark("local[2,4]")
    yield session
    session.stop()
