"""What a cell stores: blocks are compacted without loss, snapshots are whole or not used."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from meander.spark.cell.manifest import SPARE_ROWS, TIER, WHOLE, CellManifest
from meander.spark.cell.store import pack_arrays, read_snapshot, unpack_arrays, write_snapshot

ARRAYS = {
    "graph/rows": np.arange(12, dtype=np.int32).reshape(3, 4),
    "none": np.empty(0, np.int64),
    "flags": np.array([True, False]),
}


def test_a_manifest_comes_back_as_it_was_stored() -> None:
    manifest = CellManifest(token=7, last_heard={"s": 1.5}, ended_streams=["t"], time=3, snapshot="x")
    manifest.snapshot_block = 1
    manifest.results = [("q", "Answer")]
    manifest.add("s", 10, 99)
    assert CellManifest.from_bytes(manifest.to_bytes()) == manifest


@given(st.lists(st.sampled_from("st"), max_size=600))
def test_compaction_keeps_every_row_and_few_blocks(streams) -> None:
    manifest = CellManifest()
    for at, stream in enumerate(streams):
        manifest.add(stream, 1, at + 100)
        while blocks := manifest.compactable(stream):
            manifest.compact(blocks)
    for stream in "st":
        rows = [block.rows for block in manifest.blocks if block.stream == stream]
        assert sum(rows) == streams.count(stream)
        assert len(rows) < 3 * TIER
    numbers = [block.number for block in manifest.blocks]
    assert numbers == sorted(numbers)


@given(st.integers(1, 60))
def test_compaction_never_reaches_across_a_snapshot(before) -> None:
    manifest = CellManifest()
    for number in range(before + 60):
        if number == before:
            manifest.snapshot_block = manifest.next_block
        manifest.add("s", 1, 1)
        while blocks := manifest.compactable("s"):
            manifest.compact(blocks)
    assert sum(block.rows for block in manifest.blocks if block.number < before) == before
    assert manifest.rows_since_snapshot == 60


def test_only_blocks_that_have_wholly_expired_are_dropped() -> None:
    manifest = CellManifest()
    valid = manifest.add("s", 1, 11)
    expired = manifest.add("s", 1, 10)
    assert manifest.drop_expired(10) == [expired]
    assert manifest.blocks == [valid]


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=5), st.integers(0, 50).map(lambda n: np.arange(n, dtype=np.int16))))
def test_arrays_come_out_as_they_were_packed(arrays) -> None:
    data = np.frombuffer(b"".join(pack_arrays("stamp", arrays)), np.uint8)
    assert data.size % 64 == 0
    out = unpack_arrays("stamp", data)
    assert list(out) == list(arrays)
    for name, array in arrays.items():
        assert out[name].dtype == array.dtype
        np.testing.assert_array_equal(out[name], array)


def test_a_snapshot_is_read_back_and_one_of_another_plan_is_not(tmp_path) -> None:
    path = tmp_path / "cell" / "1.snapshot"
    write_snapshot(path, "plan", ARRAYS)
    out = read_snapshot(path, "plan")
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(out[name], array)
    assert read_snapshot(path, "other plan") is None


def test_a_torn_missing_or_foreign_snapshot_is_not_used(tmp_path) -> None:
    path = tmp_path / "1.snapshot"
    assert read_snapshot(path, "plan") is None
    write_snapshot(path, "plan", ARRAYS)
    content = path.read_bytes()
    for torn in (b"", content[:5], content[:-1], b"\xff" * 200):
        path.write_bytes(torn)
        assert read_snapshot(path, "plan") is None


def test_a_snapshot_with_a_flipped_byte_is_not_used(tmp_path) -> None:
    path = tmp_path / "1.snapshot"
    write_snapshot(path, "plan", ARRAYS)
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert read_snapshot(path, "plan") is None
    path.write_bytes(content)
    assert read_snapshot(path, "plan") is not None


def test_only_the_newest_snapshots_stay(tmp_path) -> None:
    for number in range(6):
        write_snapshot(tmp_path / f"{number}.snapshot", "plan", ARRAYS)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["3.snapshot", "4.snapshot", "5.snapshot"]


def test_a_block_is_the_first_of_its_stream_if_neither_a_block_nor_a_snapshot_is_before_it() -> None:
    manifest = CellManifest()
    first, second, of_other = (manifest.add(stream, 1, 9) for stream in "sst")
    assert [manifest.is_first(block) for block in (first, second, of_other)] == [True, False, True]
    manifest.snapshot_block = 1
    assert [manifest.is_first(block) for block in (first, second, of_other)] == [True, False, False]
    assert manifest.replaceable("s") == []
    large = manifest.add("s", SPARE_ROWS + 1, 9)
    assert manifest.replaceable("s") == []
    manifest.snapshot_block = manifest.next_block
    assert manifest.replaceable("s") == [first, second, large]
    manifest.replace([first, second, large], [(SPARE_ROWS, 9)], WHOLE)
    assert manifest.replaceable("s") == []
