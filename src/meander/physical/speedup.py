"""How much several cells gain over one, by the estimates of `rewrite.choice`: for `--cells auto` and `explain`.

The unit is the number of edges that one label has in a window. What a cell does for each edge that it has is not
divided among cells where edges are broadcast; what it computes is. Reading is done once, whatever the cells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from meander.algebra.nodes import WScan
from meander.algebra.trees import walk
from meander.physical.builder import QueryPlan
from meander.physical.layouts import labels_read
from meander.physical.stages import Delivery, StagedPlan
from meander.rewrite.choice import cost

READ = 1.0
"""The cost of reading an edge, beside that of a cell's having it, which is 1."""

STAGE = 0.5
"""The cost of a further stage of cells: the exchange before it, in every batch."""

LEAST_GAIN = 1.3
"""Several cells are worth their memory and Spark's overhead from this estimated gain on."""


def estimated_gain(plans: Sequence[QueryPlan], staged: StagedPlan, cells: int) -> float:
    """The work of a single cell, divided by that of the slowest cell of each stage."""
    labels = {
        label
        for result in plans
        for node in walk(result.plan)
        if isinstance(node, WScan)
        for label in labels_read(node) or ()
    }
    edges = float(len(labels))
    computed = max(0.0, sum(cost(plan) for plan in {result.plan for result in plans}) - edges)
    had = sum(staged.sizes.get(delivery.stream, 1.0) * share_of(delivery) for delivery in staged.deliveries)
    used = min([cells, *(layout.cells for stage in staged.stages for layout in stage.layouts.values())])
    in_full = any(stage.in_full for stage in staged.stages)
    stages = len(staged.stages) - 1
    slowest = READ * edges + had + computed / (1 if in_full else used) + STAGE * stages
    return ((1 + READ) * edges + computed) / slowest


def share_of(delivery: Delivery) -> float:
    """The share of the tuples of a delivery that one cell has."""
    if delivery.broadcast:
        return 1.0
    return 1.0 - prod(1.0 - 1.0 / prod(part.size for part in share.slices) for share in delivery.shares)


def choose_cells(cores: int, gain: Callable[[int], float]) -> tuple[int, str]:
    """The number of cells for a number of cores, and the reason; `gain` estimates that of a number of cells."""
    if cores < 2:
        return 1, "1 cell: there is one core"
    numbers = sorted({max(2, cores >> halved) for halved in range(cores.bit_length())})
    gains = {number: gain(number) for number in numbers}
    best = max(gains.values())
    if best < LEAST_GAIN:
        return 1, (
            f"1 cell: by estimate several on {cores} cores would gain {best:.2f} at most, and {LEAST_GAIN} is the "
            f"least that pays"
        )
    chosen = min(number for number in numbers if gains[number] >= 0.95 * best)
    return chosen, f"{chosen} cells on {cores} cores: an estimated gain of {gains[chosen]:.1f} over one cell"
