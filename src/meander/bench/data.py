"""The graphs that are measured on: edges as columns, self-loops dropped, cut to labels and to prefixes.

The files of known data sets are looked for in `../shared/data`, seen from the project's folder, or where
`MEANDER_DATA` points to. A prefix always ends with a slide: the peers work slide by slide, and so all engines
see exactly the same edges.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from meander.bench.generate import make_graph
from meander.bench.workloads import DATA_SETS, DataSet, Workload, from_file, generated
from meander.errors import ArgumentError, InputError

Array = np.ndarray[Any, Any]

PROJECT = Path(__file__).resolve().parents[3]
KINDS = {"dense": ("mathoverflow", "cyclic"), "social": ("snb", "trees")}
"""The graph of a file, and a generated one of the same kind."""
FEWEST_EDGES = 100
"""The smallest generated graph."""


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


def path_of(data: DataSet) -> Path:
    """The file of a data set: a path of the user's, or a file in the folder of data sets."""
    return Path(data.file) if data.name not in DATA_SETS else data_folder() / data.file


def choose_data(text: str, labels: Sequence[str] = (), note: Callable[[str], None] = print) -> list[DataSet]:
    """The data sets of a comma-separated list: known names, kinds, generated ones with a size, and files.

    For a kind (`dense`, `social`; `all` is both) that is the file, or a generated graph if there is no file, which
    `note` then says. `labels` are what stands for a, b and c in a file.
    """
    chosen: dict[str, DataSet] = {}
    for word in (part.strip() for part in ("dense,social" if text == "all" else text).split(",")):
        if word:
            data = _chosen(word, labels, note)
            chosen[data.name] = data
    return list(chosen.values())


def _chosen(word: str, labels: Sequence[str], note: Callable[[str], None]) -> DataSet:
    if word in KINDS:
        real, substitute = (DATA_SETS[name] for name in KINDS[word])
        if path_of(real).is_file():
            return real
        note(
            f"{real.file} is not in {data_folder()} (MEANDER_DATA names another folder): {substitute.name}, "
            "a generated graph, is measured instead"
        )
        return substitute
    if word in DATA_SETS:
        return DATA_SETS[word]
    name, _, edges = word.partition(":")
    if name in DATA_SETS and not DATA_SETS[name].file and edges.isdecimal() and int(edges) >= FEWEST_EDGES:
        return generated(name, int(edges))
    if not Path(word).is_file():
        raise ArgumentError(
            f"unknown data set {word!r}",
            hint=f"data sets are {', '.join(DATA_SETS)}, dense, social, all, a generated graph of another size "
            f"(trees:100000, at least {FEWEST_EDGES}), and files (.tsv, .tsv.gz)",
        )
    if not labels:
        raise ArgumentError(
            f"{word}: the labels for a, b and c are not known",
            hint="write, for example, --labels follows,likes,^posts",
        )
    return from_file(word, labels)


def load(data: DataSet) -> Graph:
    """The whole graph of a data set, without self-loops."""
    if not data.file:
        return as_graph(make_graph(data.name.partition(":")[0], data.edges))
    path = path_of(data)
    if not path.is_file():
        raise InputError(
            f"the data set {data.name} is missing: {path} does not exist",
            hint="set MEANDER_DATA to the folder with the files, or use --data cyclic,trees (generated graphs)",
        )
    return read_graph(path)


def read_graph(path: Path) -> Graph:
    """The graph of a `.tsv` file: source, label, target and time."""
    try:
        table = csv.read_csv(
            path,
            read_options=csv.ReadOptions(column_names=["src", "label", "trg", "ts"]),
            parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
            convert_options=csv.ConvertOptions(
                column_types={"src": pa.string(), "label": pa.string(), "trg": pa.string(), "ts": pa.int64()}
            ),
        )
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{path} cannot be read: {error}",
            hint="each line is src, label, trg and seconds, with tabs between",
        ) from None
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
