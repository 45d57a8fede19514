"""What Meander makes of a query, stage by stage: `query`, `logical`, `plans`, `physical`.

Each stage shows what stands after one step from text to plan. Beside them stand what the query will hold in
memory, and warnings about queries that are legal and hardly meant.
"""

from __future__ import annotations

from collections.abc import Mapping

from meander.errors import ArgumentError
from meander.explain.sections import Section, as_text
from meander.explain.stages import STAGES, Explanation
from meander.explain.warnings import Warning, warnings_of
from meander.syntax import to_datalog
from meander.syntax.query import RegularQuery

__all__ = ["STAGES", "Explanation", "Section", "Warning", "as_text", "explain", "sections", "warnings_of"]


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
    """The explanation of a query as text: of one stage, or of all with the state held and the warnings."""
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
    """The sections of one stage, or of all of them, the state and the warnings."""
    if stage is not None and stage not in STAGES:
        raise ArgumentError(f"unknown stage {stage!r}", hint=f"stages are {', '.join(STAGES)}")
    if stage == "query":
        # Datalog and nothing else, so that it can be written to a file and run.
        return [Section("", to_datalog(explanation.query).rstrip())]
    if stage is not None:
        return explanation.stage(stage)
    everything = [section for name in STAGES for section in explanation.stage(name, brief=True)]
    return [*everything, explanation.warnings()]
