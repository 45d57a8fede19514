"""The law holds over a cell that forgets: whatever is lost between two batches but the store, the answers are those
of the snapshots, and each stands by a path that holds.

A case is fed to a cell batch by batch. Before a batch the worker may have lost its state, the snapshots may be gone,
the task may have failed after it had done its work, and the run may have been started again by another plan or with
another path operator. What the oracle says of the case is what the records must say.
"""

import json
import os
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from test_spark_cells import Memory

import meander
from engine_runs import steps_of
from judge import judge
from meander.physical.plan import PATH_OPERATORS, build
from meander.physical.planning import plan_query
from meander.spark.advance import LIVE, advance
from meander.spark.cells import Job
from meander.spark.chunks import ANSWERS, CLOSED, EDGES, TICK, Chunk
from meander.spark.codec import encode_edges
from oracle import expect
from querytext import read_query
from strategies import Case, cases

EXAMPLES = int(os.environ.get("MEANDER_RECOVERY_EXAMPLES", "24"))
LOSSES = ("nothing", "state", "state and snapshots", "the task", "half a task", "another plan")
drawn = settings(
    max_examples=EXAMPLES // 3,
    deadline=None,
    print_blob=True,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def make_job(case, operator, plan, folder, snapshot_rows):
    plans = len(meander.plans(case.text))
    chosen = None if plan is None else plan % plans
    physical = build(plan_query(case.text, name="q", plan=chosen), path_operator=operator, paths=case.paths)
    return Job(
        "run",
        physical,
        tuple(case.streams),
        (0,),
        {"q": "jsonl"},
        lateness=case.lateness,
        mode=case.mode,
        paths=case.paths,
        started=time.time(),
        snapshots=str(folder),
        snapshot_rows=snapshot_rows,
    )


def run_with_losses(case, losses, operators, snapshot_rows, folder):
    """The records of a run in which before each batch something is lost."""
    LIVE.clear()
    store = Memory()
    job = make_job(case, operators[0], case.plan, folder, snapshot_rows)
    records = []
    for number, (stream, edges) in enumerate(steps_of(case.streams, case.batch_rows)):
        chunk = Chunk(TICK, stream, 0, CLOSED)
        if edges is not None:
            chunk = Chunk(EDGES, stream, 0, encode_edges(edges, lines=False))
        match losses[number % len(losses)]:
            case "state":
                LIVE.clear()
            case "state and snapshots":
                LIVE.clear()
                shutil.rmtree(folder, ignore_errors=True)
            case "the task":
                list(advance(job, 0, store, [chunk]))
                store.roll_back()
            case "half a task":
                attempt = advance(job, 0, store, [chunk])
                next(attempt)
                attempt.close()
                store.roll_back()
            case "another plan":
                job = make_job(case, operators[number % len(operators)], number, folder, snapshot_rows)
        for output in advance(job, 0, store, [chunk]):
            if output.kind == ANSWERS:
                records += [json.loads(line) for line in output.data.splitlines()]
        store.commit()
    LIVE.clear()
    return records


def hold_law(case, losses, operators, snapshot_rows):
    with tempfile.TemporaryDirectory() as folder:
        records = run_with_losses(case, losses, operators, snapshot_rows, Path(folder) / "snapshots")
    judge(records, expect(case.query, case.streams, case.lateness), mode=case.mode, paths=case.paths)
    return records


def closure_case(edges, **options):
    query = read_query("STREAM s WINDOW 40\nAnswer(x, y) <- s.a+(x, y) as P.")
    return Case(query, {"s": edges}, batch_rows=1, **options)


TWO_WAYS = [("u", "a", "v", 1), ("v", "a", "w", 1), ("u", "a", "x", 2), ("x", "a", "w", 3)]


@pytest.mark.parametrize("operator", PATH_OPERATORS)
def test_a_path_handed_out_before_a_loss_is_cut_with_its_edge(operator):
    """u reaches w over v, then for as long over x; what is rebuilt may choose the way over x."""
    ways = [(src, "a", trg, 1) for middle in "vxyz" for src, trg in (("u", middle), (middle, "w"))]
    case = closure_case([*ways, ("u", "a", "v", 5, "-")], paths=True)
    records = hold_law(case, ["state and snapshots"], [operator], 1000)
    assert ("-", 5) in [(one["op"], one["ts"]) for one in records if (one["src"], one["trg"]) == ("u", "w")]


@pytest.mark.parametrize("before", PATH_OPERATORS)
@pytest.mark.parametrize("after", PATH_OPERATORS)
def test_what_one_path_operator_has_not_said_yet_another_says(before, after):
    records = hold_law(
        closure_case(TWO_WAYS), ["another plan"], [before, before, before, before, after], 1000
    )
    assert max(Counter(map(json.dumps, records)).values()) == 1


def test_an_end_that_waits_for_its_instant_to_pass_is_told_after_a_loss():
    case = closure_case([("u", "a", "v", 1), ("u", "a", "w", 41), ("u", "a", "x", 50)], mode="changes")
    hold_law(case, ["state and snapshots"], ["auto"], 1000)


@pytest.mark.parametrize("snapshot_rows", [1, 6, 1000])
@given(
    case=cases(),
    losses=st.lists(st.sampled_from(LOSSES), min_size=1, max_size=8),
    operators=st.permutations(PATH_OPERATORS),
)
@drawn
def test_answers_are_those_of_the_snapshots_whatever_a_cell_has_lost(snapshot_rows, case, losses, operators):
    hold_law(case, losses, operators, snapshot_rows)
