"""What is measured: the query texts, the graphs, and their prefixes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from meander.bench.data import Graph, as_graph, choose_data, load, read_graph, relations
from meander.bench.generate import make_graph
from meander.bench.workloads import DATA_SETS, QUERIES, Workload, choose_queries
from meander.errors import ArgumentError, InputError
from meander.syntax import parse

ALL = [Workload(data, query) for data in DATA_SETS.values() for query in QUERIES]


def graph(*rows: tuple[str, str, str, int]) -> Graph:
    src, label, trg, ts = zip(*rows, strict=True)
    return as_graph(pa.table({"src": src, "label": label, "trg": trg, "ts": ts}))


@pytest.mark.parametrize("workload", ALL, ids=lambda workload: f"{workload.data.name}-{workload.query}")
def test_every_workload_is_a_query_over_its_own_labels(workload: Workload) -> None:
    query = parse(workload.text(30, 1))
    assert [(stream.window, stream.slide) for stream in query.streams] == [(30, 1)]
    assert set(workload.labels) <= set(
        workload.text(30, 1).replace("(", " ").replace("*", " ").replace("/", " ").replace("+", " ").split()
    )


def test_a_role_that_is_read_backwards_has_its_ends_exchanged() -> None:
    text = Workload(DATA_SETS["snb"], "Q4").text(30, 1)
    assert "D(x, y) <- hasModerator(u, x), containerOf(u, v), hasCreator(v, y)." in text


def test_self_loops_are_dropped_and_edges_stand_in_order_of_time() -> None:
    sample = graph(("a", "l", "b", 9), ("a", "l", "a", 1), ("c", "l", "a", 3), ("b", "k", "c", 3))
    assert sample.ts.tolist() == [3, 3, 9]
    assert sample.names.take(pa.array(sample.src)).to_pylist() == ["c", "b", "a"]


def test_only_requested_labels_remain() -> None:
    sample = graph(("a", "l", "b", 1), ("a", "k", "b", 2), ("b", "m", "c", 3)).of(["k", "m"])
    assert sample.labels.take(pa.array(sample.label)).to_pylist() == ["k", "m"]


@pytest.mark.parametrize(("edges", "left"), [(1, 2), (2, 2), (3, 2), (4, 4), (5, 5), (9, 5)])
def test_a_prefix_ends_with_a_slide(edges: int, left: int) -> None:
    sample = graph(*(("a", "l", "b", ts) for ts in (0, 9, 10, 19, 20)))
    assert sample.prefix(edges, slide=10).edges == left


def test_peers_load_a_relation_read_backwards_turned_round() -> None:
    workload = Workload(DATA_SETS["snb"], "Q4")
    sample = graph(
        ("f", "hasModerator", "p", 0), ("f", "containerOf", "m", 86_400), ("m", "hasCreator", "p", 90_000)
    )
    loaded = relations(sample, workload, 86_400)
    assert sorted(loaded) == ["^hasModerator", "containerOf", "hasCreator"]
    forum, person = (sample.names.index(name).as_py() for name in ("f", "p"))
    assert (loaded["^hasModerator"].src[0], loaded["^hasModerator"].trg[0]) == (person, forum)
    assert loaded["hasCreator"].slide.tolist() == [1]


@pytest.mark.parametrize(
    ("name", "edges"), [("cyclic", 12_000), ("trees", 18_000), ("cyclic", 500), ("trees", 900)]
)
def test_a_generated_graph_is_always_the_same_and_has_edges_for_every_query(name: str, edges: int) -> None:
    assert make_graph(name, edges).equals(make_graph(name, edges))
    assert 0.8 * edges < make_graph(name, edges).num_rows < 1.2 * edges
    (data,) = choose_data(f"{name}:{edges}")
    sample = load(data)
    assert (np.diff(sample.ts) >= 0).all()
    for query in QUERIES:
        labels = Workload(data, query).labels
        assert all(sample.of([label]).edges for label in labels)


def test_a_file_of_ones_own_has_the_queries_for_which_there_are_labels(tmp_path: Path) -> None:
    file = tmp_path / "mine.tsv"
    file.write_text("a\tfollows\tb\t5\nb\tlikes\tc\t6\nc\tlikes\tc\t7\n")
    (data,) = choose_data(str(file), ["follows", "^likes"])
    assert (data.name, list(data.bindings)) == ("mine", ["Q1", "Q2"])
    assert "(follows/^likes*)(x, y)" in Workload(data, "Q2").text(30, 1)
    assert load(data).edges == 2
    with pytest.raises(
        ArgumentError, match="labels for a, b and c are not known\nhint: write, for example, --labels"
    ):
        choose_data(str(file))


def test_a_file_that_is_no_graph_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.tsv"
    file.write_text("a,follows,b,5\n")
    with pytest.raises(InputError, match="cannot be read"):
        read_graph(file)


def test_a_kind_without_its_file_is_generated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MEANDER_DATA", str(tmp_path))
    notes: list[str] = []
    assert [data.name for data in choose_data("all", note=notes.append)] == ["cyclic", "trees"]
    assert [note.split()[0] for note in notes] == ["sx-mathoverflow.tsv.gz", "ldbc-snb-sf0.1.tsv.gz"]


def test_a_missing_file_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("MEANDER_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"sx-mathoverflow.tsv.gz does not exist\nhint: set MEANDER_DATA"):
        load(DATA_SETS["mathoverflow"])


@pytest.mark.parametrize("name", ["imdb", "trees:many", "trees:5", "snb:500"])
def test_unknown_data_sets_are_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(
        ArgumentError, match=f"unknown data set '{name}'\nhint: data sets are mathoverflow, snb"
    ):
        choose_data(name)


def test_unknown_queries_are_refused_with_those_that_there_are() -> None:
    with pytest.raises(ArgumentError, match="unknown query 'Q9'\nhint: queries are Q1, Q2"):
        choose_queries(["Q9"])
