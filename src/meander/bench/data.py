"""The graphs that are measured on: edges as columns, self-loops dropped, cut to labels and to prefixes.

Files are looked for in `../shared/data`, seen from the project's folder, or where `MEANDER_DATA` points to. A prefix
always ends with a slide: the peers work slide by slide, and so all engines see exactly the same edges.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from meander.bench.generate import make_graph
from meander.bench.workloads import DataSet, Workload
from meander.errors import InputError

Array = np.ndarray[Any, Any]

PROJECT = Path(__file__).resolve().parents[3]


class Graph(NamedTuple):
    """Edges in order of time. Vertices and labels are indexes into lists of names."""

    src: Array
    label: Array
    trg: Array
    ts: Array
    names: pa.Array
    labels: pa.Array

    @property
    def edges(self) -> int:
        return int(self.ts.size)

    def take(self, chosen: Any) -> Graph:
        src, label, trg, ts = (column[chosen] for column in self[:4])
        return Graph(src, label, trg, ts, self.names, self.labels)

    def of(self, labels: Sequence[str]) -> Graph:
        """The edges of these labels."""
        wanted = pc.is_in(self.labels, value_set=pa.array(labels)).to_numpy(zero_copy_only=False)
        return self.take(wanted[self.label])

    def prefix(self, edges: int, slide: int) -> Graph:
        """The first whole slides with at most this number of edges; at least one slide."""
        slides = self.ts // slide
        if edges >= self.edges:
            return self
        whole = int(np.searchsorted(slides, slides[edges]))
        return self.take(slice(whole or int(np.searchsorted(slides, slides[0], side="right"))))

    def write(self, path: Path) -> None:
        """The edges as a `.tsv` file."""
        columns = [
            self.names.take(pa.array(self.src)),
            self.labels.take(pa.array(self.label)),
            self.names.take(pa.array(self.trg)),
            pa.array(self.ts),
        ]
        options = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
        csv.write_csv(pa.Table.from_arrays(columns, ["src", "label", "trg", "ts"]), path, options)


def data_folder() -> Path:
    """Where the files are looked for."""
    named = os.environ.get("MEANDER_DATA")
    return Path(named) if named else PROJECT.parent / "shared" / "data"


def is_available(data: DataSet) -> bool:
    return not data.file or (data_folder() / data.file).is_file()


def load(data: DataSet) -> Graph:
    """The whole graph of a data set, without self-loops."""
    if not data.file:
        return as_graph(make_graph(data.name))
    path = data_folder() / data.file
    if not path.is_file():
        raise InputError(
            f"the data set {data.name} is missing: {path} does not exist",
            hint="set MEANDER_DATA to the folder with the files, or use --data cyclic,trees (generated graphs)",
        )
    table = csv.read_csv(
        path,
        read_options=csv.ReadOptions(column_names=["src", "label", "trg", "ts"]),
        parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
        convert_options=csv.ConvertOptions(
            column_types={"src": pa.string(), "label": pa.string(), "trg": pa.string(), "ts": pa.int64()}
        ),
    )
    return as_graph(table)


def as_graph(table: pa.Table) -> Graph:
    """The edges of a table, self-loops dropped, those of equal time in the order in which they stand."""
    table = table.filter(pc.not_equal(table["src"], table["trg"]))
    ends = pa.chunked_array([*table["src"].chunks, *table["trg"].chunks]).combine_chunks().dictionary_encode()
    number = ends.indices.to_numpy(zero_copy_only=False)
    label = table["label"].combine_chunks().dictionary_encode()
    ts = table["ts"].to_numpy()
    graph = Graph(
        number[: ts.size],
        label.indices.to_numpy(zero_copy_only=False),
        number[ts.size :],
        ts,
        ends.dictionary,
        label.dictionary,
    )
    return graph if (ts[1:] >= ts[:-1]).all() else graph.take(np.argsort(ts, kind="stable"))


class Relation(NamedTuple):
    """The edges of one label as the peers load them, reversed if the label is read backwards."""

    src: Array
    trg: Array
    slide: Array


def relations(graph: Graph, workload: Workload, slide: int) -> dict[str, Relation]:
    """Each relation of the workload once, by name, with the number of the slide in which each edge comes."""
    by_name = {}
    for name in sorted(set(workload.relations)):
        part = graph.of([name.removeprefix("^")])
        src, trg = (part.trg, part.src) if name.startswith("^") else (part.src, part.trg)
        by_name[name] = Relation(src, trg, part.ts // slide)
    return by_name
