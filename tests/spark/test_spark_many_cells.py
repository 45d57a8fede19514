"""Many cells: together they give the answers of one, each answer by one cell alone, whatever has to go between them.

The law is held over drawn cases with all cells in this process, with the steps of Spark and the same bytes between
them. A few queries are then answered on a real Spark.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from cells_in_process import Cells, compacting, forget, run_case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from incidents import generate, instants_held, read_records, write_tsv
from recovery import table_cases

import meander
from judge import judge
from law import naming, plans_enumerated_once
from meander.dataflow.tabular import edges_of
from meander.engine import compile_query, staged_plan
from meander.errors import StateError
from meander.options import RunOptions
from meander.physical.path_operators import PATH_OPERATORS
from meander.spark.cell.manifest import TIER
from meander.spark.checkpoint.identity import check_checkpoint, record_queries, recorded_plans, run_identity
from meander.spark.edge_codec import edges_chunk
from meander.spark.messages import Chunk, closed
from meander.spark.run import Run
from meander.spark.session import Session
from oracle import expect
from querytext import read_query
from strategies import cases, property_cases

drawn = settings(
    max_examples=20,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
CELLS = st.sampled_from([2, 3, 8])
SIZES = st.sampled_from([1, 3, 1000])
TIERS = st.sampled_from([TIER, 2])
VALUE_EXAMPLES = int(os.environ.get("MEANDER_CELLS_EXAMPLES", "15"))
MANY_EXAMPLES = int(os.environ.get("MEANDER_MANY_CELLS_EXAMPLES", "4000"))

QUERIES = {
    "closure": "STREAM s WINDOW 30 SLIDE 3\nAnswer(x, y) <- (a/b*)(x, y) as P.",
    "join": "STREAM s WINDOW 30 SLIDE 3\nAnswer(x, z) <- a(x, y), b(y, z), a(x, z).",
    "derived": "STREAM s WINDOW 30 SLIDE 3\n"
    "D(x, z) <- a+(x, y), b(y, z), a(x, z).\nAnswer(x, y) <- D+(x, z) as P, b(y, z).",
    "probed": "STREAM s WINDOW 30 SLIDE 3\n"
    "RL(x, y) <- a+(x, y), b(x, m), a(m, y).\nAnswer(x, m) <- RL*(x, y), b(m, y).",
}


def key_of(record) -> str:
    ends = record.get("answer", [record.get("src"), record.get("trg"), record.get("label")])
    return json.dumps([ends, record.get("properties")])


def hold_law(case, cells, size, path_operator, incident=None, **options) -> Cells:
    plan = None if case.plan is None else case.plan % len(meander.plans(case.text))
    run = run_case(case, cells, size, path_operator=path_operator, plan=plan, incident=incident, **options)
    owners = Counter(key for mine in run.answers for key in {key_of(record) for record in mine})
    assert max(owners.values(), default=1) == 1
    expected = expect(case.query, case.streams, case.lateness)
    judge(run.records, expected, mode=case.mode, paths=case.paths)
    return run


@given(case=cases(), cells=CELLS, size=SIZES, path_operator=st.sampled_from(tuple(PATH_OPERATORS)))
@drawn
def test_the_law_holds_for_cells_together(case, cells, size, path_operator) -> None:
    run = hold_law(case, cells, size, path_operator)
    assert sorted(run.rejects) == sorted(run_case(case, 1, size).rejects)


@given(
    case=property_cases(),
    cells=CELLS,
    size=SIZES,
    path_operator=st.sampled_from(tuple(PATH_OPERATORS)),
    forgetful=st.booleans(),
    tier=TIERS,
)
@settings(drawn, max_examples=VALUE_EXAMPLES)
def test_the_law_holds_for_cells_that_read_values(case, cells, size, path_operator, forgetful, tier) -> None:
    with naming(case), plans_enumerated_once(), compacting(tier):
        run = hold_law(case, cells, size, path_operator, forget if forgetful else None)
        assert sorted(run.rejects) == sorted(run_case(case, 1, size).rejects)


@given(
    case=table_cases(),
    cells=CELLS,
    size=SIZES,
    path_operator=st.sampled_from(tuple(PATH_OPERATORS)),
    forgetful=st.booleans(),
    tier=TIERS,
)
@settings(drawn, max_examples=VALUE_EXAMPLES)
def test_the_law_holds_for_cells_over_tables(case, cells, size, path_operator, forgetful, tier) -> None:
    with naming(case), plans_enumerated_once(), compacting(tier):
        hold_law(case, cells, size, path_operator, forget if forgetful else None)


@given(
    case=cases(),
    cells=CELLS,
    size=st.sampled_from([1, 3]),
    path_operator=st.sampled_from(tuple(PATH_OPERATORS)),
)
@settings(drawn, max_examples=12)
def test_the_law_holds_for_cells_that_forget(case, cells, size, path_operator) -> None:
    """Before every step the worker has lost what it held: what is in the store is enough, in every stage."""
    hold_law(case, cells, size, path_operator, forget)


@pytest.mark.slow
@given(
    case=st.one_of(property_cases(), table_cases()),
    cells=st.sampled_from([1, 2, 3, 8]),
    size=SIZES,
    path_operator=st.sampled_from(tuple(PATH_OPERATORS)),
    forgetful=st.booleans(),
    tier=TIERS,
)
@settings(drawn, max_examples=MANY_EXAMPLES, derandomize=False, report_multiple_bugs=False)
def test_the_law_holds_for_cells_that_read_values_in_many_more_cases(
    case, cells, size, path_operator, forgetful, tier
) -> None:
    with naming(case), plans_enumerated_once(), compacting(tier):
        hold_law(case, cells, size, path_operator, forget if forgetful else None)


@pytest.mark.slow
@given(
    case=cases(),
    cells=CELLS,
    size=SIZES,
    path_operator=st.sampled_from(tuple(PATH_OPERATORS)),
    forgetful=st.booleans(),
)
@settings(drawn, max_examples=MANY_EXAMPLES, derandomize=False)
def test_the_law_holds_for_cells_together_in_many_more_cases(
    case, cells, size, path_operator, forgetful
) -> None:
    hold_law(case, cells, size, path_operator, forget if forgetful else None)


def chunks_of(rows, size) -> Iterator[list[Chunk]]:
    for start in range(0, len(rows), size):
        yield [edges_chunk("s", edges_of(rows[start : start + size]))]
    yield [closed("s")]


@pytest.mark.parametrize("cells", [2, 3, 8])
@pytest.mark.parametrize("name", QUERIES)
def test_longer_streams_with_snapshots_and_forgetting(name, cells, tmp_path) -> None:
    rows = generate(5, 900)
    steps = iter(range(10**6))

    def incident(cells, *_) -> None:
        if next(steps) % 5 == 0:
            cells.cache.forget()

    run = Cells([compile_query(QUERIES[name], name="q")], cells, snapshots=str(tmp_path), snapshot_rows=40)
    for chunks in chunks_of(rows, 50):
        run.step(chunks, incident)
    assert instants_held(run.records) == instants_held(meander.run(QUERIES[name], rows))
    assert sum(map(bool, run.answers)) > 1
    assert any(tmp_path.rglob("*.snapshot"))


def test_a_cell_holds_what_its_share_reads_and_no_more() -> None:
    """Edges that a path begins with are spread over the cells; what the query does not ask for is nowhere."""
    text = "STREAM s WINDOW 1000000\nAnswer(x, y) <- (a/b*)(x, y) as P."
    rows = [(f"v{at % 97}", "aaab"[at % 4] if at % 5 else "z", f"v{at % 89}", at) for at in range(4000)]
    run = Cells([compile_query(text, name="q")], 4)
    (first, *_) = chunks_of(rows, 4000)
    run.step(first)
    count = Counter(label for _, label, _, _ in rows)
    window_rows = [cell["window_rows"] for cell in run.figures if cell["stage"] == 1]
    assert sum(window_rows) == count["a"] + 4 * count["b"]
    assert max(window_rows) < 1.5 * min(window_rows)
    sent, broadcast = (sum(cell[name] for cell in run.figures) for name in ("sent", "sent_to_all"))
    assert (sent, broadcast) == (count["a"] + count["b"], count["b"])


@pytest.mark.spark
@pytest.mark.parametrize(
    "cells", [2, pytest.param(3, marks=pytest.mark.slow), pytest.param(8, marks=pytest.mark.slow)]
)
def test_answers_do_not_depend_on_the_number_of_cells(spark, tmp_path, cells) -> None:
    rows = generate(11, 1200)
    write_tsv(tmp_path / "s.tsv", rows)
    session = Session(spark)
    session.stream("s", str(tmp_path / "s.tsv"))
    for name, text in QUERIES.items():
        session.query(text, name)
    sinks = {name: str(tmp_path / f"{name}.jsonl") for name in QUERIES}
    size = 300 if cells < 8 else 800
    run = session.start(str(tmp_path / "checkpoint"), sinks, follow=False, cells=cells, batch_rows=size)
    assert run.wait(300)
    for name, text in QUERIES.items():
        records = read_records(tmp_path / f"{name}.jsonl")
        assert instants_held(records) == instants_held(meander.run(text, rows))
        assert max(Counter(map(json.dumps, records)).values()) == 1
    assert run.totals["edges"] == len(rows)
    # Cells continue from the arrays of whichever worker had them before; only the first batch creates state.
    later = [cell for figures in run.figures[1:] for cell in figures["cells"]]
    assert len(later) == (len(run.figures) - 1) * run.job.cells_of_all_stages
    assert not any(cell["rebuilt"] for cell in later)
    last = [cell for figures in run.figures for cell in figures["cells"] if cell["stage"] == run.job.last]
    shares = Counter()
    for cell in last:
        shares[cell["cell"]] += cell["answers"]
    assert len(shares) == cells
    assert sum(map(bool, shares.values())) > 1


ANY_LABEL = "STREAM s WINDOW 30\nAnswer(x, z) <- s.*(x, y), s.a(y, z)."


@pytest.mark.parametrize("cells", [2, 3, 8])
def test_edges_of_any_label_get_to_the_cells_that_read_them(cells) -> None:
    rows = generate(6, 600)
    run = Cells([compile_query(ANY_LABEL, name="q")], cells)
    for chunks in chunks_of(rows, 70):
        run.step(chunks)
    assert instants_held(run.records) == instants_held(meander.run(ANY_LABEL, rows))
    assert sum(map(bool, run.answers)) > 1


WINDOWS = """\
STREAM s WINDOW 30 SLIDE 3
STREAM recent FROM s WINDOW 7
Answer(x, y) <- s.a+(x, z) as AP, recent.b(z, y).
Answer(x, y) <- (AP/recent.a)(x, y), s.b(x, y).
"""


@pytest.mark.spark
@pytest.mark.parametrize("cells", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_two_windows_on_one_stream_read_one_input(spark, tmp_path, cells) -> None:
    """Over two starts, with deletions: what has left the short window is in the long one."""
    rows = generate(9, 500)
    (tmp_path / "s").mkdir()

    def start(part) -> Run:
        write_tsv(tmp_path / "s" / f"{part}.tsv", rows[part * 250 : part * 250 + 250])
        session = Session(spark)
        session.stream("s", str(tmp_path / "s"))
        session.query(WINDOWS, "q")
        sinks = {"q": str(tmp_path / "out.jsonl")}
        return session.start(str(tmp_path / "checkpoint"), sinks, cells=cells, idle=1e9)

    run = start(0)
    run.process_available()
    run.stop()
    start(1).finish()
    records = read_records(tmp_path / "out.jsonl")
    judge(records, expect(read_query(WINDOWS), {"s": rows}, 0), mode="intervals", paths=False)
    assert len(records) > 20


VALUES = """\
STREAM s (amount FLOAT) WINDOW 30 SLIDE 3
TABLE ref (risk INT)
Answer(x, y, paid: m, at: t) <- s.a[amount > 1](x, z, amount: m, ts: t), s.a+(z, y) as P ascending,
    ref.n(y, risk: r), r >= 2.
"""


@pytest.mark.spark
def test_answers_with_values_go_on_after_a_restart(spark, tmp_path) -> None:
    """Over two cells and two starts: properties of edges and vertices, a table that is replaced, paths in order."""
    edges = [
        {"src": f"v{at % 7}", "label": "a", "trg": f"v{at * 3 % 5}", "ts": at // 2, "amount": at % 9 / 2}
        for at in range(240)
    ]
    levels = [{"src": f"v{at % 5}", "label": "n", "ts": at * 4, "risk": at % 4} for at in range(30)]
    for name, rows in (("s", edges), ("ref", levels)):
        (tmp_path / name).mkdir()
        half = len(rows) // 2
        for part, of_part in enumerate((rows[:half], rows[half:])):
            lines = "".join(json.dumps(row) + "\n" for row in of_part)
            (tmp_path / f"{name}-{part}.jsonl").write_text(lines)

    def start(part) -> Run:
        for name in ("s", "ref"):
            (tmp_path / f"{name}-{part}.jsonl").rename(tmp_path / name / f"{part}.jsonl")
        session = Session(spark)
        session.stream("s", str(tmp_path / "s"))
        session.stream("ref", str(tmp_path / "ref"))
        session.query(VALUES, "q")
        sinks = {"q": str(tmp_path / "out.jsonl")}
        return session.start(str(tmp_path / "checkpoint"), sinks, cells=2, idle=1e9)

    run = start(0)
    run.process_available()
    run.stop()
    start(1).finish()
    records = read_records(tmp_path / "out.jsonl")
    expected = expect(read_query(VALUES), {"s": edges, "ref": levels}, 0)
    judge(records, expected, mode="intervals", paths=False)
    assert len({json.dumps(record["properties"]) for record in records}) > 20


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("plans", [(None, None), (None, 0)], ids=["same plan", "another plan"])
def test_a_run_of_several_stages_goes_on_after_a_stop(spark, tmp_path, plans) -> None:
    rows = generate(12, 900)
    (tmp_path / "in").mkdir()
    query = QUERIES["derived"]

    def start(plan) -> Run:
        session = Session(spark)
        session.stream("s", str(tmp_path / "in"))
        session.query(query, "q", plan=plan)
        sinks = {"q": str(tmp_path / "out.jsonl")}
        return session.start(str(tmp_path / "checkpoint"), sinks, cells=2, snapshot_rows=200)

    write_tsv(tmp_path / "in" / "1.tsv", rows[:450])
    run = start(plans[0])
    assert run.notes == []
    run.process_available()
    run.stop()
    write_tsv(tmp_path / "in" / "2.tsv", rows[450:])
    again = start(plans[1])
    assert len(again.notes) == (plans[0] != plans[1])
    again.finish()
    assert instants_held(read_records(tmp_path / "out.jsonl")) == instants_held(meander.run(query, rows))


def test_cells_that_would_read_other_edges_than_they_hold_are_refused(tmp_path) -> None:
    session = Session()
    query = session.query(QUERIES["closure"], "q").compiled

    def identity(**options) -> dict[str, Any]:
        options = RunOptions(cells=3, **options)
        return run_identity([query], options, staged_plan([query], options).exchanges)

    run = check_checkpoint(tmp_path / "meander", identity())
    (tmp_path / "meander").mkdir()
    record_queries(tmp_path / "meander", identity(), run)
    assert check_checkpoint(tmp_path / "meander", identity(path_operator="closure")) == run
    with pytest.raises(StateError, match="now it would read others"):
        check_checkpoint(tmp_path / "meander", identity(paths=True))


def test_a_plan_that_reads_other_edges_gives_way_to_the_one_that_the_cells_hold(tmp_path) -> None:
    options = RunOptions(cells=3)
    chosen, canonical, other = (
        compile_query(QUERIES[text], RunOptions(plan=plan), name="q")
        for text, plan in (("derived", None), ("derived", 0), ("closure", None))
    )

    def exchanges(query) -> str:
        return staged_plan([query], options).exchanges

    folder = tmp_path / "meander"
    assert recorded_plans(folder, [chosen], exchanges(chosen)) is None
    folder.mkdir()
    record_queries(folder, run_identity([chosen], options, exchanges(chosen)), "run")
    assert recorded_plans(folder, [chosen], exchanges(chosen)) is None
    assert recorded_plans(folder, [canonical], exchanges(canonical)) == {"q": None}
    assert recorded_plans(folder, [other], exchanges(canonical)) is None
