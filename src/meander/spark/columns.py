"""Arrays and a few plain fields as one string of bytes, and edges over dictionaries of names in that form.

This is how edges travel to cells and lie in their stores: each distinct name of a chunk once, with its hash, and
codes for the rows. Written and read without an object per row, and without the cost of an Arrow schema per chunk, of
which a small batch has as many as a large one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from meander.dataflow.edges import (
    Array,
    CodedText,
    Dictionary,
    Edges,
    Origin,
    Text,
    code_texts,
    frozen,
    nameless,
)
from meander.dataflow.property_columns import pack_columns, unpack_columns
from meander.dataflow.texts import deduplicated, narrowed

PLAIN, COMPRESSED = b"MEANDER0", b"MEANDER1"
"""The first bytes of what is packed here."""

PADDING = [bytes(count) for count in range(8)]


def pack(fields: Mapping[str, Any], arrays: Mapping[str, Array], *, compressed: bool = False) -> bytes:
    """Fields that JSON can hold, and arrays of one dimension."""
    index = [[name, array.dtype.str, int(array.size)] for name, array in arrays.items()]
    head = json.dumps([fields, index]).encode()
    parts: list[bytes] = [len(head).to_bytes(8, "little"), head, PADDING[-len(head) % 8]]
    for array in arrays.values():
        parts += [array.tobytes(), PADDING[-array.nbytes % 8]]
    content = b"".join(parts)
    if not compressed:
        return PLAIN + content
    small: bytes = pa.compress(content, "lz4", asbytes=True)
    return COMPRESSED + len(content).to_bytes(8, "little") + small


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """The fields and the arrays, which may be written to."""
    if data[:8] == COMPRESSED:
        size = int.from_bytes(data[8:16], "little")
        buffer = bytearray(pa.decompress(data[16:], size, "lz4", asbytes=True))
    else:
        buffer = bytearray(memoryview(data)[8:])
    length = int.from_bytes(buffer[:8], "little")
    fields, index = json.loads(buffer[8 : 8 + length])
    arrays = {}
    at = 8 + length + -length % 8
    for name, dtype, size in index:
        array = np.frombuffer(buffer, dtype, size, at)
        arrays[name] = array
        at += array.nbytes + -array.nbytes % 8
    return fields, arrays


def is_packed(data: bytes) -> bool:
    """Whether bytes are those of `pack`."""
    return data[:8] in (PLAIN, COMPRESSED)


# ---------------------------------------------------------------------------------------------------------
# Edges


def with_codes(edges: Edges) -> Edges:
    """The same edges, with names as codes: one dictionary for both ends, and one for labels."""
    src, trg = code_texts([edges.src, edges.trg])
    (label,) = code_texts([edges.label])
    return edges._replace(src=src, label=label, trg=trg)


def pack_edges(edges: Edges, *, row: Array | None = None, compressed: bool = False) -> bytes:
    """Edges without their text and origin; `row` is the number of each in the chunk that it was read in."""
    coded = with_codes(edges)
    assert isinstance(coded.src, CodedText)
    assert isinstance(coded.trg, CodedText)
    assert isinstance(coded.label, CodedText)
    src, trg = narrowed([coded.src, coded.trg])
    if compressed:
        src, trg = deduplicated([src, trg])
    arrays = {"src": src.code, "trg": trg.code, "ts": edges.ts, **_dictionary("names", src.dictionary)}
    fields: dict[str, Any] = {"rows": edges.rows}
    if src.dictionary.distinct:
        fields["distinct"] = True
    if edges.exp is None:
        (label,) = deduplicated(narrowed([coded.label]))
        arrays |= _dictionary("labels", label.dictionary)
        if label.dictionary.text.rows > 1:
            arrays["label"] = label.code
    else:
        arrays["exp"] = edges.exp
    if edges.rows and edges.op.min() < 0:
        arrays["op"] = edges.op
    if edges.vertex is not None and edges.vertex.any():
        arrays["vertex"] = edges.vertex
    if edges.properties:
        arrays["properties"] = pack_columns(edges.properties)
    if row is not None:
        arrays["row"] = row.astype(np.int32)
    return pack(fields, arrays, compressed=compressed)


def unpack_edges(data: bytes) -> tuple[Edges, Array | None]:
    """The edges of `pack_edges`, and the number of each in its chunk if it was packed."""
    fields, arrays = unpack(data)
    rows = fields["rows"]
    names = _read_dictionary("names", arrays, distinct=fields.get("distinct", False))
    exp = arrays.get("exp")
    properties = arrays.get("properties")
    if exp is not None:
        label: Text | CodedText = nameless(rows)
    else:
        label = CodedText(
            _read_dictionary("labels", arrays, distinct=True),
            arrays["label"] if "label" in arrays else np.zeros(rows, np.int32),
        )
    edges = Edges(
        src=CodedText(names, arrays["src"]),
        label=label,
        trg=CodedText(names, arrays["trg"]),
        ts=arrays["ts"],
        op=arrays["op"] if "op" in arrays else np.ones(rows, np.int8),
        exp=exp,
        properties=None if properties is None else unpack_columns(properties),
        vertex=arrays.get("vertex", None),
    )
    return edges, arrays.get("row")


def pack_arrivals(edges: Edges) -> bytes | None:
    """Edges as a cell needs them that rejects some: their times and the text that they were read from.

    None if the text is not known, or is scattered.
    """
    line, origin = edges.line, edges.origin
    if line is None or not line.rows:
        return None
    begin, end = int(line.start[0]), int(line.end[-1])
    length = line.end - line.start
    if not 0 <= end - begin <= 2 * int(length.sum()) or int(line.start.min()) < begin:
        return None
    fields: dict[str, Any] = {"rows": edges.rows}
    arrays = {"ts": edges.ts, "text": line.data[begin:end], "length": length.astype(np.int32)}
    arrays["start"] = (line.start - begin).astype(np.int32)
    if origin is not None:
        fields["origin"] = [origin.path, origin.start, int(origin.line[0])]
        # As a rule every line is an edge, and the number of the first gives those of all.
        if int(origin.line[-1]) - int(origin.line[0]) != edges.rows - 1:
            arrays["line"] = np.asarray(origin.line, np.int64)
    return pack(fields, arrays)


def unpack_arrivals(data: bytes) -> Edges:
    """The edges of `pack_arrivals`, without names."""
    fields, arrays = unpack(data)
    rows = fields["rows"]
    start = arrays["start"].astype(np.int64)
    origin = None
    if "origin" in fields:
        path, begin, first = fields["origin"]
        origin = Origin(path, begin, arrays["line"] if "line" in arrays else np.arange(first, first + rows))
    unnamed = nameless(rows)
    text = Text(frozen(arrays["text"]), start, start + arrays["length"], np.zeros(rows, np.int8))
    return Edges(unnamed, unnamed, unnamed, arrays["ts"], np.ones(rows, np.int8), line=text, origin=origin)


def _dictionary(name: str, dictionary: Dictionary) -> dict[str, Array]:
    data, offsets = dictionary.text.packed()
    arrays = {
        name: data,
        f"{name}.length": np.diff(offsets).astype(np.int32),
        f"{name}.hash": dictionary.hashes.astype(np.uint32),
    }
    if dictionary.text.kind.any():
        arrays[f"{name}.kind"] = dictionary.text.kind
    return arrays


def _read_dictionary(name: str, arrays: Mapping[str, Array], *, distinct: bool) -> Dictionary:
    end = np.cumsum(arrays[f"{name}.length"], dtype=np.int64)
    start = end - arrays[f"{name}.length"]
    kind = arrays[f"{name}.kind"] if f"{name}.kind" in arrays else np.zeros(end.size, np.int8)
    text = Text(frozen(arrays[name]), start, end, kind)
    return Dictionary(text, arrays[f"{name}.hash"].astype(np.uint64), distinct=distinct)
