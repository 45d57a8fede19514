"""A run in this process: sources, dataflow and sinks opened from a request."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from meander.cli.terminal import print_warning
from meander.dataflow.answers import Answers, AnswerSchema
from meander.dataflow.edges import Reject
from meander.dataflow.files import Meter
from meander.dataflow.ingest import Jump
from meander.dataflow.runner import run_local
from meander.dataflow.sinks.writer import open_answers, open_rejects
from meander.dataflow.sources.reader import is_live, open_source
from meander.dataflow.tally import Tally, jump_message
from meander.engine import check_types, open_dataflow, physical_plan
from meander.options import LOCAL_BATCH_ROWS

if TYPE_CHECKING:
    from meander.cli.running import Request


class LocalRun:
    """The `Run` of the local runner. It starts with `wait`."""

    resumed = False
    left_early = False

    def __init__(self, request: Request) -> None:
        options = request.options
        self.request = request
        self.tally = Tally()
        self.notes: list[str] = []
        self.warn: Callable[[str], None] = print_warning
        self.batch_hooks: list[Callable[[dict[str, Any]], None]] = []
        self._plan = physical_plan([request.query], options)
        check_types(self._plan.schemas)
        self._meters = {name: Meter() for name in request.streams}
        layouts = request.layouts(self._plan.schemas)
        self.tally.read_properties(layouts)
        self._sources = {
            name: self.tally.counting(
                name,
                open_source(
                    path,
                    batch_rows=options.batch_rows or LOCAL_BATCH_ROWS,
                    meter=self._meters[name],
                    layout=layouts[name],
                ),
            )
            for name, path in request.streams.items()
        }
        self._dataflow = open_dataflow(self._plan, options)

    @property
    def state_bytes(self) -> int:
        return self._dataflow.state_bytes

    @property
    def bytes_read(self) -> int:
        return sum(meter.bytes for meter in self._meters.values())

    @property
    def labels_unseen(self) -> list[str]:
        return self._dataflow.labels_unseen()

    def wait(self, timeout: float | None = None) -> bool:
        """Process all input and write all answers, or as many as their reader takes, however long it takes."""
        request, options = self.request, self.request.options
        with ExitStack() as open_files:
            # Rejects first: an error of theirs is then raised before the file of answers is created.
            rejects = open_files.enter_context(open_rejects(request.rejects)) if request.rejects else None
            sink = open_files.enter_context(
                open_answers(
                    request.out,
                    AnswerSchema.of(self._plan.results[0], paths=options.paths, proofs=options.proofs),
                    overwrite=request.overwrite,
                )
            )

            def reject(rows: list[Reject]) -> None:
                self.tally.add_rejects(rows)
                if rejects is not None:
                    rejects.write(rows)

            batch: list[Answers] = []
            for _, answers in run_local(
                self._dataflow,
                self._sources,
                lateness=options.lateness,
                max_jump=options.max_jump,
                live=any(is_live(path) for path in request.streams.values()),
                reject=reject,
                note=self._count,
                warn=self._warn_of_jump,
            ):
                self.tally.answers += answers.rows
                batch.append(answers)
                if len(batch) == len(self._plan.results):
                    # Several results are one output, in order of time.
                    if len(batch) == 1:
                        sink.write(answers)
                    else:
                        sink.write_merged(batch)
                    batch = []
                if sink.done:
                    self.left_early = True
                    break
        return True

    def stop(self) -> None:
        """Nothing to do: `wait` closes what it opened."""

    def _count(self, edges: int, rejected: int) -> None:
        self.tally.edges += edges
        for hook in self.batch_hooks:
            hook({"edges": edges, "rejected": rejected})

    def _warn_of_jump(self, jump: Jump) -> None:
        self.warn(jump_message(jump, self.request.options.time_unit))
