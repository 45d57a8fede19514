"""The commands and their options, as Typer reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from meander.cli.arguments import (
    check_streams,
    input_types,
    is_same_file,
    keep_apart,
    read_columns,
    read_labels,
    read_query,
    read_streams,
)
from meander.cli.running import QUERY_NAME, Request
from meander.cli.running import run as run_request
from meander.cli.terminal import print_note, print_sections, print_warning
from meander.engine import CompiledQuery, compile_query
from meander.errors import ArgumentError
from meander.options import DEFAULTS, RUNNERS, RunOptions, check_choice, command_line_name
from meander.physical.path_operators import PATH_OPERATORS
from meander.syntax.durations import UNITS

NEEDS_SPARK = "leave it out, or use --runner spark"

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
        "--path-operator",
        metavar="|".join(PATH_OPERATORS),
        help="How paths are maintained; auto switches between s-path and closure at run time.",
    ),
]
DemandOption = Annotated[
    bool,
    typer.Option(
        "--demand/--no-demand",
        help="Sideways information passing into closures (auto and closure, one cell).",
    ),
]
RunnerOption = Annotated[
    str,
    typer.Option("--runner", metavar="spark|local", help="Run on Spark, or in this process."),
]


def _version(requested: bool) -> None:
    if requested:
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
            help="Show one stage of planning, or all.",
        ),
    ] = None,
    svg: Annotated[
        Path | None,
        typer.Option(
            "--svg", metavar="FILE", help="Draw the plan that will run, or that of the stage, to FILE."
        ),
    ] = None,
    plan: PlanOption = DEFAULTS.plan,
    time_unit: UnitOption = DEFAULTS.time_unit,
    path_operator: OperatorOption = DEFAULTS.path_operator,
    demand: DemandOption = DEFAULTS.demand,
    cells: Annotated[
        str,
        typer.Option(
            "--cells", metavar="N|auto", help="Show the plan for N cells, or for this machine's cores."
        ),
    ] = str(DEFAULTS.cells),
    proofs: Annotated[bool, typer.Option("--proofs", help="Show the plan of a run with --proofs.")] = False,
) -> None:
    """Show the plan that will run for a query, the state that it will hold, and warnings."""
    from meander.explain import EVERY_STAGE, STAGES, Explanation, sections

    if stage is not None:
        check_choice("--stage", stage, [*STAGES, EVERY_STAGE])
    options = RunOptions.of(
        plan=plan,
        time_unit=time_unit,
        path_operator=path_operator,
        demand=demand,
        cells=cells,
        proofs=proofs,
        spelled=command_line_name,
    )
    text, language = read_query(query)
    compiled = compile_query(text, options, language=language)
    explanation = Explanation(compiled, options)
    shown = sections(explanation, stage)
    if svg is not None:
        keep_apart("--svg", str(svg), [query])
        _write(svg, explanation.draw(stage, _name_of(query)))
    print_sections(shown)
    if stage in STAGES:
        _warn(compiled, options, input_known=False)


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
            help="A stream's edges: a .tsv, .csv, .jsonl or .parquet file (.gz accepted), a folder of such files, "
            "or kafka://host:port/topic. With one stream, NAME= may be omitted.",
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
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--columns",
            metavar="NAME:FIELD=COLUMN,…",
            help="Read src, label, trg, ts, op or a property of a stream from the column of another name.",
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="NAME=LABEL", help="Give all rows of a stream one label."),
    ] = None,
    runner: RunnerOption = "spark",
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="DIR", help="The folder from which the run can resume (spark)."),
    ] = None,
    cells: Annotated[
        str | None,
        typer.Option(
            "--cells",
            metavar="N|auto",
            show_default="1, or as the checkpoint has",
            help="Partitions of the work (spark); auto: by cores and query.",
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Replace existing --out and --rejects, unless the run resumes from a checkpoint.",
        ),
    ] = False,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Wait for more files in folders, until interrupted (spark)."),
    ] = False,
    paths: Annotated[
        bool, typer.Option("--paths", help="Emit the path that proves each answer.")
    ] = DEFAULTS.paths,
    proofs: Annotated[
        bool,
        typer.Option("--proofs", help="Emit the tree that proves each answer, down to edges of the input."),
    ] = DEFAULTS.proofs,
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            metavar="intervals|changes",
            help="Emit answers with their intervals, or changes when answers begin and end.",
        ),
    ] = DEFAULTS.mode,
    lateness: Annotated[
        str,
        typer.Option("--lateness", metavar="DUR", help="How long after a newer edge an edge may arrive."),
    ] = str(DEFAULTS.lateness),
    max_jump: Annotated[
        str | None,
        typer.Option(
            "--max-jump", metavar="DUR", help="Reject an edge whose time is further ahead than DUR."
        ),
    ] = None,
    rejects: Annotated[
        str | None, typer.Option("--rejects", metavar="PATH", help="Where unusable edges go.")
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option("--metrics", metavar="FILE", help="Write figures as one JSON line per batch (spark)."),
    ] = None,
    time_unit: UnitOption = DEFAULTS.time_unit,
    plan: PlanOption = DEFAULTS.plan,
    path_operator: OperatorOption = DEFAULTS.path_operator,
    batch_rows: Annotated[
        int | None, typer.Option("--batch-rows", metavar="N", min=1, help="Edges per batch.")
    ] = DEFAULTS.batch_rows,
    idle: Annotated[
        str,
        typer.Option(
            "--idle",
            metavar="DUR",
            help="After DUR without edges, a stream no longer holds back the others (spark).",
        ),
    ] = "1m",
    memory: Annotated[
        str | None, typer.Option("--memory", metavar="SIZE", help="The memory limit of state, such as 4GB.")
    ] = None,
    threads: Annotated[
        int,
        typer.Option("--threads", metavar="N", min=1, help="Threads for closures, per cell."),
    ] = DEFAULTS.threads,
    demand: DemandOption = DEFAULTS.demand,
) -> None:
    """Answer a query over streams of edges."""
    check_choice("--runner", runner, RUNNERS)
    options = RunOptions.of(
        paths=paths,
        proofs=proofs,
        mode=mode,
        lateness=lateness,
        max_jump=max_jump,
        time_unit=time_unit,
        plan=plan,
        path_operator=path_operator,
        batch_rows=batch_rows,
        memory=memory,
        demand=demand,
        threads=threads,
        cells=DEFAULTS.cells if cells is None else cells,
        idle=idle,
        spelled=command_line_name,
    )
    if runner == "local":
        options.check_local(spelled=command_line_name, hint=NEEDS_SPARK)
        for option, given in {"checkpoint": checkpoint, "metrics": metrics, "follow": follow}.items():
            if given:
                raise ArgumentError(f"--{option} needs Spark", hint=NEEDS_SPARK)
    if out == "-" and rejects == "-":
        raise ArgumentError("answers and rejects cannot both go to -", hint="give --rejects a .jsonl file")
    text, language = read_query(query)
    types = input_types(stream, columns or ())
    compiled = compile_query(text, options, name=QUERY_NAME, language=language, types=types)
    streams = read_streams(stream, compiled.streams, compiled.streams_read)
    check_streams(streams)
    inputs = [query, *streams.values()]
    keep_apart("--out", out, inputs)
    keep_apart("--rejects", rejects, inputs)
    if rejects is not None and is_same_file(rejects, out):
        raise ArgumentError("--rejects and --out are one file", hint="name another file for the rejects")
    _warn(compiled, options, input_known=True)
    request = Request(
        compiled,
        options,
        streams,
        out,
        rejects,
        checkpoint,
        metrics,
        follow,
        overwrite,
        read_columns(columns or (), compiled.streams),
        read_labels(label or (), compiled.streams),
        cells is not None,
    )
    run_request(request, runner)


def _warn(query: CompiledQuery, options: RunOptions, *, input_known: bool) -> None:
    from meander.explain.warnings import warnings_of

    for warning in warnings_of(query.regular, options.time_unit, input_known=input_known):
        print_warning(warning.show(query.text))


@app.command(
    add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def bench(context: typer.Context) -> None:
    """Benchmark Meander and comparable engines on the same edges."""
    from meander.bench.__main__ import main

    raise typer.Exit(main(context.args))


@app.command()
def draw(
    answers: Annotated[
        str, typer.Argument(metavar="ANSWERS", help="A .jsonl file of answers with paths, or -.")
    ],
    svg: Annotated[Path, typer.Option("--svg", metavar="FILE", help="The picture to write.")],
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="The picture's title.")] = "",
    time_unit: UnitOption = DEFAULTS.time_unit,
) -> None:
    """Draw the paths of answers: chains and rings, with the time of each step if it is known."""
    from meander.cli.drawing import read_answers
    from meander.drawing import draw_paths

    records = list(read_answers(answers))
    _write(svg, draw_paths(records, title, unit=check_choice("--time-unit", time_unit, UNITS)))
    if not any(record.get("path") for record in records):
        print_note(
            f"note: no answer of {answers} has a path, so {svg} shows none\n"
            "hint: `meander run --paths` writes the paths of answers that are paths, such as those of a+(x, y)"
        )


@app.command()
def why(
    answers: Annotated[
        str,
        typer.Argument(
            metavar="ANSWERS",
            help="Answers with proofs: a .jsonl or .parquet file, a folder of .parquet files, or -.",
        ),
    ],
    answer: Annotated[
        str,
        typer.Option("--answer", metavar="SRC,TRG", help="The answer: its vertices, separated by commas."),
    ],
    at: Annotated[
        str, typer.Option("--at", metavar="T", help="The instant: a number in the stream's unit, or a date.")
    ],
    label: Annotated[
        str | None, typer.Option("--label", metavar="L", help="The answer's label, if it has several.")
    ] = None,
    svg: Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Draw the proof to FILE.")] = None,
    time_unit: UnitOption = DEFAULTS.time_unit,
) -> None:
    """Show why an answer holds at an instant: the tree that proves it, down to edges of the input."""
    from meander.cli.why import find_proof, is_of_its_start, print_proof
    from meander.drawing import draw_proof

    unit = check_choice("--time-unit", time_unit, UNITS)
    record = find_proof(answers, answer, at, label, unit)
    if svg is not None:
        keep_apart("--svg", str(svg), [answers])
        _write(svg, draw_proof(record["proof"], f"why {answer} at {at}", unit=unit))
    if is_of_its_start(record):
        print_note("note: in mode changes, a proof is that of the instant at which its answer starts")
    print_proof(record["proof"], unit)


@app.command()
def demo(
    runner: RunnerOption = "spark",
    folder: Annotated[
        Path,
        typer.Option("--folder", metavar="DIR", help="The folder for the query, the stream and the answers."),
    ] = Path("demo-out"),
) -> None:
    """Run a small query over a small stream, and show each step."""
    from meander.cli.demo import run_demo

    run_demo(folder, check_choice("--runner", runner, RUNNERS))
