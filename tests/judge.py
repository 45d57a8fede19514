"""Holds a run's answer records against the oracle: the contract of the answer stream, point by point.

The first thing found wrong is raised as an `AssertionError` that shows the query, the edges, the answer, and
what was expected beside what came.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from oracle import (
    FOREVER,
    Answer,
    Expected,
    Interval,
    answers,
    covers,
    edge_key,
    expect,
    head_types,
    is_nullable,
    joined,
    operation,
    time_of,
    union,
)
from proof_checker import ProofChecker, WrongProof
from querytext import Atom, Expr, Query, Rule, Step, Var, Vertex, query_text, steps
from words import read_word

Record = Mapping[str, Any]

PYTHON_TYPES = {"INT": int, "TIME": int, "FLOAT": float, "STRING": str, "BOOL": bool}


def judge(
    records: Iterable[Record],
    expected: Expected,
    *,
    mode: str = "intervals",
    paths: bool = False,
    proofs: bool = False,
    first_path: bool = False,
    some_paths: bool = False,
) -> None:
    """Raise where the records break the contract of the answer stream.

    `first_path`: of each pair the engine knew the path that it found first, not the one that lasts longest.
    `some_paths`: where some rules derive paths and others do not, the answers of those have their paths.
    """
    _Court(expected, mode, paths, first_path, proofs, some_paths).hear(list(records))


def judge_path_values(
    records: Iterable[Record], expected: Expected, *, mode: str = "intervals", lasting: bool = True
) -> None:
    """Raise where a record lacks a path value, or where its path values, if they are `lasting`, do not prove it."""
    _Court(expected, mode, paths=False).hear_path_values(list(records), lasting)


@dataclass(frozen=True)
class _Court:
    expected: Expected
    mode: str
    paths: bool
    first_path: bool = False
    proofs: bool = False
    some_paths: bool = False

    def hear(self, records: list[Record]) -> None:
        by_answer: defaultdict[Answer, list[Record]] = defaultdict(list)
        for record in records:
            by_answer[self.answer_of(record)].append(record)
        for answer in sorted({*by_answer, *self.expected.answers}, key=repr):
            if self.changes:
                self.check_changes(answer, by_answer[answer])
            else:
                self.check_intervals(answer, by_answer[answer])
            if self.paths:
                self.check_paths(answer, by_answer[answer])
            if self.path_names:
                self.check_path_values(answer, by_answer[answer])

            if self.proofs:
                self.check_proofs(answer, by_answer[answer])

    def hear_path_values(self, records: Sequence[Record], lasting: bool) -> None:
        names = self.path_names
        by_answer: defaultdict[Answer, list[Record]] = defaultdict(list)
        for record in records if names else ():
            vertices = tuple(record["answer"]) if "answer" in record else (record["src"], record["trg"])
            values = tuple(value for name, value in sorted(record["properties"].items()) if name not in names)
            by_answer[vertices + values].append(record)
            if (record["op"] == "-") == any(record["properties"][name] is not None for name in names):
                self.refuse(f"a '+' has its paths, and a '-' none: {record}")
        for answer in sorted(by_answer if lasting else (), key=repr):
            self.check_path_values(answer, by_answer[answer])

    @cached_property
    def path_names(self) -> tuple[str, ...]:
        return self.expected.query.path_names(self.expected.query.result)

    @property
    def changes(self) -> bool:
        return self.mode == "changes"

    def refuse(self, what: str, answer: Answer | None = None, records: Sequence[Record] = ()) -> None:
        """Raise, saying what is wrong with which answer."""
        lines = [what, "", "query:", *indented(query_text(self.expected.query).splitlines())]
        for name, edges in self.expected.streams.items():
            lines += [f"edges of {name}:", *indented(map(str, edges))]
        if answer is not None:
            lines += [
                f"answer {answer}:",
                f"  expected {interval_text(self.expected.answers.get(answer, []))}",
                *([f"  got      {interval_text(instants(records))}"] if not self.changes else []),
                "  from its records",
                *indented(map(str, records), by=4),
            ]
        raise AssertionError("\n".join(lines))

    # ------------------------------------------------------------------------------------------------------
    # Fields

    def answer_of(self, record: Record) -> Answer:
        """The record's vertices and values, once its fields are seen to be as promised."""
        query = self.expected.query
        named = {"src", "trg", "label"} if query.arity == 2 else {"answer"}
        types = head_types(query, query.result)
        named |= {"properties"} if types or self.path_names else set()
        fields = named | {"ts", "exp", "op"} | ({"path"} if self.paths else set())
        fields |= {"proof"} if self.proofs else set()
        if set(record) != fields:
            self.refuse(f"a record has the fields {sorted(fields)}, not those of {record}")
        if record["op"] not in ("+", "-"):
            self.refuse(f"op is + or -: {record}")
        if type(record["ts"]) is not int:
            self.refuse(f"ts is an integer: {record}")
        if query.arity == 2 and record["label"] != result_label(query):
            self.refuse(f"the label is {result_label(query)!r}: {record}")
        if record["op"] == "+" and not self.changes:
            # Without exp it holds for ever, which is for the oracle to say.
            if record["exp"] is not None and (
                type(record["exp"]) is not int or record["exp"] <= record["ts"]
            ):
                self.refuse(f"exp is an integer after ts: {record}")
        elif record["exp"] is not None:
            self.refuse(f"exp is null: {record}")
        answer = (record["src"], record["trg"]) if query.arity == 2 else tuple(record["answer"])
        if len(answer) != query.arity:
            self.refuse(f"an answer has {query.arity} vertices: {record}")
        return answer + self.values_of(record, types)

    def values_of(self, record: Record, types: Mapping[str, str]) -> Answer:
        """The values of a record in the order of their names, each of its own type."""
        properties = record.get("properties", {})
        if set(properties) != {*types, *self.path_names}:
            self.refuse(f"the properties are {sorted({*types, *self.path_names})}: {record}")
        for name in types:
            value = properties[name]
            if type(value) is not PYTHON_TYPES[types[name]]:
                self.refuse(f"{name} is a {types[name]}: {record}")
            if str(value) == "-0.0":
                self.refuse(f"there is one zero: {record}")
        return tuple(properties[name] for name in sorted(types))

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
        cut = [end for _, end in effective(records[:place]) if end > time]
        if not cut:
            self.refuse(f"the '-' at {time} cuts nothing", answer, records)
        # A path's edge may be gone where the answer is not; an edge may go and come back in one instant.
        may_return = self.paths or self.proofs or bool(self.path_names) or time in self.times["+"]
        # One who knows of a shorter path gives the answer anew until that ends.
        again = any(record["op"] == "+" and record["ts"] == time for record in records[place:])
        may_return = may_return or (self.first_path and again)
        if not may_return and covers(self.known_at(time).get(answer, []), time, max(cut)):
            self.refuse(f"the '-' at {time} cuts what holds on", answer, records)

    def known_at(self, time: int) -> Mapping[Answer, list[Interval]]:
        """What follows from the edges up to an instant alone."""
        if time not in self.prefixes:
            past = {
                name: [edge for edge in edges if time_of(edge) <= time]
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
        wanted = [change for change in wanted if change != ("-", FOREVER)]
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
        """When edges of labels that the query names arrive (`+`), and when they are deleted, or replaced in a table
        (`-`)."""
        query = self.expected.query
        named = {step.bare for step in asked(query)}
        tables = {stream.name for stream in query.streams if stream.table}
        times: dict[str, set[int]] = {"+": set(), "-": set()}
        for name, edges in self.expected.accepted.items():
            known = set()
            windows = query.windows(name)
            for edge in edges:
                key = edge_key(edge)
                if any(Step(key[1], window, vertex=key[2] is None) in named for window in windows):
                    times[operation(edge)].add(time_of(edge))
                    if name in tables and key in known:
                        times["-"].add(time_of(edge))
                    known.add(key)
        return times

    # ------------------------------------------------------------------------------------------------------
    # Paths

    def check_paths(self, answer: Answer, records: Sequence[Record]) -> None:
        """Each `+` record's path is a proof of it through the whole of its interval."""
        proofs = proofs_of(self.expected.query, self.expected.query.result)
        for record, (start, end) in zip(records, effective(records, changes=self.changes), strict=True):
            if record["op"] == "-" or record["path"] is None:
                if record["path"] is not None:
                    self.refuse(f"a '-' has no path: {record}", answer, records)
                if record["op"] == "+" and (proofs.required or self.is_path(proofs, answer, record)):
                    self.refuse(f"a path is missing: {record}", answer, records)
            elif not proofs.words:
                self.refuse(f"a path for what is no path: {record}", answer, records)
            elif start < end and not any(
                self.proves(word, record["path"], answer[:2], start, end) for word in proofs.words
            ):
                known = any(spells(word, record["path"], *answer[:2]) for word in proofs.words)
                fault = (
                    "has an edge that does not hold throughout" if known else "spells no word from src to trg"
                )
                self.refuse(f"in [{start}, {end}) the path {fault}: {record}", answer, records)

    def check_proofs(self, answer: Answer, records: Sequence[Record]) -> None:
        """Each `+` record's proof is right through the whole of its interval."""
        for record, (start, end) in zip(records, effective(records, changes=self.changes), strict=True):
            if record["op"] == "-":
                if record["proof"] is not None:
                    self.refuse(f"a '-' has no proof: {record}", answer, records)
            elif start < end:
                try:
                    self.checker.check(record, result_label(self.expected.query), end)
                except WrongProof as fault:
                    self.refuse(f"in [{start}, {end}) the proof is wrong: {fault}", answer, records)

    @cached_property
    def checker(self) -> ProofChecker:
        return ProofChecker(self.expected)

    def check_path_values(self, answer: Answer, records: Sequence[Record]) -> None:
        """The path values of each `+` record are paths of one match of the rules, which holds throughout."""
        for record, (start, end) in zip(records, effective(records, changes=self.changes), strict=True):
            values = [record["properties"][name] for name in self.path_names]
            if record["op"] == "-":
                if any(value is not None for value in values):
                    self.refuse(f"a '-' has no path: {record}", answer, records)
                continue
            if any(value is None for value in values):
                self.refuse(f"a path is missing: {record}", answer, records)
            if start < end and not any(
                covers(times, start, end)
                and all(
                    self.proves(words_of(walk.atom, value), value, (walk.src, walk.trg), start, end)
                    for walk, value in zip(walks, values, strict=True)
                )
                for walks, times in self.expected.walks.get(answer, {}).items()
            ):
                self.refuse(f"in [{start}, {end}) no match has these paths: {record}", answer, records)

    def is_path(self, proofs: Proofs, answer: Answer, record: Record) -> bool:
        """Whether a path of earlier edges proves the record, by a rule that derives an answer for each of its
        paths."""
        if not self.some_paths or not proofs.sure:
            return False
        start = record["ts"]
        end = record["exp"] or (start + 1 if self.changes else FOREVER)
        before = self.expected_from(start)

        def throughout(step: Step) -> set[Any]:
            known, held = (each.history.get(step, {}) for each in (before, self.expected))
            lasting = {edge for edge, times in known.items() if covers(times, start, end)}
            return {edge for edge in lasting if covers(held.get(edge, []), start, start + 1)}

        ends = answer[:2]
        return any(not words.order and ends in joined(words.expr, throughout) for words in proofs.sure)

    def expected_from(self, time: int) -> Expected:
        """What follows from the edges before an instant alone."""
        if time not in self.earlier:
            past = {
                name: [edge for edge in edges if time_of(edge) < time]
                for name, edges in self.expected.accepted.items()
            }
            self.earlier[time] = expect(self.expected.query, past)
        return self.earlier[time]

    @cached_property
    def earlier(self) -> dict[int, Expected]:
        return {}

    def proves(
        self, words: Words, path: Sequence[Sequence[Any]], ends: Sequence[Vertex], start: int, end: int
    ) -> bool:
        """Whether the path spells a word of the expression, from end to end, with edges that hold
        throughout."""
        src, trg = ends
        if path:
            return spells(words, path, src, trg, holding=(self.expected, start, end))
        expr = words.expr
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
    """What answers are called: by their head, but an `Answer` that only hands on another head, perhaps with values
    under the same names, keeps its name."""
    match query.rules_of(query.result):
        case [
            Rule("Answer", (first, second), (Atom(Step(head, None, None), src, trg, _, bound),), values, ())
        ]:
            variables = [term for _, term in bound if isinstance(term, Var)]
            distinct = len(set(variables)) == len(bound)
            if (first, second) == (src, trg) and src != trg and distinct and dict(values) == dict(bound):
                return head
    return query.result


def asked(query: Query) -> set[Step]:
    return {step for rule in query.rules for atom in rule.body for step in steps(atom.expr)}


def effective(records: Sequence[Record], *, changes: bool = False) -> list[Interval]:
    """What each record says once the `-` records after it have cut it (in `changes` mode, its first
    instant)."""
    intervals = []
    for place, record in enumerate(records):
        start = record["ts"]
        if record["op"] == "-":
            end = start
        elif record["exp"] is None:
            end = start + 1 if changes else FOREVER
        else:
            end = record["exp"]
        cuts = [later["ts"] for later in records[place + 1 :] if later["op"] == "-"]
        intervals.append((start, max(start, min([end, *cuts]))))
    return intervals


def instants(records: Sequence[Record]) -> list[Interval]:
    """The instants at which the answer holds, by all of its records."""
    return union(effective(records))


# ---------------------------------------------------------------------------------------------------------
# Words


class Words(NamedTuple):
    """The words of an expression; with an order, those along edges whose times have it.

    `beside_timed`: other paths of the same result have times, so that a step may have a null in their place.
    """

    expr: Expr
    order: str = ""
    beside_timed: bool = False


@dataclass(frozen=True)
class Proofs:
    """What a path of the answer may spell, and whether each answer must have a path; those `sure` words by whose
    every path there is an answer."""

    words: tuple[Words, ...]
    required: bool
    sure: tuple[Words, ...] = ()


def proofs_of(query: Query, head: str) -> Proofs:
    """An answer is a path where its rule is one path atom from the first of its vertices to the second.
    An edge, or a rule that only renames or compares, may have the path or not."""
    words: list[Words] = []
    sure: list[Words] = []
    required = True
    for rule in query.rules_of(head):
        atom = only_atom(rule)
        if atom is None:
            required = False
            continue
        words.append(Words(atom.expr, atom.order))
        required = required and not rule.comparisons
        selects = bool(rule.comparisons) or len(set(rule.args)) < len(rule.args)
        if isinstance(atom.expr, Step):
            required = False
            if atom.expr.stream is None and atom.name is None:
                inner = proofs_of(query, atom.expr.label)
                words += inner.words
                sure += inner.sure if not selects and atom.expr.predicate is None else ()
        elif not selects:
            sure.append(words[-1])
    timed = any(each.order for each in words)
    return Proofs(tuple(each._replace(beside_timed=timed) for each in words), required, tuple(sure))


def words_of(atom: Atom, path: Sequence[Sequence[Any]]) -> Words:
    """The words of a path atom. Beside paths in order of time, a null may stand in place of a time."""
    return Words(atom.expr, atom.order, beside_timed=any(len(step) == 4 for step in path))


def only_atom(rule: Rule) -> Atom | None:
    """The atom of a rule `head(x, y) <- expr(x, y)`."""
    [first, *others] = rule.body
    if others or rule.args != (first.src, first.trg) or (isinstance(first.expr, Step) and first.expr.vertex):
        return None
    return first


def in_time(path: Sequence[Sequence[Any]], words: Words) -> bool:
    """Whether each step has the fields that it should, and the times have the order."""
    if not words.order:
        return all(len(step) == 3 or (words.beside_timed and step[3:] == [None]) for step in path)
    if any(len(step) != 4 or type(step[3]) is not int for step in path):
        return False
    strictly = words.order.startswith("strictly")
    times = [step[3] for step in path]
    return all(one < other if strictly else one <= other for one, other in pairwise(times))


def spells(
    words: Words,
    path: Sequence[Sequence[Any]],
    src: Vertex,
    trg: Vertex,
    holding: tuple[Expected, int, int] | None = None,
) -> bool:
    """Whether the edges, read from `src` on, spell a word of the expression that ends in `trg`; where
    asked, with edges that hold throughout an interval."""

    def step(wanted: Step, place: tuple[int, Vertex], backwards: bool) -> tuple[int, Vertex] | None:
        count, vertex = place
        if count == len(path):
            return None
        first, label, second = path[count][:3]
        if label not in (wanted.label, f"{wanted.stream}.{wanted.label}"):
            return None
        if holding is not None:
            expected, start, end = holding
            history = expected.timed if words.order else expected.history
            edge = (first, second, path[count][3]) if words.order else (first, second)
            if not covers(history.get(wanted, {}).get(edge, []), start, end):
                return None
        before, after = (second, first) if backwards else (first, second)
        return (count + 1, after) if before == vertex else None

    return in_time(path, words) and (len(path), trg) in read_word(words.expr, src, len(path), step)


# ---------------------------------------------------------------------------------------------------------
# Text


def indented(lines: Iterable[str], by: int = 2) -> list[str]:
    return [" " * by + line for line in lines]


def interval_text(intervals: Sequence[Interval]) -> str:
    return " ".join(f"[{start}, {end})" for start, end in intervals) or "never"
