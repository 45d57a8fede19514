"""How a pattern's matches are completed: one program for each atom, and one for an answer's own vertices.

A program starts with some variables bound and binds the others one at a time, in an order fixed here: next
comes the variable that the most atoms already reach. A step names the atoms that are bound once its variable
is; at run time the shortest of their lists is walked and the others are checked.

    a(x, m), b(m, y), c(x, y), from a tuple of a:   bind y through b (by m) or c (by x)
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """Bind a variable through `atoms`; `walks` says by which bound end each one's list may be walked, if at all.

    A step that `scans` binds both ends of its first atom from all of its tuples: nothing that is bound
    reaches it.
    """

    atoms: tuple[int, ...]
    walks: tuple[str | None, ...]
    scans: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    checks: tuple[int, ...]
    steps: tuple[Step, ...]


def plan_programs(
    ends: tuple[tuple[int, int], ...], output: tuple[int, ...], closures: tuple[bool, ...]
) -> tuple[Program, ...]:
    """The programs of a pattern: one for a tuple of each atom, and a last one for an answer.

    `closures` tells which atoms are paths: their pairs are many, so their lists are walked only where
    nothing else reaches the variable.
    """
    starts = [(set(pair), {atom}) for atom, pair in enumerate(ends)]
    starts.append((set(output), set()))
    return tuple(_plan_program(ends, closures, bound, done) for bound, done in starts)


def _plan_program(
    ends: tuple[tuple[int, int], ...], closures: tuple[bool, ...], bound: set[int], done: set[int]
) -> Program:
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
            steps.append(Step(atoms, tuple(walks)))
        else:
            first = min(set(range(len(ends))) - done, key=lambda atom: (closures[atom], atom))
            done.add(first)
            bound.update(ends[first])
            others = _newly_bound(ends, bound, done)
            steps.append(Step((first, *others), (None,) * (1 + len(others)), scans=True))
    return Program(checks, tuple(steps))


def _newly_bound(ends: tuple[tuple[int, int], ...], bound: set[int], done: set[int]) -> tuple[int, ...]:
    """The atoms whose ends are all bound and that are not done yet; they are, from now on."""
    atoms = tuple(
        atom for atom, (src, trg) in enumerate(ends) if atom not in done and src in bound and trg in bound
    )
    done.update(atoms)
    return atoms


def _walk(pair: tuple[int, int], variable: int) -> str | None:
    """By which end a list that binds `variable` is walked."""
    src, trg = pair
    if src == trg:
        return None
    return "trg" if src == variable else "src"
