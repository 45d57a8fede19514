"""The settings of compiled kernels.

Kernels are compiled on first use and kept in the user's cache folder (or `NUMBA_CACHE_DIR`). Numba looks only at
the file of a kernel when it decides whether what it kept is still right, but kernels call kernels of other
files: so the folder is named after the text of all of them. Kernels release the GIL and do not check bounds.
With `NUMBA_DISABLE_JIT=1` they run as plain Python with the same result.

Numba takes a negative index from the end, as Python does, and so tests every index. One that is `unsigned` is not
tested: the loops over all answers and all edges take a fourth less time with these, and some take half.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys
from numba.extending import intrinsic, overload

Array = np.ndarray[Any, Any]
F = TypeVar("F", bound=Callable[..., Any])
unsigned: Any = np.uint64


def _cache_folder() -> str:
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(source.read_bytes())
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return str(Path(home) / "meander" / "kernels" / digest.hexdigest()[:16])


_config: Any = numba.config
if not _config.CACHE_DIR:
    _config.CACHE_DIR = _cache_folder()


_SETTINGS: dict[str, Any] = {"nogil": True, "_nrt": False}


class KernelCache(FunctionCache):
    """Numba's cache, which loads a compiled kernel in a fraction of the time.

    Before it looks for a kernel, Numba imports the implementations of all of Python and NumPy that can be compiled
    (0.35 s in every process). A kernel that is loaded needs Numba's runtime only; one that is not found is compiled,
    and the compiler imports the rest by itself.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]


def _compile(function: F, **settings: Any) -> F:
    compiled: Any = numba.njit(**_SETTINGS, **settings)(function)
    if not _config.DISABLE_JIT:
        compiled._cache = KernelCache(function)  # type: ignore[no-untyped-call]
    return cast(F, compiled)


def kernel(function: F) -> F:
    """Compile `function`, once and for all later processes.

    Kernels never allocate, so they need no reference counts: without them a kernel that takes a table as a
    NamedTuple of columns runs several times faster.
    """
    return _compile(function)


def inner_kernel(function: F) -> F:
    """A kernel that becomes part of the kernels that call it.

    A call hands on each column of each table, some hundred words: too much for what is called once a row.
    """
    return _compile(function, forceinline=True)


def lowest_bit(word: Any) -> int:
    """Which bit of a word that is not zero is its lowest: one instruction, where it is compiled."""
    return (int(word) & -int(word)).bit_length() - 1


def _count_zeros(_context: Any, _word: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, 1))

    return types.int64(types.uint64), generate


_trailing_zeros: Any = intrinsic(_count_zeros)


@overload(lowest_bit)
def _lowest_bit(word: Any) -> Any:
    def compiled(word: Any) -> Any:
        return _trailing_zeros(word)

    return compiled


def prefetch(column: Array, row: Any) -> None:
    """Fetch a row that is read soon into the processor's caches, where it is compiled.

    A loop over a table that no cache holds waits for one row after the other; this way it waits for several at once.
    The row must be one of the column's.
    """


def _fetch_row(_context: Any, _column: Any, _row: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        column = context.make_array(signature.args[0])(context, builder, value=arguments[0])
        offset = builder.mul(arguments[1], builder.extract_value(column.strides, 0))
        data = builder.bitcast(column.data, ir.IntType(8).as_pointer())
        flag = ir.IntType(32)
        fetch = builder.module.declare_intrinsic(
            "llvm.prefetch", (data.type,), ir.FunctionType(ir.VoidType(), [data.type, flag, flag, flag])
        )
        # To be read, kept in all caches, and data rather than instructions.
        builder.call(fetch, [builder.gep(data, [offset]), flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(_column, types.int64), generate


_fetch: Any = intrinsic(_fetch_row)


@overload(prefetch)
def _prefetch(column: Array, row: Any) -> Any:
    def compiled(column: Array, row: Any) -> None:
        _fetch(column, row)

    return compiled
