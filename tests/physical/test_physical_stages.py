"""Stages: where a plan for several cells is cut, and what is sent to whom."""

from __future__ import annotations

from typing import Any

import pytest

from engine_runs import plan_query
from meander.algebra.nodes import Share, Slice
from meander.physical.plan import PathOp, PatternOp, ReceiveOp, ScanOp
from meander.physical.stages import StagedPlan, build_stages, stream_operators
from meander.physical.streams import StreamRef

PAPER = {
    "Q1": "Answer(x, y) <- a*(x, y) as P.",
    "Q2": "Answer(x, y) <- (a/b*)(x, y) as P.",
    "Q3": "Answer(x, y) <- (a/b*/c*)(x, y) as P.",
    "Q4": "D(x, y) <- a(x, u), b(u, v), c(v, y).\nAnswer(x, y) <- D+(x, y) as P.",
    "Q5": "Answer(m1, m2) <- a(x, y), b(m1, x), b(m2, y), c(m2, m1).",
    "Q6": "Answer(x, y) <- a+(x, y) as AP, b(x, m), c(m, y).",
    "Q7": "RL(x, y) <- a+(x, y) as AP, b(x, m), c(m, y).\nAnswer(x, m) <- RL+(x, y) as RLP, c(m, y).",
}

BY_SRC, BY_TRG = Share(3, (Slice("src", 3),)), Share(3, (Slice("trg", 3),))


def stages_of(text: str, cells: int = 3, plan: int | None = None, **options: Any) -> StagedPlan:
    plans = plan_query(f"STREAM s WINDOW 24h\n{text}", name="q", plan=plan, demand=False)
    return build_stages(plans, cells, **options)


def sent(staged: StagedPlan) -> dict[tuple[int, str, str], str]:
    """(stage, stream, label) → "all", or the ends whose owners are sent it."""
    return {
        (delivery.stage, delivery.stream, delivery.label): "all"
        if delivery.broadcast
        else "/".join("+".join(part.side for part in share.slices) for share in delivery.shares)
        for delivery in staged.deliveries
    }


@pytest.mark.parametrize("name", PAPER)
def test_one_cell_is_one_stage_without_exchange(name: str) -> None:
    staged = stages_of(PAPER[name], cells=1)
    assert len(staged.stages) == 1
    assert staged.deliveries == ()


@pytest.mark.parametrize("name", PAPER)
def test_every_query_of_the_paper_is_computed_by_shares(name: str) -> None:
    staged = stages_of(PAPER[name])
    assert not any(stage.in_full for stage in staged.stages)
    for stage in staged.stages[1:]:
        assert any(scan.source.share for scan in stream_operators(stage.plan.operators))


def test_edges_that_a_path_begins_with_go_to_the_owner_of_its_root_alone() -> None:
    assert sent(stages_of(PAPER["Q3"])) == {
        (1, "s", "a"): "src",
        (1, "s", "b"): "all",
        (1, "s", "c"): "all",
    }
    assert sent(stages_of("Answer(x, y) <- (^a/b+)(x, y) as P.")) == {
        (1, "s", "a"): "trg",
        (1, "s", "b"): "all",
    }


def test_an_edge_that_all_read_is_not_sent_to_owners_too() -> None:
    assert sent(stages_of(PAPER["Q1"])) == {(1, "s", "a"): "all"}


def test_a_derived_edge_that_is_read_in_full_is_a_stage_of_its_own() -> None:
    staged = stages_of(PAPER["Q7"])
    first, second = staged.stages[1:]
    assert [(result.head, result.raw) for result in first.plan.results] == [("@1", True)]
    assert [(result.head, result.raw) for result in second.plan.results] == [("Answer", False)]
    assert sum(isinstance(operator, PathOp) for operator in second.plan.operators) == 1
    assert sent(staged) == {
        (1, "s", "a"): "all",
        (1, "s", "b"): "src",
        (1, "s", "c"): "all",
        (2, "@1", None): "all",
        (2, "s", "c"): "all",
    }


def test_a_path_read_by_its_target_is_sent_to_the_owner_of_that() -> None:
    staged = stages_of("Answer(y) <- a+(x, y), b(y, z).")
    assert sent(staged) == {(1, "s", "a"): "all", (2, "@1", None): "trg", (2, "s", "b"): "src"}


def test_what_is_cheap_to_derive_is_derived_where_it_is_read() -> None:
    staged = stages_of("D(x, y) <- a(y, x).\nAnswer(x, y) <- (b/D+)(x, y) as P.", plan=0)
    assert len(staged.stages) == 2
    assert not any(isinstance(operator, ReceiveOp) for operator in staged.last.operators)


@pytest.mark.parametrize("name", ["Q6", "Q7"])
def test_the_demand_of_a_closure_is_computed_by_the_cell_that_has_its_roots(name: str) -> None:
    staged = stages_of(PAPER[name], demand=True)
    plan = staged.stages[1].plan
    (closure,) = (node for node in plan.operators if isinstance(node, PathOp) and node.demand is not None)
    assert closure.demand is not None
    demand = plan.operators[closure.demand]
    assert isinstance(demand, PatternOp)
    scans = [node for number in demand.inputs if isinstance(node := plan.operators[number], ScanOp)]
    assert [(scan.label, scan.source.share) for scan in scans] == [("b", BY_SRC), ("c", None)]
    assert staged.exchanges == stages_of(PAPER[name]).exchanges


def test_vertices_of_the_empty_path_are_roots_of_one_operator() -> None:
    """Nothing unites the pairs of a closure with the empty paths: there are as many pairs as answers."""
    operators = stages_of(PAPER["Q1"]).last.operators
    (path,) = (node for node in operators if isinstance(node, PathOp))
    assert stages_of(PAPER["Q1"]).last.results[0].input == operators.index(path)


def test_queries_share_what_is_derived_for_one_of_them() -> None:
    texts = {
        "edges": "STREAM s WINDOW 24h\nRL(x, y) <- a+(x, y), b(x, m), c(m, y).",
        "closure": f"STREAM s WINDOW 24h\n{PAPER['Q7']}",
    }
    plans = [plan for name, text in texts.items() for plan in plan_query(text, name=name, demand=False)]
    staged = build_stages(plans, 2)
    assert len(staged.stages) == 3
    assert sum(isinstance(op, PathOp) for stage in staged.stages for op in stage.plan.operators) == 2
    assert {result.query for result in staged.last.results} == {"edges", "closure"}


def test_paths_over_derived_edges_are_proved_with_what_is_received() -> None:
    staged = stages_of(PAPER["Q4"], plan=0, paths=True)
    (proof,) = staged.last.results[0].proofs
    assert all(isinstance(staged.last.operators[source], ReceiveOp) for source in proof.path.inputs)


def test_an_answer_without_vertices_is_computed_in_full() -> None:
    staged = stages_of("Answer() <- a(x, y), b(y, z).")
    assert staged.stages[-1].in_full == {("q", "Answer")}


def test_what_cells_send_each_other_is_known_by_a_digest() -> None:
    """It tells plans apart that keep other edges, and no others."""
    text = PAPER["Q4"]
    assert stages_of(text, cells=1).exchanges == ""
    assert stages_of(text).exchanges == stages_of(text, path_operator="closure").exchanges
    assert stages_of(text, plan=1).exchanges != stages_of(text, plan=0).exchanges
    assert stages_of(text.replace("a(x", "c(x")).exchanges != stages_of(text).exchanges


def test_the_streams_of_a_stage_are_values_with_keys_of_their_own() -> None:
    staged = stages_of("Answer(y) <- a+(x, y), b(y, z).")
    first, second = (
        {scan.source for scan in stream_operators(stage.plan.operators)} for stage in staged.stages[1:]
    )
    assert first == {StreamRef("s"), StreamRef("s", BY_SRC)}
    assert second == {StreamRef("@1", BY_TRG, derived=True), StreamRef("s", BY_SRC)}
    assert staged.streams == ("s",)
    for sources in (first, second):
        assert len({source.key for source in sources}) == len(sources)


@pytest.mark.parametrize(
    "head", ["Answer(w: m, v: n)", "Answer(x, w: m)", "Answer(x, y, w: m)", "Answer(x, y)"]
)
def test_stages_exchange_edges_alone(head: str) -> None:
    """A pair of vertices, perhaps with values: not two values, nor a vertex and a value."""
    staged = stages_of(
        f"{head} <- a+(x, y) as P, b(x, y, u: m), c(y, x, u: n), m > 0.5, n > 0.5.\n"
        f"{head} <- a(x, y, u: m), a(y, x, u: n), b+(y, x) as Q, m > 0.5, n > 0.5."
    )
    raw = [result for stage in staged.stages for result in stage.plan.results if result.raw]
    assert all(result.arity == 2 for result in raw)
