"""`python -m meander.bench`: the options of `meander bench`, without the rest of the command."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from meander.bench.suite import run
from meander.errors import MeanderError
from meander.physical.path_operators import PATH_OPERATORS


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the arguments request; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="meander bench",
        description="Benchmark Meander and comparable engines on the same edges.",
    )
    parser.add_argument(
        "--data",
        default="all",
        help="mathoverflow, snb, cyclic, trees (comma-separated); dense, social: a graph of its kind; all: both",
    )
    parser.add_argument("--queries", default="all", help="Q1 to Q7 (comma-separated), or all")
    parser.add_argument("--prefix", type=int, metavar="N", help="only the first N edges")
    parser.add_argument(
        "--peers", default=True, action=argparse.BooleanOptionalAction, help="measure Pathway and DuckDB, too"
    )
    parser.add_argument(
        "--path-operator",
        default="auto",
        metavar="|".join(PATH_OPERATORS),
        help="with --windows: one or more",
    )
    parser.add_argument("--window", default="30d", metavar="DURATION")
    parser.add_argument("--slide", default="1d", metavar="DURATION")
    parser.add_argument("--time-limit", default="60s", metavar="DURATION", help="for each engine and query")
    parser.add_argument(
        "--clock", default="wall", metavar="wall|cpu", help="cpu: processor time, for a busy machine"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables into a Markdown file")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument("--windows", metavar="10d,30d,…", help="Meander alone, over windows of these sizes")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="with --windows: draw throughput (and FILE-p99) as SVG"
    )
    parser.add_argument("--threads", default="1", metavar="1,2", help="with --windows: threads for closures")
    parser.add_argument(
        "--cells",
        metavar="2,3,8",
        help="Meander alone: how work and edges spread over these numbers of cells",
    )
    parser.add_argument(
        "--only", default="engines", metavar="engines|spark|values", help="which part to measure"
    )
    parser.add_argument(
        "--batches", type=int, default=40, metavar="N", help="with --only spark: small batches to measure"
    )
    # A signal that ends this program ends the engine that is being measured, too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        return run(**vars(parser.parse_args(arguments)))
    except MeanderError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status


if __name__ == "__main__":
    sys.exit(main())
