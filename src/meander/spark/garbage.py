"""Garbage collection in the Python workers of Spark."""

from __future__ import annotations

import gc


def settle_worker() -> None:
    """Exempt everything loaded so far from garbage collection, once per process.

    Spark has its workers collect garbage after every task. With compiled kernels loaded that visits a million
    objects, none of them garbage, and takes as long as many a batch.
    """
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
