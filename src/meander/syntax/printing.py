"""A regular query as Datalog text, which parses to the same query, and its parts as text.

A regular query has windows in the stream's unit, so they are printed as bare numbers unless that unit is given. A
label is printed without its stream if no other stream or head could be meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

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
    Stream,
    Term,
    Then,
    Values,
    Variable,
    heads_of,
    implied_result,
    labels_of,
)
from meander.syntax.values import (
    And,
    Arithmetic,
    Comparison,
    Const,
    Membership,
    Not,
    Or,
    Predicate,
    Ref,
    Scalar,
    conjuncts,
)

_RESERVED = {
    "stream",
    "table",
    "tuples",
    "window",
    "slide",
    "result",
    "as",
    "and",
    "or",
    "not",
    "in",
    "true",
    "false",
}
_SUFFIXES = {(0, None): "*", (1, None): "+", (0, 1): "?"}

_COMPOUND = re.compile(r"[|/*+?^{}() ]")
_QUOTATION = re.compile(r"""`(?:[^`]|``)*`|"(?:[^"\\]|\\.)*\"""")
_PREDICATE = re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]")

# Operator precedence. An operand that binds less tightly than its operator requires stands in parentheses.
_ALTERNATION, _CONCATENATION, _UNARY, _ATOM = range(4)


def to_datalog(query: RegularQuery, unit: str | None = None) -> str:
    """The query as Datalog text, one statement per line; windows are durations (`1d`) if their unit is given."""

    def duration(amount: int) -> str:
        return str(amount) if unit is None else format_duration(amount, unit)

    shadowed = set(heads_of(query))
    shadowed.update(atom.name for rule in query.rules for atom in rule.body if atom.name is not None)
    bare = frozenset(
        label
        for rule in query.rules
        for atom in rule.body
        for label in labels_of(atom.expr)
        if len(query.streams) == 1 and label.stream is not None and label.name and label.name not in shadowed
    )

    def label_text(label: Label) -> str:
        return _with_predicate(name_text(label.name), label) if label in bare else qualified_label(label)

    lines = [_stream_text(stream, duration) for stream in query.streams]
    lines += [_rule_text(rule, label_text) for rule in query.rules]
    if query.results != (implied_result(query.rules),):
        lines.append("RESULT " + ", ".join(symbol_text(result) for result in query.results))
    return "\n".join(lines) + "\n"


def qualified_label(label: Label) -> str:
    """`stream.label`, or the name of a head, with its predicate."""
    if label.stream is None:
        return _with_predicate(symbol_text(label.name), label)
    name = name_text(label.name) if label.name else "*"
    return _with_predicate(f"{name_text(label.stream)}.{name}", label)


def _with_predicate(name: str, label: Label) -> str:
    return name if label.predicate is None else f"{name}[{predicate_text(label.predicate)}]"


def _stream_text(stream: Stream, duration: Callable[[int], str]) -> str:
    properties = ", ".join(
        name_text(name) + (f" {kind}" if kind is not None else "") for name, kind in stream.properties
    )
    text = f"{'TABLE' if stream.is_table else 'STREAM'} {name_text(stream.name)}"
    text += " TUPLES" if stream.is_tuples else ""
    text += f" ({properties})" if properties else ""
    text += "" if stream.source is None else f" FROM {name_text(stream.source)}"
    if stream.has_window:
        text += f" WINDOW {duration(stream.window)}"
        text += f" SLIDE {duration(stream.slide)}" if stream.slide != 1 else ""
    return text


def expression_text(expr: PathExpr, label_text: Callable[[Label], str] = qualified_label) -> str:
    """A path expression in SPARQL's notation; `label_text` prints its labels.

    A label may itself read like an expression (a scan of two labels is called `a|b`): as an operand it then stands
    in parentheses.
    """

    def operand(part: PathExpr, precedence: int) -> str:
        match part:
            case Label():
                text = label_text(part)
                plain = _PREDICATE.sub("", _QUOTATION.sub("", text))
                binds = _ALTERNATION if _COMPOUND.search(plain) else _ATOM
            case Either(parts):
                text, binds = "|".join(operand(inner, _CONCATENATION) for inner in parts), _ALTERNATION
            case Then(parts):
                text, binds = "/".join(operand(inner, _UNARY) for inner in parts), _CONCATENATION
            case Inverse(inner):
                text, binds = "^" + operand(inner, _ATOM), _UNARY
            case Repeat(inner, low, high):
                text, binds = operand(inner, _ATOM) + _suffix(low, high), _UNARY
        return f"({text})" if binds < precedence else text

    return operand(expr, _ALTERNATION)


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
    """A name, in backquotes if it is not an identifier or could be taken for a keyword."""
    if re.fullmatch(r"[^\W\d]\w*", name) and name.lower() not in _RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def symbol_text(head: str) -> str:
    """The name of a head, which may be a view's: `view.label`."""
    view, _, label = head.partition(".")
    if not (view and label):
        return name_text(head)
    return f"{name_text(view)}.{name_text(label)}"


def and_list(names: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`"""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def short_list(names: Iterable[str]) -> str:
    """Names for a message: `a, b, c`, at most ten."""
    shown = list(names)
    return ", ".join(shown[:10]) + (", …" if len(shown) > 10 else "") if shown else "none"


def _rule_text(rule: Rule, label_text: Callable[[Label], str]) -> str:
    args = ", ".join([*(variable.name for variable in rule.args), *_named_values(rule.values, rule.paths)])
    path = f" as {name_text(rule.path)}" if rule.path is not None else ""
    body = [atom_text(atom, label_text) for atom in rule.body]
    body += [predicate_text(term) for term in conjuncts(rule.predicate)]
    return f"{symbol_text(rule.head)}({args}){path} <- {', '.join(body)}."


def _named_values(values: Values, paths: Values) -> list[str]:
    named = sorted((*values, *paths), key=lambda pair: pair[0])
    return [f"{name_text(name)}: {name_text(variable.name)}" for name, variable in named]


def atom_text(atom: Atom, label_text: Callable[[Label], str] = qualified_label) -> str:
    """`follows+(x, y) as P`, `transfer(x, y, amount: m)`, `account(x)`"""
    expr = expression_text(atom.expr, label_text)
    if not isinstance(atom.expr, Label | Repeat):
        expr = f"({expr})"
    is_vertex = isinstance(atom.expr, Label) and atom.expr.vertex
    ends = [term_text(atom.src)] if is_vertex else [term_text(atom.src), term_text(atom.trg)]
    name = f" as {name_text(atom.name)}" if atom.name is not None else ""
    order = f" {atom.order}" if atom.order else ""
    return f"{expr}({', '.join([*ends, *_named_values(atom.values, atom.paths)])}){name}{order}"


# ---------------------------------------------------------------------------------------------------------
# Predicates

_DISJUNCTION, _CONJUNCTION, _NEGATION, _TERM = range(4)
_SUM, _PRODUCT, _FACTOR = range(3)


def reference_text(ref: Ref) -> str:
    """The name of a property or variable."""
    return name_text(ref.name) if isinstance(ref.name, str) else f"#{ref.name}"


def predicate_text(predicate: Predicate, reference: Callable[[Ref], str] = reference_text) -> str:
    """A predicate as a query writes it; `reference` writes what it refers to."""

    def write(part: Predicate, precedence: int) -> str:
        match part:
            case Or(parts):
                text, binds = " or ".join(write(inner, _CONJUNCTION) for inner in parts), _DISJUNCTION
            case And(parts):
                text, binds = " and ".join(write(inner, _NEGATION) for inner in parts), _CONJUNCTION
            case Not(Membership(operand, values)):
                items = ", ".join(constant_text(value) for value in values)
                text, binds = f"{scalar_text(operand, reference)} not in [{items}]", _TERM
            case Not(inner):
                text, binds = f"not {write(inner, _TERM)}", _NEGATION
            case Membership(operand, values):
                items = ", ".join(constant_text(value) for value in values)
                text, binds = f"{scalar_text(operand, reference)} in [{items}]", _TERM
            case Comparison(op, left, right):
                text = f"{scalar_text(left, reference)} {op} {scalar_text(right, reference)}"
                binds = _TERM
        return f"({text})" if binds < precedence else text

    return write(predicate, _DISJUNCTION)


def scalar_text(scalar: Scalar, reference: Callable[[Ref], str] = reference_text) -> str:
    """A value as a query writes it."""

    def write(part: Scalar, precedence: int) -> str:
        match part:
            case Ref():
                return reference(part)
            case Const():
                return constant_text(part)
            case Arithmetic(op, left, right):
                binds = _SUM if op in "+-" else _PRODUCT
                text = f"{write(left, binds)} {op} {write(right, binds + 1)}"
                return f"({text})" if binds < precedence else text

    return write(scalar, _SUM)


def constant_text(constant: Const) -> str:
    """A value or vertex that a query states."""
    if isinstance(constant.value, bool):
        return str(constant.value).lower()
    if isinstance(constant.value, float):
        return repr(constant.value)
    return term_text(Constant(constant.value))


def _suffix(low: int, high: int | None) -> str:
    bounds = f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"
    return _SUFFIXES.get((low, high), bounds)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    simple = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    if character in '"\\':
        return "\\" + character
    return simple.get(character, f"\\u{ord(character):04x}")
