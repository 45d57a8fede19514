"""A session: streams, queries over them, and runs that answer them on Spark.

All queries of a run are one dataflow behind one stateful operator: one pass over the streams, and what queries
have in common is computed once. The pipeline is three steps:

    chunks of edges  →  groupBy(cell).transformWithState(Cell)  →  chunks of answers, rejects and figures

With several cells there are several stages, and the middle step is there for each of them, one after the other.
"""

from __future__ import annotations

import re
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType

from meander.dataflow.answers import answer_schema
from meander.dataflow.files import is_kafka, local_path
from meander.dataflow.sinks import check_rejects
from meander.dataflow.sources import check_source
from meander.errors import ArgumentError, InputError, OutputError, StateError
from meander.explain import explain
from meander.physical.plan import PhysicalPlan
from meander.physical.planning import plan_query
from meander.physical.stages import StagedPlan, build_stages
from meander.spark.cell.job import Cell, Job, stage_jobs
from meander.spark.checkpoint.identity import (
    check_checkpoint,
    check_parts,
    is_committed,
    kept_plans,
    last_offset,
    meaning_of,
    note_queries,
    note_spark,
    noted_sinks,
)
from meander.spark.checkpoint.locks import CheckpointLock
from meander.spark.checkpoint.notes import missing_part
from meander.spark.formats import (
    ARROW_INTEGERS,
    ARROW_STRINGS,
    answer_type,
    decode_table,
    spark_schema,
)
from meander.spark.input.ledger import Ledger
from meander.spark.kafka import check_broker, connector_settings, kafka_frame
from meander.spark.messages import ANSWERS, CHUNK_TYPE, RESULT_TYPE, cell_keys
from meander.spark.run import Run, SparkSink, check_damage, check_format
from meander.spark.settings import PARTITIONS, local_spark, prepare_session, refuse_connect
from meander.spark.sinks import Record, Rejects, Sink, open_sink
from meander.spark.sources import Intake, chunk_frame, edge_columns, edge_frame, record_frame
from meander.spark.workers.failures import translated
from meander.spark.workers.pool import Pool
from meander.syntax import parse
from meander.syntax.durations import parse_duration, parse_max_jump, parse_size
from meander.syntax.query import RegularQuery

NAME = re.compile(r"[A-Za-z_]\w*")
BATCH_ROWS = 500_000
REJECTS = "rejects of all"
"""The name of the note of rejects, which no query can have."""

FRAME_LOCKS: dict[Path, CheckpointLock] = {}
"""The folders of DataFrames of answers. Who runs them, and until when, is not known here: this process has them."""

KEPT_PLAN = "the cells of this checkpoint hold what another plan reads: the run goes on with that plan"


@dataclass(frozen=True)
class Source:
    """Where a stream's edges come from: a path, or a DataFrame and the names of its columns.

    `records` are edges as bytes in one column; a `bounded` path does not grow.
    """

    place: str = ""
    frame: DataFrame | None = None
    columns: dict[str, str] = field(default_factory=dict)
    records: bool = False
    bounded: bool = False

    @property
    def by_spark(self) -> bool:
        """Whether Spark reads it: files, and what does not grow, are read by Meander."""
        return is_kafka(self.place) or (self.frame is not None and self.frame.isStreaming)

    @property
    def has_integers(self) -> bool:
        """Whether all vertices are integers, by the types of the columns."""
        if self.frame is None:
            return False
        types = {one.name: one.dataType for one in self.frame.schema.fields}
        return all(isinstance(types.get(self.columns.get(end, end)), IntegralType) for end in ("src", "trg"))


@dataclass(frozen=True)
class Options:
    """What a run can be told, by the names of the command's options."""

    paths: bool = False
    mode: str = "intervals"
    lateness: int | str = 0
    max_jump: int | str | None = None
    path_operator: str = "auto"
    cells: int = 1
    batch_rows: int | None = None
    idle: float | str = 60.0
    memory: int | str | None = None
    demand: bool = True
    threads: int = 1
    snapshot_rows: int = 250_000


class Query:
    """A registered query."""

    def __init__(
        self, session: Session, name: str, text: str, regular: RegularQuery, plan: int | None
    ) -> None:
        self.session = session
        self.name = name
        self.text = text
        self.regular = regular
        self.plan = plan

    def __repr__(self) -> str:
        return f"Query({self.name!r})"

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(stream.name for stream in self.regular.streams)

    def explain(self, stage: str | None = None, *, cells: int = 1) -> str:
        """The query, the plan that will run, its state, and warnings; or one of the stages `query`, `logical`,
        `plans` and `physical`, or `all` of them."""
        return explain(
            self.text,
            stage,
            unit=self.session.time_unit,
            views=self.session.views,
            plan=self.plan,
            cells=cells,
        )

    def dataframe(self, *, result: str | None = None, folder: str | None = None, **options: Any) -> DataFrame:
        """The answers as a streaming DataFrame.

        Options are those of `Session.start` (`paths`, `mode`, `lateness`, `cells`, …). Of a query with several
        results, `result` chooses one. `folder` is where snapshots go and what has been read of files is noted:
        give the same one, beside Spark's own checkpoint, to go on after a restart.
        """
        return self.session._dataframe(self, result, folder, Options(**options))


class Session:
    """Streams and queries on a Spark session: the user's, or a local one that is started here."""

    def __init__(self, spark: SparkSession | None = None, *, time_unit: str = "s") -> None:
        self._spark = spark
        if spark is not None:
            prepare_session(spark)
        self.time_unit = time_unit
        self.sources: dict[str, Source] = {}
        self.queries: dict[str, Query] = {}
        self.runs: list[Run] = []
        self._sinks: list[str] = []

    @property
    def spark(self) -> SparkSession:
        """The Spark session; a local one is started when it is first needed, with Kafka where a stream or sink is."""
        if self._spark is None:
            places = [*(source.place for source in self.sources.values()), *self._sinks]
            kafka = any(is_kafka(place) for place in places)
            self._spark = local_spark(**(connector_settings() if kafka else {}))
            prepare_session(self._spark)
        return self._spark

    @property
    def views(self) -> dict[str, RegularQuery]:
        """The queries that later ones can read as streams, by name."""
        return {name: query.regular for name, query in self.queries.items()}

    def stream(
        self, name: str, source: DataFrame | str | PathLike[str], *, columns: Mapping[str, str] | None = None
    ) -> None:
        """Name a stream: a DataFrame with the columns src, label, trg, ts and perhaps op, or a path.

        `columns` maps these to the DataFrame's own names; `ts` is an integer in the session's unit or a
        timestamp. A path is a file or folder, or `kafka://host:port/topic`.
        """
        if not NAME.fullmatch(name):
            raise ArgumentError(
                f"{name!r} is no name for a stream\nhint: letters, digits and _, not a digit first"
            )
        if isinstance(source, str | PathLike):
            place = fspath(source)
            if not is_kafka(place):
                local_path(place, "stream")
            self.sources[name] = Source(place=place)
        else:
            refuse_connect(source)
            if not isinstance(source, DataFrame):
                raise ArgumentError(
                    f"the stream {name} is {source!r}",
                    hint="give a DataFrame, a path, or kafka://host:port/topic",
                )
            self.sources[name] = Source(frame=source, columns=dict(columns or {}))

    def query(self, text: str, name: str | None = None, *, plan: int | None = None) -> Query:
        """Register a query in Datalog or G-CORE. It can read earlier queries as views, by their names."""
        chosen = name if name is not None else f"query{len(self.queries) + 1}"
        if not NAME.fullmatch(chosen):
            raise ArgumentError(
                f"{chosen!r} is no name for a query\nhint: letters, digits and _, not a digit first"
            )
        if chosen in self.queries or chosen in self.sources:
            raise ArgumentError(
                f"there is a query or stream {chosen} already\nhint: drop({chosen!r}), or another name"
            )
        regular = parse(text, unit=self.time_unit, views=self.views)
        query = Query(self, chosen, text, regular, plan)
        plan_query(regular, plan=plan)
        self.queries[chosen] = query
        return query

    def drop(self, name: str) -> None:
        """Forget a query; runs that answer it go on until they are stopped."""
        if name not in self.queries:
            raise ArgumentError(f"there is no query {name}: there are {', '.join(self.queries) or 'none'}")
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

        A sink is a path as for `--out`, a function that gets a DataFrame of answers and the batch's number, or a
        function's place taken by a dict of Spark's `format` and its options. With `follow`, files and folders
        are watched for more; without, the run ends when they have been read, and everything held is released.

        With the checkpoint of an earlier run, that run goes on. Queries may have been added (they are answered from
        the time on that the run has reached) and left out; `meander.spark.checkpoint.identity` says what that means. One run
        at a time uses a checkpoint. With a new checkpoint, outputs by path that have content are refused, or replaced
        with `overwrite`.
        """
        chosen = [self._named(name) for name in (queries if queries is not None else list(self.queries))]
        if not chosen:
            raise ArgumentError("there is no query to run\nhint: query(text, name=…) registers one")
        unknown = [name for name in sinks or {} if name not in {query.name for query in chosen}]
        if unknown:
            raise ArgumentError(
                f"a sink is for {unknown[0]}, and no query has that name: there are {', '.join(self.queries)}"
            )
        asked = Options(**options)
        places = [str(sink) for sink in (sinks or {}).values()]
        self._sinks += places
        staged = self._staged(chosen, asked)
        self._check_places(staged.streams, places, follow)
        if metrics is not None:
            local_path(metrics, "metrics")
        if rejects is not None:
            check_rejects(str(rejects))
        if checkpoint is not None:
            place = local_path(checkpoint, "checkpoint")
        else:
            place = Path(tempfile.mkdtemp(prefix="meander-"))
        with translated(place):
            return self._start(
                chosen, asked, staged, place, sinks or {}, rejects, metrics, follow, trigger, overwrite
            )

    def _start(
        self,
        chosen: list[Query],
        asked: Options,
        staged: StagedPlan,
        place: Path,
        sinks: Mapping[str, Any],
        rejects: Any,
        metrics: str | None,
        follow: bool,
        trigger: str | None,
        overwrite: bool,
    ) -> Run:
        own = place / "meander"
        check_parts(own)
        for earlier in self.runs:
            earlier.release_if_over()
        with ExitStack() as held:
            held.callback(CheckpointLock(own, place).release)
            plans = kept_plans(own, chosen, staged.exchanges)
            if plans is not None:
                staged = self._staged(chosen, asked, plans)
            physical = staged.last
            frames = [name for name in staged.streams if name in self.sources and self.sources[name].by_spark]
            meaning = meaning_of(chosen, asked.mode, asked.cells, self.time_unit, staged.exchanges, frames)
            run_id = check_checkpoint(own, meaning)
            self._check_inputs(own, staged.streams)
            known = noted_sinks(own)

            def record(name: str) -> Record:
                return Record(own / "sinks" / f"{name}.json", name in known, overwrite, held)

            (own / "sinks").mkdir(exist_ok=True)
            opened: dict[str, Sink | SparkSink] = {}
            for query in chosen:
                given = sinks.get(query.name)
                if given is None:
                    continue
                opened[query.name] = self._sink(query, given, record(query.name), physical, asked, follow)
            reject_sink = None
            if rejects is not None:
                lines = open_sink(str(rejects), record(REJECTS), bounded=not follow, empty=pa.schema([]))
                reject_sink = Rejects(lines)
            formats = {name: sink.how for name, sink in opened.items()}
            job, frame = self._pipeline(run_id, staged, asked, formats, own, follow)
            # Everything has been checked: only now is an output emptied that is to be replaced.
            for sink in (*opened.values(), *([reject_sink] if reject_sink is not None else [])):
                if not isinstance(sink, SparkSink):
                    sink.begin()
            note_queries(own, meaning, run_id, [one.stem for one in (own / "sinks").glob("*.json")])
            run = Run(
                self.spark, job, frame, place, opened, reject_sink, metrics, follow=follow, trigger=trigger
            )
            run.held = held.pop_all()
        try:
            note_spark(own)
        except BaseException:
            run.stop()
            raise
        if plans is not None:
            run.notes.append(KEPT_PLAN)
        self.runs.append(run)
        return run

    def _check_places(self, streams: Sequence[str], sinks: Sequence[str], follow: bool) -> None:
        """Refuse what cannot be read or reached, before Spark starts and before any output is opened."""
        for name in streams:
            place = self.sources[name].place if name in self.sources else ""
            if is_kafka(place):
                check_broker(place, InputError)
            elif place:
                check_source(place, follow=follow)
        for place in sinks:
            if is_kafka(place):
                check_broker(place, OutputError)

    def _check_inputs(self, own: Path, streams: tuple[str, ...]) -> None:
        """Refuse files that have changed since they were read.

        A run that has ended has said all there is to say: more input for it is refused, not passed over.
        """
        places = {
            name: self.sources[name].place
            for name in streams
            if name in self.sources and self.sources[name].place
        }
        check_damage(own)
        ledger = Ledger(own / "ledger", places, tuple(places), frozenset(places), 1)
        ledger.check_whole(last_offset(own.parent))
        for name in streams:
            folder = own / "static" / name
            read = any(Path(path).parent == folder for path in ledger.positions)
            if read and not (folder / "_SUCCESS").exists():
                raise missing_part(folder)
        ledger.check_files()
        ended = own / "ended"
        if not ended.exists() and ledger.closed.issuperset(streams) and is_committed(own.parent):
            ended.touch()
        if not ended.exists():
            return
        fresh = ledger.unread()
        if fresh:
            raise StateError(
                f"the run of the checkpoint {own.parent} has ended with its input, and {fresh} has come or grown "
                "since",
                hint="a new checkpoint reads everything; a run with --follow (in Python, follow=True) waits for more",
            )

    def _named(self, name: str) -> Query:
        if name not in self.queries:
            raise ArgumentError(f"there is no query {name}: there are {', '.join(self.queries) or 'none'}")
        return self.queries[name]

    def _staged(
        self, queries: list[Query], options: Options, kept: Mapping[str, int | None] | None = None
    ) -> StagedPlan:
        """The plan of all queries, stage by stage; plans that are `kept` go before those that queries ask for."""
        if options.cells < 1:
            raise ArgumentError(f"{options.cells} cells cannot do any work\nhint: --cells is 1 or more")
        # A share of a closure is a closure of its own: demand is for one cell.
        demand = options.demand and options.cells == 1
        plans = [
            one
            for query in queries
            for one in plan_query(
                query.regular,
                name=query.name,
                unit=self.time_unit,
                plan=(kept or {}).get(query.name, query.plan),
                path_operator=options.path_operator,
                demand=demand,
            )
        ]
        return build_stages(plans, options.cells, path_operator=options.path_operator, paths=options.paths)

    def _sink(
        self,
        query: Query,
        given: Any,
        record: Record,
        physical: PhysicalPlan,
        options: Options,
        follow: bool,
    ) -> Sink | SparkSink:
        results = [one for one in physical.results if one.query == query.name]
        arity = results[0].arity
        if isinstance(given, str | Path) and not is_kafka(str(given)):
            empty = answer_schema(arity, paths=options.paths)
            return open_sink(str(given), record, bounded=not follow, empty=empty)
        if isinstance(given, Mapping) and "format" in given:
            check_format(self.spark, str(given["format"]))
        integers = self._has_integers(query)
        return SparkSink.of(given, arity, paths=options.paths, integers=integers)

    def _has_integers(self, query: Query) -> bool:
        return all(self.sources[name].has_integers for name in query.streams if name in self.sources)

    def _pipeline(
        self,
        run_id: str,
        staged: StagedPlan,
        options: Options,
        formats: Mapping[str, str],
        own: Path,
        follow: bool,
    ) -> tuple[Job, DataFrame]:
        """The job of the cells that answers leave from, and the DataFrame of what leaves them."""
        streams = staged.streams
        missing = [name for name in streams if name not in self.sources]
        if missing:
            raise ArgumentError(
                f"the stream {missing[0]} is not known: there are {', '.join(self.sources) or 'none'}\n"
                f'hint: stream("{missing[0]}", …) says where its edges come from'
            )
        cells = cell_keys(options.cells, options.cells)
        self.spark.conf.set(PARTITIONS, str(options.cells))
        sources = {name: self._settled(name, own) for name in streams}
        others = {
            name: self._chunks(name, one, cells[0]) for name, one in sources.items() if one.frame is not None
        }
        bounded = [
            name for name, one in sources.items() if name not in others and (one.bounded or not follow)
        ]
        idle = (
            options.idle
            if isinstance(options.idle, int | float)
            else parse_duration(options.idle, "ms") / 1000
        )
        intake = Intake(
            ledger=str(own / "ledger"),
            streams=streams,
            places={name: one.place for name, one in sources.items() if name not in others},
            cell=cells[0],
            bounded=tuple(bounded),
            batch_rows=options.batch_rows or BATCH_ROWS,
            time_unit=self.time_unit,
            tick=idle if follow and len(streams) > 1 else None,
            tasks=self.spark.sparkContext.defaultParallelism,
            by_tasks=options.cells > 1,
        )
        lateness, memory = options.lateness, options.memory
        jobs = stage_jobs(
            staged,
            cells,
            run=run_id,
            formats=formats,
            lateness=parse_duration(lateness, self.time_unit) if isinstance(lateness, str) else lateness,
            max_jump=parse_max_jump(options.max_jump, self.time_unit),
            mode=options.mode,
            paths=options.paths,
            memory=parse_size(memory) if isinstance(memory, str) else memory,
            threads=options.threads,
            idle=idle,
            started=time.time(),
            time_unit=self.time_unit,
            merged=frozenset(others),
            snapshots=str(own / "snapshots"),
            spool=str(own / "spool") if (self.spark.sparkContext.master or "").startswith("local[") else "",
            snapshot_rows=options.snapshot_rows,
        )
        pool = Pool(self.spark, jobs)
        pool.prepare()
        frame = edge_frame(self.spark, intake)
        for part in others.values():
            frame = frame.union(part)
        if options.cells == 1 and not others:
            # A batch is one row: the cell can take it as it is, without an exchange.
            frame = frame.coalesce(1)
        for job in jobs:
            rows = RESULT_TYPE if job.stage == job.last else CHUNK_TYPE
            with pool.declared():
                frame = frame.groupBy("cell").transformWithState(Cell(job), rows, "Append", "None")
        return jobs[-1], frame

    def _settled(self, name: str, own: Path) -> Source:
        """A stream's source as a folder that is read, or as a streaming DataFrame.

        A static DataFrame is written out in order of time, and read as files that do not grow.
        """
        source = self.sources[name]
        if is_kafka(source.place):
            return Source(frame=kafka_frame(self.spark, source.place), records=True)
        if source.frame is None or source.frame.isStreaming:
            return source
        folder = own / "static" / name
        if not (folder / "_SUCCESS").exists():
            chosen = edge_columns(source.frame, name, source.columns)
            chosen.orderBy("ts").write.mode("overwrite").parquet(str(folder))
        return Source(place=str(folder), bounded=True)

    def _chunks(self, name: str, source: Source, cell: int) -> DataFrame:
        assert source.frame is not None
        if source.records:
            return record_frame(source.frame, name, cell=cell)
        return chunk_frame(source.frame, name, cell=cell, columns=source.columns, time_unit=self.time_unit)

    def _dataframe(self, query: Query, result: str | None, folder: str | None, options: Options) -> DataFrame:
        results = plan_query(query.regular, name=query.name, unit=self.time_unit, plan=query.plan)
        heads = [one.head for one in results]
        if result is None and len(heads) > 1:
            raise ArgumentError(
                f"{query.name} has several results: {', '.join(heads)}\nhint: dataframe(result=…)"
            )
        if result is not None and result not in heads:
            raise ArgumentError(f"{query.name} has no result {result}: it has {', '.join(heads)}")
        staged = self._staged([query], options)
        wanted = next(one for one in staged.last.results if result in (None, one.head))
        integers = self._has_integers(query)
        formats = {query.name: ARROW_INTEGERS if integers else ARROW_STRINGS}
        self._check_places(staged.streams, (), True)
        own = (
            local_path(folder, "checkpoint")
            if folder is not None
            else Path(tempfile.mkdtemp(prefix="meander-"))
        )
        if folder is not None and own.resolve() not in FRAME_LOCKS:
            FRAME_LOCKS[own.resolve()] = CheckpointLock(own, own)
        with translated(own):
            _, frame = self._pipeline(uuid.uuid4().hex, staged, options, formats, own, True)
        chosen = frame.where((F.col("kind") == ANSWERS) & (F.col("head") == wanted.head)).select("data")
        return unpack(chosen, wanted.arity, paths=options.paths, integers=integers)


def unpack(chunks: DataFrame, arity: int, *, paths: bool, integers: bool) -> DataFrame:
    """Chunks of answers as rows of answers."""
    schema = spark_schema(arity, paths=paths, integers=integers)

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for data in batch.column("data"):
                yield from decode_table(data.as_py()).cast(schema).to_batches()

    return chunks.mapInArrow(rows, answer_type(arity, paths=paths, integers=integers))
