"""Writing to a sink from the local runner: one process, one attempt, nothing to resume."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from meander.dataflow.answers import Answers, AnswerSchema, as_table
from meander.dataflow.edges import Reject
from meander.dataflow.sinks.journal import Journal
from meander.dataflow.sinks.jsonl import jsonl_blocks
from meander.dataflow.sinks.merging import merge_blocks, merge_tables
from meander.dataflow.sinks.registry import check_local_sink, check_rejects, open_sink
from meander.dataflow.sinks.sink import Encoding, Sink, SinkContext
from meander.errors import OutputError

Batch = TypeVar("Batch")


class SinkWriter(Generic[Batch]):
    """Encodes batches for a sink and numbers them; use it in a `with` block, so that it is closed.

    Closing after an error is the same as closing at the end: everything up to the last complete batch is there.
    """

    def __init__(self, sink: Sink[Any], encode: Callable[[Batch], Any]) -> None:
        self.sink = sink
        self.encode = encode
        self._batches = 0
        self._failed = False
        sink.begin()

    @property
    def done(self) -> bool:
        """Whether nobody reads the output any more, so that the run may end."""
        return self.sink.done

    def write(self, batch: Batch) -> None:
        self._write(self.encode(batch))

    def write_merged(self, batches: Sequence[Batch]) -> None:
        """Write what several results answer over one span of time, in order of time."""
        encoded = map(self.encode, batches)
        if self.sink.encoding == Encoding.LINES:
            # A block is valid until the next one is requested.
            self._write(merge_blocks([b"".join(map(bytes, blocks)) for blocks in encoded]))
        else:
            self._write(merge_tables([table for tables in encoded for table in tables]))

    def _write(self, contents: Any) -> None:
        try:
            self.sink.write(self._batches, contents)
        except OutputError:
            self._failed = True
            raise
        self._batches += 1

    def close(self) -> None:
        try:
            if not self._failed:
                self.sink.finish()
        finally:
            self.sink.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_answers(
    target: str, schema: AnswerSchema | None = None, *, overwrite: bool = False
) -> SinkWriter[Answers]:
    """A writer of answers to what `--out` names.

    A file is replaced. A folder that has answers is refused, or emptied of them with `overwrite`.
    """
    check_local_sink(target)
    sink = open_sink(target, SinkContext(schema or AnswerSchema(), Journal(overwrite=overwrite)))
    encode = ENCODERS[sink.encoding]
    return SinkWriter(sink, lambda answers: encode(answers) if answers.rows else ())


def open_rejects(target: str) -> SinkWriter[Iterable[Reject]]:
    """A writer of rejects to what `--rejects` names."""
    check_rejects(target)
    return SinkWriter(open_sink(target, SinkContext()), lambda rejects: [reject_lines(rejects)])


def reject_lines(rejects: Iterable[Reject]) -> bytes:
    """Rejects as lines of JSON with `stream`, `reason` and `text`."""
    return "".join(json.dumps(reject.record, ensure_ascii=False) + "\n" for reject in rejects).encode()


ENCODERS: dict[Encoding, Callable[[Answers], Any]] = {
    Encoding.LINES: jsonl_blocks,
    Encoding.TABLES: lambda answers: [as_table(answers)],
}
