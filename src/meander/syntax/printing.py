"""A regular query as Datalog text, which parses to the same query.

A regular query has windows in the stream's unit, so they are printed as bare numbers, unless that unit is given. A
label is printed without its stream where it can only be that stream's.
"""

from __future__ import annotations

import re

from meander.syntax.durations import format_duration
from meander.syntax.query import (
    Atom,
    Constant,
    Either,
    Inverse,
    Label,
    PathExpr,
    RegularQuery,
    Repeat,
    Rule,
    Term,
    Then,
    Variable,
    heads_of,
    implied_result,
    labels_of,
)

_RESERVED = {"stream", "window", "slide", "result", "as"}
_SUFFIXES = {(0, None): "*", (1, None): "+", (0, 1): "?"}

# How tightly an expression binds: a part that binds less than its place asks for stands in parentheses.
_EITHER, _THEN, _INVERSE, _REPEAT = range(4)


def to_datalog(query: RegularQuery, unit: str | None = None) -> str:
    """The query as Datalog text, one statement a line; windows are durations (`1d`) where their unit is given."""

    def duration(amount: int) -> str:
        return str(amount) if unit is None else format_duration(amount, unit)

    shadowed = set(heads_of(query))
    shadowed.update(atom.name for rule in query.rules for atom in rule.body if atom.name is not None)
    bare = frozenset(
        label
        for rule in query.rules
        for atom in rule.body
        for label in labels_of(atom.expr)
        if len(query.streams) == 1 and label.stream is not None and label.name not in shadowed
    )
    lines = [
        f"STREAM {name_text(stream.name)} WINDOW {duration(stream.window)}"
        + (f" SLIDE {duration(stream.slide)}" if stream.slide != 1 else "")
        for stream in query.streams
    ]
    lines += [_rule_text(rule, bare) for rule in query.rules]
    if query.results != (implied_result(query.rules),):
        lines.append("RESULT " + ", ".join(symbol_text(result) for result in query.results))
    return "\n".join(lines) + "\n"


def expression_text(expr: PathExpr, bare: frozenset[Label] = frozenset()) -> str:
    """The expression in SPARQL's notation; labels in `bare` are printed without their stream."""

    def within(part: PathExpr, place: int) -> str:
        text = expression_text(part, bare)
        return f"({text})" if _tightness(part) < place else text

    match expr:
        case Label():
            if expr.stream is None:
                return symbol_text(expr.name)
            return (
                name_text(expr.name) if expr in bare else f"{name_text(expr.stream)}.{name_text(expr.name)}"
            )
        case Inverse():
            return "^" + within(expr.expr, _INVERSE)
        case Repeat():
            return within(expr.expr, _REPEAT) + _suffix(expr.low, expr.high)
        case Then():
            return "/".join(within(part, _INVERSE) for part in expr.parts)
        case Either():
            return "|".join(within(part, _THEN) for part in expr.parts)


def term_text(term: Term) -> str:
    """A variable's name, an integer, or a quoted string."""
    match term:
        case Variable():
            return term.name
        case Constant(value=int()):
            return str(term.value)
        case Constant():
            return '"' + re.sub(r'["\\]|[^\x20-\x7e\x80-\U0010ffff]', _escape, str(term.value)) + '"'


def name_text(name: str) -> str:
    """A name, in backquotes where it is no identifier or could be taken for a keyword."""
    if re.fullmatch(r"[^\W\d]\w*", name) and name.lower() not in _RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def symbol_text(head: str) -> str:
    """The name of a head, which may be a view's: `view.label`."""
    view, _, label = head.partition(".")
    if not (view and label):
        return name_text(head)
    return f"{name_text(view)}.{name_text(label)}"


def _rule_text(rule: Rule, bare: frozenset[Label]) -> str:
    args = ", ".join(variable.name for variable in rule.args)
    path = f" as {name_text(rule.path)}" if rule.path is not None else ""
    return f"{symbol_text(rule.head)}({args}){path} <- {', '.join(_atom_text(a, bare) for a in rule.body)}."


def _atom_text(atom: Atom, bare: frozenset[Label]) -> str:
    expr = expression_text(atom.expr, bare)
    if _tightness(atom.expr) < _REPEAT:
        expr = f"({expr})"
    name = f" as {name_text(atom.name)}" if atom.name is not None else ""
    return f"{expr}({term_text(atom.src)}, {term_text(atom.trg)}){name}"


def _tightness(expr: PathExpr) -> int:
    match expr:
        case Either():
            return _EITHER
        case Then():
            return _THEN
        case Inverse():
            return _INVERSE
        case _:
            return _REPEAT


def _suffix(low: int, high: int | None) -> str:
    if (low, high) in _SUFFIXES:
        return _SUFFIXES[low, high]
    if low == high:
        return f"{{{low}}}"
    return f"{{{low},{'' if high is None else high}}}"


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    simple = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    if character in '"\\':
        return "\\" + character
    return simple.get(character, f"\\u{ord(character):04x}")
