"""Accepts the proof of an answer record if it is right, by the query and the edges of the input alone.

It shares no code with the program. Nodes follow from their children by the query, and leaves are edges of the input.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import oracle
from oracle import FOREVER, Arrival, Expected, Interval, covers, is_nullable, time_of, truth, union
from querytext import Atom, Rule, Step, Var, expr_text, steps
from words import read_word

Node = Mapping[str, Any]
UNNAMED = re.compile(r"\[(?:[^\]\[]|\[[^\]]*\])*\]|[\s()]|(?<=\{)(\d+),(?=\1\})")  # not in a path's name


class WrongProof(Exception): ...


def need(right: bool, what: str, node: object) -> None:
    if not right:
        raise WrongProof(f"{what}: {node}")


class ProofChecker:
    """Checks the proofs of one query's answers over given streams."""

    def __init__(self, expected: Expected) -> None:
        self.expected, self.query = expected, expected.query
        self.streams = {stream.name: stream for stream in self.query.streams}
        self.rows = {name: expected.accepted[stream.input] for name, stream in self.streams.items()}
        self.arrivals = lru_cache(256)(self.arrivals_of)

    def check(self, record: Node, label: str, end: int) -> None:
        """Raise `WrongProof` unless the record, of answers with this label, is proved from its `ts` until `end`."""
        self.ts, self.exp, self.end, proof = record["ts"], record["exp"], end, record["proof"] or {}
        ends = {"edge": [record["src"], label, record["trg"]]} if "src" in record else {}
        told = ends or {"answer": record["answer"], "label": label}
        values = {name: record["properties"][name] for name in self.query.value_names(self.query.result)}
        told |= {name: record[name] for name in ("ts", "exp")} | ({"properties": values} if values else {})
        need({**told, "because": proof.get("because")} == proof, "not the record's own tuple", record)
        if set(values) == set(self.query.value_names(label)):
            return self.head(proof, Step(label))
        return self.rule(proof, self.query.rules_of(self.query.result)[0])  # a head without its values

    def fields(self, node: Node, named: set[str], values: set[str]) -> None:
        """The node has these fields and values; a derived tuple has the interval of the record."""
        named = named | {"ts", "exp"} | ({"properties"} if values else set())
        need(set(node) == named and set(node.get("properties", {})) == values, "other fields", node)
        same = (node["ts"], node["exp"]) == (self.ts, self.exp)
        need(same or "because" not in node, "another interval", node)

    def arrivals_of(self, stream: str, count: int) -> dict[tuple[Any, ...], list[Arrival]]:
        """By label and ends: all arrivals among the first rows of a stream."""
        found, source, rows = defaultdict(list), self.streams[stream], self.rows[stream][:count]
        for each in oracle.arrivals(source, rows, 0, oracle.reader_of(self.query, source)):
            found[each.label, each.src, each.trg].append(each)
        return found

    def leaf(self, node: Node, step: Step, bound: set[str], chosen: Callable[[Arrival], bool]) -> None:
        """The node is an edge of the step that is valid throughout, by the arrivals that are `chosen`."""
        kind = "vertex" if step.vertex else "edge"
        self.fields(node, {kind}, bound)
        need(node[kind][1] == step.label, "another label", node)
        key = (step.label, node[kind][0], None if step.vertex else node[kind][2])

        def valid(count: int) -> list[Interval]:
            return [each.valid for each in self.arrivals(step.stream, count).get(key, ()) if chosen(each)]

        rows = self.rows[step.stream]
        need(covers(union(valid(len(rows))), self.ts, self.end), "not valid throughout", node)
        told = (node["ts"], FOREVER if node["exp"] is None else node["exp"])
        need(told[0] <= self.ts and told[1] >= max(self.end, self.exp or 0), "does not last", node)
        # What was known at the instant of the record, perhaps after some of its rows only.
        before = sum(time_of(row) < self.ts for row in rows)
        known = range(sum(time_of(row) <= self.ts for row in rows), before - 1, -1)
        need(any(told in maximal(valid(count)) for count in known), "not its own validity", node)

    def edge(self, node: Node, step: Step, atom: Atom | None = None, types: Mapping[str, str] = {}) -> None:
        """The node is a tuple of a label or a head, with the values that the atom binds."""
        if step.stream is None:
            return self.head(node, step)
        bound = {name: term for name, term in (atom.values if atom else ()) if isinstance(term, Var)}

        def chosen(arrival: Arrival) -> bool:
            values = {**arrival.values, "ts": arrival.ts}
            if atom is not None:  # with its literals, and with the values that the node has
                known = oracle.bind(atom, node_ends(node), values, {}, types)
                told = {} if known is None else {name: known[var.name] for name, var in bound.items()}
                if known is None or told != node.get("properties", {}):
                    return False
            return step.predicate is None or truth(step.predicate, values) is True

        return self.leaf(node, step, set(bound), chosen)

    def head(self, node: Node, step: Step) -> None:
        """The node follows from its children by a rule of the head, and satisfies the step's predicate."""
        named = {"answer", "label"} & set(node) or {"edge"}
        self.fields(node, named | {"because"}, set(self.query.value_names(step.label)))
        values = node.get("properties", {})
        need((node["label"] if "label" in node else node["edge"][1]) == step.label, "another label", node)
        need(step.predicate is None or truth(step.predicate, values) is True, "not selected", node)
        faults = []
        for rule in self.query.rules_of(step.label):
            try:
                return self.rule(node, rule)
            except WrongProof as fault:
                faults.append(str(fault))
        raise WrongProof(f"no rule of {step.label}: {faults}")

    def rule(self, node: Node, rule: Rule) -> None:
        """The node follows from its children, one for each atom of the rule."""
        need(len(node["because"]) == len(rule.body), "not a child for each atom", node)
        types, wide = oracle.variable_types(self.query, rule), oracle.head_types(self.query, rule.head)
        known: dict[str, Any] | None = {}
        for child, atom in zip(node["because"], rule.body, strict=True):
            plain = isinstance(atom.expr, Step) and atom.name is None and not atom.order
            self.edge(child, atom.expr, atom, types) if plain else self.path(child, atom)
            given = child.get("properties", {})
            # A literal is not among the properties of an edge, nor a path among those of a derived one.
            values = tuple(each for each in atom.values if each[0] in given)
            known = oracle.bind(replace(atom, values=values, paths=()), node_ends(child), given, known, types)
            need(known is not None, "atoms do not meet", node)
        need(oracle.selects(rule, known), "a comparison is not true", node)
        ends = tuple(node["answer"]) if "answer" in node else node_ends(node)
        need(ends == tuple(known[var.name] for var in rule.args), "other ends", node)
        values = {name: oracle.as_type(known[var.name], wide[name]) for name, var in rule.values}
        need(node.get("properties", {}) == values, "other values", node)

    def path(self, node: Node, atom: Atom) -> None:
        """The children of the node are the steps of a path that the atom accepts, from end to end."""
        self.fields(node, {"edge", "because"}, set())
        src, label, trg = node["edge"]
        named = UNNAMED.sub("", expr_text(atom.expr, qualified=False))
        need(label == atom.name if atom.name else UNNAMED.sub("", label) == named, "another name", node)
        children, faults = node["because"], []
        if not children:
            held = (each for step in steps(atom.expr) for each in self.expected.history.get(step, {}).items())
            touching = [time for ends, times in held if src in ends for time in times]
            need(src == trg and is_nullable(atom.expr), "no empty path", node)
            return need(covers(union(touching), self.ts, self.end), "no edge touches it throughout", node)
        if atom.order:
            times = [child.get("properties", {}).get("ts") for child in children]
            least = 1 if atom.order.startswith("strictly") else 0
            in_order = None not in times and all(other - one >= least for one, other in pairwise(times))
            need(in_order, "not in order of time", node)

        def follow(step: Step, place: tuple[int, Any], backwards: bool) -> tuple[int, Any] | None:
            if place[0] == len(children) or "edge" not in (child := children[place[0]]):
                return None
            first, second = node_ends(child)[:: -1 if backwards else 1]
            try:
                (self.timed if atom.order else self.edge)(child, step)
            except WrongProof as fault:
                return faults.append(str(fault))
            return (place[0] + 1, second) if first == place[1] else None

        places = read_word(atom.expr, src, len(children), follow)
        return need((len(children), trg) in places, f"spells no word, {faults}", node)

    def timed(self, node: Node, step: Step) -> None:
        """The node is an edge with its time: of a label, or of a head that is derived from one edge alone."""
        below, label = node, step.bare
        while label.stream is None:
            self.fields(below, {"edge", "because"}, {"ts"})
            need(below["edge"][1] == label.label and len(below["because"]) == 1, "not its one edge", below)
            (below,) = below["because"]
            found = below["edge"][1], "because" in below
            bodies = [rule.body[0].expr for rule in self.query.rules_of(label.label)]
            label = next((each.bare for each in bodies if (each.label, each.stream is None) == found), None)
            need(label is not None, "no rule", below)
        time = node["properties"]["ts"]
        need({"ts": time} == below.get("properties"), "another time", node)

        def chosen(arrival: Arrival) -> bool:
            """Whether the oracle derives the step from this arrival alone."""
            values = {**arrival.values, "ts": arrival.ts}
            row = (*node_ends(below), *(values[name] for name in oracle.columns(self.query, label.stream)))
            snapshot = oracle.Snapshot(self.query, {label: {row}})
            return (*node_ends(node), time) in snapshot.timed_edges(step)

        self.leaf(below, label, {"ts"}, chosen)


def node_ends(node: Node) -> tuple[Any, Any]:
    return (node["vertex"][0],) * 2 if "vertex" in node else tuple(node["edge"][::2])


def maximal(intervals: Sequence[Interval]) -> set[Interval]:
    """The longest intervals, where those that only touch are one, and where they are two."""
    apart = union((2 * start, 2 * end - 1) for start, end in intervals if start < end)
    return {*union(intervals), *((start // 2, (end + 1) // 2) for start, end in apart)}
