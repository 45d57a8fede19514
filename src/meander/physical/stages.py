"""Stages: a plan for N cells, cut where cells have to hand tuples to each other.

With one cell there is one stage: it puts the edges in order, and computes everything. With several, the first stage
is one cell that puts the edges in order and sends each to the cells that read it; then come as many stages of N cells
as plans are cut out of each other (see `shares`), and all results leave from the last. What a stage is sent of a
stream goes to all of its cells, where their shares read it in full, or to the owners of its source or target.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from meander.algebra.nodes import Plan
from meander.physical.plan import Operator, PhysicalPlan, QueryPlan, ReceiveOp, ScanOp, build
from meander.physical.shares import DERIVED, MARK, SIDES, Received, Shares, nameless, scans


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the cells of a stage are sent of one label of a stream: to all, or to the owners of these ends."""

    stage: int
    stream: str
    label: str
    to_all: bool
    sides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stage:
    """What each cell of a stage runs; `in_full` are results (query, head) of which every cell finds all."""

    plan: PhysicalPlan
    in_full: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class StagedPlan:
    """All stages, what is sent between them, and in `exchanges` a digest of what that is and how it is derived."""

    stages: tuple[Stage, ...]
    deliveries: tuple[Delivery, ...] = ()
    exchanges: str = ""

    @property
    def last(self) -> PhysicalPlan:
        """The plan that the results leave from."""
        return self.stages[-1].plan

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that come from outside."""
        names = (base_stream(name) for stage in self.stages for name in stage.plan.streams)
        return tuple(dict.fromkeys(name for name in names if not name.startswith(DERIVED)))


def longest_windows(operators: Iterable[Operator]) -> dict[str, int]:
    """For each stream that comes from outside, the longest window through which it is read."""
    windows: dict[str, int] = {}
    for one in operators:
        if isinstance(one, ScanOp):
            stream = base_stream(one.stream)
            windows[stream] = max(one.window, windows.get(stream, 0))
    return windows


NOTHING = PhysicalPlan((), (), (), {})


def build_stages(
    plans: Sequence[QueryPlan], cells: int, *, path_operator: str = "auto", paths: bool = False
) -> StagedPlan:
    """The plan of all results for a number of cells; with `paths`, also what proves the answers."""
    if cells == 1:
        return StagedPlan((Stage(build(list(plans), path_operator=path_operator, paths=paths)),))
    cutter = _Cutter()
    parts = cutter.cut(plans, paths)
    in_full = frozenset((one.query, one.head) for one in plans if cutter.position_of(one.plan) is None)
    stages = [Stage(NOTHING)]
    for level in range(1, 1 + max(level for level, _ in parts)):
        here = [one for at, one in parts if at == level]
        stages.append(Stage(build(here, path_operator=path_operator, paths=paths), in_full))
    deliveries = _deliveries(stages)
    derived = [(one.head, nameless(one.plan)) for _, one in parts if one.raw]
    digest = hashlib.sha256(repr((deliveries, derived)).encode()).hexdigest()
    return StagedPlan(tuple(stages), deliveries, digest[:16])


class _Cutter:
    """Finds shares of results, what has to be cut out for them, and in which stage each is computed."""

    def __init__(self) -> None:
        self.positions: dict[Plan, int | None] = {}
        self.depths: dict[Plan, int] = {}

    def position_of(self, plan: Plan) -> int | None:
        """The position to share a plan by: with the fewest stages, the least derived tuples for all cells, and the
        most streams for owners alone. None where it has to be computed in full."""
        if plan not in self.positions:
            costs = []
            for position in range(plan.arity):
                trial = Shares()
                share = trial.of(plan, position)
                if share is not None:
                    read = scans(share)
                    for_all = [scan for scan in read if MARK not in scan.stream]
                    derived = sum(isinstance(scan, Received) for scan in for_all)
                    costs.append((self._depth(trial), derived, 2 * len(for_all) - len(read), position))
            self.positions[plan] = min(costs)[-1] if costs else None
        return self.positions[plan]

    def depth_of(self, plan: Plan) -> int:
        if plan not in self.depths:
            trial = Shares()
            trial.of(plan, self.position_of(plan))
            self.depths[plan] = self._depth(trial)
        return self.depths[plan]

    def _depth(self, trial: Shares) -> int:
        return 1 + max(map(self.depth_of, trial.cuts.values()), default=0)

    def share(self, shares: Shares, plan: Plan) -> Plan:
        share = shares.of(plan, self.position_of(plan))
        assert share is not None, "the position was chosen because there is a share by it"
        return share

    def result(self, shares: Shares, plan: Plan) -> Plan:
        """The share of a result, which may have been cut out for another reader."""
        position = self.position_of(plan)
        if not shares.is_cut(plan):
            return self.share(shares, plan)
        found = shares.full(plan) if position is None else shares.by(plan, position)
        assert found is not None
        return found

    def cut(self, plans: Sequence[QueryPlan], paths: bool) -> list[tuple[int, QueryPlan]]:
        """The shares of what is cut out and of all results, each with its stage."""
        shares = Shares()
        known = -1
        while known < len(shares.cuts):
            # What is cut out for one reader is received by all, so each round looks again with all cuts.
            known = len(shares.cuts)
            results = [
                replace(
                    one,
                    plan=self.result(shares, one.plan),
                    proofs=tuple(map(shares.proof, one.proofs)) if paths else (),
                )
                for one in plans
            ]
            made = {stream: self.share(shares, plan) for stream, plan in list(shares.cuts.items())}
        levels: dict[str, int] = {}

        def level_of(*read: Plan) -> int:
            streams = {
                base_stream(scan.stream) for one in read for scan in scans(one) if isinstance(scan, Received)
            }
            for stream in streams - set(levels):
                levels[stream] = level_of(made[stream])
            return 1 + max((levels[stream] for stream in streams), default=0)

        last = max(level_of(one.plan, *one.proofs) for one in results)
        cut_out = [
            (level, QueryPlan("", stream, shares.cuts[stream].label, made[stream], raw=True))
            for stream, level in levels.items()
        ]
        return cut_out + [(last, one) for one in results]


def base_stream(name: str) -> str:
    """The stream that a share is of."""
    return name.partition(MARK)[0]


def _deliveries(stages: Sequence[Stage]) -> tuple[Delivery, ...]:
    found = []
    for number, stage in enumerate(stages):
        sides: dict[tuple[str, str], set[str]] = {}
        for operator in stage.plan.operators:
            if isinstance(operator, ScanOp | ReceiveOp):
                label = operator.label if isinstance(operator, ScanOp) else ""
                base, _, side = operator.stream.partition(MARK)
                sides.setdefault((base, label), set()).add(side)
        for (stream, label), read in sides.items():
            to_all = "" in read
            found.append(
                Delivery(
                    number,
                    stream,
                    label,
                    to_all,
                    () if to_all else tuple(side for side in SIDES if side in read),
                )
            )
    return tuple(found)
