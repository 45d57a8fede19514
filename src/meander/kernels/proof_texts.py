"""Proof trees to JSON text, and to the rows of the graph that they rest on.

A proof is a tree that shares equal subtrees, over kinds of nodes that refer to later kinds alone: no branch is longer
than there are kinds. A walk keeps its branch on a stack: by depth the node, and the next of its children.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meander.kernels.interning import HEAD, KIND, LENGTH, START, Names
from meander.kernels.jit import Array, inner_kernel, kernel
from meander.kernels.status import DONE, EMITTED, FOREVER, FULL_OUTPUT, NEXT_ROW
from meander.kernels.writing import (
    BACKSLASH,
    COMMA,
    MOST_DIGITS,
    NO_EXPIRY,
    NULL,
    QUOTE,
    SHORT_ESCAPES,
    SPACE,
    put_integer,
    put_literal,
    put_string,
)

# What a piece of a node's text writes after its literal, where it is no column of the node.
TIME, EXPIRY, CHILDREN, END = -1, -2, -3, -4

STRING, INTEGER, FLOAT, BOOL, PATH = 0, 1, 2, 3, 4
TRUE = np.frombuffer(b"true", np.uint8)
FALSE = np.frombuffer(b"false", np.uint8)


class Trees(NamedTuple):
    """The columns of `ProofTrees` that a walk reads."""

    root: Array
    kind: Array
    row: Array
    column: Array
    columns: Array
    begin: Array
    child: Array
    since: Array
    until: Array


class Shapes(NamedTuple):
    """The text of each kind of node: pieces, each a literal and what follows it."""

    piece: Array  # by kind, with one more for the end
    slot: Array  # by piece: a column of the node, or TIME, EXPIRY, CHILDREN, END
    literals: Array
    literal: Array  # by piece, with one more for the end
    is_leaf: Array  # by kind


class Values(NamedTuple):
    """The names of vertices and values; a FLOAT has its text, by position in the columns of the trees."""

    names: Names
    text: Array
    start: Array
    end: Array


class Branch(NamedTuple):
    """Scratch for a walk: by depth the node, and the next of its children or pieces."""

    node: Array
    child: Array
    piece: Array


@inner_kernel
def escaped_length(data: Array, start: int, end: int) -> int:
    """The bytes that `put_string` writes."""
    length = 2 + end - start
    for i in range(start, end):
        byte = data[i]
        if byte < SPACE:
            length += 1 if SHORT_ESCAPES[byte] else 5
        elif byte in (QUOTE, BACKSLASH):
            length += 1
    return length


@kernel
def measure_texts(trees: Trees, shapes: Shapes, values: Values, most: Array) -> None:
    """The most bytes that each node's text may have."""
    names = values.names
    for node in range(most.size - 1, -1, -1):
        kind = trees.kind[node]
        first, last = shapes.piece[kind], shapes.piece[kind + 1]
        total = shapes.literal[last] - shapes.literal[first]
        for piece in range(first, last):
            slot = shapes.slot[piece]
            if slot >= 0:
                position = trees.column[node] + slot
                number = trees.columns[position]
                name_kind = names.span[number, KIND]
                if name_kind == STRING:
                    start = names.span[number, START]
                    total += escaped_length(names.arena, start, start + names.span[number, LENGTH])
                elif name_kind == PATH:
                    total += names.span[number, LENGTH]
                elif name_kind == FLOAT:
                    total += values.end[position] - values.start[position]
                else:
                    total += MOST_DIGITS
            elif slot in (TIME, EXPIRY):
                total += MOST_DIGITS
        for i in range(trees.begin[node], trees.begin[node + 1]):
            total += 1 + most[trees.child[i]]
        most[node] = total


@inner_kernel
def put_column(out: Array, at: int, values: Values, number: int, position: int) -> int:
    """A vertex or value as JSON."""
    names = values.names
    kind = names.span[number, KIND]
    if kind == STRING:
        start = names.span[number, START]
        return put_string(out, at, names.arena, start, start + names.span[number, LENGTH])
    if kind == INTEGER:
        return put_integer(out, at, names.span[number, HEAD])
    if kind == PATH:
        start = names.span[number, START]
        return put_literal(out, at, names.arena, start, start + names.span[number, LENGTH])
    if kind == FLOAT:
        return put_literal(out, at, values.text, values.start[position], values.end[position])
    if names.span[number, HEAD] != 0:
        return put_literal(out, at, TRUE, 0, TRUE.size)
    return put_literal(out, at, FALSE, 0, FALSE.size)


@inner_kernel
def put_expiry(out: Array, at: int, exp: int) -> int:
    if exp == NO_EXPIRY or exp >= FOREVER:
        return put_literal(out, at, NULL, 0, NULL.size)
    return put_integer(out, at, exp)


@inner_kernel
def enter_node(trees: Trees, shapes: Shapes, branch: Branch, depth: int, node: int) -> None:
    branch.node[depth] = node
    branch.child[depth] = trees.begin[node]
    branch.piece[depth] = shapes.piece[trees.kind[node]]


@kernel
def write_proofs(
    trees: Trees,
    shapes: Shapes,
    values: Values,
    branch: Branch,
    ts: Array,
    exp: Array,
    out: Array,
    end: Array,
) -> None:
    """Write the proof of each record, one after the other, and `null` for a record without one; `end` has where each
    ends. `out` has room for all of them."""
    at = 0
    for record in range(trees.root.size):
        if trees.root[record] < 0:
            at = put_literal(out, at, NULL, 0, NULL.size)
            end[record] = at
            continue
        depth = 0
        enter_node(trees, shapes, branch, 0, trees.root[record])
        while depth >= 0:
            node = branch.node[depth]
            kind = trees.kind[node]
            piece = branch.piece[depth]
            slot = shapes.slot[piece]
            if slot == CHILDREN and branch.child[depth] > trees.begin[node]:
                # Its literal is written already, and some children.
                if branch.child[depth] < trees.begin[node + 1]:
                    out[at] = COMMA
                    at += 1
            else:
                at = put_literal(out, at, shapes.literals, shapes.literal[piece], shapes.literal[piece + 1])
            if slot == CHILDREN and branch.child[depth] < trees.begin[node + 1]:
                child = trees.child[branch.child[depth]]
                branch.child[depth] += 1
                depth += 1
                enter_node(trees, shapes, branch, depth, child)
                continue
            branch.piece[depth] = piece + 1
            if slot >= 0:
                position = trees.column[node] + slot
                at = put_column(out, at, values, trees.columns[position], position)
            elif slot == TIME:
                at = put_integer(out, at, trees.since[node] if shapes.is_leaf[kind] else ts[record])
            elif slot == EXPIRY:
                at = put_expiry(out, at, trees.until[node] if shapes.is_leaf[kind] else exp[record])
            elif slot == END:
                depth -= 1
        end[record] = at


@kernel
def collect_rows(
    trees: Trees, shapes: Shapes, branch: Branch, seen: Array, begin: Array, row: Array, cursor: Array
) -> int:
    """List the rows that each record's proof rests on, each once: those of its leaves and of its empty paths.

    `seen` has by node the last record that it was seen for, plus one.
    """
    for record in range(cursor[NEXT_ROW], trees.root.size):
        cursor[NEXT_ROW] = record
        begin[record] = cursor[EMITTED]
        if trees.root[record] < 0:
            continue
        count = cursor[EMITTED]
        depth = 0
        enter_node(trees, shapes, branch, 0, trees.root[record])
        while depth >= 0:
            node = branch.node[depth]
            at = branch.child[depth]
            if at < trees.begin[node + 1]:
                branch.child[depth] = at + 1
                child = trees.child[at]
                if seen[child] != record + 1:
                    seen[child] = record + 1
                    depth += 1
                    enter_node(trees, shapes, branch, depth, child)
                continue
            if trees.begin[node] == trees.begin[node + 1] and trees.row[node] >= 0:
                if count == row.size:
                    # The record is done again.
                    clear_marks(seen, record + 1)
                    return FULL_OUTPUT
                row[count] = trees.row[node]
                count += 1
            depth -= 1
        cursor[EMITTED] = count
    cursor[NEXT_ROW] = trees.root.size
    begin[trees.root.size] = cursor[EMITTED]
    return DONE


@inner_kernel
def clear_marks(seen: Array, mark: int) -> None:
    for node in range(seen.size):
        if seen[node] == mark:
            seen[node] = 0
