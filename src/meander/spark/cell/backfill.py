"""Backfill: the records that a rebuild emits again.

State that is rebuilt from the window knows which answers were emitted before, as a rule: each answer until its
largest expiry, which follows from the window alone. So the records of the replay are dropped. Two kinds of result
need re-emission. A result of a query that was not answered before gets the answers that hold at the time reached (in
`changes` mode with paths that hold then, not when the answer started). And if a plan looks for longer paths only when
the path that it has expires, an answer may hold for longer than its records say; its record until the largest expiry
is emitted, from the next instant on, so that no record is emitted twice. To another stage such tuples are sent at
once: it takes the largest expiry of all that it receives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from meander.dataflow.answers import NO_EXPIRY, Answers, Paths, take_answers
from meander.dataflow.dataflow import Dataflow
from meander.dataflow.edges import INFINITY, Edges
from meander.dataflow.proofs.texts import with_start
from meander.dataflow.value_names import list_values
from meander.physical.plan import Result
from meander.spark.cell.manifest import CellManifest

Records = tuple[Result, Answers]


def replay(dataflow: Dataflow, parts: Iterable[Mapping[str, Edges]], manifest: CellManifest) -> list[Records]:
    """Replay the input up to the manifest's time; returns the records to emit again."""
    # A snapshot of this plan is of a time at which all its results had been added.
    if dataflow.time < 0:
        parts = _with_added(dataflow, parts, manifest)
    records = _records_to_reemit(dataflow.replay(parts, manifest.time), manifest, dataflow.mode)
    if dataflow.mode == "changes":
        new = [result for result in dataflow.plan.results if _is_new(result, manifest)]
        records += dataflow.restart(new)
        manifest.record_added(new)
    return records


def _with_added(
    dataflow: Dataflow, parts: Iterable[Mapping[str, Edges]], manifest: CellManifest
) -> Iterator[Mapping[str, Edges]]:
    """The parts of a replay; results that were added between two parts start there."""
    for number, part in enumerate(parts):
        added = {(query, head) for query, head, before in manifest.added if before == number}
        dataflow.restart([result for result in dataflow.plan.results if (result.query, result.head) in added])
        yield part


def _records_to_reemit(replayed: Iterable[Records], manifest: CellManifest, mode: str) -> list[Records]:
    """The records to emit again, of all the records of a replay up to the manifest's time."""
    longest: dict[tuple[str, str], LongestRecords] = {}
    for result, answers in replayed:
        begin = _reemit_from(result, manifest, mode)
        if begin is not None:
            key = result.query, result.head
            longest.setdefault(key, LongestRecords(result, begin)).add(answers)
    return [records for of_result in longest.values() for records in of_result.records()]


def _reemit_from(result: Result, manifest: CellManifest, mode: str) -> int | None:
    """The time from which on a result's answers are emitted again, or None."""
    new, underreported = _is_new(result, manifest), manifest.may_underreport_expiry
    if result.raw:
        return manifest.time if underreported or new else None
    if mode == "changes":
        return None
    return manifest.time if new else manifest.time + 1 if underreported else None


def _is_new(result: Result, manifest: CellManifest) -> bool:
    """Whether no record of a result has been emitted yet."""
    return (result.query, result.head) not in manifest.results


class LongestRecords:
    """The answers of one result that hold after all records added so far, each with its longest record."""

    def __init__(self, result: Result, begin: int) -> None:
        self.result = result
        self.begin = begin
        self._chunks: list[Answers] = []
        self._longest: dict[tuple[object, ...], tuple[int, int, int]] = {}  # expiry, chunk, row

    def add(self, answers: Answers) -> None:
        columns: list[list[Any]] = [text.values() for text in answers.vertices]
        # Paths prove an answer, and do not tell it from another.
        columns += [
            list_values(column) for column in answers.properties if not isinstance(column.values, Paths)
        ]
        keys = zip(*columns, strict=True) if columns else [()] * answers.rows
        chunk = len(self._chunks)
        self._chunks.append(answers)
        # A retraction has no expiry; an answer without one never expires.
        endless = (answers.exp == NO_EXPIRY) & (answers.op > 0)
        expiries = np.where(endless, INFINITY, answers.exp)
        times = zip(keys, answers.ts.tolist(), expiries.tolist(), answers.op.tolist(), strict=True)
        for row, (key, ts, exp, op) in enumerate(times):
            if op < 0:
                # A tuple for another stage may be shortened, and not ended.
                self._longest.pop(key, None)
                if exp > ts:
                    self._longest[key] = exp, chunk, row
            elif key not in self._longest or exp > self._longest[key][0]:
                self._longest[key] = exp, chunk, row

    def records(self) -> Iterator[Records]:
        masks = [np.zeros(answers.rows, np.bool_) for answers in self._chunks]
        for exp, chunk, row in self._longest.values():
            masks[chunk][row] = exp > self.begin
        for answers, mask in zip(self._chunks, masks, strict=True):
            if mask.any():
                chosen = take_answers(answers, mask)
                begin = np.full(chosen.rows, self.begin, np.int64)
                proof = None if chosen.proof is None else with_start(chosen.proof, self.begin)
                ones = np.ones(chosen.rows, np.int8)
                yield self.result, chosen._replace(ts=begin, op=ones, proof=proof)
