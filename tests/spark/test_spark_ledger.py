"""The ledger: every line of every file once, in order, the same after a crash."""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meander.dataflow.layout import StreamLayout
from meander.errors import InputError, StateError
from meander.spark.input import fingerprints
from meander.spark.input import ledger as ledgers
from meander.spark.input.files import split
from meander.spark.input.ledger import LOOK_AGAIN, WHOLE, Entry, Ledger
from meander.spark.input.reader import read_segment


class Clock:
    """Time that moves on at each look, so that no look is too soon after the last."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def open_ledger(folder, locations, *, bounded=True, batch_rows=1000, tick=None) -> Ledger:
    return Ledger(
        Path(folder) / "ledger",
        {name: str(location) for name, location in locations.items()},
        tuple(locations),
        frozenset(locations) if bounded else frozenset(),
        batch_rows,
        tick,
        Clock(),
    )


def read_all(ledger, number=0, most=10_000) -> list[Entry]:
    """The entries after `number`, until there is nothing new."""
    entries = []
    while len(entries) < most:
        after = ledger.advance(number)
        if after == number:
            return entries
        entries.append(ledger.entry(after))
        number = after
    return entries


def lines_of(entries, stream="s") -> list[Any]:
    edges = [
        edge
        for entry in entries
        for segment in entry.segments
        if segment.stream == stream
        for edges, _ in read_segment(segment, StreamLayout("s"))
        for edge in edges.line.values()
    ]
    return edges


def write_lines(path, start, stop) -> None:
    with open(path, "a") as file:
        file.writelines(f"a{n}\tk\tb{n}\t{n}\n" for n in range(start, stop))


def expected(start, stop) -> list[Any]:
    return [f"a{n}\tk\tb{n}\t{n}" for n in range(start, stop)]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 400), st.integers(1, 300), st.booleans())
def test_a_file_is_cut_into_batches_without_loss(tmp_path_factory, rows, batch_rows, newline) -> None:
    folder = tmp_path_factory.mktemp("cut")
    text = "\n".join(expected(0, rows)) + ("\n" if newline and rows else "")
    (folder / "s.tsv").write_text(text)
    old = ledgers.LEAST_SEGMENT
    ledgers.LEAST_SEGMENT = 16
    try:
        entries = read_all(open_ledger(folder, {"s": folder / "s.tsv"}, batch_rows=batch_rows))
    finally:
        ledgers.LEAST_SEGMENT = old
    assert lines_of(entries) == expected(0, rows)
    assert [entry.closed for entry in entries if entry.closed] == [("s",)]
    assert entries[-1].closed == ("s",)
    if rows > 3 * batch_rows + 3:
        assert len(entries) > 1


def test_the_files_of_a_folder_come_in_order_of_name(tmp_path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number in (2, 0, 1):
        write_lines(data / f"part-{number}.tsv", number * 10, number * 10 + 10)
    assert lines_of(read_all(open_ledger(tmp_path, {"s": data}))) == expected(0, 30)


def test_a_thousand_tiny_files_are_one_batch(tmp_path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number in range(1000):
        write_lines(data / f"{number:04}.tsv", number, number + 1)
    entries = read_all(open_ledger(tmp_path, {"s": data}, batch_rows=5000))
    assert lines_of(entries) == expected(0, 1000)
    assert len(entries) == 1


def test_a_second_life_goes_on_where_the_first_one_ended(tmp_path) -> None:
    write_lines(tmp_path / "s.tsv", 0, 5000)
    first = open_ledger(tmp_path, {"s": tmp_path / "s.tsv"}, batch_rows=500)
    before = read_all(first, most=3)
    second = open_ledger(tmp_path, {"s": tmp_path / "s.tsv"}, batch_rows=77)
    assert read_all(second, most=3) == before
    after = read_all(second, 3)
    assert lines_of(before + after) == expected(0, 5000)
    assert open_ledger(tmp_path, {"s": tmp_path / "s.tsv"}).advance(second.last) == second.last


def test_followed_files_grow_and_partial_lines_wait(tmp_path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    ledger = open_ledger(tmp_path, {"s": data}, bounded=False)
    assert read_all(ledger) == []
    write_lines(data / "a.tsv", 0, 3)
    (data / ".b.tsv").write_text("not yet\n")
    with open(data / "a.tsv", "a") as file:
        file.write("half")
    first = read_all(ledger)
    assert lines_of(first) == expected(0, 3)
    with open(data / "a.tsv", "a") as file:
        file.write("\tk\tx\t9\n")
    write_lines(data / "b.tsv", 3, 4)
    second = read_all(ledger, ledger.last)
    assert lines_of(second) == ["half\tk\tx\t9", *expected(3, 4)]
    assert not any(entry.closed for entry in first + second)


def test_compressed_and_parquet_files_are_taken_whole(tmp_path) -> None:
    import gzip

    path = tmp_path / "s.tsv.gz"
    path.write_bytes(gzip.compress("\n".join(expected(0, 10)).encode()))
    entries = read_all(open_ledger(tmp_path, {"s": path}))
    assert [segment.end for segment in entries[0].segments] == [WHOLE]
    assert lines_of(entries) == expected(0, 10)


def test_parts_of_a_csv_file_know_its_header(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(ledgers, "LEAST_SEGMENT", 64)
    rows = [f"{n},b{n},k,a{n}" for n in range(100)]
    (tmp_path / "s.csv").write_text("ts,trg,label,src\n" + "\n".join(rows) + "\n")
    entries = read_all(open_ledger(tmp_path, {"s": tmp_path / "s.csv"}, batch_rows=10))
    assert len(entries) > 3
    assert lines_of(entries) == rows
    names = [
        name
        for entry in entries
        for segment in entry.segments
        for edges, rejects in read_segment(segment, StreamLayout("s"))
        for name in edges.src.values()
        if not rejects
    ]
    assert names == [f"a{n}" for n in range(100)]


def test_streams_of_different_length_close_one_by_one(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(ledgers, "LEAST_SEGMENT", 16)
    write_lines(tmp_path / "s.tsv", 0, 500)
    write_lines(tmp_path / "t.tsv", 0, 10)
    entries = read_all(
        open_ledger(tmp_path, {"s": tmp_path / "s.tsv", "t": tmp_path / "t.tsv"}, batch_rows=100)
    )
    assert entries[0].closed == ("t",)
    assert entries[-1].closed == ("s",)
    assert lines_of(entries) == expected(0, 500)
    assert lines_of(entries, "t") == expected(0, 10)


def test_a_signal_closes_streams_that_others_read(tmp_path) -> None:
    ledger = Ledger(tmp_path, {}, ("s", "t"), frozenset(), 10, None, Clock())
    assert ledger.advance(0) == 0
    (tmp_path / "end").touch()
    assert ledger.entry(ledger.advance(0)).closed == ("s", "t")
    assert ledger.advance(1) == 1


def test_ticks_come_when_asked_for_though_nothing_is_there(tmp_path) -> None:
    ledger = Ledger(tmp_path, {}, ("s",), frozenset(), 10, 5.0, Clock())
    numbers = [0]
    for _ in range(20):
        numbers.append(ledger.advance(numbers[-1]))
    assert 2 <= numbers[-1] <= 8


@pytest.mark.parametrize(("look", "rest"), [(0.001, 0.01), (0.005, 0.05), (0.02, LOOK_AGAIN)])
def test_a_folder_is_looked_at_as_often_as_looking_is_cheap(tmp_path, look, rest) -> None:
    class Folder(Ledger):
        """Looking takes so long."""

        looks = 0
        now = 0.0

        def _next_entry(self) -> Entry:
            Folder.looks += 1
            Folder.now += look
            return super()._next_entry()

    ledger = Folder(tmp_path, {}, ("s",), frozenset(), 10, None, lambda: Folder.now)
    ledger.advance(0)
    Folder.now = rest - 1e-6
    ledger.advance(0)
    assert Folder.looks == 1
    Folder.now = rest + 1e-6
    ledger.advance(0)
    assert Folder.looks == 2


def test_old_entries_go_and_positions_stay(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(ledgers, "KEEP_ENTRIES", 10)
    monkeypatch.setattr(ledgers, "ENTRIES_BEHIND", 4)
    data = tmp_path / "data"
    data.mkdir()
    ledger = open_ledger(tmp_path, {"s": data}, bounded=False)
    number = 0
    for at in range(35):
        write_lines(data / f"{at:03}.tsv", at, at + 1)
        number = ledger.advance(number)
        ledger.forget(number)
    left = sorted(int(file.stem) for file in ledger.folder.glob("*.json"))
    assert len(left) < 25
    assert left[-1] == 35
    again = open_ledger(tmp_path, {"s": data}, bounded=False)
    assert again.advance(35) == 35
    assert again.positions == ledger.positions


def test_a_missing_path_is_an_error_that_names_it(tmp_path) -> None:
    (entry,) = read_all(open_ledger(tmp_path, {"s": tmp_path / "none.tsv"}))
    assert "none.tsv does not exist\nhint: " in entry.error
    # The next start looks again.
    write_lines(tmp_path / "none.tsv", 0, 3)
    assert lines_of(read_all(open_ledger(tmp_path, {"s": tmp_path / "none.tsv"}), 1)) == expected(0, 3)


def test_tasks_share_the_segments_in_order(tmp_path) -> None:
    write_lines(tmp_path / "s.tsv", 0, 400_000)
    entries = read_all(open_ledger(tmp_path, {"s": tmp_path / "s.tsv"}, batch_rows=10**6))
    segments = entries[0].segments
    assert len(segments) >= 2
    for tasks in (1, 2, 5):
        pieces = split(segments, tasks)
        assert [segment for piece in pieces for segment in piece] == list(segments)
        assert min(tasks, 2) <= len(pieces) <= tasks
    assert split((), 2) == []


def test_entries_are_plain_json(tmp_path) -> None:
    write_lines(tmp_path / "s.tsv", 0, 2)
    ledger = open_ledger(tmp_path, {"s": tmp_path / "s.tsv"})
    ledger.advance(0)
    fields = json.loads((ledger.folder / "000000001.json").read_text())["note"]
    fingerprint = fields.pop("files")[str(tmp_path / "s.tsv")]
    assert fingerprint[:2] == [20, zlib.crc32((tmp_path / "s.tsv").read_bytes())]
    assert fields == {"segments": [["s", str(tmp_path / "s.tsv"), 0, 20]], "closed": ["s"], "error": ""}


def change_in_place(path) -> None:
    """One byte in the middle, and the file as long and as old as it was."""
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def truncate(path) -> None:
    os.truncate(path, 50)


def rewrite_longer(path) -> None:
    path.write_text("\n".join(expected(7, 2000)) + "\n")


def replace_by_longer(path) -> None:
    draft = path.with_name(".draft")
    rewrite_longer(draft)
    draft.replace(path)


CHANGES = {
    change_in_place: "its first 1910 bytes are not those that were read",
    truncate: "1910 bytes of it were read, and now it has 50",
    rewrite_longer: "its first 1910 bytes are not those that were read",
    replace_by_longer: "its first 1910 bytes are not those that were read",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_after_it_was_read_is_refused_at_once_and_at_the_next_start(
    tmp_path, change
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    write_lines(data / "a.tsv", 0, 140)
    ledger = open_ledger(tmp_path, {"s": data}, bounded=False)
    number = len(read_all(ledger))
    change(data / "a.tsv")
    (entry,) = read_all(ledger, number)
    message = rf"a.tsv has changed since it was read: {CHANGES[change]}\nhint: "
    assert re.search(message, entry.error)
    with pytest.raises(InputError, match=message):
        open_ledger(tmp_path, {"s": data}).check_files()
    # As the hint says: without the file, and with the new rows in another one, the run continues.
    (data / "a.tsv").rename(data / "b.tsv")
    again = open_ledger(tmp_path, {"s": data}, bounded=False)
    again.check_files()
    assert {segment.path for entry in read_all(again, number + 1) for segment in entry.segments} == {
        str(data / "b.tsv")
    }


@pytest.mark.parametrize(
    "content", [gzip.compress(b"a\tk\tb\t1\n"), b"a\tk\tb\t1\n"], ids=["packed", "plain"]
)
def test_what_was_read_whole_may_not_even_grow(tmp_path, content) -> None:
    path = tmp_path / "s.tsv.gz"
    path.write_bytes(content)
    ledger = open_ledger(tmp_path, {"s": tmp_path / "s.tsv.gz"}, bounded=False)
    assert ledger.advance(0) == 1
    path.touch()
    assert ledger.advance(1) == 1
    with open(path, "ab") as file:
        file.write(content)
    (entry,) = read_all(ledger, 1)
    assert re.search(r"s.tsv.gz has changed since .*: it was read whole with \d+ bytes", entry.error)


def test_a_file_that_grows_is_compared_by_its_last_bytes_alone_until_the_next_start(
    tmp_path, monkeypatch
) -> None:
    compared = []

    def watched(path, start, end, checksum=0) -> int:
        compared.append(end - start)
        return real(path, start, end, checksum)

    real = fingerprints.checksum_of
    write_lines(tmp_path / "s.tsv", 0, 20_000)
    ledger = open_ledger(tmp_path, {"s": tmp_path / "s.tsv"}, bounded=False, batch_rows=10**6)
    entries = read_all(ledger)
    monkeypatch.setattr(fingerprints, "checksum_of", watched)
    for at in range(20_000, 20_005):
        write_lines(tmp_path / "s.tsv", at, at + 1)
        entries += read_all(ledger, ledger.last)
    assert lines_of(entries) == expected(0, 20_005)
    assert max(compared) == fingerprints.TAIL
    del compared[:]
    again = open_ledger(tmp_path, {"s": tmp_path / "s.tsv"}, bounded=False)
    again.check_files()
    assert compared == []
    (tmp_path / "s.tsv").touch()
    again.check_files()
    assert compared == [(tmp_path / "s.tsv").stat().st_size]


def test_a_segment_that_is_cut_short_before_it_is_read_is_damage(tmp_path) -> None:
    write_lines(tmp_path / "s.tsv", 0, 10)
    (entry,) = read_all(open_ledger(tmp_path, {"s": tmp_path / "s.tsv"}))
    os.truncate(tmp_path / "s.tsv", 60)
    with pytest.raises(InputError, match=r"s.tsv has changed since it was read: it ends 40 bytes before"):
        lines_of([entry])


@pytest.mark.parametrize("lost", [1, 2, 4])
def test_an_entry_that_is_missing_is_named(tmp_path, lost) -> None:
    write_lines(tmp_path / "s.tsv", 0, 2000)
    ledger = open_ledger(tmp_path, {"s": tmp_path / "s.tsv"}, batch_rows=100)
    assert len(read_all(ledger, most=4)) == 4
    (ledger.folder / f"00000000{lost}.json").unlink()
    with pytest.raises(StateError, match=rf"not whole: .*/00000000{lost}.json is missing\nhint: restore"):
        open_ledger(tmp_path, {"s": tmp_path / "s.tsv"}).advance(4)
    with pytest.raises(StateError, match=rf"/00000000{lost}.json is missing"):
        ledger.entry(lost)


def test_a_file_that_is_removed_before_it_was_read_to_its_end_is_missed(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(ledgers, "LEAST_SEGMENT", 64)
    data = tmp_path / "data"
    data.mkdir()
    write_lines(data / "a.tsv", 0, 140)
    write_lines(data / "b.tsv", 200, 340)
    ledger = open_ledger(tmp_path, {"s": data}, batch_rows=10)
    first = ledger.advance(0)
    assert 0 < ledger.positions[str(data / "a.tsv")] < (data / "a.tsv").stat().st_size
    (data / "a.tsv").unlink()
    message = r"a.tsv has changed since it was read: \d+ of its \d+ bytes were read, and now it is gone"
    assert re.search(message, ledger.entry(ledger.advance(first)).error)
    with pytest.raises(InputError, match=message):
        open_ledger(tmp_path, {"s": data}).check_files()


def test_an_entry_with_flipped_bytes_is_named(tmp_path) -> None:
    write_lines(tmp_path / "s.tsv", 0, 10)
    ledger = open_ledger(tmp_path, {"s": tmp_path / "s.tsv"})
    ledger.advance(0)
    path = ledger.folder / "000000001.json"
    path.write_text(path.read_text().replace("100]]", "109]]"))
    with pytest.raises(StateError, match=r"/000000001.json is damaged: it fails its checksum"):
        ledger.entry(1)
    with pytest.raises(StateError, match=r"/000000001.json is damaged: it fails its checksum"):
        open_ledger(tmp_path, {"s": tmp_path / "s.tsv"})
