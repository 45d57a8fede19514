"""Path expressions as regular languages, and the automata that path searches follow.

A word is a sequence of symbols `(label, direction)`, direction -1 for an edge read backwards; `^(a/b)` is
`^b/^a`, so an expression of any shape is a regular expression over such symbols. `minimal_dfa` gives its minimal
deterministic automaton by the textbook construction (Thompson, subsets, Hopcroft), without a dead state and numbered
breadth first, so that expressions of equal language have equal automata.

The other functions work on expressions without building an automaton.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from meander.errors import QueryError
from meander.syntax.query import Either, Inverse, Label, PathExpr, Repeat, Then, labels_of, map_parts

Symbol = tuple[str, int]

MOST_STATES = 10_000
MOST_SUBSET_MEMBERS = 100 * MOST_STATES


# ---------------------------------------------------------------------------------------------------------
# Expressions


def labels(expr: PathExpr) -> tuple[Label, ...]:
    """The distinct labels of an expression, in the order of their first use."""
    return tuple(dict.fromkeys(labels_of(expr)))


def nullable(expr: PathExpr) -> bool:
    """Whether the empty word is accepted."""
    match expr:
        case Label():
            return False
        case Inverse(inner):
            return nullable(inner)
        case Then(parts):
            return all(nullable(part) for part in parts)
        case Either(parts):
            return any(nullable(part) for part in parts)
        case Repeat(inner, low, _):
            return low == 0 or nullable(inner)


def reverse(expr: PathExpr) -> PathExpr:
    """The expression of the same paths walked from their end, inverses at labels: `a/b` gives `^b/^a`."""
    return push_down_inverses(Inverse(expr))


def push_down_inverses(expr: PathExpr, backwards: bool = False) -> PathExpr:
    """An expression of the same language in which only labels are inverted: `^(a/b)` gives `^b/^a`."""
    match expr:
        case Label():
            return Inverse(expr) if backwards else expr
        case Inverse(inner):
            return push_down_inverses(inner, not backwards)
        case Then(parts) if backwards:
            expr = Then(parts[::-1])
    return map_parts(expr, lambda part: push_down_inverses(part, backwards))


def without_empty(expr: PathExpr) -> PathExpr | None:
    """The expression of all accepted words but the empty one; None if no other word is accepted."""
    if not nullable(expr):
        return expr
    match expr:
        case Label():
            return expr
        case Inverse(inner):
            nonempty = without_empty(inner)
            return None if nonempty is None else Inverse(nonempty)
        case Either(parts):
            return _either([without_empty(part) for part in parts])
        case Then(parts):
            # A word that is not empty has a first part that is not: one alternative for each such part.
            alternatives: list[PathExpr | None] = []
            for i, part in enumerate(parts):
                nonempty, rest = without_empty(part), parts[i + 1 :]
                alternatives.append(Then((nonempty, *rest)) if nonempty is not None and rest else nonempty)
            return _either(alternatives)
        case Repeat(inner, _, high):
            nonempty = without_empty(inner)
            if nonempty is None or high == 0:
                return None
            return nonempty if high == 1 else Repeat(nonempty, 1, high)


def _either(parts: list[PathExpr | None]) -> PathExpr | None:
    present = tuple(dict.fromkeys(part for part in parts if part is not None))
    return Either(present) if len(present) > 1 else present[0] if present else None


# ---------------------------------------------------------------------------------------------------------
# Automata


@dataclass(frozen=True, slots=True)
class Dfa:
    """A minimal deterministic automaton with states 0 … `states`-1, of which 0 is the start.

    `transitions[state]` maps a symbol to the next state; a symbol that is not there ends the search. From
    every state an accepting one can be reached.
    """

    states: int
    accepting: frozenset[int]
    transitions: tuple[Mapping[Symbol, int], ...] = field(hash=False)
    start: int = field(default=0, init=False)

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """All symbols in use, sorted."""
        return tuple(sorted({symbol for row in self.transitions for symbol in row}))

    def accepts(self, word: tuple[Symbol, ...]) -> bool:
        state = 0
        for symbol in word:
            if symbol not in self.transitions[state]:
                return False
            state = self.transitions[state][symbol]
        return state in self.accepting


@lru_cache(maxsize=1024)
def minimal_dfa(expr: PathExpr) -> Dfa:
    """The minimal automaton of `expr`; QueryError if that takes more than `MOST_STATES` states."""
    thompson = _Thompson()
    thompson.add(expr, 0, 1, backwards=False)
    return _minimize(*_determine(thompson))


class _Thompson:
    """A nondeterministic automaton from state 0 to state 1, grown by fragments.

    A fragment adds no edge into its source and none out of its target, so fragments may share both. Each
    leads from its source to its target: no state is dead, here or after `_determine`.
    """

    def __init__(self) -> None:
        self.steps: list[list[tuple[Symbol, int]]] = [[], []]
        self.silent: list[list[int]] = [[], []]

    def state(self) -> int:
        if len(self.steps) > 4 * MOST_STATES:
            raise _too_large()
        self.steps.append([])
        self.silent.append([])
        return len(self.steps) - 1

    def add(self, expr: PathExpr, source: int, target: int, backwards: bool) -> None:
        match expr:
            case Label():
                self.steps[source].append(((str(expr), -1 if backwards else 1), target))
            case Inverse(inner):
                self.add(inner, source, target, not backwards)
            case Either(parts):
                for part in parts:
                    self.add(part, source, target, backwards)
            case Then(parts):
                ordered = parts[::-1] if backwards else parts
                for part in ordered[:-1]:
                    middle = self.state()
                    self.add(part, source, middle, backwards)
                    source = middle
                self.add(ordered[-1], source, target, backwards)
            case Repeat(inner, low, high):
                if nullable(inner):  # (e?){n,m} is e{0,m}: this keeps the subsets of long repetitions small
                    inner, low = without_empty(inner) or inner, 0
                for _ in range(low):
                    source = self._copy(inner, source, backwards)
                if high is None:
                    loop = self.state()
                    self.silent[source].append(loop)
                    self.silent[self._copy(inner, loop, backwards)].append(loop)
                    self.silent[loop].append(target)
                else:
                    for _ in range(high - low):
                        self.silent[source].append(target)
                        source = self._copy(inner, source, backwards)
                    self.silent[source].append(target)

    def _copy(self, expr: PathExpr, source: int, backwards: bool) -> int:
        target = self.state()
        self.add(expr, source, target, backwards)
        return target

    def closure(self, states: set[int]) -> frozenset[int]:
        """All states that silent edges lead to, reduced to those that matter: with steps, or accepting."""
        reached, pending = set(states), list(states)
        while pending:
            for state in self.silent[pending.pop()]:
                if state not in reached:
                    reached.add(state)
                    pending.append(state)
        return frozenset(state for state in reached if state == 1 or self.steps[state])


TransitionRows = list[dict[Symbol, int]]


def _determine(nfa: _Thompson) -> tuple[TransitionRows, set[int]]:
    """The subset construction; state 0 is the start."""
    subsets = [nfa.closure({0})]
    numbers = {subsets[0]: 0}
    members = 0
    rows: TransitionRows = []
    while len(rows) < len(subsets):
        moves: defaultdict[Symbol, set[int]] = defaultdict(set)
        for state in subsets[len(rows)]:
            for symbol, target in nfa.steps[state]:
                moves[symbol].add(target)
        row: dict[Symbol, int] = {}
        for symbol, targets in moves.items():
            subset = nfa.closure(targets)
            if subset not in numbers:
                members += len(subset)
                if len(subsets) == MOST_STATES or members > MOST_SUBSET_MEMBERS:
                    raise _too_large()
                numbers[subset] = len(subsets)
                subsets.append(subset)
            row[symbol] = numbers[subset]
        rows.append(row)
    return rows, {number for subset, number in numbers.items() if 1 in subset}


def _minimize(rows: TransitionRows, accepting: set[int]) -> Dfa:
    """Hopcroft's refinement, then one state for each block, numbered breadth first over sorted symbols."""
    blocks = _refine(rows, accepting)
    block_of = {state: number for number, block in enumerate(blocks) for state in block}
    order = [block_of[0]]
    numbers = {order[0]: 0}
    transitions: list[dict[Symbol, int]] = []
    for block_number in order:  # grows while it is walked
        row = rows[next(iter(blocks[block_number]))]
        transitions.append({})
        for symbol in sorted(row):
            target = block_of[row[symbol]]
            if target not in numbers:
                numbers[target] = len(order)
                order.append(target)
            transitions[-1][symbol] = numbers[target]
    return Dfa(len(order), frozenset(numbers[block_of[state]] for state in accepting), tuple(transitions))


def _refine(rows: TransitionRows, accepting: set[int]) -> list[set[int]]:
    """The coarsest partition of the states in which those of one block accept the same words."""
    sources: list[defaultdict[Symbol, set[int]]] = [defaultdict(set) for _ in rows]
    for state, row in enumerate(rows):
        for symbol, target in row.items():
            sources[target][symbol].add(state)
    blocks = [block for block in (set(accepting), set(range(len(rows))) - accepting) if block]
    block_of = [0 if state in blocks[0] else 1 for state in range(len(rows))]
    # TransitionRows are partial, so both first blocks have to be splitters; of later halves the smaller is enough.
    pending = set(range(len(blocks)))
    while pending:
        before: defaultdict[Symbol, set[int]] = defaultdict(set)
        for target in blocks[pending.pop()]:
            for symbol, states in sources[target].items():
                before[symbol] |= states
        for states in before.values():
            hit: defaultdict[int, set[int]] = defaultdict(set)
            for state in states:
                hit[block_of[state]].add(state)
            for number, inside in hit.items():
                if len(inside) == len(blocks[number]):
                    continue
                blocks[number] -= inside
                # The smaller half gets the new number, since renumbering is the expensive part.
                if number not in pending and len(inside) > len(blocks[number]):
                    blocks[number], inside = inside, blocks[number]
                for state in inside:
                    block_of[state] = len(blocks)
                pending.add(len(blocks))
                blocks.append(inside)
    return blocks


def _too_large() -> QueryError:
    return QueryError(
        f"this path expression is too large: its automaton would take more than {MOST_STATES:,} states",
        hint="use smaller bounds in {n,m}, or + and * instead",
    )
