"""Stages: a plan for N cells, split where cells have to send tuples to each other.

With one cell there is one stage: it puts the edges in order, and computes everything. With several, stage 0 are the
tasks that read the edges and send each to the cells that need it. As many stages of N cells follow as plans are cut
out of each other (see `shares`), and all results leave from the last. A stage receives a stream broadcast to all of
its cells, if their shares read it in full, or else hash-partitioned over a grid of its cells.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from meander.algebra.nodes import Path, Plan, Receive, Share
from meander.physical.builder import QueryPlan, build, stream_schemas
from meander.physical.layouts import UNKNOWN, Layout, Statistics, best_grid, by_position
from meander.physical.plan import Operator, PhysicalPlan, ReceiveOp, ScanOp
from meander.physical.shares import Shares, nameless, scans
from meander.physical.streams import StreamSchema
from meander.rewrite.choice import Sizes
from meander.rewrite.demand import pass_demand


@dataclass(frozen=True, slots=True)
class Delivery:
    """How one label of a stream gets to the cells of a stage: broadcast, or to those that have it by one of `shares`.

    Without a label it is how all of its tuples get there: a derived stream, or one that a scan of any label reads.
    """

    stage: int
    stream: str
    label: str | None
    broadcast: bool
    shares: tuple[Share, ...] = ()


@dataclass(frozen=True, slots=True)
class Stage:
    """What each cell of a stage runs; `in_full` are results (query, head) that every cell computes in full.

    `layouts` are by result those of the others: which cell computes which answers.
    """

    plan: PhysicalPlan
    in_full: frozenset[tuple[str, str]] = frozenset()
    layouts: Mapping[tuple[str, str], Layout] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StagedPlan:
    """All stages and the deliveries between them; `exchanges` is a digest of the deliveries and derived plans.

    `sizes` are estimates of the derived streams, in edges of one label. `declared` is by stream what the queries say
    of its rows, which counts even where no result reads the stream.
    """

    stages: tuple[Stage, ...]
    deliveries: tuple[Delivery, ...] = ()
    exchanges: str = ""
    declared: Mapping[str, StreamSchema] = field(default_factory=dict)
    sizes: Mapping[str, float] = field(default_factory=dict)

    @property
    def last(self) -> PhysicalPlan:
        """The plan that the results leave from."""
        return self.stages[-1].plan

    @property
    def schemas(self) -> dict[str, StreamSchema]:
        """What the stages read of each stream that comes from outside."""
        operators = (operator for stage in self.stages for operator in stage.plan.operators)
        return stream_schemas((scan for scan in operators if isinstance(scan, ScanOp)), self.declared)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that come from outside."""
        sources = (scan.source for stage in self.stages for scan in stream_operators(stage.plan.operators))
        return tuple(dict.fromkeys(source.name for source in sources if not source.derived))


def stream_operators(operators: Iterable[Operator]) -> list[ScanOp | ReceiveOp]:
    """The operators that read a stream."""
    return [operator for operator in operators if isinstance(operator, ScanOp | ReceiveOp)]


def longest_windows(operators: Iterable[Operator]) -> dict[str, int]:
    """For each stream that comes from outside, the longest window through which it is read."""
    windows: dict[str, int] = {}
    for operator in operators:
        if isinstance(operator, ScanOp):
            stream = operator.source.name
            windows[stream] = max(operator.window, windows.get(stream, 0))
    return windows


NOTHING = PhysicalPlan((), (), (), {})


def build_stages(
    plans: Sequence[QueryPlan],
    cells: int,
    *,
    path_operator: str = "auto",
    paths: bool = False,
    demand: bool = False,
    statistics: Statistics = UNKNOWN,
    declared: Mapping[str, StreamSchema] = {},
) -> StagedPlan:
    """The plan of all results for a number of cells; with `paths`, also the plans that prove the answers.

    `statistics` decide the layout of joins. With `demand` it is passed into the closures of each cell: a pattern and
    a closure that have been partitioned by the same vertices need no other cell for it, and what cells exchange is
    the same as without.
    """
    if cells == 1:
        plans = list(map(with_demand, plans)) if demand else plans
        only = build(list(plans), path_operator=path_operator, paths=paths, declared=declared)
        return StagedPlan((Stage(only),), declared=declared)
    cutter = _Cutter(cells, statistics)
    parts, cuts = cutter.cut(plans, paths)
    in_full = frozenset((plan.query, plan.head) for plan in plans if cutter.layout_of(plan.plan) is None)
    layouts = {
        (plan.query, plan.head): layout
        for plan in [*plans, *cuts]
        if (layout := cutter.layout_of(plan.plan)) is not None
    }
    stages = [Stage(NOTHING)]
    for level in range(1, 1 + max(level for level, _ in parts)):
        of_level = [with_demand(plan) if demand else plan for number, plan in parts if number == level]
        physical = build(of_level, path_operator=path_operator, paths=paths)
        heads = {(plan.query, plan.head) for plan in of_level}
        stages.append(Stage(physical, in_full, {head: of for head, of in layouts.items() if head in heads}))
    deliveries = _deliveries(stages)
    derived = [(plan.head, nameless(plan.plan)) for _, plan in parts if plan.raw]
    sizes = {plan.head: Sizes().of(plan.plan) for plan in cuts}
    digest = hashlib.sha256(repr((deliveries, derived)).encode()).hexdigest()
    return StagedPlan(tuple(stages), deliveries, digest[:16], declared, sizes)


def with_demand(plan: QueryPlan) -> QueryPlan:
    """The plan with demand; its proofs get it too, so that they read the same operators as the plan."""
    proofs = []
    for path in plan.proofs:
        passed = pass_demand(path)
        assert isinstance(passed, Path)
        proofs.append(passed)
    return replace(plan, plan=pass_demand(plan.plan, keep_inputs=plan.has_routes), proofs=tuple(proofs))


class _Cutter:
    """Finds shares of results, the plans that have to be cut out for them, and the stage that computes each."""

    def __init__(self, cells: int, statistics: Statistics) -> None:
        self.cells = cells
        self.statistics = statistics
        self.layouts: dict[Plan, Layout | None] = {}
        self.depths: dict[Plan, int] = {}

    def layout_of(self, plan: Plan) -> Layout | None:
        """The layout of a plan over cells. That of a join of edges is the cheapest grid. Of other plans it is by one
        position: with the fewest stages, the fewest derived streams that are broadcast, and the most streams that are
        hash-partitioned. None if every cell has to compute it in full."""
        if plan not in self.layouts:
            grid = best_grid(plan, self.cells, self.statistics)
            if grid is None or Shares().of(plan, grid) is None:
                grid = self._by_one_position(plan)
            self.layouts[plan] = grid
        return self.layouts[plan]

    def _by_one_position(self, plan: Plan) -> Layout | None:
        costs = []
        for position in range(plan.arity):
            trial = Shares()
            share = trial.of(plan, by_position(position, self.cells))
            if share is not None:
                read = scans(share)
                broadcast = [scan for scan in read if scan.share is None]
                derived = sum(isinstance(scan, Receive) for scan in broadcast)
                costs.append((self._depth(trial), derived, 2 * len(broadcast) - len(read), position))
        return by_position(min(costs)[-1], self.cells) if costs else None

    def depth_of(self, plan: Plan) -> int:
        if plan not in self.depths:
            trial = Shares()
            trial.of(plan, self.layout_of(plan))
            self.depths[plan] = self._depth(trial)
        return self.depths[plan]

    def _depth(self, trial: Shares) -> int:
        return 1 + max(map(self.depth_of, trial.cuts.values()), default=0)

    def share(self, shares: Shares, plan: Plan) -> Plan:
        share = shares.of(plan, self.layout_of(plan))
        assert share is not None, "the layout was chosen because there is a share by it"
        return share

    def result(self, shares: Shares, plan: Plan) -> Plan:
        """The share of a result, which may have been cut out for another reader."""
        layout = self.layout_of(plan)
        if not shares.is_cut(plan):
            return self.share(shares, plan)
        share = shares.full(plan) if layout is None else shares.by(plan, layout)
        assert share is not None
        return share

    def cut(
        self, plans: Sequence[QueryPlan], paths: bool
    ) -> tuple[list[tuple[int, QueryPlan]], list[QueryPlan]]:
        """The shares of all plans that are cut out and of all results, each with its stage; and the plans themselves
        that are cut out."""
        shares = Shares()
        known = -1
        while known < len(shares.cuts):
            # A plan that is cut out for one reader is received by all, so each round starts with all cuts so far.
            known = len(shares.cuts)
            results = [
                replace(
                    result,
                    plan=self.result(shares, result.plan),
                    proofs=tuple(map(shares.proof, result.proofs)) if paths else (),
                )
                for result in plans
            ]
            derived = {stream: self.share(shares, plan) for stream, plan in list(shares.cuts.items())}
        levels: dict[str, int] = {}

        def level_of(*readers: Plan) -> int:
            streams = {scan.stream for plan in readers for scan in scans(plan) if isinstance(scan, Receive)}
            for stream in streams - set(levels):
                levels[stream] = level_of(derived[stream])
            return 1 + max((levels[stream] for stream in streams), default=0)

        last = max(level_of(result.plan, *result.proofs) for result in results)
        whole = {
            stream: QueryPlan("", stream, shares.cuts[stream].label, shares.cuts[stream], raw=True)
            for stream in levels
        }
        cut_out = [(level, replace(whole[stream], plan=derived[stream])) for stream, level in levels.items()]
        return cut_out + [(last, result) for result in results], list(whole.values())


def _deliveries(stages: Sequence[Stage]) -> tuple[Delivery, ...]:
    deliveries = []
    for number, stage in enumerate(stages):
        shares: dict[tuple[str, str | None], dict[Share | None, None]] = {}
        for operator in stream_operators(stage.plan.operators):
            label = operator.label if isinstance(operator, ScanOp) else None
            shares.setdefault((operator.source.name, label), {})[operator.source.share] = None
        # In an order that does not depend on that of the operators, which demand may change.
        for (stream, label), read in sorted(shares.items(), key=lambda item: (item[0][0], item[0][1] or "")):
            partitioned = sorted((share for share in read if share is not None), key=repr)
            deliveries.append(
                Delivery(number, stream, label, None in read, () if None in read else tuple(partitioned))
            )
    return tuple(deliveries)
