"""What a Python worker of Spark's does for itself between batches."""

from __future__ import annotations

import gc

_settled = False


def settle_worker() -> None:
    """Take what has been loaded so far out of the garbage collector's sight, once.

    Spark has its workers collect garbage after every task. With compiled kernels loaded that looks at a million
    objects, none of them garbage, and takes as long as many a batch.
    """
    global _settled
    if not _settled:
        gc.collect()
        gc.freeze()
        _settled = True
