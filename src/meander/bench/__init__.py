"""The benchmarks: `meander bench`, or `python -m meander.bench`.

The experiments of the paper, by Meander and by engines that a Python user would otherwise choose; figures count only
if the answers are equal. It is part of the package so that users can measure on their own machines. Nothing but the
command `meander bench` imports it.
"""

from meander.bench.suite import run

__all__ = ["run"]
