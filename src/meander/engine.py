"""From a query's text to the dataflow that answers it, one named call per stage:

    query = compile_query(text, options)      text → regular query → equivalent logical plans → the chosen ones
    plan = physical_plan([query], options)    operators of all queries, shared where they do the same work
    dataflow = open_dataflow(plan, options)   operators with state, ready for batches of edges

On several cells `staged_plan` takes the place of `physical_plan`: stages with exchanges between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from meander.algebra.derivations import Head, derivations
from meander.algebra.nodes import Path, Plan, WScan
from meander.algebra.printing import walk
from meander.algebra.routes import PathValue, Route
from meander.algebra.translate import path_results, path_routes, path_values, result_labels, translate
from meander.errors import ArgumentError, QueryError
from meander.options import AUTO_CELLS, DEFAULTS, RunOptions, check_proofs
from meander.physical.builder import QueryPlan, build
from meander.physical.layouts import UNKNOWN, Statistics
from meander.physical.path_operators import PATH_OPERATORS
from meander.physical.plan import PhysicalPlan
from meander.physical.speedup import choose_cells, estimated_gain
from meander.physical.stages import StagedPlan, build_stages, with_demand
from meander.physical.streams import PLAIN, ClassUse, LabelClass, StreamSchema
from meander.rewrite import choose, enumerate_plans
from meander.syntax import parse
from meander.syntax.printing import name_text
from meander.syntax.query import RegularQuery, Stream, labels_of
from meander.syntax.types import KnownTypes
from meander.syntax.values import ALL_PROPERTIES, ValueType, refs

if TYPE_CHECKING:
    from meander.dataflow.dataflow import Dataflow

MOST_PLANS = 64
"""The search for equivalent plans ends at this number of plans."""


@dataclass(frozen=True)
class CompiledQuery:
    """A parsed query and its equivalent plans. Each stage is computed once, when it is first read."""

    text: str
    regular: RegularQuery
    name: str = ""
    requested_plan: int | None = None  # its number; None: the plan with the lowest estimated cost

    @property
    def streams(self) -> tuple[str, ...]:
        """The declared streams, by the names under which their edges are given."""
        return tuple(dict.fromkeys(stream.input for stream in self.regular.streams))

    @cached_property
    def streams_read(self) -> tuple[str, ...]:
        """The declared streams that the query's results depend on."""
        nodes = (node for plan in self.canonical.values() for node in walk(plan))
        scanned = {node.stream for node in nodes if isinstance(node, WScan)}
        return tuple(name for name in self.streams if name in scanned)

    @cached_property
    def canonical(self) -> dict[str, Plan]:
        """By result: the plan that follows the text of the query."""
        return translate(self.regular)

    @cached_property
    def plans(self) -> dict[str, list[Plan]]:
        """By result: the equivalent plans, by number; the canonical plan is number 0.

        A result with paths as values has no other: its paths are found by following the query as written.
        """
        return {
            head: [plan] if self.path_values[head] else enumerate_plans(plan, limit=MOST_PLANS)
            for head, plan in self.canonical.items()
        }

    @cached_property
    def chosen(self) -> dict[str, int]:
        """By result: the number of the plan to run, as requested or with the lowest estimated cost."""
        if self.requested_plan is None:
            return {head: choose(plans) for head, plans in self.plans.items()}
        for head, plans in self.plans.items():
            if not 0 <= self.requested_plan < len(plans):
                raise ArgumentError(
                    f"{head} has no plan {self.requested_plan}",
                    hint=f"its plans are 0 to {len(plans) - 1}; `meander explain --stage plans` lists them",
                )
        return dict.fromkeys(self.plans, self.requested_plan)

    @cached_property
    def chosen_plans(self) -> dict[str, Plan]:
        """By result: the logical plan to run."""
        return {head: self.plans[head][number] for head, number in self.chosen.items()}

    @cached_property
    def labels(self) -> dict[str, str]:
        """By result: the label of its answers."""
        return result_labels(self.regular)

    @cached_property
    def path_values(self) -> dict[str, tuple[PathValue, ...]]:
        """By result: the paths that its answers have as values."""
        return path_values(self.regular)

    @cached_property
    def proofs(self) -> dict[str, tuple[Path, ...]]:
        """By result: the canonical paths that prove its answers, if its answers are paths."""
        return {head: paths or () for head, paths in path_results(self.regular).items()}

    def is_one_path(self, head: str) -> bool:
        """Whether the canonical plan of a result ends with the one path that proves its answers: then the operator of
        that path has found the paths, and in any other plan each is searched for."""
        return self.proofs[head] == (self.canonical[head],)

    @cached_property
    def path_routes(self) -> dict[str, Route]:
        """By result: where the path of an answer comes from, if some of its answers are paths and others are not."""
        routes = path_routes(self.regular)
        return {head: route for head, route in routes.items() if route is not None and not self.proofs[head]}

    @cached_property
    def derivations(self) -> dict[str, Head]:
        """By result: how the rules derive its answers, over the canonical plan."""
        return derivations(self.regular)


def compile_query(
    text: str,
    options: RunOptions = DEFAULTS,
    *,
    name: str = "",
    language: str | None = None,
    views: Mapping[str, RegularQuery] | None = None,
    types: KnownTypes | None = None,
) -> CompiledQuery:
    """The query of a text in Datalog or G-CORE (`language` None: whichever it looks like).

    `views` are the queries that it may read as streams, by name. `types` are the types of properties that the inputs
    know, by stream. Raises `QueryError` for an invalid text.
    """
    regular = parse(text, language=language, unit=options.time_unit, views=views, types=types)
    # A proof follows the query as written.
    return CompiledQuery(text, regular, name, 0 if options.proofs else options.plan)


def query_plans(query: CompiledQuery, options: RunOptions = DEFAULTS) -> list[QueryPlan]:
    """The logical plan to run for each result, with demand passed into its closures."""
    if options.proofs and query.requested_plan:
        check_proofs(plan=query.requested_plan)
    plans = []
    for head, plan in query.chosen_plans.items():
        route = query.path_routes.get(head) if options.paths and options.cells == 1 else None
        if query.requested_plan:
            route = None  # a route leads through the plan of the query as written
        follows_text = options.proofs or (
            options.paths and query.requested_plan is None and query.is_one_path(head)
        )
        plans.append(
            QueryPlan(
                query.name,
                head,
                query.labels[head],
                query.canonical[head] if follows_text or route is not None else plan,
                query.proofs[head] if options.paths else (),
                derivation=query.derivations[head] if options.proofs else None,
                paths=query.path_values[head],
                path_route=route,
            )
        )
    return plans


def passes_demand(options: RunOptions) -> bool:
    """Whether closures get a demand. With proofs there is none: only the closure operator obeys it, and it may be no
    step of a query but the last."""
    return options.demand and not options.proofs and PATH_OPERATORS[options.path_operator].demand_aware


def physical_plan(queries: Sequence[CompiledQuery], options: RunOptions = DEFAULTS) -> PhysicalPlan:
    """The operators that answer all queries in one cell; equal work of several queries is one operator."""
    plans = [plan for query in queries for plan in query_plans(query, options)]
    return build(
        list(map(with_demand, plans)) if passes_demand(options) else plans,
        path_operator=options.path_operator,
        paths=options.paths,
        declared=declared_schemas(queries),
    )


def staged_plan(
    queries: Sequence[CompiledQuery], options: RunOptions = DEFAULTS, statistics: Statistics = UNKNOWN
) -> StagedPlan:
    """The operators that answer all queries in `options.cells` cells, stage by stage; `statistics` of the input
    decide how joins are laid out over cells.

    Raises `ArgumentError` for several cells and answers with paths as values.
    """
    plans = [plan for query in queries for plan in query_plans(query, options)]
    for plan in plans if options.cells > 1 else ():
        if plan.paths:
            raise ArgumentError(
                f"{plan.head} returns a path ({plan.paths[0].name}) as a value, which takes a single cell",
                hint="leave out --cells; answers that are paths have them in any number of cells, with --paths",
            )
    return build_stages(
        plans,
        options.cells,
        path_operator=options.path_operator,
        paths=options.paths,
        demand=passes_demand(options),
        statistics=statistics,
        declared=declared_schemas(queries),
    )


def with_cells(queries: Sequence[CompiledQuery], options: RunOptions, cores: int) -> tuple[RunOptions, str]:
    """The options with a number of cells in place of `auto`, and the reason; without `auto` they are as they were."""
    if options.cells is not AUTO_CELLS:
        return options, ""
    one = replace(options, cells=1)
    if options.proofs:
        return one, "1 cell: proofs need the edges of every cell"
    plans = [plan for query in queries for plan in query_plans(query, one)]
    if any(plan.paths for plan in plans):
        return one, "1 cell: paths as values need the edges of every cell"

    def gain(cells: int) -> float:
        return estimated_gain(plans, staged_plan(queries, replace(options, cells=cells)), cells)

    cells, reason = choose_cells(cores, gain)
    return replace(options, cells=cells), reason


def declared_schemas(queries: Iterable[CompiledQuery]) -> dict[str, StreamSchema]:
    """By declared stream, whether it is a table or has tuples, and vertex tuples, though perhaps no result depends on
    it.

    It has no properties: those that no result depends on are not read. Of which rows properties are read follows from
    the text of the queries, so that every plan rejects the same rows.
    """
    schemas: dict[str, StreamSchema] = {}
    for query in queries:
        atoms = (atom for rule in query.regular.rules for atom in rule.body)
        with_vertices = {label.stream for atom in atoms for label in labels_of(atom.expr) if label.vertex}
        for stream in query.regular.streams:
            known = schemas.get(stream.input, PLAIN)
            schemas[stream.input] = StreamSchema(
                vertices=known.vertices or stream.name in with_vertices,
                table=known.table or stream.is_table,
                tuples=known.tuples or stream.is_tuples,
                uses=tuple(dict.fromkeys((*known.uses, *_property_uses(query, stream)))),
            )
    return schemas


def _property_uses(query: CompiledQuery, stream: Stream) -> Iterator[ClassUse]:
    """What a query reads of each class of rows that it mentions; nothing where it reads no property of the stream."""
    named = tuple(value.name for value in stream.properties)
    if not named or stream.input not in query.streams_read:
        return
    read: dict[LabelClass, set[str]] = {}
    for rule in query.regular.rules:
        for atom in rule.body:
            for label in labels_of(atom.expr):
                if label.stream == stream.name:
                    names = read.setdefault(LabelClass(label.name or None, label.vertex), set())
                    names.update(str(ref.name) for ref in refs(label.predicate))
                    names.update(name for name, _ in (*atom.values, *atom.paths))
    for of, names in read.items():
        yield ClassUse(of, tuple(sorted(names.intersection(named))), named)


def check_types(schemas: Mapping[str, StreamSchema]) -> None:
    """Refuse to run a plan that reads a property whose type neither its queries nor their inputs decide.

    `schemas` are those of a `PhysicalPlan` or `StagedPlan`.
    """
    for stream, schema in schemas.items():
        for name, kind in schema.properties:
            if kind is None:
                declared = ", ".join(
                    f"{name_text(value.name)} {value.type or ValueType.STRING}"
                    for value in schema.properties
                    if value != ALL_PROPERTIES
                )
                word = " TUPLES" if schema.tuples else ""
                raise QueryError(
                    f"the type of {name} is not known: nothing that the query compares it with has one, and the "
                    f"input of {stream} has none",
                    hint=f"declare it, in Datalog as STREAM {stream}{word} ({declared}) …, in G-CORE as "
                    f"ON {stream}{word} ({declared}) …" + (", or as a PATH" if schema.tuples else ""),
                )


def open_dataflow(
    plan: PhysicalPlan, options: RunOptions = DEFAULTS, *, folder: FilePath | None = None
) -> Dataflow:
    """A dataflow without state yet; its arrays are in memory, or in files of `folder`.

    Raises `QueryError` if the type of a property is not known.
    """
    check_types(plan.schemas)
    # Numba and the kernels take longer to import than a query to plan, and `explain` does without them.
    from meander.dataflow.dataflow import Dataflow

    return Dataflow(
        plan,
        mode=options.mode,
        paths=options.paths,
        proofs=options.proofs,
        memory=options.memory,
        folder=folder,
        threads=options.threads,
    )
