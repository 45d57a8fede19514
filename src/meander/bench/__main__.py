"""`python -m meander.bench`: the options of `meander bench`, without the rest of the command."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from meander.bench.experiments import EXPERIMENTS
from meander.bench.suite import run
from meander.errors import MeanderError


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the arguments request; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="meander bench",
        description="Reproduce the experiments of the paper, beside other engines, as tables and plots. A run that "
        "was interrupted is continued by the same command.",
    )
    add = parser.add_argument
    add("--only", default="all", metavar="LIST", help=f"of {', '.join(EXPERIMENTS)}; all of them by default")
    add("--profile", action="store_true", help="only where the time goes: the same as --only profile")
    add("--quick", action="store_true", help="few edges and short limits: about three minutes")
    add(
        "--data",
        default="all",
        metavar="LIST",
        help="mathoverflow, snb, cyclic, trees; cyclic:N, trees:N: generated, with N edges; dense, social: a graph "
        "of its kind; all: both; or .tsv files",
    )
    add(
        "--labels", default="", metavar="A,B,C", help="for files: the labels a, b and c; ^b is read backwards"
    )
    add("--queries", default="all", metavar="LIST", help="Q1 to Q7, or all")
    add("--prefix", type=int, metavar="N", help="only the first N edges")
    add("--window", default="30d", metavar="DURATION")
    add("--slide", default="1d", metavar="DURATION")
    add("--windows", default="10d,20d,30d,60d,120d", metavar="LIST", help="the sizes to compare")
    add("--slides", default="1h,6h,1d,7d", metavar="LIST", help="the slides to compare")
    add("--cells", default="2,3,8", metavar="LIST", help="the numbers of cells to compare with one")
    add("--time-limit", metavar="DURATION", help="for a peer, and for a variant of Meander")
    add(
        "--peers", default=True, action=argparse.BooleanOptionalAction, help="measure Pathway and DuckDB, too"
    )
    add(
        "--results",
        type=Path,
        default=Path("meander-bench/results.json"),
        metavar="FILE",
        help="where measurements are stored",
    )
    add(
        "--page",
        type=Path,
        metavar="FILE",
        help="the page to write; by default benchmarks.md beside the results",
    )
    add("--again", action="store_true", help="measure again what is stored")
    add("--show", action="store_true", help="measure nothing: tables and page of what is stored")
    # A signal that ends this program ends the engine that is being measured, too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        return run(**vars(parser.parse_args(arguments)))
    except MeanderError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status


if __name__ == "__main__":
    sys.exit(main())
