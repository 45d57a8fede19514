"""Queries cut in two at a rule: the first run's answers are the tuples of the second."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import meander
from judge import instants, judge_path_values
from oracle import Answer, Interval, expect, head_types
from querytext import Alt, Back, Expr, Query, Rep, Rule, Seq, Step, Stream, query_text, steps
from strategies import Case

CUT = "cut"
"""The stream of the second query that has the answers of the first."""


@dataclass(frozen=True)
class Chain:
    """Two queries that mean what one does; `head` is the result of the first."""

    head: str
    first: Query
    second: Query


def cuts(query: Query) -> list[str]:
    """The heads at which a query can be cut: binary ones that the result builds on, and no path in order of time."""
    needed = heads_below(query, query.result) - {query.result}
    ordered = {
        head
        for atom in query.atoms()
        if atom.order
        for step in steps(atom.expr)
        for head in ({step.label, *heads_below(query, step.label)} if step.stream is None else ())
    }
    binary = sorted(head for head in needed - ordered if len(query.rules_of(head)[0].args) == 2)
    return [head for head in binary if reads_alike(query, cut_at(query, head))]


def reads_alike(query: Query, chain: Chain) -> bool:
    """Whether both queries read of the streams what the one does: which properties a query names decides which rows
    it rejects, and which a deletion removes. And neither uses the name of a path that is in the other alone."""
    names = {atom.name for atom in query.atoms() if atom.name}
    for part in (chain.first, chain.second):
        used = {step.label for atom in part.atoms() for step in steps(atom.expr) if step.stream is None}
        if used & names - {atom.name for atom in part.atoms()}:
            return False
        for stream in part.streams_read() - {CUT}:
            alike = part.named(stream) == query.named(stream)
            if not alike or part.has_vertices(stream) != query.has_vertices(stream):
                return False
    return True


def heads_below(query: Query, head: str) -> set[str]:
    """The head, and all heads that it builds on."""
    found, waiting = {head}, [head]
    while waiting:
        for rule in query.rules_of(waiting.pop()):
            for step in (step for atom in rule.body for step in steps(atom.expr)):
                if step.stream is None and step.label not in found:
                    found.add(step.label)
                    waiting.append(step.label)
    return found


def cut_at(query: Query, head: str) -> Chain:
    below = heads_below(query, head)
    rules = [rule for rule in query.rules if rule.head in below - {head}] + query.rules_of(head)
    types = head_types(query, head) | dict.fromkeys(query.path_names(head), "PATH")
    tuples = Stream(CUT, properties=tuple(sorted(types.items())), tuples=True)
    kept = heads_below(without(query, head), query.result)
    second = tuple(
        read_from_cut(rule, head) for rule in query.rules if rule.head in kept and rule.head != head
    )
    return Chain(head, Query(query.streams, tuple(rules)), Query((*query.streams, tuples), second))


def without(query: Query, head: str) -> Query:
    return replace(query, rules=tuple(rule for rule in query.rules if rule.head != head))


def read_from_cut(rule: Rule, head: str) -> Rule:
    """The rule, with the edges of the head read from the stream."""

    def changed(expr: Expr) -> Expr:
        match expr:
            case Step():
                return replace(expr, stream=CUT) if expr.stream is None and expr.label == head else expr
            case Back(part):
                return Back(changed(part))
            case Rep(part, low, high):
                return Rep(changed(part), low, high)
            case Seq(parts):
                return Seq(tuple(map(changed, parts)))
            case Alt(parts):
                return Alt(tuple(map(changed, parts)))

    return replace(rule, body=tuple(replace(atom, expr=changed(atom.expr)) for atom in rule.body))


HANDS: Mapping[str, Callable[[meander.RunResult], Any] | None] = {
    ".jsonl": None,
    ".parquet": None,
    "result": lambda answers: answers,
    "dicts": list,
    "table": lambda answers: answers.to_arrow(),
}
"""How the answers of the first run get to the second: by a file, or as what a program makes of the result."""

OF_ONE_TYPE = (".parquet", "table")
"""Where all vertices have one type."""


def is_mixed(case: Case) -> bool:
    """Whether some vertices are integers and some are not: in a table they have one type."""
    kinds = set()
    for rows in case.streams.values():
        for row in rows:
            ends = (row.get("src"), row.get("trg")) if isinstance(row, Mapping) else (row[0], row[2])
            kinds |= {type(end) for end in ends if end is not None}
    return len(kinds) > 1


def run_chain(case: Case, chain: Chain, hand: str, mode: str, folder: Path) -> list[Mapping[str, Any]]:
    """The records of the second run; none of its tuples may be rejected."""
    first, second = query_text(chain.first), query_text(chain.second)
    options: dict[str, Any] = {
        "lateness": case.lateness,
        "batch_rows": case.batch_rows,
        "threads": case.threads,
    }
    streams = {name: case.streams[name] for name in inputs(chain.first)}
    given: Any = folder / f"answers{hand}"
    take = HANDS[hand]
    if take is None:
        meander.run(first, streams, answers=given, mode=mode, paths=case.paths, **options)
    else:
        given = take(meander.run(first, streams, mode=mode, paths=case.paths, **options))
    read = {name: case.streams[name] for name in inputs(chain.second) - {CUT}}
    rejects: list[dict[str, str]] = []
    answers = list(
        meander.run(
            second, {**read, CUT: given}, mode=case.mode, paths=case.paths, rejects=rejects, **options
        )
    )
    assert not [reject for reject in rejects if reject["stream"] == CUT], rejects
    return answers


def inputs(query: Query) -> set[str]:
    """The inputs of the streams that a query reads, perhaps through several windows."""
    return {stream.input for stream in query.streams if stream.name in query.streams_read()}


def held_by(query: Query, records: Iterable[Mapping[str, Any]]) -> dict[Answer, list[Interval]]:
    """When each answer holds, by its records."""
    by_answer: defaultdict[Answer, list[Mapping[str, Any]]] = defaultdict(list)
    for record in records:
        vertices = (record["src"], record["trg"]) if query.arity == 2 else tuple(record["answer"])
        properties = record.get("properties", {})
        names = sorted(set(properties) - set(query.path_names(query.result)))
        by_answer[vertices + tuple(properties[name] for name in names)].append(record)
    found = {answer: instants(of_answer) for answer, of_answer in by_answer.items()}
    return {answer: held for answer, held in found.items() if held}


def hold_chain(case: Case, head: str, hand: str, mode: str, folder: Path) -> None:
    """A chain of two runs gives at every instant what one text gives, with paths that prove it as well."""
    chain = cut_at(case.query, head)
    expected = expect(case.query, case.streams, case.lateness)
    records = run_chain(case, chain, hand, mode, folder)
    wanted = {answer: held for answer, held in expected.answers.items() if held}
    texts = f"{query_text(chain.first)}\n{query_text(chain.second)}"
    assert held_by(case.query, records) == wanted, f"cut at {head}, by {hand} in mode {mode}:\n{texts}"
    # In mode `changes` a path is that of the instant at which its answer starts.
    judge_path_values(records, expected, mode=case.mode, lasting=mode == "intervals")
