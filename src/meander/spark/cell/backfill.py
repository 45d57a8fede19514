"""What a rebuild hands out again.

State that is made again from the window has known all along what was handed out before, as a rule: each answer until
its largest expiry, which follows from the window alone. So the records of the replay are dropped. Two results are
owed some of them. One of a query that was not answered before gets what holds at the time reached (in `changes` mode
with paths that hold then, not when the answer started). And where a plan looks for longer paths only when the one it
has expires, an answer may hold for longer than its records say; its record until the largest expiry is handed out,
from the next instant on, so that no record is there twice. To another stage its tuples are told at once: it takes the
largest expiry of all that it hears.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from meander.dataflow.answers import Answers, take_answers
from meander.dataflow.dataflow import Dataflow
from meander.dataflow.edges import Edges
from meander.physical.plan import Result
from meander.spark.cell.instants import note_added
from meander.spark.cell.manifest import Head

Records = tuple[Result, Answers]


def rebuilt(dataflow: Dataflow, parts: Iterable[Mapping[str, Edges]], head: Head) -> list[Records]:
    """Replay what was processed up to the head's time; the records that are to be emitted again."""
    # A snapshot of this plan is of a time at which all its results had been added.
    if dataflow.time < 0:
        parts = with_added(dataflow, parts, head)
    records = retold(dataflow.replay(parts, head.time), head, dataflow.mode)
    if dataflow.mode == "changes":
        new = [one for one in dataflow.plan.results if is_new(one, head)]
        records += dataflow.restart(new)
        note_added(head, new)
    return records


def with_added(
    dataflow: Dataflow, parts: Iterable[Mapping[str, Edges]], head: Head
) -> Iterator[Mapping[str, Edges]]:
    """The parts of a replay; between them the results start that were added there."""
    for number, part in enumerate(parts):
        dataflow.restart(
            [one for one in dataflow.plan.results if (one.query, one.head, number) in head.added]
        )
        yield part


def retold(replayed: Iterable[Records], head: Head, mode: str) -> list[Records]:
    """Those of the records of a replay up to the head's time that are to be handed out; takes all of them."""
    holding: dict[tuple[str, str], Holding] = {}
    for result, answers in replayed:
        begin = _begin(result, head, mode)
        if begin is not None:
            one = holding.setdefault((result.query, result.head), Holding(result, begin))
            one.take(answers)
    return [records for one in holding.values() for records in one.records()]


def _begin(result: Result, head: Head, mode: str) -> int | None:
    """From when on a result's answers are handed out again, or None."""
    if result.raw:
        return head.time if head.tells_late or is_new(result, head) else None
    if mode == "changes":
        return None
    return head.time if is_new(result, head) else head.time + 1 if head.tells_late else None


def is_new(result: Result, head: Head) -> bool:
    """Whether nothing has been emitted of a result yet."""
    return [result.query, result.head] not in head.results


class Holding:
    """The answers of one result that hold after all records taken so far, each with its longest record."""

    def __init__(self, result: Result, begin: int) -> None:
        self.result = result
        self.begin = begin
        self._chunks: list[Answers] = []
        self._longest: dict[tuple[str | int, ...], tuple[int, int, int]] = {}

    def take(self, answers: Answers) -> None:
        columns = [text.values() for text in answers.vertices]
        keys = zip(*columns, strict=True) if columns else [()] * answers.rows
        chunk = len(self._chunks)
        self._chunks.append(answers)
        times = zip(keys, answers.ts.tolist(), answers.exp.tolist(), answers.op.tolist(), strict=True)
        for row, (key, ts, exp, op) in enumerate(times):
            if op < 0:
                # What is handed to another stage may be shortened, and not ended.
                self._longest.pop(key, None)
                if exp > ts:
                    self._longest[key] = exp, chunk, row
            elif key not in self._longest or exp > self._longest[key][0]:
                self._longest[key] = exp, chunk, row

    def records(self) -> Iterable[Records]:
        masks = [np.zeros(answers.rows, np.bool_) for answers in self._chunks]
        for exp, chunk, row in self._longest.values():
            masks[chunk][row] = exp > self.begin
        for answers, mask in zip(self._chunks, masks, strict=True):
            if mask.any():
                chosen = take_answers(answers, mask)
                begin = np.full(chosen.rows, self.begin, np.int64)
                yield self.result, chosen._replace(ts=begin, op=np.ones(chosen.rows, np.int8))
