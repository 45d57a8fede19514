"""The ledger: which bytes of which files belong to which batch, a write-ahead log of the input.

Spark asks a source for its latest offset, stores it, and after a crash asks for the same batch again. Here an
offset is the number of an *entry*, and an entry is a small file that lists segments: ranges of bytes of input
files that end between two lines. An entry is on disk before Spark gets its number, so a batch that is repeated
has the same edges, whatever has arrived in the folder since. Large files are divided into many segments,
files that grow give further ones, and new files in a folder are read in the order of their names.

An entry also has the fingerprints of its files. A file that has changed since it was read, or cannot be read, gives
an entry with the error: it ends the run, as damage in a file does, and the next start checks again.

A bounded run ends: the entry that takes the last bytes of a stream also closes it. A run that follows its
input never closes a stream, and leaves a last line without newline until that comes.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from meander.dataflow.sources.files import input_files
from meander.dataflow.sources.registry import is_splittable
from meander.errors import InputError
from meander.spark.checkpoint.notes import missing_part, read_note, read_notes, write_note
from meander.spark.checkpoint.storage import Location, ObjectPath, children, sibling
from meander.spark.input.fingerprints import (
    FileState,
    Fingerprint,
    changed,
    check_fingerprint,
    take_fingerprint,
)

KEEP_ENTRIES = 1000
"""Each entry with a multiple of this number repeats all positions; most entries before it are then deleted."""

ENTRIES_BEHIND = 200
SAMPLE = 1 << 16
LEAST_SEGMENT = 1 << 12
MOST_SEGMENT = 1 << 22
LOOK_AGAIN = 0.1
"""The longest interval in seconds between two listings of a folder; it is shorter if listing is fast."""

ASK_AGAIN = 1.0
"""The interval in seconds at which a store is asked for the signal that ends the streams."""

LOOKING = 0.1
"""The share of a processor's time that listing may take."""

WHOLE = -1
END_SIGNAL = "end"


class Segment(NamedTuple):
    """Bytes `start` to `end` of a file of a stream, or all of a file that cannot be divided (`end` is `WHOLE`)."""

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
            "segments": [list(segment) for segment in self.segments],
            "closed": list(self.closed),
            "error": self.error,
        }

    @staticmethod
    def from_json(fields: dict[str, Any]) -> Entry:
        segments = tuple(Segment(*segment) for segment in fields["segments"])
        return Entry(segments, tuple(fields["closed"]), fields["error"])


@dataclass
class Ledger:
    """The entries in `folder` for the streams of a run; `locations`: stream to path, of files alone. With `until`
    there is none after the entry of that number."""

    folder: Location
    locations: dict[str, str]
    streams: tuple[str, ...]
    bounded: frozenset[str]
    batch_rows: int
    tick: float | None = None
    clock: Callable[[], float] = time.monotonic
    until: int | None = None
    positions: dict[str, int] = field(default_factory=dict)
    fingerprints: dict[str, Fingerprint] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    last: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._look_at = self.clock()
        self._ticked = self.clock()
        self._ask_at = self.clock()
        self._failed = False
        missing = 0
        numbers = sorted(int(path.stem) for path in children(self.folder, ".json"))
        notes = read_notes([self._path(number) for number in numbers])
        for number, fields in zip(numbers, notes, strict=True):
            # Entries before one that repeats all positions may have been deleted, and no others.
            if "positions" in fields:
                missing = 0
            elif number != self.last + 1:
                missing = self.last + 1
            self._apply(fields)
            self.last = number
        if missing:
            raise missing_part(self._path(missing))

    def advance(self, number: int) -> int:
        """The number of the entry after `number`: an old one, or a new one if there is something to read."""
        self.check_whole(number)
        if self.until is not None and number >= self.until:
            return number
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
        except FileNotFoundError:  # a file that was listed is gone: the next listing shows why
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
        """Refuse a ledger that lacks the entry `number`, which Spark knows."""
        if number > self.last:
            raise missing_part(self._path(number))

    def check_files(self) -> None:
        """Refuse a file whose part that was read has changed since."""
        self._check_removed()
        for path in self.fingerprints:
            file = sibling(path, self.folder)
            if file.exists():
                self._check(file, file.stat(), thorough=True)

    def _check_removed(self) -> None:
        """Refuse to continue without a file of which only a part was read."""
        for path, known in self.fingerprints.items():
            end = self.positions[path]
            if end != WHOLE and end < known.size and not sibling(path, self.folder).exists():
                raise changed(path, f"{end} of its {known.size} bytes were read, and now it is gone")

    def forget(self, number: int) -> None:
        """Entries up to `number` have been processed: delete those that Spark cannot ask for again."""
        full = number - number % KEEP_ENTRIES  # the last entry that repeats all positions
        if number - full < ENTRIES_BEHIND:
            return
        for old in range(full - ENTRIES_BEHIND - 1, 0, -1):
            path = self._path(old)
            if not path.exists():
                break
            path.unlink()

    def unread(self) -> str:
        """A file of the streams that no entry has read to its end, or ""."""
        for location in self.locations.values():
            for path in self._files(location, True):
                end = self.positions.get(str(path), 0)
                if end != WHOLE and end < path.stat().st_size:
                    return str(path)
        return ""

    def _path(self, number: int) -> Location:
        return self.folder / f"{number:09}.json"

    def _write(self, entry: Entry) -> None:
        fields = entry.to_json() | {"files": self._fingerprints_of(entry)}
        self._apply(fields)
        self.last += 1
        if self.last % KEEP_ENTRIES == 0:
            fields |= {"positions": self.positions, "all_closed": sorted(self.closed)}
            fields["files"] = self.fingerprints
        write_note(self._path(self.last), fields)

    def _fingerprints_of(self, entry: Entry) -> dict[str, Fingerprint]:
        """The fingerprints of an entry's files, up to the end of its segments."""
        ends = {segment.path: None if segment.end == WHOLE else segment.end for segment in entry.segments}
        taken = {
            path: take_fingerprint(sibling(path, self.folder), end, self.fingerprints.get(path))
            for path, end in ends.items()
        }
        return {path: fingerprint for path, fingerprint in taken.items() if fingerprint is not None}

    def _check(self, path: Location, state: FileState, *, thorough: bool = False) -> None:
        known = self.fingerprints.get(str(path))
        if known is not None:
            whole = self.positions[str(path)] == WHOLE
            self.fingerprints[str(path)] = check_fingerprint(
                path, known, state, whole=whole, thorough=thorough
            )

    def _apply(self, fields: dict[str, Any]) -> None:
        entry = Entry.from_json(fields)
        if "positions" in fields:
            self.positions = dict(fields["positions"])
            self.closed = set(fields["all_closed"])
        for segment in entry.segments:
            self.positions[segment.path] = segment.end
        self.fingerprints |= {path: Fingerprint(*state) for path, state in fields["files"].items()}
        self.closed |= set(entry.closed)

    def _next_entry(self) -> Entry:
        self._check_removed()
        segments: list[Segment] = []
        for stream, location in self.locations.items():
            if stream not in self.closed:
                segments += self._segments(stream, location, stream in self.bounded)
        ends = {segment.path: segment.end for segment in segments}
        ended = [
            stream
            for stream, location in self.locations.items()
            if stream in self.bounded and stream not in self.closed and not self._remains(location, ends)
        ]
        if not segments and self._is_asked_to_end():
            ended = [stream for stream in self.streams if stream not in self.closed]
        return Entry(tuple(segments), tuple(ended))

    def _is_asked_to_end(self) -> bool:
        """Whether the streams are to end. A store is asked less often: it may charge for each request."""
        if isinstance(self.folder, ObjectPath):
            if self.clock() < self._ask_at:
                return False
            self._ask_at = self.clock() + ASK_AGAIN
        return (self.folder / END_SIGNAL).exists()

    def _segments(self, stream: str, location: str, bounded: bool) -> Iterator[Segment]:
        """The next segments of the files of a stream, about `batch_rows` rows in all."""
        rows_left = float(self.batch_rows)
        for path in self._files(location, bounded):
            if rows_left < 1:
                return
            at = self.positions.get(str(path), 0)
            state = path.stat()
            self._check(path, state)
            size = state.st_size
            if at == WHOLE or (at and at >= size):
                continue
            if isinstance(path, ObjectPath) or not stat.S_ISREG(state.st_mode) or not is_splittable(path):
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

    def _remains(self, location: str, ends: dict[str, int]) -> bool:
        """Whether some of a location is unread after segments with these ends, by path."""
        for path in self._files(location, True):
            end = ends.get(str(path), self.positions.get(str(path)))
            if end is None or (end != WHOLE and end < path.stat().st_size):
                return True
        return False

    def _files(self, location: str, bounded: bool) -> Sequence[Location]:
        copy = sibling(location, self.folder)
        if isinstance(copy, ObjectPath):  # of a static DataFrame, written by Spark
            return [path for path in children(copy) if not path.name.startswith((".", "_"))]
        return input_files(location, follow=not bounded)


def average_line(path: Path, at: int) -> float:
    """The average number of bytes of a line, by the lines from this offset on."""
    with open(path, "rb") as file:
        file.seek(at)
        sample = file.read(SAMPLE)
    return max(1.0, len(sample) / max(1, sample.count(b"\n")))


def line_end(path: Path, wanted: int, at: int, size: int, bounded: bool) -> int:
    """The end of the line that holds byte `wanted`. The last line may lack a newline: a bounded file ends with it,
    and a followed one before it."""
    with open(path, "rb") as file:
        offset = min(wanted, size)
        while offset < size:
            file.seek(offset)
            block = file.read(min(SAMPLE, size - offset))
            newline = block.find(b"\n")
            if newline >= 0:
                return offset + newline + 1
            offset += len(block)
        if bounded:
            return size
        while offset > at:
            start = max(at, offset - SAMPLE)
            file.seek(start)
            newline = file.read(offset - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            offset = start
    return at
