"""The checker of proofs rejects what is not a proof: a right proof in which one thing is changed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

import meander
from judge import effective, result_label
from law import drawn
from oracle import FOREVER, TooLarge, expect
from proof_checker import ProofChecker, WrongProof
from querytext import Query, query_text, read_query
from strategies import Case, cases, property_cases

pytestmark = pytest.mark.filterwarnings("ignore:no edge of the stream")

Record = dict[str, Any]
Mutant = tuple[str, Record]

QUERIES = {
    "a rule over a closure over a rule": """
        STREAM s WINDOW 20
        D(x, y) <- a(x, z), b(z, y).
        Answer(x, y) <- D+(x, u) as P, c(u, y).
    """,
    "a path of every kind": """
        STREAM s WINDOW 20 SLIDE 5
        Answer(x, y) <- (a/b*/c?)(x, y) as P.
    """,
    "a union with values": """
        STREAM s (w INT) WINDOW 20
        D(x, y, m: m) <- a(x, y, w: m), m > 1.
        D(x, y, m: m) <- b(x, z, w: m), c(z, y).
        Answer(x, y, most: m) <- D[m < 9](x, y, m: m), b(y, u).
    """,
    "a path in order of time": """
        STREAM s (w INT) WINDOW 20
        Big(x, y, m: m) <- a(x, y, w: m), m > 1.
        Answer(x, y) <- (Big/b+)(x, y) as P strictly ascending.
    """,
    "more than two vertices": """
        STREAM s WINDOW 20
        TABLE t
        Answer(x, y, z) <- s.a(x, y), t.b(y, z).
    """,
}
"""No two rules, labels or edges of these can stand for one another, so that each mutant is wrong."""

EDGES = [
    {"src": src, "label": label, "trg": trg, "ts": ts, "w": w}
    for ts, (src, label, trg, w) in enumerate(
        [
            ("u", "a", "v", 3),
            ("v", "b", "w", 2),
            ("w", "a", "x", 4),
            ("x", "b", "y", 5),
            ("y", "c", "z", 6),
            ("w", "c", "t", 7),
            ("v", "b", "w", 2),
        ],
        start=30,
    )
]


def records_of(query: Query, streams: dict[str, Any], **options: Any) -> list[tuple[Record, int]]:
    """The `+` records of a run, and until when each holds."""
    records = list(meander.run(query_text(query), streams, proofs=True, **options))
    changes = options.get("mode") == "changes"
    by_answer: dict[str, list[Record]] = {}
    for record in records:
        key = repr([record.get(name) for name in ("src", "trg", "answer", "properties")])
        by_answer.setdefault(key, []).append(record)
    return [
        (record, end)
        for group in by_answer.values()
        for record, (start, end) in zip(group, effective(group, changes=changes), strict=True)
        if record["op"] == "+" and start < end
    ]


def nodes(node: Record, trail: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Record]]:
    """All nodes of a proof, each by the way to it."""
    yield trail, node
    for number, child in enumerate(node.get("because", ())):
        yield from nodes(child, (*trail, number))


def changed(proof: Record, trail: tuple[int, ...], **fields: Any) -> Record:
    """The proof with some fields of one node replaced."""
    mutant = copy.deepcopy(proof)
    node = mutant
    for number in trail:
        node = node["because"][number]
    node.update(fields)
    return mutant


def mutants(proof: Record) -> Iterator[Mutant]:
    """The proof with one thing changed, by names and times that are nowhere else."""
    for trail, node in nodes(proof):
        for field in ("ts", "exp"):
            if node[field] is not None:
                yield f"{field} of {trail}", changed(proof, trail, **{field: node[field] + 1000})
                yield f"{field} of {trail}", changed(proof, trail, **{field: node[field] - 1000})
            else:
                yield f"{field} of {trail}", changed(proof, trail, **{field: 1 << 40})
        subject = next(name for name in ("edge", "vertex", "answer") if name in node)
        for place in range(len(node[subject])):
            names = list(node[subject])
            names[place] = "nothing like it"
            yield f"{subject}[{place}] of {trail}", changed(proof, trail, **{subject: names})
        for name, value in node.get("properties", {}).items():
            other = (
                (not value)
                if isinstance(value, bool)
                else f"{value}!"
                if isinstance(value, str)
                else value + 5000
            )
            values = {**node["properties"], name: other}
            yield f"{name} of {trail}", changed(proof, trail, properties=values)
            lacking = {key: kept for key, kept in node["properties"].items() if key != name}
            yield f"without {name} of {trail}", changed(proof, trail, properties=lacking)
        yield f"an unknown field of {trail}", changed(proof, trail, surely=True)
        for number, child in enumerate(node.get("because", ())):
            rest = [*node["because"][:number], *node["because"][number + 1 :]]
            # A loop may be left out of a path.
            if "edge" not in child or child["edge"][0] != child["edge"][2]:
                yield f"without child {number} of {trail}", changed(proof, trail, because=rest)
            if "because" in child:
                yield f"no reason for {trail}, {number}", changed(proof, (*trail, number), because=[child])


def exchanges(proof: Record) -> Iterator[Mutant]:
    """The proof with two children in each other's place."""
    for trail, node in nodes(proof):
        children = node.get("because", ())
        for number in range(len(children) - 1):
            first, second = children[number : number + 2]
            if first != second:
                order = [*children[:number], second, first, *children[number + 2 :]]
                yield f"children {number} and {number + 1} of {trail}", changed(proof, trail, because=order)


def all_rejected(checker: ProofChecker, record: Record, end: int, label: str, wrong: Iterator[Mutant]) -> int:
    """How many mutants there are; none may be accepted."""
    count = 0
    for what, mutant in wrong:
        try:
            checker.check({**record, "proof": mutant}, label, end)
        except WrongProof:
            count += 1
        else:
            pytest.fail(f"{what} was accepted: {mutant}")
    return count


@pytest.mark.parametrize("mode", ["intervals", "changes"])
@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
def test_a_proof_with_one_thing_changed_is_rejected(text: str, mode: str) -> None:
    query = read_query(text)
    streams = {
        stream.name: [edge for edge in EDGES if not stream.table or edge["label"] == "b"]
        for stream in query.streams
    }
    checker = ProofChecker(expect(query, streams))
    label = result_label(query)
    count = 0
    for record, end in records_of(query, streams, mode=mode):
        checker.check(record, label, end)
        count += all_rejected(checker, record, end, label, mutants(record["proof"]))
        count += all_rejected(checker, record, end, label, exchanges(record["proof"]))
        if record["exp"] is not None and end != FOREVER:
            nearly = [
                (f"{field} of {trail}", changed(record["proof"], trail, **{field: node[field] + by}))
                for trail, node in nodes(record["proof"])
                for field in ("ts", "exp")
                for by in (-1, 1)
                if node[field] is not None
            ]
            count += all_rejected(checker, record, end, label, iter(nearly))
    assert count > 20


def rejects_mutants(case: Case) -> None:
    try:
        expected = expect(case.query, case.streams, case.lateness)
    except TooLarge:
        return
    checker, label = ProofChecker(expected), result_label(case.query)
    for record, end in records_of(case.query, dict(case.streams), lateness=case.lateness)[:8]:
        checker.check(record, label, end)
        all_rejected(checker, record, end, label, mutants(record["proof"]))


@given(case=cases())
@drawn
def test_mutated_proofs_of_the_law_cases_are_rejected(case: Case) -> None:
    rejects_mutants(replace(case, mode="intervals"))


@given(case=property_cases())
@drawn
def test_mutated_proofs_of_the_law_cases_with_values_are_rejected(case: Case) -> None:
    rejects_mutants(replace(case, mode="intervals"))
