"""Several cells judge time as one does: they reject the same edges, each once, and reach the same time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cells_in_process import Cells
from hypothesis import given, settings
from hypothesis import strategies as st
from incidents import instants_held

from meander.dataflow.edges import Reason, Reject
from meander.dataflow.ingest import SUSPICIOUS_WINDOWS
from meander.dataflow.layout import StreamLayout
from meander.dataflow.sources.text import TextReader
from meander.dataflow.tabular import edges_of
from meander.engine import compile_query
from meander.spark.cell.scatter import Scatter, Summary
from meander.spark.edge_codec import decode_edges, edges_chunk
from meander.spark.input.reader import LineReader
from meander.spark.messages import CHUNK_ROWS, PARTITION_SHIFT, Chunk, Kind, closed, tick

TEXT = "STREAM s WINDOW 20 SLIDE 2\nSTREAM t WINDOW 9\nAnswer(x, z) <- s.a+(x, y), t.b(y, z)."
QUERY = compile_query(TEXT, name="q")
STREAMS = "st"

Row = tuple[str, str, str, int]
Batch = list[tuple[str, int, list[Row]]]  # chunks: a stream, a partition, and rows

rows = st.lists(
    st.tuples(
        st.sampled_from("uvw"),
        st.sampled_from("abz"),
        st.sampled_from("uvw"),
        st.one_of(st.integers(0, 30), st.integers(100, 140)),
    ),
    min_size=1,
    max_size=6,
)
batches = st.lists(
    st.lists(st.tuples(st.sampled_from(STREAMS), st.integers(0, 2), rows), max_size=4), min_size=1, max_size=5
)


def chunks_of(batch: Batch) -> list[Chunk]:
    """The chunks of a batch, each at the next position of its partition."""
    numbers: dict[tuple[str, int], int] = {}
    chunks = [tick()]
    for stream, partition, of_chunk in batch:
        number = numbers.get((stream, partition), 0)
        numbers[stream, partition] = number + 1
        chunks.append(edges_chunk(stream, edges_of(of_chunk), (partition << PARTITION_SHIFT) + number))
    return chunks


def outcome(cells: int, arrivals: list[Batch], ends: dict[int, str], **options: Any) -> tuple[Any, ...]:
    """The rejects of each batch, the time that its cells have reached, and the instants at which answers hold."""
    now = [1000.0]
    unordered = options.pop("unordered", frozenset())
    run = Cells([QUERY], cells, unordered=unordered, started=1000.0, clock=lambda: now[0], **options)
    by_batch = []
    for number, batch in enumerate([*arrivals, []]):
        now[0] += 40
        run.rejects.clear()
        run.figures.clear()
        last = number == len(arrivals)
        ended = STREAMS if last else ends.get(number, "")
        run.step([*chunks_of(batch), *map(closed, ended)])
        (time,) = {figures["time"] for figures in run.figures}
        counted = [sum(figures[name] for figures in run.figures) for name in ("arrived", "late", "rejected")]
        by_batch.append((sorted(run.rejects), time, counted))
    return by_batch, instants_held(run.records)


@settings(deadline=None, max_examples=40)
@given(
    arrivals=batches,
    cells=st.sampled_from([2, 3, 8]),
    lateness=st.sampled_from([0, 3]),
    max_jump=st.sampled_from([None, 25]),
    unordered=st.sampled_from(["", "s", "st"]),
    ends=st.dictionaries(st.integers(0, 4), st.sampled_from(STREAMS), max_size=1),
    idle=st.sampled_from([1e9, 60.0]),
)
def test_several_cells_reject_what_one_rejects_and_reach_the_same_time(
    arrivals, cells, unordered, **options
) -> None:
    options["unordered"] = frozenset(unordered)
    assert outcome(cells, arrivals, **options) == outcome(1, arrivals, **options)


@pytest.mark.slow
@settings(deadline=None, max_examples=3000, derandomize=False)
@given(
    arrivals=batches,
    cells=st.sampled_from([2, 3, 8, 27]),
    lateness=st.sampled_from([0, 3, 50]),
    max_jump=st.sampled_from([None, 5, 25]),
    unordered=st.sampled_from(["", "s", "st"]),
    ends=st.dictionaries(st.integers(0, 4), st.sampled_from(STREAMS), max_size=2),
    idle=st.sampled_from([1e9, 60.0]),
)
def test_several_cells_reject_what_one_rejects_in_many_more_cases(
    arrivals, cells, unordered, **options
) -> None:
    options["unordered"] = frozenset(unordered)
    assert outcome(cells, arrivals, **options) == outcome(1, arrivals, **options)


@pytest.mark.parametrize("cells", [1, 3])
def test_a_suspicious_jump_is_reported_by_one_cell(cells) -> None:
    far = 20 * SUSPICIOUS_WINDOWS + 9
    run = Cells([QUERY], cells)
    jumps = []
    for batch in ([("u", "a", "v", 1)], [("u", "z", "v", far), ("u", "a", "v", far + 1)]):
        outputs = run.local.run_batch([edges_chunk("s", edges_of(batch))])
        jumps += [row for _, row in outputs if row.kind == Kind.JUMP]
    assert len(jumps) == 1


def test_a_reader_tells_every_cell_of_a_chunk_and_sends_its_text_to_one() -> None:
    edges = edges_of([("u", "a", "v", 5), ("v", "z", "w", 3), ("w", "a", "u", 9), ("w", "a", "v", 5)])
    deliveries = Cells([QUERY], 3).staged.deliveries
    messages = list(Scatter((10, 11, 12), deliveries).send([edges_chunk("s", edges, 1)]))
    summaries = [message for message in messages if message.kind == Kind.SUMMARY]
    assert [message.cell for message in summaries] == [10, 11, 12]
    assert len({message.data for message in summaries}) == 1
    summary = Summary.from_bytes(summaries[0].data)
    assert (summary.rows, summary.first, summary.least, summary.greatest) == (4, 5, 3, 9)
    assert (summary.step, summary.late, summary.judge) == (4, 2, 1)
    (arrivals,) = [message for message in messages if message.kind == Kind.ARRIVALS]
    assert arrivals.cell == 11
    assert decode_edges(arrivals.data).ts.tolist() == [5, 3, 9, 5]
    sent = {
        (*edge,)
        for message in messages
        if message.kind == Kind.EDGES
        for part in [decode_edges(message.data)]
        for edge in zip(part.src.values(), part.label.values(), part.ts.tolist(), strict=True)
    }
    assert sent == {("u", "a", 5), ("w", "a", 9)}


@pytest.mark.parametrize("cells", [1, 3])
def test_a_late_edge_is_rejected_with_its_text_and_its_line(cells) -> None:
    lines = [b"u\ta\tv\t50\nv\tz\tw\t52\n", b"u\tz\tv\t60\n\nw\tz\tv\t3\nw\ta\tv\t61\n"]
    run = Cells([QUERY], cells)
    chunks = []
    for number, text in enumerate(lines):
        reader = TextReader(Path("s.tsv"), LineReader(text), StreamLayout("s"), CHUNK_ROWS, start=100)
        ((edges, rejects),) = reader.chunks()
        assert rejects == []
        chunks.append(Chunk(Kind.EDGES, "s", number, b"", edges=edges))
    run.step(chunks)
    (reject,) = run.rejects
    assert reject == Reject("s", Reason.TOO_LATE, "w\tz\tv\t3", "s.tsv", 3, 100)
