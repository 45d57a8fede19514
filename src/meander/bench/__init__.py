"""The benchmarks: `meander bench`, or `python -m meander.bench`.

Seven queries on two graphs, beside what a Python user would take today, with equal answers as a condition.
"""

from meander.bench.suite import run

__all__ = ["run"]
