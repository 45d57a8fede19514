"""Columns of names: spans of one buffer of bytes, or codes into a dictionary of distinct names.

A name never becomes a Python object on its way through. Readers, sources and operators work on spans (`Text`).
Between processes names travel as a `CodedText`: each distinct name once per chunk, with its hash, and a number per
row, so that whoever receives a chunk interns its names and not its rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from meander.kernels.interning import encode_names, hash_names
from meander.kernels.jit import Array as Array
from meander.kernels.spans import gather_spans, wrapping

NO_CODE = -1


class Text(NamedTuple):
    """n names as spans of one buffer."""

    data: Array
    start: Array
    end: Array
    kind: Array

    @property
    def rows(self) -> int:
        return int(self.start.size)

    def take(self, chosen: Any) -> Text:
        """The rows that an index array, a mask or a slice selects; the bytes are not copied."""
        return Text(self.data, self.start[chosen], self.end[chosen], self.kind[chosen])

    def plain(self) -> Text:
        return self

    def hashes(self) -> Array:
        """The hash of each name."""
        hashes = np.empty(self.rows, np.uint64)
        with wrapping():
            hash_names(*self, hashes)
        return hashes

    def packed(self) -> tuple[Array, Array]:
        """The names' bytes without gaps, and the n + 1 offsets into them."""
        out = np.empty(int((self.end - self.start).sum()), np.uint8)
        offsets = np.empty(self.rows + 1, np.int64)
        gather_spans(self.data, self.start, self.end, out, offsets)
        return out, offsets

    def values(self) -> list[str | int]:
        """The names as Python objects."""
        data, offsets = self.packed()
        raw = data.tobytes()
        bounds = offsets.tolist()
        spans = zip(bounds, bounds[1:], self.kind.tolist(), strict=False)
        return [
            int.from_bytes(raw[start:end], "little", signed=True) if kind else raw[start:end].decode()
            for start, end, kind in spans
        ]


class Dictionary:
    """Names with their hashes, and the numbers that `numbered_by` has given them so far.

    One that was put together from others may have a name twice: it is not known to be `distinct`. The numbers count
    as long as what they were given by is the same object: a sweep replaces it.
    """

    __slots__ = ("distinct", "hashes", "numbered_by", "numbers", "text")

    def __init__(self, text: Text, hashes: Array, *, distinct: bool) -> None:
        self.text = text
        self.hashes = hashes
        self.distinct = distinct
        self.numbers: Array | None = None
        self.numbered_by: object = None


class CodedText(NamedTuple):
    """n names as codes into a dictionary."""

    dictionary: Dictionary
    code: Array

    @property
    def rows(self) -> int:
        return int(self.code.size)

    @property
    def data(self) -> Array:
        return self.dictionary.text.data

    @property
    def start(self) -> Array:
        return self.dictionary.text.start[self.code]

    @property
    def end(self) -> Array:
        return self.dictionary.text.end[self.code]

    @property
    def kind(self) -> Array:
        return self.dictionary.text.kind[self.code]

    def take(self, chosen: Any) -> CodedText:
        """The rows that an index array, a mask or a slice selects, over the same dictionary."""
        return CodedText(self.dictionary, self.code[chosen])

    def plain(self) -> Text:
        """The same names as spans, without a copy of their bytes."""
        return self.dictionary.text.take(self.code)

    def packed(self) -> tuple[Array, Array]:
        """The names' bytes without gaps, and the n + 1 offsets into them."""
        return self.plain().packed()

    def values(self) -> list[str | int]:
        """The names as Python objects."""
        return self.plain().values()

    def hashes(self) -> Array:
        """The hash of each name."""
        hashes: Array = self.dictionary.hashes[self.code]
        return hashes


Names = Text | CodedText
"""A column of names."""


def code_texts(columns: Sequence[Names]) -> list[CodedText]:
    """Columns of names as codes into one dictionary."""
    first = columns[0]
    if isinstance(first, CodedText):
        coded = [column for column in columns if isinstance(column, CodedText)]
        if len(coded) == len(columns) and all(column.dictionary is first.dictionary for column in coded):
            return coded
    whole = concat_texts([column.plain() for column in columns])
    hashes = whole.hashes()
    distinct, code = distinct_names(whole, hashes)
    dictionary = Dictionary(whole.take(distinct), hashes[distinct], distinct=True)
    bounds = np.cumsum([0] + [column.rows for column in columns])
    return [CodedText(dictionary, code[begin:end]) for begin, end in itertools.pairwise(bounds)]


def narrowed(columns: Sequence[CodedText]) -> list[CodedText]:
    """Columns over one dictionary, over a dictionary of no more than their own names."""
    dictionary = columns[0].dictionary
    used = np.zeros(dictionary.text.rows, np.bool_)
    for column in columns:
        used[column.code] = True
    if used.all():
        return list(columns)
    chosen = np.flatnonzero(used)
    code = np.empty(used.size, np.int32)
    code[chosen] = np.arange(chosen.size, dtype=np.int32)
    narrow = Dictionary(dictionary.text.take(chosen), dictionary.hashes[chosen], distinct=dictionary.distinct)
    return [CodedText(narrow, code[column.code]) for column in columns]


def deduplicated(columns: Sequence[CodedText]) -> list[CodedText]:
    """Columns over one dictionary, which may have a name twice, over a dictionary that has each once."""
    dictionary = columns[0].dictionary
    if dictionary.distinct:
        return list(columns)
    names, hashes = dictionary.text, dictionary.hashes
    distinct, code = distinct_names(names, hashes)
    once = Dictionary(names.take(distinct), hashes[distinct], distinct=True)
    return [CodedText(once, code[column.code]) for column in columns]


def distinct_names(text: Text, hashes: Array) -> tuple[Array, Array]:
    """The first row of each distinct name, and for each name the number of its equal among these."""
    code = np.empty(text.rows, np.int32)
    distinct = np.empty(text.rows, np.int32)
    slots = np.zeros(1 << (2 * text.rows + 1).bit_length(), np.int32)
    with wrapping():
        count = encode_names(*text, hashes, slots, code, distinct)
    return distinct[:count], code


def frozen(data: Array) -> Array:
    """A view of `data` that cannot be written through."""
    view = data.view()
    view.flags.writeable = False
    return view


def as_text(values: Iterable[str | int]) -> Text:
    """The names of Python strings and integers (of 64 bits)."""
    names = list(values)
    encoded = [
        name.encode() if isinstance(name, str) else int(name).to_bytes(8, "little", signed=True)
        for name in names
    ]
    offsets = np.zeros(len(names) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(names)), out=offsets[1:])
    kind = np.fromiter((not isinstance(name, str) for name in names), np.int8, len(names))
    return Text(frozen(np.frombuffer(b"".join(encoded), np.uint8)), offsets[:-1], offsets[1:], kind)


def integer_text(values: Array) -> Text:
    """The names of an int64 column, without a copy of it."""
    column = np.ascontiguousarray(values, dtype="<i8")
    start = np.arange(column.size, dtype=np.int64) * 8
    return Text(frozen(column.view(np.uint8)), start, start + 8, np.ones(column.size, np.int8))


def arrow_text(column: pa.Array) -> Text:
    """The names of an Arrow column of strings, without a copy of their bytes; a null is an empty name."""
    rows = len(column)
    if rows == 0:
        return as_text(())
    _, offsets_buffer, data_buffer = column.buffers()
    width = np.int32 if pa.types.is_string(column.type) else np.int64
    offsets = np.frombuffer(offsets_buffer, width)[column.offset : column.offset + rows + 1].astype(np.int64)
    data = np.empty(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    return Text(frozen(data), offsets[:-1], offsets[1:], np.zeros(rows, np.int8))


def empty_text() -> Text:
    return as_text(())


def nameless(rows: int) -> Text:
    """Empty names."""
    offsets = np.zeros(rows, np.int64)
    return Text(frozen(np.empty(0, np.uint8)), offsets, offsets, np.zeros(rows, np.int8))


def constant_text(name: str, rows: int) -> Text:
    """One and the same name in every row."""
    once = as_text([name])
    return Text(once.data, *(np.repeat(column, rows) for column in once[1:]))


def concat_texts(parts: Sequence[Text]) -> Text:
    """The rows of all parts, in order; parts of one and the same buffer stay in it."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return empty_text()
    kind = np.concatenate([part.kind for part in parts])
    first = parts[0].data
    if all(part.data is first for part in parts):
        return Text(
            first, np.concatenate([p.start for p in parts]), np.concatenate([p.end for p in parts]), kind
        )
    packed = [part.packed() for part in parts]
    base = np.cumsum([0] + [data.size for data, _ in packed])[:-1]
    start = np.concatenate([offsets[:-1] + shift for (_, offsets), shift in zip(packed, base, strict=True)])
    end = np.concatenate([offsets[1:] + shift for (_, offsets), shift in zip(packed, base, strict=True)])
    return Text(frozen(np.concatenate([data for data, _ in packed])), start, end, kind)


def concat_names(columns: Sequence[Sequence[Names]]) -> list[Names]:
    """Of some parts, each with the same columns, the rows of each column in order; coded if all parts are."""
    if len(columns) == 1:
        return list(columns[0])
    coded = [column for part in columns for column in part if isinstance(column, CodedText)]
    if len(coded) < sum(map(len, columns)):
        return [concat_texts([part[number].plain() for part in columns]) for number in range(len(columns[0]))]
    bases: dict[int, int] = {}
    dictionaries: list[Dictionary] = []
    size = 0
    for column in coded:
        if id(column.dictionary) not in bases:
            bases[id(column.dictionary)] = size
            dictionaries.append(column.dictionary)
            size += column.dictionary.text.rows
    merged = dictionaries[0]
    if len(dictionaries) > 1:
        merged = Dictionary(
            concat_texts([dictionary.text for dictionary in dictionaries]),
            np.concatenate([dictionary.hashes for dictionary in dictionaries]),
            distinct=False,
        )

    def code(column: Names) -> Array:
        assert isinstance(column, CodedText)
        base = bases[id(column.dictionary)]
        return column.code + np.int32(base) if base else column.code

    return [
        CodedText(merged, np.concatenate([code(part[number]) for part in columns]))
        for number in range(len(columns[0]))
    ]
