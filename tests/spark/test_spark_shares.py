"""Shares: cells that own different vertices give, together, the answers of one; each answer is of one cell."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_spark_cells import Memory

from judge import judge
from meander.dataflow.edges import as_text
from meander.dataflow.tabular import edges_of, judge_row
from meander.physical.plan import build
from meander.physical.planning import plan_query
from meander.spark.advance import LIVE, advance
from meander.spark.cells import Job
from meander.spark.chunks import ANSWERS, CLOSED, EDGES, TICK, Chunk, cell_keys
from meander.spark.codec import encode_edges
from meander.spark.shares import MARK, owned, share_queries
from oracle import expect
from strategies import cases

PAPER = {
    "Q1": "Answer(x, y) <- a*(x, y) as P.",
    "Q2": "Answer(x, y) <- (a/b*)(x, y) as P.",
    "Q3": "Answer(x, y) <- (a/b*/c*)(x, y) as P.",
    "Q4": "D(x, y) <- a(x, u), b(u, v), c(v, y).\nAnswer(x, y) <- D+(x, y) as P.",
    "Q5": "Answer(m1, m2) <- a(x, y), b(m1, x), b(m2, y), c(m2, m1).",
    "Q6": "Answer(x, y) <- a+(x, y) as AP, b(x, m), c(m, y).",
    "Q7": "RL(x, y) <- a+(x, y) as AP, b(x, m), c(m, y).\nAnswer(x, m) <- RL+(x, y) as RLP, c(m, y).",
}


@pytest.mark.parametrize("name", PAPER)
def test_every_query_of_the_paper_has_a_share(name):
    plans, in_full = share_queries(plan_query(f"STREAM s WINDOW 24h\n{PAPER[name]}"))
    assert not in_full
    assert any(MARK in stream for stream in build(plans).streams)


@settings(deadline=None)
@given(st.lists(st.one_of(st.text(), st.integers(-5, 5)), max_size=30), st.integers(1, 8))
def test_each_vertex_has_one_owner_whatever_else_is_in_the_batch(names, cells):
    owners = np.array([owned(as_text(names), cell, cells) for cell in range(cells)])
    assert (owners.sum(axis=0) == 1).all()
    for at, name in enumerate(names):
        alone = [bool(owned(as_text([name]), cell, cells)[0]) for cell in range(cells)]
        assert alone == owners[:, at].tolist()


@pytest.mark.parametrize("cells", [2, 3, 8])
def test_shares_are_even(cells):
    for names in ([f"v{number}" for number in range(4000)], list(range(4000))):
        sizes = [int(owned(as_text(names), cell, cells).sum()) for cell in range(cells)]
        assert max(sizes) < 1.2 * 4000 / cells


def answers_of_cells(case, cells, size):
    """What each cell answers, all cells being given all edges in batches of `size`."""
    plans = plan_query(case.text, name="q")
    in_full = frozenset()
    if cells > 1:
        plans, in_full = share_queries(plans)
    plan = build(plans, paths=case.paths)
    keys = cell_keys(cells, cells)
    streams = tuple(case.streams)
    job = Job(
        f"{cells} cells",
        plan,
        streams,
        tuple(keys),
        {"q": "jsonl"},
        lateness=case.lateness,
        mode=case.mode,
        paths=case.paths,
        in_full=in_full,
        handover=False,
    )
    LIVE.clear()
    given_rows = {
        name: [row for row in rows if judge_row(row) is None] for name, rows in case.streams.items()
    }
    steps = max((len(rows) for rows in given_rows.values()), default=0) // size + 1
    batches = []
    for step in range(steps):
        chunks = [
            Chunk(EDGES, name, 0, encode_edges(edges_of(rows[step * size : (step + 1) * size]), lines=False))
            for name, rows in given_rows.items()
        ]
        batches.append(chunks)
    batches.append([Chunk(TICK, name, 0, CLOSED) for name in streams])
    records = []
    for key in keys:
        store = Memory()
        mine = []
        for batch in batches:
            for output in advance(job, key, store, batch):
                if output.kind == ANSWERS:
                    mine += [json.loads(line) for line in output.data.splitlines()]
        records.append(mine)
    return records


def key_of(record):
    return json.dumps(record.get("answer", [record.get("src"), record.get("trg"), record.get("label")]))


@settings(
    deadline=None,
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
@given(case=cases(), cells=st.sampled_from([2, 3, 8]), size=st.sampled_from([2, 1000]))
def test_the_law_holds_for_cells_together(case, cells, size):
    by_cell = answers_of_cells(case, cells, size)
    owners = Counter(key for mine in by_cell for key in {key_of(record) for record in mine})
    assert max(owners.values(), default=1) == 1
    judge(
        [record for mine in by_cell for record in mine],
        expect(case.query, case.streams, case.lateness),
        mode=case.mode,
        paths=case.paths,
    )
