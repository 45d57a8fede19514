"""The manifest of a cell: which blocks of input its store has, and what is known of the stream besides.

The truth about a cell is the window's input; operator state is a cache of what the input leads to. The store holds
the edges that some window may still hold, in *blocks*: Arrow bytes under a number that grows with arrival. The
manifest lists them. Blocks are compacted in tiers of sixteen, so that a window of a day in batches of a second is a
few dozen blocks, and an edge is rewritten a few times in its life. A block is dropped when all of its edges have
expired.

The rows of a table, and what is derived from them, do not expire. There compaction drops what later rows replace, and
all blocks of such a stream are compacted at once when they have twice the rows that were left the last time (see
`compaction`). No compaction reaches across a snapshot, which stands for the blocks before it.

Operator state is in the Python worker that had the cell last, under the token that the manifest names; each batch
gives it a new, random one. A worker that has no state under that token (the cell was elsewhere, its worker has ended,
or a task failed after it had changed the arrays) rebuilds it (see `recovery`).

The manifest also records where the instant that is still open was split into parts. In `changes` mode an answer that
holds at the end of a part is emitted, and a later part of the same instant may delete it; its `-` is emitted once
that instant is over. So the records emitted within the open instant follow from its edges and from where they were
split. Without a deletion the split has no effect: what held at its end still holds. The manifest therefore has each
split of the open instant that a deletion, or a row of a table, follows, as the number of edges of each stream before
it, and a rebuild processes the instant in the same parts. A query that is added starts between two parts, with what
holds then.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from meander.dataflow.edges import Edges
from meander.physical.plan import Result
from meander.spark.checkpoint.notes import FORMAT, other_format

TIER = 16
"""Blocks that are compacted into one."""

MOST_ROWS = 1 << 18
"""Rows of a compacted block, at most."""

WHOLE = -1
"""The tier of blocks that have all that was left of a stream when all of its blocks were compacted."""

SPARE_ROWS = 1 << 10
"""Rows of a stream for which compacting all of its blocks is not worth the trouble."""


@dataclass
class InputBlock:
    """Some edges of a stream in the store: `rows` of them, all expired at `expiry`; `tier` counts compactions."""

    number: int
    stream: str
    rows: int
    expiry: int
    tier: int = 0


@dataclass
class CellManifest:
    """What is known of a cell besides the bytes of its blocks.

    `streams` and `results` (query and head) are those of the last batch; `may_underreport_expiry`, that its plan may
    have emitted answers that hold for longer than their records say. `open_rows`, `splits` and `added` are about the
    instant `time`: how many edges of each stream it has brought, how many it had at each split, and the results that
    were added within it, each with the number of the part that came next.
    """

    token: int = 0
    blocks: list[InputBlock] = field(default_factory=list)
    next_block: int = 0
    snapshot: str = ""
    snapshot_block: int = 0  # the first block that the snapshot does not cover
    last_heard: dict[str, float] = field(default_factory=dict)
    idle_streams: list[str] = field(default_factory=list)
    ended_streams: list[str] = field(default_factory=list)
    time: int = -1
    open_rows: dict[str, int] = field(default_factory=dict)
    splits: list[dict[str, int]] = field(default_factory=list)
    added: list[tuple[str, str, int]] = field(default_factory=list)
    streams: list[str] = field(default_factory=list)
    results: list[tuple[str, str]] = field(default_factory=list)
    may_underreport_expiry: bool = False
    counts: dict[str, int] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        return json.dumps({"format": FORMAT, **vars(self), "blocks": list(map(vars, self.blocks))}).encode()

    @staticmethod
    def from_bytes(data: bytes) -> CellManifest:
        """The manifest that was stored; refuses one of another checkpoint format."""
        fields = json.loads(data)
        version = fields.pop("format", 2)
        if version != FORMAT:
            raise other_format("the state store in the folder spark of the checkpoint", str(version))
        fields["blocks"] = [InputBlock(**block) for block in fields["blocks"]]
        for name in ("added", "results"):
            fields[name] = [tuple(entry) for entry in fields[name]]
        return CellManifest(**fields)

    # -----------------------------------------------------------------------------------------------------
    # Blocks of input

    def add(self, stream: str, rows: int, expiry: int) -> InputBlock:
        """A new block at the end."""
        block = InputBlock(self.next_block, stream, rows, expiry)
        self.blocks.append(block)
        self.next_block += 1
        return block

    def drop_expired(self, time: int) -> list[InputBlock]:
        """Remove the blocks of which no edge is valid after `time`; returns them."""
        expired = [block for block in self.blocks if block.expiry <= time]
        if expired:
            self.blocks = [block for block in self.blocks if block.expiry > time]
        return expired

    def compactable(self, stream: str) -> list[InputBlock]:
        """The newest blocks of a stream that are to become one, or none.

        They are of one tier and on one side of the last snapshot, which knows blocks by their number.
        """
        newest = [block for block in self.blocks if block.stream == stream][-TIER:]
        alike = len({(block.tier, block.number >= self.snapshot_block) for block in newest}) == 1
        if len(newest) < TIER or not alike or sum(block.rows for block in newest) > MOST_ROWS:
            return []
        return newest if newest[0].tier != WHOLE else []

    def replaceable(self, stream: str) -> list[InputBlock]:
        """All blocks of a stream that the last snapshot covers, or all without one, if most rows are new to them
        since these were last compacted at once; or none."""
        covered = [
            block
            for block in self.blocks
            if block.stream == stream and block.number < (self.snapshot_block or self.next_block)
        ]
        new = sum(block.rows if block.tier != WHOLE else -block.rows for block in covered)
        return covered if new > SPARE_ROWS else []

    def is_first(self, block: InputBlock) -> bool:
        """Whether nothing of the block's stream is before it, in a block or in a snapshot."""
        earlier = any(other.stream == block.stream and other.number < block.number for other in self.blocks)
        return not earlier and (not self.snapshot_block or block.number < self.snapshot_block)

    def compact(self, blocks: list[InputBlock]) -> InputBlock:
        """Replace blocks by one with all of their rows, under the number of the last."""
        rows, expiry = sum(block.rows for block in blocks), max(block.expiry for block in blocks)
        (compacted,) = self.replace(blocks, [(rows, expiry)], blocks[-1].tier + 1)
        return compacted

    def replace(
        self, blocks: list[InputBlock], parts: Sequence[tuple[int, int]], tier: int
    ) -> list[InputBlock]:
        """Replace blocks by no more of them, each with its rows and its expiry, under the last of their numbers."""
        numbers = [block.number for block in blocks]
        replacing = [
            InputBlock(number, blocks[0].stream, rows, expiry, tier)
            for number, (rows, expiry) in zip(numbers[len(numbers) - len(parts) :], parts, strict=True)
        ]
        remaining = [block for block in self.blocks if block.number not in set(numbers)]
        self.blocks = sorted([*remaining, *replacing], key=lambda block: block.number)
        return replacing

    @property
    def rows_since_snapshot(self) -> int:
        return sum(block.rows for block in self.blocks if block.number >= self.snapshot_block)

    # -----------------------------------------------------------------------------------------------------
    # The open instant

    def record_part(self, edges: Mapping[str, Edges], time: int, tables: Collection[str] = ()) -> None:
        """Record a part of the input, after which time has advanced to `time`; rows of `tables` may end answers."""
        if time > self.time:
            self.time, self.open_rows, self.splits, self.added = time, {}, [], []
        last = {stream: part.take(slice(first_at(part, time), None)) for stream, part in edges.items()}
        may_end = [(part.op < 0) | (stream in tables) for stream, part in last.items()]
        if self.open_rows and any(ending.any() for ending in may_end):
            self.splits.append(dict(self.open_rows))
        for stream, part in last.items():
            if part.rows:
                self.open_rows[stream] = self.open_rows.get(stream, 0) + part.rows

    def record_added(self, results: Iterable[Result]) -> None:
        """Record that results are added before the next part."""
        for result in results:
            if self.splits[-1:] != [self.open_rows]:
                self.splits.append(dict(self.open_rows))
            self.added.append((result.query, result.head, len(self.splits)))

    def parts_of(self, edges: Mapping[str, Edges]) -> Iterator[dict[str, Edges]]:
        """The last edges of a cell in the order of time, split where the open instant was.

        There may be fewer edges of the instant than were recorded: the first are part of a snapshot.
        """
        begin = dict.fromkeys(edges, 0)
        for split in self.splits:
            end = {}
            for stream, part in edges.items():
                later = self.open_rows.get(stream, 0) - split.get(stream, 0)
                end[stream] = max(part.rows - later, first_at(part, self.time))
            yield {stream: part.take(slice(begin[stream], end[stream])) for stream, part in edges.items()}
            begin = end
        yield {stream: part.take(slice(begin[stream], None)) for stream, part in edges.items()}


def first_at(edges: Edges, time: int) -> int:
    """The position of the first edge at `time` or later."""
    return int(np.searchsorted(edges.ts, time))
