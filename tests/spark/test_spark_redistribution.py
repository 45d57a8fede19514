"""A run continues with another number of cells: what was emitted stays emitted, and the law holds for all records."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from cells_in_process import Cells, batches_of_case, compacting, forget, run_case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from incidents import generate, instants_held
from recovery import table_cases

import meander
from judge import judge
from law import naming, plans_enumerated_once
from meander.dataflow.tabular import edges_of
from meander.engine import compile_query
from meander.errors import StateError
from meander.options import RunOptions
from meander.physical.path_operators import PATH_OPERATORS
from meander.spark.cell.manifest import TIER
from meander.spark.cell.redistribution import redistribute
from meander.spark.edge_codec import edges_chunk
from meander.spark.messages import closed
from oracle import expect
from strategies import cases, property_cases

EXAMPLES = int(os.environ.get("MEANDER_RESTART_EXAMPLES", "10"))
MANY_EXAMPLES = int(os.environ.get("MEANDER_MANY_RESTART_EXAMPLES", "2000"))
drawn = settings(
    max_examples=EXAMPLES,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
NUMBERS = st.lists(st.sampled_from([1, 2, 3, 8]), min_size=2, max_size=3)
SIZES = st.sampled_from([1, 3])


def restarted(run: Cells, cells: int, queries: Any, **options: Any) -> Cells:
    """The same run with another number of cells."""
    other = Cells(queries, cells, **options)
    other.local.stores = redistribute(run.jobs, run.local.stores, other.jobs)
    other.rejects = run.rejects
    other.answers[0] = run.records
    return other


def hold_law(case, numbers, size, path_operator, *, forgetful=False, starts=()) -> None:
    plan = None if case.plan is None else case.plan % len(meander.plans(case.text))
    queries = [compile_query(case.text, RunOptions(plan=plan), name="q")]
    options = {
        "paths": case.paths,
        "mode": case.mode,
        "lateness": case.lateness,
        "path_operator": path_operator,
    }
    run = Cells(queries, numbers[0], **options)
    schemas = run.staged.schemas
    pending = dict(zip(starts, numbers[1:], strict=False))
    for at, chunks in enumerate(batches_of_case(case, size, schemas)):
        if at in pending:
            try:
                run = restarted(run, pending.pop(at), queries, **options)
            except StateError as error:
                assert case.mode == "changes"
                assert "deletions" in error.message  # noqa: PT017
        own = [chunk for chunk in chunks if chunk.stream in run.staged.streams]
        run.step(own, forget if forgetful else None)
    judge(run.records, expect(case.query, case.streams, case.lateness), mode=case.mode, paths=case.paths)
    assert sorted(run.rejects) == sorted(run_case(case, 1, size).rejects)


STARTS = st.lists(st.integers(1, 6), min_size=1, max_size=2, unique=True).map(sorted)


@given(
    case=cases(),
    numbers=NUMBERS,
    size=SIZES,
    path_operator=st.sampled_from(tuple(PATH_OPERATORS)),
    starts=STARTS,
)
@drawn
def test_the_law_holds_across_restarts_with_other_numbers_of_cells(
    case, numbers, size, path_operator, starts
) -> None:
    hold_law(case, numbers, size, path_operator, starts=starts)


@given(
    case=st.one_of(property_cases(), table_cases()),
    numbers=NUMBERS,
    size=SIZES,
    path_operator=st.sampled_from(tuple(PATH_OPERATORS)),
    starts=STARTS,
)
@drawn
def test_the_law_holds_across_restarts_of_cells_that_read_values(
    case, numbers, size, path_operator, starts
) -> None:
    with naming(case), plans_enumerated_once():
        hold_law(case, numbers, size, path_operator, starts=starts)


@pytest.mark.slow
@given(
    case=st.one_of(cases(), property_cases(), table_cases()),
    numbers=st.lists(st.sampled_from([1, 2, 3, 8, 27]), min_size=2, max_size=3),
    size=SIZES,
    path_operator=st.sampled_from(tuple(PATH_OPERATORS)),
    starts=STARTS,
    forgetful=st.booleans(),
    tier=st.sampled_from([2, TIER]),
)
@settings(drawn, max_examples=MANY_EXAMPLES, derandomize=False)
def test_the_law_holds_across_restarts_in_many_more_cases(
    case, numbers, size, path_operator, starts, forgetful, tier
) -> None:
    with naming(case), plans_enumerated_once(), compacting(tier):
        hold_law(case, numbers, size, path_operator, starts=starts, forgetful=forgetful)


DERIVED = (
    "STREAM s WINDOW 30 SLIDE 3\n"
    "D(x, z) <- a+(x, y), b(y, z), a(x, z).\nAnswer(x, y) <- D+(x, z) as P, b(y, z)."
)


@pytest.mark.parametrize("numbers", [(1, 3), (3, 1), (2, 8), (8, 3, 2)])
def test_a_longer_run_emits_nothing_twice_when_its_cells_change(numbers) -> None:
    rows = generate(17, 600)
    queries = [compile_query(DERIVED, name="q")]
    run = Cells(queries, numbers[0])
    size = 50
    for at, start in enumerate(range(0, 600, size)):
        if at and at % 4 == 0 and at // 4 < len(numbers):
            run = restarted(run, numbers[at // 4], queries)
        before = [len(of_cell) for of_cell in run.answers]
        run.step([edges_chunk("s", edges_of(rows[start : start + size]))])
        if at and at % 4 == 0:
            # Records that a restart would repeat begin before the edges of its first batch.
            new = [
                record
                for of_cell, count in zip(run.answers, before, strict=True)
                for record in of_cell[count:]
            ]
            assert new
            assert all(record["ts"] >= rows[start - 1][3] for record in new)
    run.step([closed("s")])
    assert instants_held(run.records) == instants_held(meander.run(DERIVED, rows))


NEAR = "STREAM s WINDOW 3\nD(x, z) <- a+(x, y), b(y, z), a(x, z).\nNear(x, y) <- D+(x, z) as P, b(y, z)."
FAR = "STREAM s WINDOW 40\nFar(x, y) <- a+(x, y) as P."


@pytest.mark.parametrize("numbers", [(2, 1), (3, 2), (1, 2, 3)])
def test_an_edge_goes_to_new_cells_if_the_windows_of_any_stage_have_it(numbers) -> None:
    draw = random.Random(19)
    rows = [
        (f"v{draw.randrange(40)}", draw.choice("ab"), f"v{draw.randrange(40)}", at // 4) for at in range(600)
    ]
    queries = [compile_query(FAR, name="far"), compile_query(NEAR, name="near")]
    run = Cells(queries, numbers[0])
    for at, start in enumerate(range(0, 600, 50)):
        if at and at % 4 == 0 and at // 4 < len(numbers):
            # The first of two stages reads the edges for the short window alone.
            run = restarted(run, numbers[at // 4], queries)
        run.step([edges_chunk("s", edges_of(rows[start : start + 50]))])
    run.step([closed("s")])
    for text, head in ((FAR, "Far"), (NEAR, "Near")):
        expected = instants_held(meander.run(text, rows))
        assert expected
        assert instants_held(record for record in run.records if record["label"] == head) == expected


BODIES = (
    "D(x, z) <- a+(x, y), b(y, z), a(x, z).\n{head}(x, y) <- D+(x, z) as P, b(y, z).",
    "{head}(x, y) <- a+(x, y) as P.",
    "{head}(x, y) <- a(x, z), b(z, y), a(x, y).",
)
SEVERAL = st.lists(
    st.tuples(st.sampled_from(BODIES), st.sampled_from([1, 2, 5]), st.sampled_from([1, 2, 8, 20])),
    min_size=2,
    max_size=3,
)
DRAWN_RUN: Any = {
    "several": SEVERAL,
    "numbers": NUMBERS,
    "starts": STARTS,
    "vertices": st.sampled_from([6, 15, 30]),
    "deletions": st.booleans(),
    "lateness": st.sampled_from([0, 4]),
    "seed": st.integers(0, 2**32),
}


def hold_for_several_queries(several, numbers, starts, vertices, deletions, lateness, seed) -> None:
    """Each of several queries with windows of their own has the answers that it has alone, by one process."""
    texts = {
        f"H{number}": f"STREAM s WINDOW {slide * slides} SLIDE {slide}\n{body.format(head=f'H{number}')}"
        for number, (body, slide, slides) in enumerate(several)
    }
    draw = random.Random(seed)
    rows: list[tuple[Any, ...]] = []
    for at in range(240):
        edge = (f"v{draw.randrange(vertices)}", draw.choice("ab"), f"v{draw.randrange(vertices)}", at // 3)
        rows.append((*edge, "-") if deletions and draw.random() < 0.1 else edge)
    queries = [compile_query(text, name=head) for head, text in texts.items()]
    run = Cells(queries, numbers[0], lateness=lateness)
    pending = dict(zip(starts, numbers[1:], strict=False))
    for at, start in enumerate(range(0, len(rows), 30)):
        if at in pending:
            run = restarted(run, pending.pop(at), queries, lateness=lateness)
        run.step([edges_chunk("s", edges_of(rows[start : start + 30]))])
    run.step([closed("s")])
    for head, text in texts.items():
        found = instants_held(record for record in run.records if record["label"] == head)
        assert found == instants_held(meander.run(text, rows, lateness=lateness))


@given(**DRAWN_RUN)
@drawn
def test_several_queries_go_on_in_other_numbers_of_cells(**run: Any) -> None:
    hold_for_several_queries(**run)


@pytest.mark.slow
@given(**DRAWN_RUN)
@settings(drawn, max_examples=MANY_EXAMPLES // 4, derandomize=False)
def test_several_queries_go_on_in_other_numbers_of_cells_in_many_more_cases(**run: Any) -> None:
    hold_for_several_queries(**run)


def test_cells_change_once_a_query_that_was_added_has_had_a_batch() -> None:
    rows = generate(20, 300)
    first, added = compile_query(FAR, name="far"), compile_query(NEAR, name="near")
    run = Cells([first], 1)
    run.step([edges_chunk("s", edges_of(rows[:200]))])
    with pytest.raises(StateError, match=r"a query that was added has had its first batch.*: near"):
        redistribute(Cells([first, added], 1).jobs, run.local.stores, Cells([first, added], 2).jobs)
