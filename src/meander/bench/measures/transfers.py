"""A generated stream of transfers: accounts with skewed degrees, amounts, and times within two days."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv

Array = np.ndarray[Any, Any]

HOUR = 3_600
SPAN = 48 * HOUR
START = 20_000 * 24 * HOUR
SKEW = 1.4
"""How much more often accounts of low numbers have a transfer: 1 for equally often."""


class Transfers(NamedTuple):
    """Transfers in order of time."""

    src: Array
    trg: Array
    amount: Array
    ts: Array

    @property
    def edges(self) -> int:
        return int(self.ts.size)

    def before(self, time: int) -> Transfers:
        """The transfers before a time."""
        return Transfers(*(column[: np.searchsorted(self.ts, time)] for column in self))

    def write(self, path: Path, *, extra_columns: int = 0) -> None:
        """A `.csv` file with a header; extra columns have text that nothing reads."""
        rows = np.arange(self.edges)
        columns: dict[str, Any] = {
            "src": self.src,
            "label": pa.repeat("transfer", self.edges),
            "trg": self.trg,
            "ts": self.ts,
            "amount": self.amount,
        }
        for number in range(extra_columns):
            columns[f"extra{number}"] = pa.array(rows * (number + 3) % 9_973).cast(pa.string())
        csv.write_csv(pa.table(columns), path, csv.WriteOptions(quoting_style="none"))


def make_transfers(count: int, accounts: int, *, span: int = SPAN, seed: int = 7) -> Transfers:
    """Always the same transfers: few accounts have many of them, most amounts are small."""
    random = np.random.default_rng(seed)
    src, trg = ((accounts * random.random(count) ** SKEW).astype(np.int64) for _ in range(2))
    trg = np.where(src == trg, (trg + 1) % accounts, trg)
    amount = np.round(random.lognormal(4.0, 1.2, count), 2)
    return Transfers(src, trg, amount, np.sort(random.integers(START, START + span, count)))
