"""Predicates over columns: which rows satisfy one, decided for all rows at once.

The columns are those of edges as they were read (`EdgeColumns`), so that an edge that nobody wants is never interned,
or those of a batch, whose keys are interned numbers (`BatchColumns`). Truth has three values: a row is in `true`, in
`false`, or in neither of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from meander.dataflow.batch import Batch
from meander.dataflow.edges import CodedText, Edges, Text, as_text, nameless
from meander.dataflow.labels import LabelIndex
from meander.dataflow.state import Array
from meander.dataflow.value_names import float_of, missing_rows, numbers_of, text_of
from meander.dataflow.vertices import Vertices
from meander.kernels.batch import SRC as SRC_COLUMN
from meander.kernels.batch import TRG as TRG_COLUMN
from meander.kernels.spans import order_spans
from meander.syntax.values import (
    LABEL,
    SRC,
    TIME_PROPERTY,
    TRG,
    And,
    Arithmetic,
    Comparison,
    Const,
    Membership,
    Not,
    Or,
    Predicate,
    Ref,
    Scalar,
    ValueType,
    refs,
)

COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

LEAST_INT, MOST_INT = -(2**63), 2**63 - 1

NAMES = frozenset({ValueType.VERTEX, ValueType.STRING, ValueType.PATH})
"""The types whose values are names: spans of bytes, or interned numbers."""


class Truth(NamedTuple):
    true: Array
    false: Array


@dataclass(frozen=True, slots=True)
class Numbers:
    """INT, TIME, FLOAT or BOOL values, of every row or, without dimensions, the same for all rows."""

    values: Array
    missing: Array | None = None


@dataclass(frozen=True, slots=True)
class Names:
    """Strings or vertices by row. Those of a batch have numbers; a dictionary of them has a `code` for each row."""

    spans: Callable[[], Text]
    missing: Array | None = None
    numbers: Array | None = None
    code: Array | None = None


@dataclass(frozen=True, slots=True)
class Spellings:
    """A constant name: one string, or a vertex in each way in which a stream may write it."""

    text: Text
    numbers: Array | None = None


Operand = Numbers | Names | Spellings


class Columns(Protocol):
    """Where the values of a predicate's references are."""

    @property
    def rows(self) -> int: ...

    def column(self, ref: Ref) -> Numbers | Names:
        """The values of a reference."""

    def constant(self, const: Const) -> Spellings:
        """A string or a vertex of the query."""


class EdgeColumns:
    """Edges as they were read: all of them, or the `chosen` rows; what a predicate does not read is not copied."""

    def __init__(self, edges: Edges, chosen: Array | None = None) -> None:
        self.edges = edges
        self.chosen = chosen
        self.rows = edges.rows if chosen is None else int(chosen.size)

    def column(self, ref: Ref) -> Numbers | Names:
        if ref.name in (SRC, TRG):
            text: Text | CodedText = getattr(self.edges, str(ref.name))
            if isinstance(text, CodedText):
                code = text.code if self.chosen is None else text.code[self.chosen]
                return Names(lambda: text.dictionary.text, code=code)
            return Names(lambda: text if self.chosen is None else text.take(self.chosen))
        if ref.name == TIME_PROPERTY:
            return Numbers(self.edges.ts if self.chosen is None else self.edges.ts[self.chosen])
        column = property_of(self.edges, str(ref.name), self.chosen)
        if column is None:
            missing = np.ones(self.rows, np.bool_)
            if ref.type in NAMES:
                return Names(lambda: nameless(self.rows), missing)
            return Numbers(np.zeros(self.rows, np.int64), missing)
        nulls = missing_rows(column)
        if pa.types.is_dictionary(column.type):
            code = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
            return Names(lambda: text_of(column.dictionary), nulls, code=code)
        if pa.types.is_large_string(column.type) or pa.types.is_string(column.type):
            return Names(lambda: text_of(column), nulls)
        values = float_of(column) if ref.type is ValueType.FLOAT else numbers_of(column)
        return Numbers(values, nulls)

    def constant(self, const: Const) -> Spellings:
        return Spellings(as_text(spellings(const)))


def property_of(edges: Edges, name: str, chosen: Array | None) -> pa.Array | None:
    """A property of the edges, or of the chosen rows; None if none of them has it. The label is one of all edges."""
    if name == LABEL:
        label = edges.label if chosen is None else edges.label.take(chosen)
        data, offsets = label.packed()
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_string(), label.rows, buffers)
    column = (edges.properties or {}).get(name)
    return column if column is None or chosen is None else column.take(pa.array(chosen))


class BatchColumns:
    """The key columns of a batch: `src`, `trg`, or any by its number."""

    def __init__(self, batch: Batch, vertices: Vertices, constants: Mapping[Const, Array]) -> None:
        self.batch, self.vertices, self.constants = batch, vertices, constants
        self.rows = int(batch.ts.size)

    def column(self, ref: Ref) -> Numbers | Names:
        ends = {SRC: SRC_COLUMN, TRG: TRG_COLUMN}
        position = ref.name if isinstance(ref.name, int) else ends[ref.name]
        numbers = self.batch.key[:, position]
        if ref.type is None or ref.type in NAMES:
            return Names(lambda: self.vertices.text(numbers), numbers=numbers)
        values = self.vertices.values(numbers, ref.type)
        assert not isinstance(values, Text)
        return Numbers(values)

    def constant(self, const: Const) -> Spellings:
        return Spellings(as_text(spellings(const)), self.constants[const])


def spellings(const: Const) -> list[str | int]:
    """A constant name as a stream may write it: a vertex by a number also as the digits."""
    value = const.value
    if const.type is ValueType.VERTEX and isinstance(value, int):
        return [value, str(value)]
    assert isinstance(value, str)
    return [value]


def constants_of(node: Predicate | Scalar) -> Iterator[Const]:
    """The constants of a predicate, as often as they occur."""
    match node:
        case Const():
            yield node
        case Membership(operand, values):
            yield from constants_of(operand)
            yield from values
        case And(parts) | Or(parts):
            for part in parts:
                yield from constants_of(part)
        case Not(part):
            yield from constants_of(part)
        case Arithmetic(_, left, right) | Comparison(_, left, right):
            yield from constants_of(left)
            yield from constants_of(right)


def reads_ends_only(predicate: Predicate | None) -> bool:
    """Whether a predicate compares nothing but the end points of a tuple."""
    return all(ref.name in (SRC, TRG) for ref in refs(predicate))


# ---------------------------------------------------------------------------------------------------------
# Evaluation


def satisfying(predicate: Predicate, columns: Columns) -> Array:
    """The rows on which a predicate is true, as a mask."""
    with np.errstate(all="ignore"):
        true = _truth(predicate, columns).true
    return np.ascontiguousarray(np.broadcast_to(true, columns.rows))


def _truth(predicate: Predicate, columns: Columns) -> Truth:
    match predicate:
        case Comparison(op, left, right):
            return _compare(op, _operand(left, columns), _operand(right, columns))
        case Membership(operand, values):
            return _is_member(_operand(operand, columns), values, columns)
        case And(parts):
            truths = [_truth(part, columns) for part in parts]
            return Truth(_all(truth.true for truth in truths), _any(truth.false for truth in truths))
        case Or(parts):
            truths = [_truth(part, columns) for part in parts]
            return Truth(_any(truth.true for truth in truths), _all(truth.false for truth in truths))
        case Not(part):
            truth = _truth(part, columns)
            return Truth(truth.false, truth.true)


def _all(masks: Iterable[Array]) -> Array:
    return reduce(operator.and_, masks)


def _any(masks: Iterable[Array]) -> Array:
    return reduce(operator.or_, masks)


def _decided(result: Any, *missing: Array | None) -> Truth:
    """The truth of a comparison whose result counts where no value is missing."""
    true = np.asarray(result, np.bool_)
    unknown = [mask for mask in missing if mask is not None]
    if not unknown:
        return Truth(true, ~true)
    known = ~_any(unknown)
    return Truth(true & known, ~true & known)


def _operand(scalar: Scalar, columns: Columns) -> Operand:
    match scalar:
        case Ref():
            return columns.column(scalar)
        case Const(value, kind) if kind in NAMES:
            return columns.constant(scalar)
        case Const(value, kind):
            return Numbers(np.asarray(float(value) if kind is ValueType.FLOAT else value))
        case Arithmetic(op, left, right):
            first, second = _operand(left, columns), _operand(right, columns)
            assert isinstance(first, Numbers)
            assert isinstance(second, Numbers)
            return _calculate(op, first, second)


def _compare(op: str, left: Operand, right: Operand) -> Truth:
    match left, right:
        case Numbers(), Numbers():
            return _decided(COMPARE[op](left.values, right.values), left.missing, right.missing)
        case Spellings(), Names():
            return _compare({"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op), right, left)
        case Names(), Spellings():
            return _decided(_by_code(left, _compare_constant(op, left, right)), left.missing)
        case Names(), Names():
            return _decided(_compare_names(op, left, right), left.missing, right.missing)
        case Spellings(), Spellings():
            return _decided(COMPARE[op](left.text.values()[0], right.text.values()[0]))
        case _:
            raise TypeError("a number is compared with a name")


def _by_code(names: Names, of_span: Array) -> Array:
    """What is known of each span, for each row."""
    return of_span if names.code is None else of_span[names.code]


def _compare_constant(op: str, names: Names, constant: Spellings) -> Array:
    """The comparison of each span with a constant."""
    if op in ("=", "!="):
        if names.numbers is not None and constant.numbers is not None:
            equal = _any(names.numbers == number for number in constant.numbers)
        else:
            text = names.spans()
            count = constant.text.rows
            equal = _any(_equal(text, constant.text.take(slice(i, i + 1))) for i in range(count))
        return equal if op == "=" else ~equal
    result: Array = COMPARE[op](_order(names.spans(), constant.text), 0)
    return result


def _compare_names(op: str, left: Names, right: Names) -> Array:
    if op in ("=", "!=") and left.numbers is not None and right.numbers is not None:
        result: Array = COMPARE[op](left.numbers, right.numbers)
        return result
    first, second = (
        names.spans() if names.code is None else names.spans().take(names.code) for names in (left, right)
    )
    if op in ("=", "!="):
        equal = _equal(first, second)
        return equal if op == "=" else ~equal
    result = COMPARE[op](_order(first, second), 0)
    return result


def _order(left: Text, right: Text) -> Array:
    """The order of the names by their bytes: negative, zero or positive."""
    out = np.zeros(left.rows, np.int8)
    if out.size:
        order_spans(left.data, left.start, left.end, right.data, right.start, right.end, out)
    return out


def _equal(left: Text, right: Text) -> Array:
    equal: Array = (_order(left, right) == 0) & (left.kind == right.kind)
    return equal


def _is_member(operand: Operand, values: tuple[Const, ...], columns: Columns) -> Truth:
    if not values:
        missing = None if isinstance(operand, Spellings) else operand.missing
        return _decided(np.zeros(columns.rows, np.bool_), missing)
    if isinstance(operand, Numbers) and len({const.type for const in values}) == 1:
        wanted = np.array([const.value for const in values])
        if wanted.dtype == operand.values.dtype:
            return _decided(np.isin(operand.values, wanted), operand.missing)
    if isinstance(operand, Names) and values[0].type is ValueType.STRING:
        if operand.numbers is not None:
            constants = [columns.constant(const).numbers for const in values]
            numbers = np.concatenate([number for number in constants if number is not None])
            return _decided(np.isin(operand.numbers, numbers), operand.missing)
        matches = LabelIndex([str(const.value) for const in values]).match(operand.spans()) >= 0
        return _decided(_by_code(operand, matches), operand.missing)
    truths = [_compare("=", operand, _operand(const, columns)) for const in values]
    return Truth(_any(truth.true for truth in truths), _all(truth.false for truth in truths))


# ---------------------------------------------------------------------------------------------------------
# Arithmetic


def _calculate(op: str, left: Numbers, right: Numbers) -> Numbers:
    """Arithmetic in which a result that does not exist is missing."""
    first, second = left.values, right.values
    if op == "/":
        first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
        result = np.asarray(first / second)
        bad = np.isnan(result) | (second == 0)
    elif first.dtype == np.float64 or second.dtype == np.float64:
        result = np.asarray(_ARITHMETIC[op](first, second))
        bad = np.isnan(result)
    else:
        result = np.asarray(_ARITHMETIC[op](first, second))
        bad = np.asarray(_overflows(op, first, second, result))
    masks = [mask for mask in (left.missing, right.missing, bad if bad.any() else None) if mask is not None]
    return Numbers(result, _any(masks) if masks else None)


_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


def _overflows(op: str, left: Array, right: Array, result: Array) -> Any:
    """Where a result of 64 bits that wrapped around is not the sum, difference or product."""
    if op == "+":
        return ((left ^ result) & (right ^ result)) < 0
    if op == "-":
        return ((left ^ right) & (left ^ result)) < 0
    if _largest(left) * _largest(right) <= MOST_INT:
        return np.zeros(result.shape, np.bool_)
    # The quotient of a wrapped product is the other factor only if nothing was lost; -1 has no quotient of the least.
    quotient = result // np.where((left == 0) | (left == -1), 1, left)
    least = (left == -1) & (right == LEAST_INT)
    return np.where((left == 0) | (left == -1), least, quotient != right)


def _largest(values: Array) -> int:
    """The largest absolute value."""
    return max(abs(int(values.min(initial=0))), abs(int(values.max(initial=0))))
