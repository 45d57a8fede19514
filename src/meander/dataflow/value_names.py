"""Columns of values: Arrow's arrays as NumPy's, and the names under which values are interned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from meander.dataflow.answers import Paths, ValueColumn, as_column
from meander.dataflow.edges import ARROW_TYPES, BOOL, FLOAT, Text, arrow_text, frozen, integer_text
from meander.dataflow.path_texts import path_column
from meander.dataflow.state import Array


def missing_rows(column: pa.Array) -> Array | None:
    """A mask of the nulls, or None if there is none."""
    if column.null_count == 0:
        return None
    mask: Array = column.is_null().to_numpy(zero_copy_only=False)
    return mask


def numbers_of(column: pa.Array) -> Array:
    """An int64, float64 or bool column as an array; a null is 0."""
    if column.null_count:
        column = column.fill_null(False if pa.types.is_boolean(column.type) else 0)
    values: Array = column.to_numpy(zero_copy_only=False)
    return values


def float_of(column: pa.Array) -> Array:
    """A column of numbers as float64."""
    return numbers_of(column).astype(np.float64, copy=False)


def text_of(column: pa.Array) -> Text:
    """The names of a column of strings, perhaps a dictionary; a null is the empty name."""
    return arrow_text(column.cast(pa.large_string()))


def float_text(values: Array) -> Text:
    """The names of a float64 column: its bits, with -0.0 as 0.0."""
    return integer_text((values + 0.0).view(np.int64))._replace(kind=np.full(values.size, FLOAT, np.int8))


BOOL_NAMES = Text(
    frozen(np.array([0, 1], np.uint8)),
    np.array([0, 1], np.int64),
    np.array([1, 2], np.int64),
    np.full(2, BOOL, np.int8),
)
"""The names of False and True."""


def list_values(column: ValueColumn) -> list[Any]:
    """A value of some answers, other than a path, as Python objects."""
    assert not isinstance(column.values, Paths)
    values = column.values.values() if isinstance(column.values, Text) else column.values.tolist()
    return list(values)


def value_array(column: ValueColumn) -> pa.Array:
    """A value of some answers as the column of properties that another stage reads."""
    if isinstance(column.values, Paths):
        return path_column(column.values)
    if isinstance(column.values, Text):
        return as_column(column.values)
    return pa.array(column.values, ARROW_TYPES[column.type])
