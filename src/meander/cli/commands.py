"""The commands and their options, as Typer reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from meander.cli.arguments import (
    check_streams,
    is_same_file,
    keep_apart,
    one_of,
    read_duration,
    read_query,
    read_seconds,
    read_size,
    read_streams,
)
from meander.cli.terminal import print_sections, print_warning
from meander.errors import ArgumentError
from meander.syntax.durations import UNITS, parse_max_jump

IDLE = "1m"

app = typer.Typer(
    name="meander",
    help="Persistent graph queries over streams of edges.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

QueryArgument = Annotated[
    str,
    typer.Argument(metavar="QUERY", help="A .dl or .gcore file, - for standard input, or the query's text."),
]
PlanOption = Annotated[
    int | None, typer.Option("--plan", metavar="N", min=0, help="Run plan N of `explain --stage plans`.")
]
UnitOption = Annotated[
    str, typer.Option("--time-unit", metavar="s|ms|us", help="The unit of the streams' times.")
]
OperatorOption = Annotated[
    str,
    typer.Option(
        "--path-operator", metavar="auto|s-path|negative-tuple|closure", help="How paths are kept current."
    ),
]
DemandOption = Annotated[
    bool,
    typer.Option(
        "--demand/--no-demand",
        help="Whether closures that are only probed are told what for (auto and closure, one cell).",
    ),
]


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"meander {version('meander')}")
        except PackageNotFoundError:
            typer.echo("meander from a source tree, not installed")
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Persistent graph queries over streams of edges."""


@app.command()
def explain(
    query: QueryArgument,
    stage: Annotated[
        str | None,
        typer.Option(
            "--stage",
            metavar="query|logical|plans|physical|all",
            help="Show how the plan came about: one stage, or all.",
        ),
    ] = None,
    svg: Annotated[
        Path | None,
        typer.Option("--svg", metavar="FILE", help="Draw the plan that will run to FILE (or the stage's)."),
    ] = None,
    plan: PlanOption = None,
    time_unit: UnitOption = "s",
    path_operator: OperatorOption = "auto",
    demand: DemandOption = True,
    cells: Annotated[int, typer.Option("--cells", metavar="N", min=1, help="Show the plan for N cells.")] = 1,
) -> None:
    """Show the plan that will run for a query, the state that it will hold, and warnings."""
    from meander.explain import EVERY_STAGE, STAGES, Explanation, sections, warnings_of
    from meander.physical.plan import PATH_OPERATORS

    if stage is not None:
        one_of("--stage", stage, [*STAGES, EVERY_STAGE])
    one_of("--time-unit", time_unit, UNITS)
    one_of("--path-operator", path_operator, PATH_OPERATORS)
    text, language = read_query(query)
    explanation = Explanation(
        text,
        unit=time_unit,
        language=language,
        plan=plan,
        path_operator=path_operator,
        demand=demand,
        cells=cells,
    )
    shown = sections(explanation, stage)
    if svg is not None:
        keep_apart("--svg", str(svg), [query])
        _write(svg, explanation.draw(stage, _name_of(query)))
    print_sections(shown)
    if stage in STAGES:
        for warning in warnings_of(explanation.query, time_unit):
            print_warning(warning.show(text))


def _write(path: Path, content: str) -> None:
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"{path} cannot be written: {error.strerror}") from None


def _name_of(query: str) -> str:
    try:
        return Path(query).name if query != "-" and Path(query).is_file() else ""
    except (OSError, ValueError):
        return ""


@app.command()
def run(
    query: QueryArgument,
    stream: Annotated[
        list[str],
        typer.Option(
            "--stream",
            metavar="NAME=PATH",
            help="Where a stream's edges are: a .tsv, .csv, .jsonl or .parquet file (.gz accepted), a folder of "
            "such, or kafka://host:port/topic. With one stream, NAME= may be left out.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            metavar="PATH",
            help="Where answers go: .jsonl, .parquet, a folder, -, or on Spark kafka://host:port/topic or "
            "format:NAME?OPTION=VALUE&…",
        ),
    ],
    runner: Annotated[
        str, typer.Option("--runner", metavar="spark|local", help="Who does the work.")
    ] = "spark",
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="DIR", help="Where a run can be taken up again (spark)."),
    ] = None,
    cells: Annotated[
        int, typer.Option("--cells", metavar="N", min=1, help="Parts to split the work into (spark).")
    ] = 1,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Replace what is at --out and --rejects, where no checkpoint goes on from it."
        ),
    ] = False,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Wait for more files in folders, until interrupted (spark)."),
    ] = False,
    paths: Annotated[bool, typer.Option("--paths", help="Give the path that proves each answer.")] = False,
    mode: Annotated[
        str,
        typer.Option("--mode", metavar="intervals|changes", help="Intervals, or when answers begin and end."),
    ] = "intervals",
    lateness: Annotated[
        str, typer.Option("--lateness", metavar="DUR", help="How late an edge may come after a newer one.")
    ] = "0",
    max_jump: Annotated[
        str | None,
        typer.Option(
            "--max-jump", metavar="DUR", help="Reject an edge whose time is further ahead than DUR."
        ),
    ] = None,
    rejects: Annotated[
        str | None, typer.Option("--rejects", metavar="PATH", help="Where edges that cannot be used go.")
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option("--metrics", metavar="FILE", help="A line of JSON a batch, with figures (spark)."),
    ] = None,
    time_unit: UnitOption = "s",
    plan: PlanOption = None,
    path_operator: OperatorOption = "auto",
    batch_rows: Annotated[
        int | None, typer.Option("--batch-rows", metavar="N", min=1, help="Edges taken in at a time.")
    ] = None,
    idle: Annotated[
        str,
        typer.Option(
            "--idle",
            metavar="DUR",
            help="After how long a silent stream no longer holds others back (spark).",
        ),
    ] = IDLE,
    memory: Annotated[
        str | None, typer.Option("--memory", metavar="SIZE", help="The most memory for state, such as 4GB.")
    ] = None,
    threads: Annotated[
        int,
        typer.Option("--threads", metavar="N", min=1, help="Threads that walk closures, in each cell."),
    ] = 1,
    demand: DemandOption = True,
) -> None:
    """Answer a query over streams of edges."""
    from meander.cli.running import MODES, RUNNERS, Request, run_in_process, run_on_spark, streams_read
    from meander.explain import warnings_of
    from meander.physical.plan import PATH_OPERATORS
    from meander.syntax import parse

    one_of("--runner", runner, RUNNERS)
    one_of("--mode", mode, MODES)
    one_of("--time-unit", time_unit, UNITS)
    one_of("--path-operator", path_operator, PATH_OPERATORS)
    sparks_own = {
        "--checkpoint": checkpoint is not None,
        "--cells": cells != 1,
        "--metrics": metrics is not None,
        "--follow": follow,
        "--idle": idle != IDLE,
    }
    for option, given in sparks_own.items():
        if runner == "local" and given:
            raise ArgumentError(f"{option} needs Spark", hint="leave it out, or use --runner spark")
    if out == "-" and rejects == "-":
        raise ArgumentError("answers and rejects cannot both go to -", hint="give --rejects a .jsonl file")
    text, language = read_query(query)
    regular = parse(text, language=language, unit=time_unit)
    request = Request(
        text=text,
        query=regular,
        streams=read_streams(stream, [one.name for one in regular.streams], streams_read(regular)),
        out=out,
        rejects=rejects,
        paths=paths,
        mode=mode,
        lateness=read_duration("--lateness", lateness, time_unit),
        max_jump=parse_max_jump(max_jump, time_unit),
        time_unit=time_unit,
        plan=plan,
        path_operator=path_operator,
        batch_rows=batch_rows,
        idle=read_seconds("--idle", idle),
        memory=read_size("--memory", memory) if memory is not None else None,
        demand=demand,
        threads=threads,
        checkpoint=checkpoint,
        cells=cells,
        metrics=metrics,
        follow=follow,
        overwrite=overwrite,
    )
    check_streams(request.streams)
    read = [query, *request.streams.values()]
    keep_apart("--out", out, read)
    keep_apart("--rejects", rejects, read)
    if rejects is not None and is_same_file(rejects, out):
        raise ArgumentError("--rejects and --out are one file", hint="name another file for the rejects")
    for warning in warnings_of(regular, time_unit):
        print_warning(warning.show(text))
    if runner == "local":
        run_in_process(request)
    else:
        run_on_spark(request)


@app.command(
    add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def bench(context: typer.Context) -> None:
    """Measure meander, and what one would use instead."""
    from meander.bench.__main__ import main

    raise typer.Exit(main(context.args))


@app.command()
def demo(
    runner: Annotated[
        str, typer.Option("--runner", metavar="spark|local", help="Who does the work.")
    ] = "spark",
    folder: Annotated[
        Path,
        typer.Option("--folder", metavar="DIR", help="Where the query, the stream and the answers are left."),
    ] = Path("demo-out"),
) -> None:
    """Answer a small query over a small stream, and show how."""
    from meander.cli.demo import run_demo
    from meander.cli.running import RUNNERS

    run_demo(folder, one_of("--runner", runner, RUNNERS))
