"""The operator contract: what every operator of a dataflow provides, and what it gets.

An operator turns the changes of its inputs into the changes of its output, batch after batch. It starts a batch and
returns a `Pending`; whoever needs the output calls `result()`. Most operators are done at once (`Ready`); one that
works on threads returns before it is done. An operator knows nothing of the other operators: it sees its input
batches, and the window's graph, which has the tuples of every operator that some other one looks into.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from meander.dataflow.batch import Batch
from meander.dataflow.encoding import StreamInput
from meander.dataflow.graph import WindowGraph
from meander.dataflow.state import Array, Store
from meander.dataflow.threads import LanePool
from meander.dataflow.vertices import Vertices
from meander.kernels.steps import Steps
from meander.physical.streams import LabelClass


class Pending(Protocol):
    """The output of one batch, which may still be computed."""

    @property
    def is_ready(self) -> bool:
        """Whether the output is in buffers that the operator's next batch overwrites; then it must be read first."""

    def result(self) -> Batch:
        """The output; waits for it if necessary."""


@dataclass(frozen=True, slots=True)
class Ready:
    """Output that is there already."""

    batch: Batch
    is_ready: bool = True

    def result(self) -> Batch:
        return self.batch


class KnownPaths(NamedTuple):
    """The paths that an operator found with its output; `last` has the last step of each row's path."""

    last: Array
    steps: Steps


NO_KNOWN_PATHS = KnownPaths(np.zeros(0, np.int32), Steps(*(np.zeros(0, np.int32) for _ in Steps._fields)))


def concat_paths(parts: Sequence[KnownPaths]) -> KnownPaths:
    """The paths of several outputs, one after the other."""
    if len(parts) == 1:
        return parts[0]
    firsts = np.cumsum([0] + [part.steps.before.size for part in parts])[:-1].tolist()
    last = [
        np.where(part.last >= 0, part.last + first, part.last)
        for part, first in zip(parts, firsts, strict=True)
    ]
    before = [
        np.where(part.steps.before >= 0, part.steps.before + first, part.steps.before)
        for part, first in zip(parts, firsts, strict=True)
    ]
    steps = Steps(*(np.concatenate(columns) for columns in zip(*(part.steps for part in parts), strict=True)))
    return KnownPaths(
        np.concatenate(last).astype(np.int32), steps._replace(before=np.concatenate(before).astype(np.int32))
    )


def merge_paths(parts: Sequence[tuple[Batch, KnownPaths]]) -> KnownPaths:
    """The paths of several outputs as `merge_outputs` merges these."""
    paths = concat_paths([known for _, known in parts])
    if len(parts) == 1:
        return paths
    order = np.argsort(np.concatenate([batch.ts for batch, _ in parts]), kind="stable")
    return paths._replace(last=paths.last[order])


@dataclass(frozen=True, slots=True)
class Context:
    """What a dataflow provides to one of its operators."""

    number: int  # of the operator in the plan
    store: Store  # for all of its state
    graph: WindowGraph
    relations: Mapping[int, int]  # by number of an operator whose tuples are in the graph: its relation
    labels: Mapping[
        str, Sequence[LabelClass]
    ]  # by stream: what is in its batch, as `Batch.source` numbers it
    vertices: Vertices
    pool: LanePool
    mode: str
    paths: bool  # whether the answers are emitted with paths or proofs
    is_read: bool  # whether other operators read the output, here or in another stage
    proves: bool  # whether answers are this operator's tuples with their paths
    ahead: int  # how many more batches may be started before the first is finished

    def relations_of(self, numbers: Iterable[int]) -> list[int]:
        return [self.relations[number] for number in numbers]

    def pin(self, constant: str | int | None) -> list[int]:
        """The vertices that a constant of a query names: a number may be written as text in the stream."""
        if constant is None:
            return []
        spellings: list[str | int] = [constant]
        if isinstance(constant, int):
            spellings.append(str(constant))
        return [self.vertices.pin(spelling) for spelling in spellings]


class Operator(ABC):
    """An operator of a running dataflow, made from its physical node and a `Context`."""

    inputs: tuple[StreamInput | int, ...]
    """What it reads, each input once: streams by name, selections from them, operators by number."""

    store: Store
    """Where its state is."""

    @abstractmethod
    def start(self, inputs: Sequence[Batch], upto: int) -> Pending:
        """Start a batch: the changes of the inputs up to time `upto`, one batch per input."""

    @property
    def known_paths(self) -> KnownPaths | None:
        """The paths of the rows of the last output, as far as the operator knows them."""
        return None

    def bind(self) -> None:  # noqa: B027 - most operators have nothing to do
        """Use the arrays of the store, after they were restored."""

    def mark(self, horizon: int, live: Array) -> None:  # noqa: B027
        """Mark the vertices and values that the state refers to beyond those of valid edges in the graph."""

    @property
    def state_rows(self) -> int:
        """How many rows its state has."""
        return 0

    @property
    def choice(self) -> str:
        """For an operator that chooses how it works: what it has chosen, and why."""
        return ""

    @property
    def may_underreport_expiry(self) -> bool:
        """Whether its emitted records may understate how long an answer holds."""
        return False

    def backfill(self, on: bool, time: int) -> None:  # noqa: B027
        """Before (`on`) and after a replay, at `time`: emit the largest expiries from the start."""
