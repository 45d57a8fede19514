"""How the steps of a path are read by an expression: shared by what judges paths and what checks proofs."""

from __future__ import annotations

from collections.abc import Callable

from querytext import Alt, Back, Expr, Rep, Seq, Step, Vertex

Place = tuple[int, Vertex]
"""How many steps are read, and the vertex reached."""


def read_word(
    expr: Expr, src: Vertex, length: int, follow: Callable[[Step, Place, bool], Place | None]
) -> set[Place]:
    """Where the words of an expression end that are read from `src` on, over at most `length` steps; `follow` reads
    one step, perhaps backwards, or says that it cannot."""

    def read(expr: Expr, places: set[Place], backwards: bool) -> set[Place]:
        match expr:
            case Step():
                return {after for place in places if (after := follow(expr, place, backwards)) is not None}
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
                for _ in range(length if high is None else high - low):
                    places = read(part, places, backwards)
                    reached = reached | places
                return reached
        raise AssertionError(expr)

    return read(expr, {(0, src)}, False)
