"""The table of answers in the arrays of a store: its growth, and what it drops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from meander.dataflow.state import Array, Store
from meander.kernels import answers as kernels
from meander.kernels.answers import ENTRIES, mark_answers
from meander.kernels.hashing import index_keys

LEAST_ANSWERS = 256


class AnswerTable:
    """Answers by key, each with its largest expiry and with what an operator adds as further columns."""

    def __init__(self, store: Store, arity: int) -> None:
        self.store = store
        capacity = store.first_capacity(LEAST_ANSWERS)
        self.columns = ["answers.key", "answers.exp"]
        store.array("answers.key", capacity, np.int32, width=arity)
        store.array("answers.exp", capacity, np.int64)
        store.array("answers.slots", 2 * capacity, np.int32, -1)
        store.array("answers.counts", 1, np.int64)
        self.bind()

    def add_column(self, name: str, dtype: type, width: int | None = None) -> None:
        """Another array of the store that has one row per entry, and grows with the table."""
        self.store.array(name, self.capacity, dtype, width=width)
        self.columns.append(name)

    @property
    def capacity(self) -> int:
        return int(self.answers.exp.size)

    @property
    def entries(self) -> int:
        return int(self.answers.counts[ENTRIES])

    def bind(self) -> None:
        fields = kernels.AnswerTable._fields
        self.answers = kernels.AnswerTable(*(self.store.arrays[f"answers.{column}"] for column in fields))

    def make_room(self, is_live: Callable[[], Array], more: int = 1) -> None:
        """Drop the entries that are not live; then there is room for `more`. If more than half of the entries stay,
        the table doubles anyway."""
        live = np.flatnonzero(is_live())
        for column in self.columns:
            array = self.store.arrays[column]
            array[: live.size] = array[live]
        self.answers.counts[ENTRIES] = live.size
        if live.size > self.capacity // 2 or live.size + more > self.capacity:
            capacity = 1 << (max(2 * self.capacity, live.size + more) - 1).bit_length()
            for column in self.columns:
                self.store.grow(column, capacity)
            self.store.array("answers.slots", 2 * capacity, np.int32, -1)
            self.bind()
        index_keys(self.answers.slots, self.answers.key, live.size)

    def outlasts(self, time: int) -> Array:
        """By entry: whether it is valid after `time`."""
        valid: Array = self.answers.exp[: self.entries] > time
        return valid

    def mark(self, horizon: int, live: Array) -> None:
        mark_answers(self.answers, horizon, live)
