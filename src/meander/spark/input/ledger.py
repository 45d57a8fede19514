"""The ledger: which bytes of which files belong to which batch, written down before Spark hears of them.

Spark asks a source for its latest offset, stores it, and after a crash asks for the same batch again. Here an
offset is the number of an *entry*, and an entry is a small file that lists segments: ranges of bytes of input
files that end between two lines. An entry is on disk before its number is given out, so a batch that is asked
for again has the same edges, whatever has come to the folder since. Large files are cut into many segments,
files that grow give further ones, and a new file in a folder is taken up in order of its name.

An entry also has the fingerprints of its files. A file that is changed after it was read, or cannot be read, is an
entry of its own that has the error: it ends the run, as damage in a file does, and the next start looks again.

A bounded run ends: the entry that takes the last bytes of a stream also closes it. A run that follows its
input never closes a stream, and leaves a last line without newline until that comes.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from meander.dataflow.files import input_files
from meander.errors import InputError
from meander.spark.checkpoint.notes import missing_part, read_note, write_note
from meander.spark.input.fingerprints import Fingerprint, changed, check_fingerprint, take_fingerprint

KEEP_ENTRIES = 1000
"""How often an entry repeats all positions; those before it, and not asked for again, can then go."""

ENTRIES_BEHIND = 200
SAMPLE = 1 << 16
LEAST_SEGMENT = 1 << 12
MOST_SEGMENT = 1 << 22
LOOK_AGAIN = 0.1
"""A folder is looked at again after so many seconds at most, and sooner where looking takes little."""

LOOKING = 0.1
"""The share of a processor's time that looking may take."""

WHOLE = -1
END_SIGNAL = "end"


class Segment(NamedTuple):
    """Bytes `start` to `end` of a file of a stream, or all of a file that cannot be cut (`end` is `WHOLE`)."""

    stream: str
    path: str
    start: int
    end: int


@dataclass(frozen=True)
class Entry:
    """What one batch reads, and which streams have ended with it; or why no more can be read."""

    segments: tuple[Segment, ...] = ()
    closed: tuple[str, ...] = ()
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "segments": [list(one) for one in self.segments],
            "closed": list(self.closed),
            "error": self.error,
        }

    @staticmethod
    def from_json(fields: dict[str, Any]) -> Entry:
        segments = tuple(Segment(*one) for one in fields["segments"])
        return Entry(segments, tuple(fields["closed"]), fields["error"])


@dataclass
class Ledger:
    """The entries in `folder` for the streams of a run (stream name to path; none for those read by others)."""

    folder: Path
    places: dict[str, str]
    streams: tuple[str, ...]
    bounded: frozenset[str]
    batch_rows: int
    tick: float | None = None
    clock: Callable[[], float] = time.monotonic
    positions: dict[str, int] = field(default_factory=dict)
    fingerprints: dict[str, Fingerprint] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    last: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._look_at = self.clock()
        self._ticked = self.clock()
        self._failed = False
        missing = 0
        for number in sorted(int(one.stem) for one in self.folder.glob("*.json")):
            fields = read_note(self._path(number))
            # Entries before one that repeats all positions may have been deleted, and no others.
            if "positions" in fields:
                missing = 0
            elif number != self.last + 1:
                missing = self.last + 1
            self._take_up(fields)
            self.last = number
        if missing:
            raise missing_part(self._path(missing))

    def advance(self, number: int) -> int:
        """The number of the entry after `number`: an old one, or a new one if there is something to read."""
        self.check_whole(number)
        if number < self.last:
            return number + 1
        now = self.clock()
        if now < self._look_at:
            return number
        try:
            entry = self._next_entry() if not self._failed else Entry()
        except InputError as error:
            entry = Entry(error=str(error))
            self._failed = True
        except FileNotFoundError:  # a file that was listed is gone: the next look tells what that means
            self._look_at = now + LOOK_AGAIN
            return number
        if not entry.segments and not entry.closed and not entry.error:
            self._look_at = now + min(LOOK_AGAIN, (self.clock() - now) / LOOKING)
            if self.tick is None or now - self._ticked < self.tick:
                return number
        self._ticked = now
        self._write(entry)
        return self.last

    def entry(self, number: int) -> Entry:
        try:
            return Entry.from_json(read_note(self._path(number)))
        except FileNotFoundError:
            raise missing_part(self._path(number)) from None

    def check_whole(self, number: int) -> None:
        """Refuse a ledger that lacks the entry `number`, of which Spark has heard."""
        if number > self.last:
            raise missing_part(self._path(number))

    def check_files(self) -> None:
        """Refuse a file whose part that was read has changed since."""
        self._check_removed()
        for path in self.fingerprints:
            if os.path.exists(path):
                self._check(Path(path), os.stat(path), thorough=True)

    def _check_removed(self) -> None:
        """Refuse to continue without a file of which only a part was read."""
        for path, known in self.fingerprints.items():
            at = self.positions[path]
            if at != WHOLE and at < known.size and not os.path.exists(path):
                raise changed(Path(path), f"{at} of its {known.size} bytes were read, and now it is gone")

    def forget(self, number: int) -> None:
        """Entries up to `number` have been processed: delete those that nobody can ask for again."""
        repeated = [one for one in range(number, 0, -1) if one % KEEP_ENTRIES == 0][:1]
        for start in repeated:
            for old in range(start - ENTRIES_BEHIND - 1, 0, -1):
                path = self._path(old)
                if number - start < ENTRIES_BEHIND or not path.exists():
                    break
                path.unlink()

    def unread(self) -> str:
        """A file of the streams' places that no entry has read to its end, or nothing."""
        for place in self.places.values():
            for path in self._files(place, True):
                at = self.positions.get(str(path), 0)
                if at != WHOLE and at < path.stat().st_size:
                    return str(path)
        return ""

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:09}.json"

    def _write(self, entry: Entry) -> None:
        fields = entry.to_json() | {"files": self._fingerprints_of(entry)}
        self._take_up(fields)
        self.last += 1
        if self.last % KEEP_ENTRIES == 0:
            fields |= {"positions": self.positions, "all_closed": sorted(self.closed)}
            fields["files"] = self.fingerprints
        write_note(self._path(self.last), fields)

    def _fingerprints_of(self, entry: Entry) -> dict[str, Fingerprint]:
        """The fingerprints of an entry's files, read as far as the entry says."""
        ends = {one.path: None if one.end == WHOLE else one.end for one in entry.segments}
        taken = {
            path: take_fingerprint(Path(path), end, self.fingerprints.get(path)) for path, end in ends.items()
        }
        return {path: one for path, one in taken.items() if one is not None}

    def _check(self, path: Path, state: os.stat_result, *, thorough: bool = False) -> None:
        known = self.fingerprints.get(str(path))
        if known is not None:
            whole = self.positions[str(path)] == WHOLE
            self.fingerprints[str(path)] = check_fingerprint(
                path, known, state, whole=whole, thorough=thorough
            )

    def _take_up(self, fields: dict[str, Any]) -> None:
        entry = Entry.from_json(fields)
        if "positions" in fields:
            self.positions = dict(fields["positions"])
            self.closed = set(fields["all_closed"])
        for one in entry.segments:
            self.positions[one.path] = one.end
        self.fingerprints |= {path: Fingerprint(*one) for path, one in fields["files"].items()}
        self.closed |= set(entry.closed)

    def _next_entry(self) -> Entry:
        self._check_removed()
        segments: list[Segment] = []
        for stream, place in self.places.items():
            if stream not in self.closed:
                segments += self._segments(stream, place, stream in self.bounded)
        taken = {one.path: one.end for one in segments}
        ended = [
            stream
            for stream, place in self.places.items()
            if stream in self.bounded and stream not in self.closed and not self._remains(place, taken)
        ]
        if not segments and (self.folder / END_SIGNAL).exists():
            ended = [stream for stream in self.streams if stream not in self.closed]
        return Entry(tuple(segments), tuple(ended))

    def _segments(self, stream: str, place: str, bounded: bool) -> Iterator[Segment]:
        """What comes next in the files of a stream, about `batch_rows` rows of it."""
        rows_left = float(self.batch_rows)
        for path in self._files(place, bounded):
            if rows_left < 1:
                return
            at = self.positions.get(str(path), 0)
            state = path.stat()
            self._check(path, state)
            size = state.st_size
            if at == WHOLE or (at and at >= size):
                continue
            if not stat.S_ISREG(state.st_mode) or path.name.endswith((".gz", ".parquet")):
                yield Segment(stream, str(path), 0, WHOLE)
                rows_left -= max(1.0, size / 32)
                continue
            if bounded and size == 0 and str(path) not in self.positions:
                yield Segment(stream, str(path), 0, 0)
                continue
            row_bytes = average_line(path, at)
            while rows_left >= 1 and at < size:
                step = min(MOST_SEGMENT, max(LEAST_SEGMENT, int(rows_left * row_bytes)))
                end = line_end(path, at + step, at, size, bounded)
                if end == at:
                    break
                yield Segment(stream, str(path), at, end)
                rows_left -= (end - at) / row_bytes
                at = end

    def _remains(self, place: str, taken: dict[str, int]) -> bool:
        for path in self._files(place, True):
            at = taken.get(str(path), self.positions.get(str(path)))
            if at is None or (at != WHOLE and at < path.stat().st_size):
                return True
        return False

    def _files(self, place: str, bounded: bool) -> list[Path]:
        return input_files(place, follow=not bounded)


def average_line(path: Path, at: int) -> float:
    """About how many bytes a line has at this place."""
    with open(path, "rb") as file:
        file.seek(at)
        sample = file.read(SAMPLE)
    return max(1.0, len(sample) / max(1, sample.count(b"\n")))


def line_end(path: Path, wanted: int, at: int, size: int, bounded: bool) -> int:
    """The end of the line that holds byte `wanted`. The last line may lack a newline: a bounded file ends with it,
    and a followed one before it."""
    with open(path, "rb") as file:
        place = min(wanted, size)
        while place < size:
            file.seek(place)
            block = file.read(min(SAMPLE, size - place))
            found = block.find(b"\n")
            if found >= 0:
                return place + found + 1
            place += len(block)
        if bounded:
            return size
        while place > at:
            start = max(at, place - SAMPLE)
            file.seek(start)
            found = file.read(place - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            place = start
    return at
