"""The variable order of a pattern's generic join: one program for each atom, and one for an answer's own columns.

A program starts with some variables bound and binds the others one at a time, in an order fixed here: next
comes the variable that most atoms with a bound column contain. At run time the shortest of their lists is walked, and
the atoms that are then bound completely are checked (a worst-case-optimal join; Ngo, Ré and Rudra, "Skew strikes
back", 2013). Where a single atom reaches the variable, its other variables are bound by the same step.

    a(x, m), b(m, y), c(x, y), from a tuple of a:   bind y through b (by m) or c (by x)

A comparison is decided by the step that binds the last of its variables, and among variables that as many atoms
contain the one that decides more comparisons comes first. An atom with values may be walked to bind one of its
variables and not yet be bound completely: what is left of its tuple is bound next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Side = Literal["src", "trg"] | int | None


class Walk(NamedTuple):
    """A way to walk an atom: its list by source, by target or by a value column, or all of its tuples (None).

    `again`: an earlier step may have walked this atom; then its tuple of that step is the only one.
    """

    atom: int
    side: Side
    again: bool = False


@dataclass(frozen=True, slots=True)
class JoinStep:
    """Bind the variables `binds` through the shortest of `walks`.

    The atoms that this `completes` are then bound in all of their columns, and checked. `comparisons` are the
    conjuncts of the pattern's predicate that it decides.
    """

    walks: tuple[Walk, ...]
    binds: tuple[int, ...]
    completes: tuple[int, ...]
    comparisons: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class JoinProgram:
    """Decide `comparisons` and check the atoms in `checks`, which the first tuple binds completely; then take the
    steps in order."""

    checks: tuple[int, ...]
    steps: tuple[JoinStep, ...]
    comparisons: tuple[int, ...] = ()


def plan_programs(
    ends: tuple[tuple[int, ...], ...],
    output: tuple[int, ...],
    closures: tuple[bool, ...],
    compared: Sequence[frozenset[int]] = (),
    *,
    checks_answers: bool = False,
) -> tuple[JoinProgram, ...]:
    """The programs of a pattern: one for a tuple of each atom, and a last one for an answer.

    `ends` has a variable for each column of an atom: source, target, values. `closures` marks the atoms that are
    paths: their pairs are many, so their lists are walked only if no other atom binds the variable. `compared` has
    the variables of each conjunct of the pattern's predicate. The last program starts from an answer, which has
    satisfied the comparisons of its own columns; if it `checks_answers`, it decides these too.
    """
    starts = [(set(columns), {atom}) for atom, columns in enumerate(ends)]
    starts.append((set(output), set()))
    # An answer has satisfied the comparisons of its own columns.
    settled = [set[int]() for _ in ends]
    own = {number for number, variables in enumerate(compared) if variables <= set(output)}
    settled.append(set() if checks_answers else own)
    return tuple(
        _Planner(ends, closures, compared, bound, done, decided).plan()
        for (bound, done), decided in zip(starts, settled, strict=True)
    )


def lists_walked(programs: Sequence[JoinProgram]) -> Iterator[tuple[int, Side]]:
    """The lists by which atoms are walked, as atom and side."""
    walks = (walk for program in programs for step in program.steps for walk in step.walks)
    return iter(dict.fromkeys((walk.atom, walk.side) for walk in walks if walk.side is not None))


class _Planner:
    """One program: what is bound so far, the atoms bound completely, and the comparisons decided."""

    def __init__(
        self,
        ends: tuple[tuple[int, ...], ...],
        closures: tuple[bool, ...],
        compared: Sequence[frozenset[int]],
        bound: set[int],
        done: set[int],
        decided: set[int],
    ) -> None:
        self.ends, self.closures, self.compared = ends, closures, compared
        self.bound, self.done, self.decided = set(bound), set(done), set(decided)
        self.walked: set[int] = set()

    def plan(self) -> JoinProgram:
        comparisons, checks = self._decide(), self._complete()
        steps = []
        while len(self.done) < len(self.ends):
            steps.append(self._bind_next() if self._reaching() else self._scan())
        return JoinProgram(checks, tuple(steps), comparisons)

    def _reaching(self) -> dict[int, list[int]]:
        """By variable that is not bound: the atoms that can be walked to bind it."""
        reaching: dict[int, list[int]] = {}
        for atom in range(len(self.ends)):
            if atom not in self.done and self._sides(atom):
                for variable in self._unbound(atom):
                    reaching.setdefault(variable, []).append(atom)
        return reaching

    def _bind_next(self) -> JoinStep:
        reaching = self._reaching()
        variable = min(
            reaching,
            key=lambda variable: (
                -sum(atom in self.walked for atom in reaching[variable]),
                -len(reaching[variable]),
                -len(self._decided_with(self._bound_by(variable, reaching))),
                variable,
            ),
        )
        atoms = reaching[variable]
        walked = [atom for atom in atoms if not self.closures[atom]] or atoms
        walks = tuple(
            Walk(atom, side, again=atom in self.walked) for atom in walked for side in self._sides(atom)
        )
        step = self._step(walks, self._bound_by(variable, reaching))
        self.walked.update(set(walked) - self.done)
        return step

    def _scan(self) -> JoinStep:
        """Take all tuples of an atom: none that is left shares a variable with those bound before."""
        first = min(set(range(len(self.ends))) - self.done, key=lambda atom: (self.closures[atom], atom))
        return self._step((Walk(first, None),), self._unbound(first))

    def _step(self, walks: tuple[Walk, ...], binds: tuple[int, ...]) -> JoinStep:
        self.bound.update(binds)
        return JoinStep(walks, binds, self._complete(), self._decide())

    def _bound_by(self, variable: int, reaching: dict[int, list[int]]) -> tuple[int, ...]:
        """The variables that are bound with this one."""
        atoms = reaching[variable]
        return self._unbound(atoms[0]) if len(atoms) == 1 else (variable,)

    def _unbound(self, atom: int) -> tuple[int, ...]:
        return tuple(variable for variable in dict.fromkeys(self.ends[atom]) if variable not in self.bound)

    def _sides(self, atom: int) -> list[Side]:
        """The lists by which an atom can be walked: those of its bound ends, or else of its bound values."""
        src, trg, *values = self.ends[atom]
        sides: list[Side] = []
        if src in self.bound:
            sides.append("src")
        if trg in self.bound and trg != src:
            sides.append("trg")
        return sides or [column for column, variable in enumerate(values) if variable in self.bound]

    def _complete(self) -> tuple[int, ...]:
        """The atoms that are bound completely, and were not before."""
        atoms = tuple(
            atom
            for atom, columns in enumerate(self.ends)
            if atom not in self.done and self.bound.issuperset(columns)
        )
        self.done.update(atoms)
        return atoms

    def _decided_with(self, variables: Sequence[int]) -> tuple[int, ...]:
        """The comparisons that are decided once these variables are bound too, and were not before."""
        bound = self.bound.union(variables)
        return tuple(
            number
            for number, compared in enumerate(self.compared)
            if number not in self.decided and compared <= bound
        )

    def _decide(self) -> tuple[int, ...]:
        numbers = self._decided_with(())
        self.decided.update(numbers)
        return numbers
