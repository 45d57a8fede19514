"""What will run for a query: the query itself, the chosen plan, the state that it will hold, and warnings about
queries that are legal but probably unintended.

The way from the query to its plan is shown stage by stage: `query`, `logical`, `plans`, `physical`, or `all` of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from meander.explain.sections import Section, as_text
from meander.explain.stages import EVERY_STAGE, STAGES, Explanation
from meander.explain.warnings import QueryWarning, warnings_of
from meander.syntax.query import RegularQuery

__all__ = [
    "EVERY_STAGE",
    "STAGES",
    "Explanation",
    "QueryWarning",
    "Section",
    "as_text",
    "explain",
    "sections",
    "warnings_of",
]


def explain(
    text: str,
    stage: str | None = None,
    *,
    unit: str = "s",
    language: str | None = None,
    views: Mapping[str, RegularQuery] | None = None,
    plan: int | None = None,
    path_operator: str = "auto",
    demand: bool = True,
    cells: int = 1,
) -> str:
    """The explanation of a query as text: its summary, one stage, or `all` stages."""
    explanation = Explanation(
        text,
        unit=unit,
        language=language,
        views=views,
        plan=plan,
        path_operator=path_operator,
        demand=demand,
        cells=cells,
    )
    return as_text(sections(explanation, stage))


def sections(explanation: Explanation, stage: str | None = None) -> list[Section]:
    """The sections of the summary, or of a stage."""
    if stage is None:
        return explanation.summary()
    if stage == "query":
        # Datalog and nothing else, so that it can be written to a file and run.
        return [Section("", explanation.datalog)]
    return explanation.stage(stage)
