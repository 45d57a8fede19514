"""A session: streams, queries over them, and runs that answer them on Spark.

All queries of a run are one dataflow behind one stateful operator (see `pipeline`): one pass over the streams, and
work that queries have in common is done once.
"""

from __future__ import annotations

import os
import re
import tempfile
import uuid
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from meander.dataflow.answers import AnswerSchema
from meander.dataflow.files import local_path
from meander.dataflow.layout import expiry_warning, ignores_expiry
from meander.dataflow.sinks.registry import check_rejects, sink_class
from meander.dataflow.sources.columns import InputTypes
from meander.dataflow.sources.registry import needs_spark
from meander.dataflow.tally import counted
from meander.engine import CompiledQuery, check_types, compile_query, staged_plan, with_cells
from meander.errors import ArgumentError
from meander.explain import Explanation, as_text, sections
from meander.options import AUTO_CELLS, RunOptions
from meander.physical.stages import StagedPlan
from meander.physical.streams import PLAIN
from meander.spark.checkpoint.identity import check_parts, recorded_cells
from meander.spark.checkpoint.locks import lock_for_process
from meander.spark.checkpoint.storage import Location, ObjectPath, location
from meander.spark.checkpoint.stores import merged_settings, session_store, store_settings
from meander.spark.compat import is_connect, parallel_tasks, this_python
from meander.spark.input.stream_source import StreamSource
from meander.spark.messages import Kind
from meander.spark.output.dataframes import answer_frame, frame_encoding
from meander.spark.pipeline import RunPlan, build_pipeline
from meander.spark.repartitioning import start_in_cells
from meander.spark.run import Run
from meander.spark.settings import check_query_settings, check_session, local_spark
from meander.spark.start import RunRequest, vertex_type
from meander.spark.workers.failures import translated
from meander.syntax.query import RegularQuery

NAME = re.compile(r"[A-Za-z_]\w*")
NAME_HINT = "letters, digits and _, not a digit first"


class Query:
    """A registered query."""

    def __init__(self, session: Session, compiled: CompiledQuery) -> None:
        self.session = session
        self.compiled = compiled

    def __repr__(self) -> str:
        return f"Query({self.name!r})"

    @property
    def name(self) -> str:
        return self.compiled.name

    @property
    def text(self) -> str:
        return self.compiled.text

    @property
    def streams(self) -> tuple[str, ...]:
        return self.compiled.streams

    def explain(self, stage: str | None = None, *, cells: int | str = 1) -> str:
        """The query, the plan that will run, its state, and warnings; or one of the stages `query`, `logical`,
        `plans` and `physical`, or `all` of them."""
        options = RunOptions.of(
            time_unit=self.session.time_unit, plan=self.compiled.requested_plan, cells=cells
        )
        compiled = compile_query(self.text, options, views=self.session.views, types=self.session.input_types)
        return as_text(sections(Explanation(compiled, options, cores=self.session._cores()), stage))

    def dataframe(self, *, result: str | None = None, folder: str | None = None, **options: Any) -> DataFrame:
        """The answers as a streaming DataFrame.

        This starts nothing and changes no setting of the session, so that a function of a declarative pipeline can
        return it. Only a stream that is a static DataFrame is written to the folder at once.

        Options are those of `Session.start` (`paths`, `mode`, `lateness`, `cells`, …). Of a query with several
        results, `result` chooses one. `folder` is for snapshots and the record of the files that have been read:
        give the same one, beside Spark's own checkpoint, to resume after a restart.
        """
        chosen = self.session._options(options)
        if chosen.cells is AUTO_CELLS:
            raise ArgumentError(
                "cells cannot be auto for a DataFrame",
                hint="give a number: whoever starts the DataFrame's query resumes it with the same one",
            )
        return self.session._dataframe(self.compiled, result, folder, chosen)


class Session:
    """Streams and queries on a Spark session: the user's, or a local one that is started here."""

    def __init__(self, spark: SparkSession | None = None, *, time_unit: str = "s") -> None:
        self._spark = spark
        if spark is not None:
            check_session(spark)
        self.time_unit = time_unit
        self.sources: dict[str, StreamSource] = {}
        self.queries: dict[str, Query] = {}
        self.runs: list[Run] = []
        self._sinks: list[Any] = []
        self._folders: list[Location] = []

    @property
    def spark(self) -> SparkSession:
        """The Spark session; a local one is started when it is first needed, set up for the streams, sinks and
        checkpoints."""
        if self._spark is None:
            needed = [source.spark_settings() for source in self.sources.values()]
            needed += [sink_class(target).spark_settings(target) for target in self._sinks]
            needed += [store_settings(folder) for folder in self._folders]
            self._spark = local_spark(**merged_settings(needed))
            check_session(self._spark)
        return self._spark

    @property
    def views(self) -> dict[str, RegularQuery]:
        """The queries that later ones can read as streams, by name."""
        return {name: query.compiled.regular for name, query in self.queries.items()}

    @property
    def input_types(self) -> InputTypes:
        """The types of properties that the session's streams know."""
        return InputTypes(
            lambda stream: self.sources[stream].property_types() if stream in self.sources else {}
        )

    def stream(
        self,
        name: str,
        source: DataFrame | str | PathLike[str],
        *,
        columns: Mapping[str, str] | None = None,
        label: str | None = None,
    ) -> None:
        """Name a stream: a DataFrame with the columns src, label, trg, ts, perhaps op, and properties; or a path.

        `columns` maps fields and properties to the names of the columns that hold them, and with a `label` all rows
        have that label. `ts` is an integer in the session's unit or a timestamp. A path is a file or folder, or
        `kafka://host:port/topic`.
        """
        if not NAME.fullmatch(name):
            raise ArgumentError(f"invalid stream name: {name!r}", hint=NAME_HINT)
        if isinstance(source, str | PathLike):
            location = fspath(source)
            if not needs_spark(location):
                local_path(location, "stream")
            self.sources[name] = StreamSource(location, columns=dict(columns or {}), label=label)
        else:
            if not isinstance(source, DataFrame):
                raise ArgumentError(
                    f"the stream {name} is {source!r}",
                    hint="give a DataFrame, a path, or kafka://host:port/topic",
                )
            self.sources[name] = StreamSource(frame=source, columns=dict(columns or {}), label=label)

    def query(self, text: str, name: str | None = None, *, plan: int | None = None) -> Query:
        """Register a query in Datalog or G-CORE. It can read earlier queries as views, by their names.

        What it does not say of the types of properties, the DataFrames say that are streams by then.
        """
        chosen = name if name is not None else f"query{len(self.queries) + 1}"
        self._check_new(chosen)
        options = RunOptions.of(time_unit=self.time_unit, plan=plan)
        compiled = compile_query(text, options, name=chosen, views=self.views, types=self.input_types)
        return self.register(compiled)

    def register(self, compiled: CompiledQuery) -> Query:
        """Register a query that is compiled already, in the session's time unit; it is not planned again."""
        self._check_new(compiled.name)
        _ = compiled.chosen  # refuses a plan that does not exist
        self.queries[compiled.name] = Query(self, compiled)
        return self.queries[compiled.name]

    def _check_new(self, name: str) -> None:
        if not NAME.fullmatch(name):
            raise ArgumentError(f"invalid query name: {name!r}", hint=NAME_HINT)
        if name in self.queries or name in self.sources:
            raise ArgumentError(
                f"there is a query or stream {name} already", hint=f"drop({name!r}), or another name"
            )

    def drop(self, name: str) -> None:
        """Forget a query; runs that answer it continue until they are stopped."""
        self._named(name)
        del self.queries[name]

    def start(
        self,
        checkpoint: str | None = None,
        sinks: Mapping[str, Any] | None = None,
        *,
        queries: list[str] | None = None,
        rejects: Any = None,
        metrics: str | None = None,
        follow: bool = True,
        trigger: str | None = None,
        overwrite: bool = False,
        **options: Any,
    ) -> Run:
        """Answer all registered queries (or those named in `queries`) in one pass over the streams.

        A sink is what `--out` can name, a function that gets a DataFrame of answers and the batch's number, or a
        dict of Spark's `format` and its options. With `follow`, files and folders are watched for more; without, the
        run ends when they have been read, and all held answers are released.

        With the checkpoint of an earlier run, that run resumes, in as many cells unless `cells` names a number.
        Queries may have been added (they are answered from the time on that the run has reached) and left out;
        `meander.spark.checkpoint.identity` has the rules. One run at a time uses a checkpoint.

        With a new checkpoint, outputs by path that have content are refused, or replaced
        with `overwrite`.
        """
        chosen = [self._named(name) for name in (queries if queries is not None else list(self.queries))]
        if not chosen:
            raise ArgumentError("there is no query to run", hint="query(text, name=…) registers one")
        unknown = [name for name in sinks or {} if name not in {query.name for query in chosen}]
        if unknown:
            raise ArgumentError(
                f"a sink is for {unknown[0]}, and no query has that name: there are {', '.join(self.queries)}"
            )
        if metrics is not None:
            local_path(metrics, "metrics")
        if rejects is not None:
            check_rejects(str(rejects))
        request = RunRequest(
            queries=[query.compiled for query in chosen],
            options=self._options(options),
            sources=dict(self.sources),
            sinks=sinks or {},
            rejects=rejects,
            metrics=metrics,
            follow=follow,
            trigger=trigger,
            overwrite=overwrite,
        )
        folder, reason = None, ""
        if request.options.cells is AUTO_CELLS or (checkpoint is not None and "cells" not in options):
            folder = self._folder(checkpoint)
            request, reason = self._with_cells(request, folder)
        staged = self._staged(request.queries, request.options)
        targets = [target for target in request.sinks.values() if target is not None]
        self._check_locations(staged, targets, follow)
        self._sinks += targets
        if folder is None:
            folder = self._folder(checkpoint)
        for earlier in self.runs:
            earlier.release_if_over()
        with translated(folder):
            run = start_in_cells(request, staged, folder, lambda: self.spark)
        if reason:
            run.notes.append(reason)
        self.runs.append(run)
        return run

    def _cores(self) -> int:
        """How many cells run at a time: tasks of the session, or cores of this machine if it has not been started."""
        return (os.cpu_count() or 1) if self._spark is None else parallel_tasks(self._spark)

    def _with_cells(self, request: RunRequest, folder: Location) -> tuple[RunRequest, str]:
        """The request with a number of cells, and the reason; a checkpoint keeps its own, unless one is named."""
        with translated(folder):
            recorded = recorded_cells(folder / "meander") if check_parts(folder / "meander") else None
        if recorded is not None and not (request.options.proofs and recorded > 1):
            is_chosen = request.options.cells is AUTO_CELLS or recorded > 1
            reason = f"{counted(recorded, 'cell')}, as the checkpoint has" if is_chosen else ""
            return replace(request, options=replace(request.options, cells=recorded)), reason
        options, reason = with_cells(request.queries, request.options, self._cores())
        return replace(request, options=options), reason

    def _folder(self, checkpoint: str | None) -> Location:
        """The folder of a checkpoint that the user has named, or a temporary one."""
        if checkpoint is None:
            return Path(tempfile.mkdtemp(prefix="meander-"))
        folder = location(fspath(checkpoint))
        remote = "SPARK_REMOTE" in os.environ if self._spark is None else is_connect(self._spark)
        if remote and isinstance(folder, ObjectPath):
            raise ArgumentError(
                f"{folder} cannot be the checkpoint of a run over Spark Connect",
                hint="choose a folder that server, executors and this machine share, or a classic session",
            )
        if self._spark is not None:
            return session_store(self._spark, folder)
        self._folders.append(folder)
        return folder

    def _options(self, given: Mapping[str, Any]) -> RunOptions:
        """The options of a start: the time unit belongs to the session, and a plan to a query."""
        for name in ("time_unit", "plan"):
            if name in given:
                raise ArgumentError(
                    f"unknown option {name}", hint="Session(time_unit=…) and query(…, plan=…) take these"
                )
        return RunOptions.of(time_unit=self.time_unit, **given)

    def _named(self, name: str) -> Query:
        if name not in self.queries:
            raise ArgumentError(f"there is no query {name}: there are {', '.join(self.queries) or 'none'}")
        return self.queries[name]

    def _staged(self, queries: Sequence[CompiledQuery], options: RunOptions) -> StagedPlan:
        """The plan of all queries, stage by stage, whose streams are all known."""
        staged = staged_plan(queries, options)
        check_types(staged.schemas)
        missing = [name for name in staged.streams if name not in self.sources]
        if missing:
            raise ArgumentError(
                f"the stream {missing[0]} is not known: there are {', '.join(self.sources) or 'none'}",
                hint=f'stream("{missing[0]}", …) says where its edges come from',
            )
        return staged

    def _check_locations(self, staged: StagedPlan, sinks: Sequence[Any], follow: bool) -> None:
        """Refuse what cannot be read or reached, before Spark starts and before any output is opened."""
        schemas = staged.schemas
        for name in staged.streams:
            source = self.sources[name]
            layout = source.layout(name, schemas.get(name, PLAIN), self.time_unit)
            source.check(layout, follow=follow)
            if source.frame is not None and ignores_expiry(layout, source.frame.columns):
                warnings.warn("\nhint: ".join(expiry_warning(name)), stacklevel=3)
        for target in sinks:
            sink_class(target).check(target)

    def _dataframe(
        self, query: CompiledQuery, result: str | None, folder: str | None, options: RunOptions
    ) -> DataFrame:
        heads = list(query.chosen)
        if result is None and len(heads) > 1:
            raise ArgumentError(
                f"{query.name} has several results: {', '.join(heads)}", hint="dataframe(result=…)"
            )
        if result is not None and result not in heads:
            raise ArgumentError(f"{query.name} has no result {result}: it has {', '.join(heads)}")
        staged = self._staged([query], options)
        wanted = next(answers for answers in staged.last.results if result in (None, answers.head))
        schema = AnswerSchema.of(wanted, paths=options.paths, proofs=options.proofs)
        schema = replace(schema, vertex=vertex_type(query, self.sources))
        formats = {query.name: frame_encoding(schema)}
        self._check_locations(staged, (), True)
        own = self._folder(folder)
        if folder is not None:
            lock_for_process(own.resolve())
        plan = RunPlan(uuid.uuid4().hex, staged, options, self.sources, own, follow=True)
        with translated(own), this_python(self.spark):
            check_query_settings(self.spark, options.cells)
            _, rows = build_pipeline(self.spark, plan, formats)
            answers = rows.where((F.col("kind") == str(Kind.ANSWERS)) & (F.col("head") == wanted.head))
            return answer_frame(answers, schema)
