"""Tables whose columns have names: NumPy record arrays that kernels read as `table[row].column`.

A table is declared as a class with one annotated field per column:

    class Move(Record):
        source: Int32
        target: Int32

    moves = np.zeros(10, layout(Move))
    moves[3].target = 7

The same text runs compiled and as plain Python: Numba knows record arrays, and in plain Python `moves[3]` is a
`Move`. A table is one argument of a kernel, however many columns it has, and a single record (a set of counters, say)
is one pointer. That is why wide tables are records and not one array per column: an array is seven words, each kernel
takes and passes all words of its tables, and compilation time grows with them (figures: docs/notes/closure.md).
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, get_type_hints, overload

import numpy as np

from meander.kernels.jit import Array

Int32 = Annotated[int, np.int32]
Int64 = Annotated[int, np.int64]

if TYPE_CHECKING:
    # NumPy's stubs call the classes of scalars final, but at run time they are not: `np.record` is such a subclass.
    _Scalar = object
else:
    _Scalar = np.void


class Record(_Scalar):
    """One row of a table; a view, so that assigning to a field changes the table."""

    def __init_subclass__(cls) -> None:
        for name in cls.__annotations__:
            if hasattr(np.void, name):
                raise TypeError(f"a NumPy scalar has an attribute {name!r} already")
            setattr(cls, name, property(itemgetter(name), _setter(name)))


def _setter(name: str) -> Any:
    def set_field(record: Any, value: Any) -> None:
        record[name] = value

    return set_field


R = TypeVar("R", bound=Record)


class Table(Generic[R]):
    """How mypy sees an array of records. At run time it is a plain array with the dtype `layout(R)`."""

    size: int

    @overload
    def __getitem__(self, row: str) -> Array: ...
    @overload
    def __getitem__(self, row: Any) -> R: ...
    def __getitem__(self, row: Any) -> Any:
        raise NotImplementedError


def layout(record: type[Record]) -> np.dtype[Any]:
    """The dtype of a table: the fields of `record` in their order, each aligned as in a C struct."""
    hints = get_type_hints(record, include_extras=True)
    fields = [(name, hints[name].__metadata__[0]) for name in record.__annotations__]
    return np.dtype((record, np.dtype(fields, align=True)))
