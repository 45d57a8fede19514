"""The variable order of a pattern's generic join: one program for each atom, and one for an answer's own vertices.

A program starts with some variables bound and binds the others one at a time, in an order fixed here: next
comes the variable that most atoms with a bound end contain. A step names the atoms that binding its variable
completes; at run time the shortest of their adjacency lists is walked and the others are checked (a
worst-case-optimal join; Ngo, Ré and Rudra, "Skew strikes back", 2013).

    a(x, m), b(m, y), c(x, y), from a tuple of a:   bind y through b (by m) or c (by x)
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JoinStep:
    """Bind a variable through `atoms`; `walks` has the bound end by which each one's list may be walked, or None.

    A step that `scans` binds both ends of its first atom from all of its tuples: it shares no variable with the
    atoms bound before.
    """

    atoms: tuple[int, ...]
    walks: tuple[str | None, ...]
    scans: bool = False


@dataclass(frozen=True, slots=True)
class JoinProgram:
    """Check the atoms in `checks`, which the first tuple binds completely; then take the steps in order."""

    checks: tuple[int, ...]
    steps: tuple[JoinStep, ...]


Program = JoinProgram  # the former name, until `physical.plan` and the PATTERN operator no longer import it


def plan_programs(
    ends: tuple[tuple[int, int], ...], output: tuple[int, ...], closures: tuple[bool, ...]
) -> tuple[JoinProgram, ...]:
    """The programs of a pattern: one for a tuple of each atom, and a last one for an answer.

    `closures` marks the atoms that are paths: their pairs are many, so their lists are walked only if no
    other atom binds the variable.
    """
    starts = [(set(pair), {atom}) for atom, pair in enumerate(ends)]
    starts.append((set(output), set()))
    return tuple(_plan_program(ends, closures, bound, done) for bound, done in starts)


def _plan_program(
    ends: tuple[tuple[int, int], ...], closures: tuple[bool, ...], bound: set[int], done: set[int]
) -> JoinProgram:
    bound, done = set(bound), set(done)
    checks = _newly_bound(ends, bound, done)
    steps = []
    while len(done) < len(ends):
        reached = [
            other
            for atom, (src, trg) in enumerate(ends)
            if atom not in done and src != trg
            for here, other in ((src, trg), (trg, src))
            if here in bound and other not in bound
        ]
        if reached:
            variable = max(sorted(set(reached)), key=reached.count)
            bound.add(variable)
            atoms = _newly_bound(ends, bound, done)
            walks = [_walk(ends[atom], variable) for atom in atoms]
            if any(walk and not closures[atom] for atom, walk in zip(atoms, walks, strict=True)):
                walks = [None if closures[atom] else walk for atom, walk in zip(atoms, walks, strict=True)]
            steps.append(JoinStep(atoms, tuple(walks)))
        else:
            first = min(set(range(len(ends))) - done, key=lambda atom: (closures[atom], atom))
            done.add(first)
            bound.update(ends[first])
            others = _newly_bound(ends, bound, done)
            steps.append(JoinStep((first, *others), (None,) * (1 + len(others)), scans=True))
    return JoinProgram(checks, tuple(steps))


def _newly_bound(ends: tuple[tuple[int, int], ...], bound: set[int], done: set[int]) -> tuple[int, ...]:
    """The atoms with both ends bound that are not in `done`; adds them to it."""
    atoms = tuple(
        atom for atom, (src, trg) in enumerate(ends) if atom not in done and src in bound and trg in bound
    )
    done.update(atoms)
    return atoms


def _walk(pair: tuple[int, int], variable: int) -> str | None:
    """The end by which a list that binds `variable` is walked."""
    src, trg = pair
    if src == trg:
        return None
    return "trg" if src == variable else "src"
