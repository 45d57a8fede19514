"""Edges leave in order of time and arrival, each once or as a reject, however the stream was cut into chunks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meander.dataflow.edges import INFINITY, Edges, Reason, Reject, empty_edges
from meander.dataflow.ingest import SUSPICIOUS_WINDOWS, Ingest
from meander.dataflow.tabular import edges_of
from meander.errors import ArgumentError, StateError

Row = tuple[str, str, str, int]


def numbered(times: list[int]) -> list[Row]:
    """Edges of these times, each with the place of its arrival as its name."""
    return [(f"v{position}", "l", "w", time) for position, time in enumerate(times)]


def pairs(edges: Edges) -> list[tuple[int, str]]:
    return list(zip(edges.ts.tolist(), edges.src.values(), strict=True))  # type: ignore[arg-type]


def chunks_of(rows: list[Row], cuts: list[int]) -> list[list[Row]]:
    bounds = [0, *sorted({cut % (len(rows) + 1) for cut in cuts}), len(rows)]
    return [rows[start:end] for start, end in pairwise(bounds)]


def late_rows(rows: list[Row], lateness: int) -> list[Row]:
    """The definition, edge by edge."""
    greatest = -1
    late = []
    for row in rows:
        if row[3] < greatest - lateness:
            late.append(row)
        greatest = max(greatest, row[3])
    return late


def judged(stamps: list[int], lateness: int, max_jump: int) -> list[str | None]:
    """The definition of `--max-jump`, edge by edge: why each is rejected, or None."""
    clock: int | None = None
    reasons: list[str | None] = []
    for time in stamps:
        if clock is not None and time > clock + max_jump:
            reasons.append(Reason.JUMPS_AHEAD)
        elif clock is not None and time < clock - lateness:
            reasons.append(Reason.TOO_LATE)
        else:
            reasons.append(None)
            clock = time if clock is None else max(clock, time)
    return reasons


times = st.lists(st.integers(0, 30), max_size=40)
nearly_sorted = st.lists(st.tuples(st.integers(0, 3), st.integers(-6, 6)), max_size=40).map(
    lambda steps: [
        max(0, sum(step for step, _ in steps[: position + 1]) + noise)
        for position, (_, noise) in enumerate(steps)
    ]
)


@settings(deadline=None, max_examples=300)
@given(
    st.one_of(times, nearly_sorted), st.integers(0, 12), st.lists(st.integers(0, 40), max_size=6), st.data()
)
def test_one_stream_is_released_in_order_and_nothing_is_lost(
    stamps: list[int], lateness: int, cuts: list[int], data: st.DataObject
) -> None:
    rows = numbered(stamps)
    ingest = Ingest(["s"], lateness=lateness)
    released: list[tuple[int, str]] = []
    rejects: list[Reject] = []
    reached = -1
    for chunk in chunks_of(rows, cuts):
        rejects += ingest.push("s", edges_of(chunk))
        if data.draw(st.booleans(), label="release"):
            out, frontier = ingest.release()
            released += pairs(out.get("s", empty_edges()))
            assert all(time <= (reached if frontier is None else frontier) for time, _ in released)
            assert frontier is None or frontier >= reached
            reached = reached if frontier is None else frontier
        if data.draw(st.booleans(), label="move"):
            moved = Ingest(["s"], lateness=lateness)
            moved.restore(ingest.snapshot())
            ingest = moved
    ingest.close("s")
    out, frontier = ingest.release()
    assert frontier == INFINITY
    released += pairs(out.get("s", empty_edges()))
    late = late_rows(rows, lateness)
    accepted = [row for row in rows if row not in late]
    assert released == sorted(((row[3], row[0]) for row in accepted), key=lambda row: row[0])
    assert rejects == [Reject("s", Reason.TOO_LATE, "\t".join(map(str, row))) for row in late]
    assert ingest.held == 0


leaps = st.lists(st.sampled_from([-7, -1, 0, 0, 1, 2, 5, 9, 40, 1000]), max_size=40).map(
    lambda steps: [max(0, sum(steps[: position + 1])) for position in range(len(steps))]
)


@settings(deadline=None, max_examples=300)
@given(
    st.one_of(times, nearly_sorted, leaps),
    st.integers(0, 12),
    st.integers(1, 45),
    st.lists(st.integers(0, 40), max_size=6),
    st.data(),
)
def test_an_edge_too_far_ahead_is_rejected_wherever_the_stream_is_cut(
    stamps: list[int], lateness: int, max_jump: int, cuts: list[int], data: st.DataObject
) -> None:
    rows = numbered(stamps)
    ingest = Ingest(["s"], lateness=lateness, max_jump=max_jump, windows={"s": 1})
    released: list[tuple[int, str]] = []
    rejects: list[Reject] = []
    for chunk in chunks_of(rows, cuts):
        rejects += ingest.push("s", edges_of(chunk))
        if data.draw(st.booleans(), label="release"):
            released += pairs(ingest.release()[0].get("s", empty_edges()))
        if data.draw(st.booleans(), label="restart"):
            moved = Ingest(["s"], lateness=lateness, max_jump=max_jump)
            moved.restore(ingest.snapshot())
            ingest = moved
    ingest.close("s")
    released += pairs(ingest.release()[0].get("s", empty_edges()))
    reasons = judged(stamps, lateness, max_jump)
    accepted = [(row[3], row[0]) for row, reason in zip(rows, reasons, strict=True) if reason is None]
    assert released == sorted(accepted, key=lambda row: row[0])
    assert rejects == [
        Reject("s", reason, "\t".join(map(str, row)))
        for row, reason in zip(rows, reasons, strict=True)
        if reason is not None
    ]
    assert ingest.take_jumps() == []


@settings(deadline=None, max_examples=200)
@given(leaps, st.integers(0, 12), st.lists(st.integers(0, 40), max_size=6))
def test_a_suspicious_jump_is_reported_once_wherever_the_stream_is_cut(
    stamps: list[int], lateness: int, cuts: list[int]
) -> None:
    window = 7
    scale = SUSPICIOUS_WINDOWS * window // 9  # a leap of 9 is just no more than a thousand windows
    rows = numbered([time * scale for time in stamps])
    ingest = Ingest(["s"], lateness=lateness * scale, windows={"s": window})
    jumps = []
    for chunk in chunks_of(rows, cuts):
        ingest.push("s", edges_of(chunk))
        jumps += ingest.take_jumps()
    greatest = [
        max(time for *_, time in rows[:position]) if position else None for position in range(len(rows))
    ]
    wanted = [
        (row[0], row[3], before)
        for row, before in zip(rows, greatest, strict=True)
        if before is not None and row[3] - before > SUSPICIOUS_WINDOWS * window
    ]
    assert [(jump.edge.text.split("\t")[0], jump.ts, jump.before) for jump in jumps] == wanted[:1]


def test_one_time_in_milliseconds_costs_one_edge() -> None:
    ingest = Ingest(["s"], max_jump=3600)
    stamps = [1_700_000_000, 1_700_000_001_000, 1_700_000_002, 1_700_000_003]
    (reject,) = ingest.push("s", edges_of(numbered(stamps)))
    assert (reject.reason, reject.text) == ("time jumps ahead", "v1\tl\tw\t1700000001000")
    assert ingest.streams["s"].greatest == 1_700_000_003


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(st.sampled_from("ab"), nearly_sorted), max_size=6), st.integers(0, 8))
def test_several_streams_advance_to_the_least_that_any_has_reached(
    pushes: list[tuple[str, list[int]]], lateness: int
) -> None:
    ingest = Ingest(["a", "b"], lateness=lateness)
    arrived: dict[str, list[Row]] = {"a": [], "b": []}
    released: dict[str, list[tuple[int, str]]] = {"a": [], "b": []}
    rejected: dict[str, int] = {"a": 0, "b": 0}
    for stream, stamps in pushes:
        rows = [
            (f"{len(arrived[stream]) + position}", "l", "w", time) for position, time in enumerate(stamps)
        ]
        arrived[stream] += rows
        rejected[stream] += len(ingest.push(stream, edges_of(rows)))
        out, frontier = ingest.release()
        greatest = [max((row[3] for row in arrived[stream]), default=None) for stream in "ab"]
        known = None not in greatest and min(greatest) >= lateness  # type: ignore[type-var, operator]
        assert frontier == (min(greatest) - lateness if known else None)  # type: ignore[type-var, operator]
        for stream, edges in out.items():
            released[stream] += pairs(edges)
        if frontier is not None:
            for stream in "ab":
                accepted = [row for row in arrived[stream] if row not in late_rows(arrived[stream], lateness)]
                ready = [(row[3], row[0]) for row in accepted if row[3] <= frontier]
                assert released[stream] == sorted(ready, key=lambda pair: pair[0])
    for stream in "ab":
        ingest.close(stream)
        assert rejected[stream] == len(late_rows(arrived[stream], lateness))
    out, _ = ingest.release()
    for stream in "ab":
        assert len(released[stream]) + len(out[stream].ts if stream in out else []) + rejected[stream] == len(
            arrived[stream]
        )


def test_a_chunk_in_order_goes_through_without_a_copy() -> None:
    edges = edges_of(numbered([1, 2, 2, 5]))
    ingest = Ingest(["s"])
    assert ingest.push("s", edges) == []
    out, frontier = ingest.release()
    assert frontier == 5
    assert np.shares_memory(out["s"].ts, edges.ts)
    assert out["s"].src.start is edges.src.start


def test_a_silent_stream_holds_the_others_back_until_it_is_closed() -> None:
    ingest = Ingest(["a", "b"])
    ingest.push("a", edges_of(numbered([1, 2, 3])))
    assert ingest.release() == ({}, None)
    ingest.close("b")
    out, frontier = ingest.release()
    assert (pairs(out["a"]), frontier) == ([(1, "v0"), (2, "v1"), (3, "v2")], 3)


def test_a_stream_that_speaks_again_is_late_where_time_has_passed_it() -> None:
    ingest = Ingest(["a", "b"])
    ingest.push("a", edges_of(numbered([10])))
    ingest.close("b")
    ingest.release()
    ingest.open("b")
    assert [reject.text for reject in ingest.push("b", edges_of(numbered([9, 10, 11])))] == ["v0\tl\tw\t9"]
    ingest.push("a", edges_of(numbered([20])))
    out, frontier = ingest.release()
    assert frontier == 11
    assert pairs(out["b"]) == [(10, "v1"), (11, "v2")]
    assert "a" not in out


def test_time_never_goes_back_when_a_stream_opens() -> None:
    ingest = Ingest(["a", "b"])
    ingest.close("b")
    ingest.push("a", edges_of(numbered([10])))
    ingest.release()
    ingest.open("b")
    assert ingest.release() == ({}, 10)


def test_equal_times_at_the_frontier_may_still_arrive() -> None:
    ingest = Ingest(["s"])
    assert ingest.push("s", edges_of(numbered([5]))) == []
    ingest.release()
    assert ingest.push("s", edges_of([("later", "l", "w", 5)])) == []
    assert pairs(ingest.release()[0]["s"]) == [(5, "later")]


def test_many_small_chunks_leave_few_runs() -> None:
    ingest = Ingest(["s"], lateness=10_000)
    for time in range(500):
        ingest.push("s", edges_of(numbered([time])))
        ingest.release()
    assert ingest.held == 500
    assert len(ingest.streams["s"].runs) < 20


def test_a_snapshot_holds_only_what_waits() -> None:
    ingest = Ingest(["s"], lateness=1)
    ingest.push("s", edges_of([("x" * 1000, "l", "w", time) for time in range(100)]))
    ingest.release()
    assert sum(array.nbytes for array in ingest.snapshot().values()) < 2000


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda: Ingest(["s"], lateness=-1), ArgumentError, "a lateness of -1 is negative"),
        (lambda: Ingest(["s"]).push("t", empty_edges()), ArgumentError, "there is no stream t"),
        (lambda: Ingest(["s"]).restore(Ingest(["s", "t"]).snapshot()), StateError, "other streams"),
    ],
)
def test_misuse_is_an_error(act: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        act()
