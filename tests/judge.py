"""Holds a run's answer records against the oracle: the contract of the answer stream, point by point.

The first thing found wrong is raised as an `AssertionError` that shows the query, the edges, the answer, and
what was expected beside what came.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from oracle import Answer, Expected, Interval, answers, covers, is_nullable, operation, union
from querytext import Alt, Atom, Back, Expr, Query, Rep, Rule, Seq, Step, Vertex, query_text, steps

Record = Mapping[str, Any]


def judge(
    records: Iterable[Record],
    expected: Expected,
    *,
    mode: str = "intervals",
    paths: bool = False,
    first_path: bool = False,
) -> None:
    """Raise where the records break the contract of the answer stream.

    `first_path`: of each pair the engine knew the path that it found first, not the one that lasts longest.
    """
    _Court(expected, mode, paths, first_path).hear(list(records))


@dataclass(frozen=True)
class _Court:
    expected: Expected
    mode: str
    paths: bool
    first_path: bool = False

    def hear(self, records: list[Record]) -> None:
        by_answer: defaultdict[Answer, list[Record]] = defaultdict(list)
        for record in records:
            by_answer[self.answer_of(record)].append(record)
        for answer in sorted({*by_answer, *self.expected.answers}, key=repr):
            if self.mode == "changes":
                self.check_changes(answer, by_answer[answer])
            else:
                self.check_intervals(answer, by_answer[answer])
            if self.paths:
                self.check_paths(answer, by_answer[answer])

    def refuse(self, what: str, answer: Answer | None = None, records: Sequence[Record] = ()) -> None:
        """Raise, saying what is wrong with which answer."""
        lines = [what, "", "query:", *indented(query_text(self.expected.query).splitlines())]
        for name, edges in self.expected.streams.items():
            lines += [f"edges of {name}:", *indented(map(str, edges))]
        if answer is not None:
            lines += [
                f"answer {answer}:",
                f"  expected {interval_text(self.expected.answers.get(answer, []))}",
                *([f"  got      {interval_text(instants(records))}"] if self.mode == "intervals" else []),
                "  from its records",
                *indented(map(str, records), by=4),
            ]
        raise AssertionError("\n".join(lines))

    # ------------------------------------------------------------------------------------------------------
    # Fields

    def answer_of(self, record: Record) -> Answer:
        """The record's vertices, once its fields are seen to be as promised."""
        query = self.expected.query
        named = {"src", "trg", "label"} if query.arity == 2 else {"answer"}
        fields = named | {"ts", "exp", "op"} | ({"path"} if self.paths else set())
        if set(record) != fields:
            self.refuse(f"a record has the fields {sorted(fields)}, not those of {record}")
        if record["op"] not in ("+", "-"):
            self.refuse(f"op is + or -: {record}")
        if type(record["ts"]) is not int:
            self.refuse(f"ts is an integer: {record}")
        if query.arity == 2 and record["label"] != result_label(query):
            self.refuse(f"the label is {result_label(query)!r}: {record}")
        if record["op"] == "+" and self.mode == "intervals":
            if type(record["exp"]) is not int or record["exp"] <= record["ts"]:
                self.refuse(f"exp is an integer after ts: {record}")
        elif record["exp"] is not None:
            self.refuse(f"exp is null: {record}")
        answer = (record["src"], record["trg"]) if query.arity == 2 else tuple(record["answer"])
        if len(answer) != query.arity:
            self.refuse(f"an answer has {query.arity} vertices: {record}")
        return answer

    # ------------------------------------------------------------------------------------------------------
    # Instants

    def check_intervals(self, answer: Answer, records: Sequence[Record]) -> None:
        """All records together give exactly the instants at which the answer holds; a `-` where there is
        need of it."""
        if instants(records) != self.expected.answers.get(answer, []):
            self.refuse("the answer's instants are not those of the oracle", answer, records)
        for place, record in enumerate(records):
            if record["op"] == "-":
                self.check_cut(answer, records, place)

    def check_cut(self, answer: Answer, records: Sequence[Record], place: int) -> None:
        """A `-` follows from a deletion in the input, and cuts something."""
        time = records[place]["ts"]
        if not any(deleted <= time for deleted in self.times["-"]):
            self.refuse(f"a '-' at {time} without a deletion in the input", answer, records)
        cut = [end for start, end in effective(records[:place]) if end > time]
        if not cut:
            self.refuse(f"the '-' at {time} cuts nothing", answer, records)
        # A path's edge may be gone where the answer is not; an edge may go and come back in one instant.
        may_return = self.paths or time in self.times["+"]
        # One who knows of a shorter path gives the answer anew until that ends.
        again = any(record["op"] == "+" and record["ts"] == time for record in records[place:])
        may_return = may_return or (self.first_path and again)
        if not may_return and covers(self.known_at(time).get(answer, []), time, max(cut)):
            self.refuse(f"the '-' at {time} cuts what holds on", answer, records)

    def known_at(self, time: int) -> Mapping[Answer, list[Interval]]:
        """What follows from the edges up to an instant alone."""
        if time not in self.prefixes:
            past = {
                name: [edge for edge in edges if edge[3] <= time]
                for name, edges in self.expected.accepted.items()
            }
            self.prefixes[time] = answers(self.expected.query, past)
        return self.prefixes[time]

    def check_changes(self, answer: Answer, records: Sequence[Record]) -> None:
        """One `+` where a maximal interval starts, one `-` where it stops, in order.

        A start does not wait for the rest of its instant: what is deleted in the same instant may come and go.
        """
        maximal = self.expected.answers.get(answer, [])
        wanted = [change for start, end in maximal for change in (("+", start), ("-", end))]
        got: list[tuple[str, int]] = []
        for record in records:
            got.append((record["op"], record["ts"]))
            if got[-2:] == [("+", record["ts"]), ("-", record["ts"])] and record["ts"] in self.times["-"]:
                del got[-2:]
        if got != wanted:
            self.refuse(f"the changes are not {wanted}", answer, records)

    @cached_property
    def prefixes(self) -> dict[int, Mapping[Answer, list[Interval]]]:
        return {}

    @cached_property
    def times(self) -> dict[str, set[int]]:
        """When edges of labels that the query names arrive (`+`), and when they are deleted (`-`)."""
        named = asked(self.expected.query)
        times: dict[str, set[int]] = {"+": set(), "-": set()}
        for name, edges in self.expected.accepted.items():
            for edge in edges:
                if Step(edge[1], name) in named:
                    times[operation(edge)].add(edge[3])
        return times

    # ------------------------------------------------------------------------------------------------------
    # Paths

    def check_paths(self, answer: Answer, records: Sequence[Record]) -> None:
        """Each `+` record's path is a proof of it through the whole of its interval."""
        proofs = proofs_of(self.expected.query, self.expected.query.result)
        for record, (start, end) in zip(records, effective(records), strict=True):
            if record["op"] == "-" or record["path"] is None:
                if record["path"] is not None:
                    self.refuse(f"a '-' has no path: {record}", answer, records)
                if record["op"] == "+" and proofs.required:
                    self.refuse(f"a path is missing: {record}", answer, records)
            elif not proofs.exprs:
                self.refuse(f"a path for what is no path: {record}", answer, records)
            elif start < end and not any(
                self.proves(expr, record, answer, start, end) for expr in proofs.exprs
            ):
                known = any(spells(expr, record["path"], *answer) for expr in proofs.exprs)
                fault = (
                    "has an edge that does not hold throughout" if known else "spells no word from src to trg"
                )
                self.refuse(f"in [{start}, {end}) the path {fault}: {record}", answer, records)

    def proves(self, expr: Expr, record: Record, answer: Answer, start: int, end: int) -> bool:
        """Whether the path spells a word of the expression, from end to end, with edges that hold
        throughout."""
        src, trg = answer
        if record["path"]:
            return spells(expr, record["path"], src, trg, holding=(self.expected, start, end))
        touching = [interval for step in steps(expr) for interval in self.touching[step].get(src, ())]
        return src == trg and is_nullable(expr) and covers(union(touching), start, end)

    @cached_property
    def touching(self) -> defaultdict[Step, dict[Vertex, list[Interval]]]:
        """By label and vertex: when an edge has the vertex as an end point."""
        found: defaultdict[Step, dict[Vertex, list[Interval]]] = defaultdict(dict)
        for step, tuples in self.expected.history.items():
            for edge, times in tuples.items():
                for end in set(edge):
                    found[step].setdefault(end, []).extend(times)
        return found


def result_label(query: Query) -> str:
    """What answers are called: by their head, but an `Answer` that only hands on another head keeps its name."""
    match query.rules_of(query.result):
        case [Rule("Answer", (first, second), (Atom(Step(head, None), src, trg, _),))]:
            if (first, second) == (src, trg) and src != trg:
                return head
    return query.result


def asked(query: Query) -> set[Step]:
    return {step for rule in query.rules for atom in rule.body for step in steps(atom.expr)}


def effective(records: Sequence[Record]) -> list[Interval]:
    """What each record says once the `-` records after it have cut it (in `changes` mode, its first
    instant)."""
    intervals = []
    for place, record in enumerate(records):
        start = record["ts"]
        end = start if record["op"] == "-" else start + 1 if record["exp"] is None else record["exp"]
        cuts = [later["ts"] for later in records[place + 1 :] if later["op"] == "-"]
        intervals.append((start, max(start, min([end, *cuts]))))
    return intervals


def instants(records: Sequence[Record]) -> list[Interval]:
    """The instants at which the answer holds, by all of its records."""
    return union(effective(records))


# ---------------------------------------------------------------------------------------------------------
# Words


@dataclass(frozen=True)
class Proofs:
    """The expressions that a path of the answer may spell, and whether each answer must have a path."""

    exprs: tuple[Expr, ...]
    required: bool


def proofs_of(query: Query, head: str) -> Proofs:
    """An answer is a path where its rule is one path atom from the first of its vertices to the second.
    An edge, or a rule that only renames, may have the path or not."""
    exprs: list[Expr] = []
    required = True
    for rule in query.rules_of(head):
        expr = only_expr(rule)
        if expr is None:
            required = False
            continue
        exprs.append(expr)
        if isinstance(expr, Step):
            required = False
            if expr.stream is None:
                exprs += proofs_of(query, expr.label).exprs
    return Proofs(tuple(exprs), required)


def only_expr(rule: Rule) -> Expr | None:
    """The expression of a rule `head(x, y) <- expr(x, y)`."""
    if len(rule.body) == 1 and rule.args == (rule.body[0].src, rule.body[0].trg):
        return rule.body[0].expr
    return None


def spells(
    expr: Expr,
    path: Sequence[Sequence[Any]],
    src: Vertex,
    trg: Vertex,
    holding: tuple[Expected, int, int] | None = None,
) -> bool:
    """Whether the edges, read from `src` on, spell a word of the expression that ends in `trg`; where
    asked, with edges that hold throughout an interval. A place is how many edges are read, and the vertex
    reached."""

    def read(expr: Expr, places: set[tuple[int, Vertex]], backwards: bool) -> set[tuple[int, Vertex]]:
        match expr:
            case Step():
                return {after for place in places if (after := step(expr, place, backwards)) is not None}
            case Back(part):
                return read(part, places, not backwards)
            case Alt(parts):
                return set().union(*(read(part, places, backwards) for part in parts))
            case Seq(parts):
                for part in reversed(parts) if backwards else parts:
                    places = read(part, places, backwards)
                return places
            case Rep(part, low, high):
                for _ in range(low):
                    places = read(part, places, backwards)
                reached = places
                # No word is longer than the path, so that many more rounds reach all there is.
                for _ in range(len(path) if high is None else high - low):
                    places = read(part, places, backwards)
                    reached = reached | places
                return reached
        raise AssertionError(expr)

    def step(wanted: Step, place: tuple[int, Vertex], backwards: bool) -> tuple[int, Vertex] | None:
        count, vertex = place
        if count == len(path):
            return None
        first, label, second = path[count]
        if label not in (wanted.label, f"{wanted.stream}.{wanted.label}"):
            return None
        if holding is not None:
            expected, start, end = holding
            if not covers(expected.history.get(wanted, {}).get((first, second), []), start, end):
                return None
        before, after = (second, first) if backwards else (first, second)
        return (count + 1, after) if before == vertex else None

    return (len(path), trg) in read(expr, {(0, src)}, False)


# ---------------------------------------------------------------------------------------------------------
# Text


def indented(lines: Iterable[str], by: int = 2) -> list[str]:
    return [" " * by + line for line in lines]


def interval_text(intervals: Sequence[Interval]) -> str:
    return " ".join(f"[{start}, {end})" for start, end in intervals) or "never"
