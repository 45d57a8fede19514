"""What will run for a query: the query itself, the chosen plan, the state that it will hold, and warnings about
queries that are legal but probably unintended.

The way from the query to its plan is shown stage by stage: `query`, `logical`, `plans`, `physical`, or `all` of them.
"""

from __future__ import annotations

from meander.engine import CompiledQuery
from meander.explain.sections import Section, as_text
from meander.explain.stages import EVERY_STAGE, STAGES, Explanation
from meander.explain.warnings import QueryWarning, warnings_of
from meander.options import DEFAULTS, RunOptions

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


def explain(query: CompiledQuery | str, stage: str | None = None, options: RunOptions = DEFAULTS) -> str:
    """The explanation of a query, or of the query of a text, as text: its summary, one stage, or `all` stages."""
    return as_text(sections(Explanation(query, options), stage))


def sections(explanation: Explanation, stage: str | None = None) -> list[Section]:
    """The sections of the summary, or of a stage."""
    if stage is None:
        return explanation.summary()
    if stage == "query":
        # Datalog and nothing else, so that it can be written to a file and run.
        return [Section("", explanation.datalog)]
    return explanation.stage(stage)
