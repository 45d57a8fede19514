"""Rules of a G-CORE query, each from its head, its body, and what is equal in it."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from meander.errors import Span
from meander.syntax.equalities import Equalities
from meander.syntax.gcore_scope import Scope
from meander.syntax.query import (
    Atom,
    Constant,
    Rule,
    Term,
    Values,
    Variable,
)
from meander.syntax.values import (
    Const,
    Predicate,
    Ref,
    Scalar,
    ValueType,
    conjunction,
    equals_vertex,
    map_refs,
)

MAX_RULES = 10_000
"""How many rules a text may need, PATH clauses being copied for every stream that they are used on."""


class RuleWriter:
    """Adds the rules of one CONSTRUCT … MATCH … to those of the text.

    `returned_paths` are the names of the paths that it constructs or returns, `taken_names` those of its vertices.
    """

    def __init__(self, scope: Scope, returned_paths: Set[str], taken_names: Set[str]) -> None:
        self.scope = scope
        self.returned_paths = returned_paths
        self.taken_names = taken_names
        self.named_paths: set[str] = set()

    def add_rule(
        self,
        head: str,
        args: Sequence[Variable],
        body: Sequence[Atom],
        equalities: Equalities,
        span: Span | None,
        path: str | None = None,
        predicate: Predicate | None = None,
        values: Values = (),
    ) -> None:
        """Add the rule with variables unified, vertices inserted, and path names unique in the query."""
        if len(self.scope.rules) >= MAX_RULES:
            raise self.scope.error(
                f"the query needs more than {MAX_RULES:,} rules", span, "use PATH clauses on fewer streams"
            )
        args = tuple(equalities.variable(variable) for variable in args)
        head_variables = {variable.name for variable in args}

        def placed(term: Term) -> Term:
            if isinstance(term, Constant):
                return term
            variable = equalities.variable(term)
            constant = equalities.constant(variable.name)
            return (
                variable
                if constant is None or variable.name in head_variables
                else replace(constant, span=term.span)
            )

        def compared(ref: Ref) -> Scalar:
            if str(ref.name) not in equalities:
                return ref
            term = placed(Variable(str(ref.name), ref.span))
            if isinstance(term, Constant):
                return Const(term.value, ValueType.VERTEX, ref.span)
            return Ref(term.name, None, ref.span)

        atoms = []
        wanted = {variable.name for _, variable in values} | {path}
        path_names: dict[str, str] = {}
        for atom in body:
            name = self.path_name(atom.name, returned=atom.name in wanted)
            if atom.name is not None and name is not None:
                path_names[atom.name] = name
            atoms.append(replace(atom, src=placed(atom.src), trg=placed(atom.trg), name=name))
        terms = [None if predicate is None else map_refs(predicate, compared)]
        bound = {name for atom in atoms for name in _names_of(atom)}
        for name in dict.fromkeys(variable.name for variable in args):
            constant = equalities.constant(name)
            if constant is not None and name in bound:
                terms.append(equals_vertex(name, constant.value))
        values = tuple(
            (name, replace(variable, name=path_names.get(variable.name, variable.name)))
            for name, variable in values
        )
        path_name = None if path is None else path_names[path]
        rule = Rule(head, args, tuple(atoms), path_name, span, values, conjunction(terms))
        self.scope.rules.append(rule)

    def path_name(self, name: str | None, *, returned: bool) -> str | None:
        """The name of a path in a rule. Of several rules over one path, those that return it have its name."""
        elsewhere = self.returned_paths | self.named_paths
        if name is None or (not returned and name in elsewhere):
            return None
        self.named_paths.add(name)
        unused = self.scope.fresh(name)
        while unused != name and unused in self.taken_names:
            unused = self.scope.fresh(name)
        return unused


def _names_of(atom: Atom) -> list[str]:
    return [term.name for term in (atom.src, atom.trg) if isinstance(term, Variable)]
