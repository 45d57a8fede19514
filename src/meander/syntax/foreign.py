"""What other query languages have and these do not: each with what to write instead.

A construct is recognized where a text could not be read: by a pattern in its structure (comments blanked, quotations
filled) that covers the position, the first in the list.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from meander.errors import QueryError, Span

_NAME = r"(?:[^\W\d]\w*|`(?:[^`\r\n]|``)+`)"
_QUOTED = r""""[^"]*"|'[^']*'"""
_SUM = r"(?:[^,():]|\([^():]*\))+[-+*/](?:[^,():]|\([^():]*\))*"
"""An expression among arguments, in which parentheses are not nested."""
_SIGN = r"(?:<=|>=|!=|<>|=|<(?!-)|>)"

REACH = 400
"""The characters on each side of the position that are searched."""


@dataclass(frozen=True, slots=True)
class Construct:
    """A pattern, and what is wrong and what to do about it; `{name}` stands for a group of the pattern."""

    pattern: re.Pattern[str]
    message: str
    hint: str


def explain_foreign(
    constructs: Sequence[Construct], text: str, structure: str, offset: int
) -> QueryError | None:
    """The error for the construct that covers a position at which the text cannot be read."""
    around = max(0, offset - REACH), offset + REACH
    for construct in constructs:
        for match in construct.pattern.finditer(structure, *around):
            if match.start() <= offset <= match.end():
                groups = {
                    name: text[slice(*match.span(name))].strip()
                    for name, group in match.groupdict().items()
                    if group is not None
                }
                if "sum" in groups:
                    groups |= _instead_of_sum(groups["sum"], groups.get("name"))
                    groups["before"] = groups.get("before", "") + " " if groups.get("before") else ""
                written = match[0].rstrip()
                return QueryError(
                    construct.message.format(**groups),
                    text=text,
                    span=Span(match.start(), match.start() + len(written)),
                    hint=construct.hint.format(**groups),
                )
    return None


def _instead_of_sum(expression: str, name: str | None) -> dict[str, str]:
    """What to write instead of computing: `returned`, the values that an expression is computed from, named, and
    `free`, a variable for the property `name` that the expression does not have."""
    operands = dict.fromkeys(re.findall(rf"""{_QUOTED}|((?<![\w.])(?:{_NAME}\.)?{_NAME})""", expression))
    operands.pop("", None)
    names = [operand.rpartition(".")[2] for operand in operands]
    if len(set(names)) < len(names):
        names = [operand.replace(".", "_") for operand in operands]
    returned = ", ".join(f"{of}: {operand}" for of, operand in zip(names, operands, strict=True))
    return {
        "returned": returned or "m: m",
        "free": name if name is not None and name not in operands else "v",
    }


def _construct(pattern: str, message: str, hint: str) -> Construct:
    return Construct(re.compile(pattern, re.IGNORECASE), message, hint)


_NO_NEGATION = "a regular query has no negated {}: what is not there proves nothing"
_AGGREGATE = r"\b(?P<aggregate>count|sum|avg|average|min|max|collect)\s*\("
_IS_AGGREGATE = "{aggregate} is an aggregate, and an answer is a single match"
_AGGREGATE_ANSWERS = (
    "return the matches, and aggregate the answers: "
    'meander.run(…).to_pandas().groupby("src").size(), or in Spark'
)
_GROUPING = r"\b(?P<clause>(?:group|order)\s+by|having|limit|distinct)\b\s*"
_IS_GROUPING = "there is no {clause}: answers are a set, and leave as they are found"
_SHORTEST = r"\b(?P<rank>(?:(?:all|any|\d+)\s+)?(?:shortest|cheapest))\b\s*"
_IS_SHORTEST = "{rank} ranks paths, and an answer holds if there is any path"
_UNEQUAL = r"(?P<sign>≠|=/=|<\s+>|!\s+=)"

_LIKE = r"\b(?P<word>(?:not\s+)?(?:i?like|similar|matches|contains|starts\s+with|ends\s+with))\b\s*"
_IS_LIKE = "texts compare as a whole, without {word}"
_BETWEEN = (
    r"(?P<name>[\w.`]+)\s+between\s+(?P<low>[^\s,()\[\]{}]+)\s+and\s+(?P<high>[^\s,()\[\]{}.]+(?:\.\d+)?)"
)
_IS_BETWEEN = "there is no BETWEEN"
_IS_NULL = r"(?P<name>[\w.`]+)\s+is\s+(?:not\s+)?(?:null|missing|unknown)\b\s*"
_NULL = "a missing value compares with nothing"
_IN = r"\bin\s*\((?P<values>[^()]*)\)?"
_IN_LIST = "a list of values stands in square brackets"

IN_DATALOG = (
    _construct(_UNEQUAL, "{sign} is no comparison", "unequal is written !=: x != y"),
    _construct(_LIKE, _IS_LIKE, 'compare with = and !=, or list the texts: name in ["EUR", "USD"]'),
    _construct(_BETWEEN, _IS_BETWEEN, "write both comparisons: {name} >= {low} and {name} <= {high}"),
    _construct(
        _IS_NULL,
        _NULL,
        "an atom that binds {name} does not match an edge without it; edges that lack it cannot be asked for",
    ),
    _construct(_IN, _IN_LIST, "write in [{values}]"),
    _construct(
        r"\b(?P<order>(?:strictly\s+)?ascending)\s+as\s+(?P<name>[\w`]+)",
        "the name of a path comes before its order",
        "write as {name} {order}",
    ),
    _construct(
        rf"\b(?P<kind>stream|table)\s+(?P<stream>{_NAME})\s+(?P<name>{_NAME})\s+(?P<type>int|float|string|bool|time)\b",
        "properties are declared in parentheses",
        "write {kind} {stream} ({name} {type}) …",
    ),
    _construct(
        rf"\b(?P<kind>stream|table)\s+(?P<stream>{_NAME})\s*\([^()]*?(?P<name>{_NAME})\s*:\s*(?P<type>\w+)",
        "a declaration has a name and a type, without a colon",
        "write {kind} {stream} ({name} {type}) …",
    ),
    _construct(r"==", "== is no comparison", "equal is written =: m = 5"),
    _construct(r"&&|\|\|", "conditions are joined by words", "write and, or, not: m > 5 and not ok"),
    _construct(
        r"\bnot\s+exists\b\s*[({]?|(?:!(?!=)|¬|\\\+|~)\s*|\bnot\s+[^\W\d][\w.`]*[+*?^]*\s*\(|\(\s*not\s+[^\W\d][\w.`]*",
        _NO_NEGATION.format("atoms"),
        "compare values or vertices, not amount > 5 or x != y, or name the labels that count: (a|b)(x, y); else "
        "subtract the answers of one query from those of another",
    ),
    _construct(
        r"\bexists\b\s*[({]?", "every atom of a body exists", "add it like any other atom: …, posts(y, m)"
    ),
    _construct(_AGGREGATE, _IS_AGGREGATE, _AGGREGATE_ANSWERS),
    _construct(_GROUPING, _IS_GROUPING, _AGGREGATE_ANSWERS),
    _construct(
        _SHORTEST,
        _IS_SHORTEST,
        "bound the number of steps, a{{1,3}}(x, y); --paths shows one path per answer",
    ),
    _construct(
        rf"(?P<head>{_NAME})\s*\([^()]*?(?P<name>{_NAME})\s*{_SIGN}\s*(?P<value>[^,()]+)\)\s*(?=<-|:-|←)",
        "a head names its values, and compares none",
        "write {head}(x, y, {name}: m), and compare m in the body: m = {value}",
    ),
    _construct(
        rf"(?P<label>(?:{_NAME}\.)?{_NAME})\s*\([^(),]*,[^(),]*,[^()]*?(?P<name>{_NAME})\s*=\s*(?P<value>[^,()]+)",
        "a property is not compared among the arguments",
        "write {label}[{name} = {value}](x, y), or {label}(x, y, {name}: {value})",
    ),
    _construct(
        rf"(?P<label>(?:{_NAME}\.)?{_NAME})\s*\([^(),]*,[^(),]*,[^()]*?(?P<test>{_NAME}\s*{_SIGN}\s*[^,()]+)",
        "a property is not compared among the arguments",
        "write {label}[{test}](x, y)",
    ),
    _construct(
        rf"(?P<label>(?:{_NAME}\.)?{_NAME})\s*\(\s*(?P<test>{_NAME}\s*{_SIGN}\s*[^,()]+)",
        "a comparison stands beside its atom",
        "write {label}(x, y), {test}",
    ),
    _construct(
        rf"(?P<head>{_NAME})\s*\((?P<before>[^()]*?)(?:(?P<name>{_NAME})\s*:\s*)?(?P<sum>{_SUM})"
        r"(?P<after>(?:,(?:[^()]|\([^()]*\))*)?)\)\s*(?=<-|:-|←)",
        "a head returns values as they are bound, and computes none",
        "return what {sum} is computed from, {head}({before}{returned}{after}), and compute where the answers "
        "are read",
    ),
    _construct(
        rf"(?P<name>{_NAME})\s*:\s*(?P<sum>{_SUM})",
        "an argument is a variable or a value, and not computed",
        "bind the property, and compare: {name}: {free}, …, {free} = {sum}",
    ),
    _construct(
        rf"\bor\s+(?P<atom>(?:{_NAME}\.)?{_NAME}\s*\([^()]*\))",
        "{atom} is an atom, and or joins comparisons",
        "alternatives are rules of one head, one rule for each; labels are joined in an expression: (a|b)(x, y)",
    ),
    _construct(
        rf"(?P<value>{_NAME})\.(?P<name>{_NAME})\s*(?=[-+*/<>=!])",
        "{value}.{name} is no value",
        "a property is bound to a variable in its atom, and that is compared: a(x, y, {name}: m), m > 5",
    ),
)

_ORDER = r"(?P<order>(?:strictly\s+)?ascending)\b"

IN_GCORE = (
    _construct(_UNEQUAL, "{sign} is no comparison", "unequal is written <>: WHERE x <> y"),
    _construct(_LIKE, _IS_LIKE, 'compare with = and <>, or list the texts: e.currency IN ["EUR", "USD"]'),
    _construct(_BETWEEN, _IS_BETWEEN, "write both comparisons: {name} >= {low} AND {name} <= {high}"),
    _construct(
        _IS_NULL,
        _NULL,
        "a comparison with {name} is true only of edges that have it; edges that lack it cannot be asked for",
    ),
    _construct(_IN, _IN_LIST, "write IN [{values}]"),
    _construct(
        rf"/->\s*\([^()]*\)\s*{_ORDER}",
        "the order of a path follows its expression",
        "write -/p<…> {order} /->(y)",
    ),
    _construct(
        r"-\[\s*(?:\w+\s*)?:(?P<label>[\w`]+)\s*(?P<times>\*|\+|\?|\{[\d,\s]+\})[^\]]*\]",
        "an edge is one step",
        "a path stands between slashes: -/p<:{label}{times}>/->",
    ),
    _construct(
        r"<[^<>]*?:(?P<label>[\w`]+)\s*\[(?P<test>[^\[\]]*)\]",
        "the step of a path has no predicate here",
        "give the step a name: PATH big = (x)-[e:{label}]->(y) WHERE e.amount > 5, and follow -/p<~big+>/->",
    ),
    _construct(
        r"-/[^/]*?<[^<>]*?(?P<edge>-?\[\s*\]-?)",
        "a path follows edges of named labels",
        "write the labels as alternatives, -/p<(:a|:b|:c)+>/->, or name the edge: PATH any = (u)-[]->(v), and follow "
        "-/p<~any+>/->",
    ),
    _construct(
        rf"\{{\s*(?P<edge>{_NAME})\.(?P<name>{_NAME})\s*[,}}]",
        "a property map has names and values",
        "write {{{name}: {edge}.{name}}}",
    ),
    _construct(r"==", "== is no comparison", "equal is written =: e.port = 22"),
    _construct(r"&&|\|\|", "conditions are joined by words", "write AND, OR, NOT: e.amount > 5 AND NOT e.ok"),
    _construct(
        r"\bnot\s+exists\b\s*[({]?|\bnot\s*\([^()]*\)\s*<?-|!(?!=)|¬|~\s*-",
        _NO_NEGATION.format("patterns"),
        "compare values or vertices, NOT e.amount > 5 or x <> y, or name the labels that count: -[:a|b]->; else "
        "subtract the answers of one query from those of another",
    ),
    _construct(
        r"\bexists\b\s*[({]?",
        "every pattern of MATCH exists",
        "add it like any other pattern: MATCH …, (y)-[:posts]->(m)",
    ),
    _construct(
        r"\b(?:where|and|or)\s*\(\s*\w*\s*\)\s*<?-",
        "WHERE compares, and matches no pattern",
        "add the pattern to MATCH: MATCH …, (y)-[:posts]->(m)",
    ),
    _construct(_AGGREGATE, _IS_AGGREGATE, _AGGREGATE_ANSWERS),
    _construct(_GROUPING, _IS_GROUPING, _AGGREGATE_ANSWERS),
    _construct(
        _SHORTEST,
        _IS_SHORTEST,
        "bound the number of steps, -/p<:a{{1,3}}>/->; --paths shows one path per answer",
    ),
    _construct(
        rf"\{{[^{{}}]*?(?P<name>{_NAME})\s*=\s*(?P<value>[^,{{}}]+)",
        "a property map has colons",
        "write {{{name}: {value}}}; WHERE compares: e.{name} = {value}",
    ),
    _construct(
        rf"\{{[^{{}}]*?(?P<name>{_NAME})\s*{_SIGN}\s*(?P<value>[^,{{}}]+)",
        "a property map only has values",
        "name the edge, -[e:label]->, and compare in WHERE: e.{name}",
    ),
    _construct(
        rf"\(\s*(?P<test>{_NAME}\s*(?:!=|<>|<=|>=|<(?!-)|>)\s*\w+)\s*\)",
        "a comparison stands in WHERE",
        "write MATCH (x)-[:a]->(y) … WHERE {test}",
    ),
    _construct(
        rf"\{{[^{{}}]*?{_NAME}\s*:\s*(?P<sum>[^,{{}}:]+[-+*/][^,{{}}]*)",
        "a property map has values as they are, and computes none",
        "in CONSTRUCT, return what {sum} is computed from, {{{returned}}}; in MATCH, compare in WHERE",
    ),
)
