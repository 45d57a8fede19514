"""The figures that the paper publishes, typed in.

*Evaluating Complex Queries on Streaming Graphs*, section 7: measured on a server with 32 cores and 256 GB of
memory, with a prototype in Rust on Timely Dataflow ("SGA") and with Differential Dataflow ("DD");
StackOverflow (63 million edges) and LDBC SNB at scale factor 10 (40 million edges); a window of 30 days and a
slide of one day. Throughput is in edges per second, tail latency (the 99th percentile of a slide) in seconds.
The values of the paper's figures 10 to 14 are in pictures only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Published(NamedTuple):
    """Edges per second, and the tail latency in seconds."""

    rate: float
    p99: float


Row = Mapping[str, Published]


def _row(*figures: tuple[float, float]) -> Row:
    return {f"Q{number}": Published(*pair) for number, pair in enumerate(figures, start=1)}


SO, SNB = "StackOverflow", "SNB SF10"

TABLE_2: Mapping[str, Mapping[str, Row]] = {
    SO: {
        "SGA": _row(
            (2762, 3.3), (8513, 4.3), (413, 120), (379, 102.4), (231064, 0.3), (374, 52.7), (376, 56.3)
        ),
        "DD": _row((1209, 6.3), (4512, 5.8), (368, 121.7), (374, 82.8), (63330, 1), (283, 72.6), (275, 74)),
    },
    SNB: {
        "SGA": _row(
            (97187, 1.5),
            (237313, 1.9),
            (245766, 1.9),
            (277475, 0.4),
            (13345, 79.1),
            (428592, 0.8),
            (131250, 10.2),
        ),
        "DD": _row(
            (121133, 0.8),
            (299245, 1.2),
            (316267, 1.1),
            (303068, 0.2),
            (12053, 109.5),
            (402048, 0.9),
            (21284, 141),
        ),
    },
}
"""Table 2. "SGA" has negative tuples as its path operator. Q6 and Q7 on SNB leave out the closure over a."""

TABLE_3: Mapping[str, Row] = {
    SO: _row((2884, 4), (9074, 4.9), (391, 177), (348, 94.9), (234058, 0.4), (625, 51.4), (353, 52.6)),
    SNB: _row(
        (95903, 1.4),
        (244653, 1.8),
        (224342, 1.9),
        (278647, 0.4),
        (14000, 79.5),
        (450957, 0.8),
        (130651, 10.8),
    ),
}
"""Table 3: the same with S-PATH as path operator."""


def graph_like(data: str) -> str | None:
    """The paper's graph of which a data set is the smaller sibling."""
    return {"mathoverflow": SO, "snb": SNB}.get(data)
