"""The one place where compiled kernels get their settings.

Kernels are compiled on first use and kept beside the sources (or where Numba can write); they release the
GIL and never check bounds. With `NUMBA_DISABLE_JIT=1` they run as plain Python with the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np

Array = np.ndarray[Any, Any]
F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function`, once and for all later processes."""
    compiled: F = numba.njit(cache=True, nogil=True)(function)
    return compiled
