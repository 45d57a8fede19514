"""The picture of the architecture: which folder turns what into what."""

from __future__ import annotations

from meander.drawing.boxes import Box, draw_boxes

TEXT = ("#efeaf8", "#5b3a9e")
EDGES = ("#e8f3fc", "#0b5394")
RUN = ("#fdecea", "#a3261b")
RECORDS = ("#e6f5ea", "#1a6b33")

BOXES = {
    "answers": Box("", "answers: .jsonl, .parquet, Kafka, …", rounded=True),
    "sinks": Box("dataflow/sinks", "encode and write records", (), *RECORDS),
    "results": Box("dataflow/results.py", "tuples → records, with paths", (), *RECORDS),
    "dataflow": Box(
        "dataflow/dataflow.py",
        "cuts a batch into parts, and runs each through all operators",
        ("called by dataflow/runner.py, or in cells by spark/cell/step.py",),
        *RUN,
    ),
    "operators": Box(
        "dataflow/operators",
        "one class per operator",
        ("loops in kernels", "shared: dataflow/graph.py"),
        *RUN,
    ),
    "physical": Box("physical", "list of operators, in stages", (), *TEXT),
    "ingest": Box("dataflow/ingest.py", "order of event time", (), *EDGES),
    "rewrite": Box("rewrite", "equivalent plans; the cheapest", (), *TEXT),
    "sources": Box("dataflow/sources", "bytes → batches of edges", ("on Spark: spark/input",), *EDGES),
    "algebra": Box("algebra", "query → logical plan", (), *TEXT),
    "syntax": Box("syntax", "text → regular query", (), *TEXT),
    "query": Box("", "query: .dl, .gcore", rounded=True),
    "edges": Box("", "edges: files, Kafka, DataFrames", rounded=True),
}
ARROWS = (
    ("sinks", "answers"),
    ("results", "sinks"),
    ("dataflow", "results"),
    ("physical", "dataflow"),
    ("operators", "dataflow"),
    ("ingest", "dataflow"),
    ("rewrite", "physical"),
    ("algebra", "rewrite"),
    ("syntax", "algebra"),
    ("query", "syntax"),
    ("sources", "ingest"),
    ("edges", "sources"),
)


def draw_architecture() -> str:
    numbers = {name: number for number, name in enumerate(BOXES)}
    arrows = [(numbers[lower], numbers[upper]) for lower, upper in ARROWS]
    return draw_boxes(list(BOXES.values()), arrows, "engine.py connects the stages; each folder is one")
