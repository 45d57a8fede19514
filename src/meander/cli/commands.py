"""The commands and their options, as Typer reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from meander.cli.arguments import one_of, read_query
from meander.cli.terminal import print_sections, print_warning
from meander.errors import ArgumentError
from meander.syntax.durations import UNITS

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


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"meander {version('meander')}")
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
        typer.Option("--stage", metavar="query|logical|plans|physical", help="Show this stage alone."),
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Draw the plan of this stage to FILE.")
    ] = None,
    plan: PlanOption = None,
    time_unit: UnitOption = "s",
    path_operator: OperatorOption = "auto",
) -> None:
    """Show what meander makes of a query, stage by stage."""
    from meander.explain import STAGES, Explanation, sections, warnings_of
    from meander.physical.plan import PATH_OPERATORS

    if stage is not None:
        one_of("--stage", stage, STAGES)
    one_of("--time-unit", time_unit, UNITS)
    one_of("--path-operator", path_operator, PATH_OPERATORS)
    text, language = read_query(query)
    explanation = Explanation(text, unit=time_unit, language=language, plan=plan, path_operator=path_operator)
    shown = sections(explanation, stage)
    if svg is not None:
        _write(svg, explanation.draw(stage, _name_of(query)))
    print_sections(shown)
    if stage is not None:
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
