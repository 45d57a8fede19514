"""Meander on Spark. Importing it checks that the installed Spark is one that Meander runs on."""

from __future__ import annotations

from meander.errors import SparkError

SUPPORTED = ("4.1", "4.2", "4.3")
"""The versions of Spark that Meander runs on, as `pyproject.toml` requires them: `make test-spark` tries each."""

NEWEST = SUPPORTED[-1]
REQUIREMENT = "pyspark>=4.1.0,<4.4"
WITHOUT_SPARK = "--runner local and meander.run need no Spark"


def check_version(version: str, *, hint: str) -> None:
    """Refuse a Spark of another version than those that are supported."""
    if ".".join(version.split(".")[:2]) not in SUPPORTED:
        versions = f"{', '.join(SUPPORTED[:-1])} and {NEWEST}"
        raise SparkError(f"Spark {version} is not supported: Meander runs on Spark {versions}", hint=hint)


try:
    from pyspark import __version__ as installed
except ImportError as error:
    raise SparkError(
        f"Spark cannot be imported: {error}", hint=f"pip install '{REQUIREMENT}'; {WITHOUT_SPARK}"
    ) from error
check_version(installed, hint=f"pip install '{REQUIREMENT}'; {WITHOUT_SPARK}")
