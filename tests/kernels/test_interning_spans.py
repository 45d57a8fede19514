"""Spans of bytes: hashing tells names apart, matching finds them, gathering copies them, compiled or not."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from meander.dataflow.edges import STRING, as_text, match_labels
from meander.kernels.spans import hash_span, load_head, load_word, store_word, wrapping

names = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20)


def hashed(raw: bytes, kind: int = STRING) -> int:
    # Other bytes before and after, which must not matter.
    data = np.frombuffer(b"\xff" + raw + b"\xff" * 9, np.uint8)
    with wrapping():
        return int(hash_span(data, 1, 1 + len(raw), kind))


def test_hash_is_the_published_arithmetic() -> None:
    """The same number in plain integers modulo 2**64: compiled and uncompiled kernels agree with it."""
    seed, mix, finish, word = 0x9E3779B97F4A7C15, 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53, 2**64

    def plain(raw: bytes, kind: int) -> int:
        value = seed * (2 * len(raw) + kind + 1) % word
        for at in range(0, len(raw), 8):
            value = (value ^ int.from_bytes(raw[at : at + 8], "little")) * mix % word
            value ^= value >> 32
        return (value * finish % word) >> 32

    for raw in (b"", b"p1234", b"12345678", b"123456789", bytes(range(200, 240))):
        for kind in (0, 1):
            assert hashed(raw, kind) == plain(raw, kind)


def test_hashes_of_similar_names_rarely_collide() -> None:
    raw = [f"{letter}{number}".encode() for letter in "pmft" for number in range(500)]
    assert len({hashed(name) for name in raw}) >= len(raw) - 1
    low_bits = {hashed(name) & 0xFFF for name in raw}
    assert len(low_bits) > 0.3 * 4096  # 2000 balls into 4096 bins leave about 1600 of them hit


@settings(deadline=None)
@given(st.integers(-(2**63), 2**63 - 1))
def test_a_word_comes_back_as_it_was_stored(value: int) -> None:
    data = np.zeros(11, np.uint8)
    store_word(data, 2, value)
    assert data[2:10].tobytes() == value.to_bytes(8, "little", signed=True)
    assert int(load_word(data, 2)) == value % 2**64
    assert int(load_head(data, 2, 10)) == value


@settings(deadline=None)
@given(st.lists(names), st.lists(names.filter(bool), max_size=12))
def test_match_labels_finds_the_first_equal_one(labels: list[str], wanted: list[str]) -> None:
    positions = match_labels(as_text(labels), [label.encode() for label in wanted])
    assert positions.dtype == np.int16
    assert positions.tolist() == [wanted.index(label) if label in wanted else -1 for label in labels]


@settings(deadline=None)
@given(st.lists(st.one_of(names, st.integers(-(2**63), 2**63 - 1))))
def test_packing_keeps_the_names(values: list[str | int]) -> None:
    text = as_text(values)
    backwards = text.take(slice(None, None, -1))
    assert backwards.values() == values[::-1]
    assert backwards.values() == values[::-1]
