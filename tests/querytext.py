"""A regular query as the tests see it: a tree of its own, printed as Datalog text and read back from it.

Strategies draw the tree, the text printed from it goes to the program under test, and the oracle evaluates
the tree itself. So nothing that reads, plans or runs a query in the program can lend its mistakes to the
judge. The reader serves cases written by hand; it is generous, since refusing bad text is not what it is
tested for.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

Vertex = str | int


@dataclass(frozen=True)
class Step:
    """One edge: of a stream's label, or (`stream` None) of a rule head."""

    label: str
    stream: str | None = None


@dataclass(frozen=True)
class Back:
    """`^e`"""

    expr: Expr


@dataclass(frozen=True)
class Seq:
    """`e/f/…`"""

    parts: tuple[Expr, ...]


@dataclass(frozen=True)
class Alt:
    """`e|f|…`"""

    parts: tuple[Expr, ...]


@dataclass(frozen=True)
class Rep:
    """`e{low,high}`; a `high` of None is no bound."""

    expr: Expr
    low: int
    high: int | None


Expr = Step | Back | Seq | Alt | Rep


@dataclass(frozen=True)
class Var:
    name: str


Term = Var | Vertex


@dataclass(frozen=True)
class Atom:
    expr: Expr
    src: Term
    trg: Term
    name: str | None = None


@dataclass(frozen=True)
class Rule:
    head: str
    args: tuple[Var, ...]
    body: tuple[Atom, ...]


@dataclass(frozen=True)
class Stream:
    name: str
    window: int
    slide: int = 1


@dataclass(frozen=True)
class Query:
    streams: tuple[Stream, ...]
    rules: tuple[Rule, ...]

    @property
    def result(self) -> str:
        """`Answer`, or without it the last head."""
        heads = [rule.head for rule in self.rules]
        return "Answer" if "Answer" in heads else heads[-1]

    @property
    def arity(self) -> int:
        return next(len(rule.args) for rule in self.rules if rule.head == self.result)

    def rules_of(self, head: str) -> list[Rule]:
        return [rule for rule in self.rules if rule.head == head]


def steps(expr: Expr) -> set[Step]:
    """Every label and head that an expression names: the inputs of its operator."""
    match expr:
        case Step():
            return {expr}
        case Back(inner) | Rep(inner, _, _):
            return steps(inner)
        case Seq(parts) | Alt(parts):
            return set().union(*map(steps, parts))


# ---------------------------------------------------------------------------------------------------------
# Printing


def query_text(query: Query) -> str:
    """The query as Datalog. Labels carry their stream's name where there are several streams."""
    lines = [
        f"STREAM {stream.name} WINDOW {stream.window}"
        + (f" SLIDE {stream.slide}" if stream.slide != 1 else "")
        for stream in query.streams
    ]
    lines += [rule_text(rule, qualified=len(query.streams) > 1) for rule in query.rules]
    return "\n".join(lines) + "\n"


def rule_text(rule: Rule, *, qualified: bool) -> str:
    body = ", ".join(atom_text(atom, qualified=qualified) for atom in rule.body)
    return f"{rule.head}({', '.join(var.name for var in rule.args)}) <- {body}."


def atom_text(atom: Atom, *, qualified: bool) -> str:
    expr = expr_text(atom.expr, qualified=qualified)
    if isinstance(atom.expr, Back | Seq | Alt):
        expr = f"({expr})"
    named = f" as {atom.name}" if atom.name else ""
    return f"{expr}({term_text(atom.src)}, {term_text(atom.trg)}){named}"


def term_text(term: Term) -> str:
    match term:
        case Var(name):
            return name
        case str():
            return json.dumps(term, ensure_ascii=False)
        case int():
            return str(term)


# How tightly an expression holds together, as in SPARQL: `|`, `/`, `^`, and then what follows (`* + ? {}`).
_TIGHTNESS = {Alt: 0, Seq: 1, Back: 2, Rep: 3, Step: 4}
_SUFFIXES = {(0, None): "*", (1, None): "+", (0, 1): "?"}


def expr_text(expr: Expr, *, qualified: bool) -> str:
    """The expression with the fewest parentheses that SPARQL's precedence allows."""

    def inner(part: Expr, tightness: int) -> str:
        text = expr_text(part, qualified=qualified)
        return text if _TIGHTNESS[type(part)] >= tightness else f"({text})"

    match expr:
        case Step(label, stream):
            return f"{stream}.{label}" if qualified and stream else label
        case Back(part):
            return "^" + inner(part, 3)
        case Rep(part, low, high):
            return inner(part, 4) + _SUFFIXES.get((low, high), f"{{{low},{'' if high is None else high}}}")
        case Seq(parts):
            return "/".join(inner(part, 2) for part in parts)
        case Alt(parts):
            return "|".join(inner(part, 1) for part in parts)


# ---------------------------------------------------------------------------------------------------------
# Reading

_TOKEN = re.compile(
    r'\s+|[#%][^\n]*|(?P<token>"(?:[^"\\]|\\.)*"|<-|-?\d+|\w+(?:\.\w+)?|[(){},./|*+?^])', re.UNICODE
)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def read_query(text: str) -> Query:
    """The tree of a query written as Datalog (time in seconds; a bare number is in the stream's unit)."""
    return _Reader(text).query()


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        place = 0
        while place < len(text):
            found = _TOKEN.match(text, place)
            if found is None:
                raise ValueError(f"unreadable: {text[place : place + 20]!r}")
            if found["token"]:
                self.tokens.append(found["token"])
            place = found.end()
        self.tokens.append("")
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at]

    def take(self, *wanted: str) -> str:
        token = self.tokens[self.at]
        if wanted and token not in wanted:
            raise ValueError(f"{wanted} expected before {' '.join(self.tokens[self.at :])!r}")
        self.at += 1
        return token

    def taken(self, token: str) -> bool:
        if self.peek() == token:
            self.at += 1
            return True
        return False

    def query(self) -> Query:
        streams = []
        while self.taken("STREAM"):
            name = self.take()
            self.take("WINDOW")
            window = self.duration()
            streams.append(Stream(name, window, self.duration() if self.taken("SLIDE") else 1))
        self.heads = {
            self.tokens[self.opening(at) - 1] for at, token in enumerate(self.tokens) if token == "<-"
        }
        self.only = streams[0].name if len(streams) == 1 else None
        rules = []
        while self.peek():
            rules.append(self.rule())
        return Query(tuple(streams), tuple(rules))

    def opening(self, at: int) -> int:
        """Where the last parenthesis before a place opens."""
        return max(place for place in range(at) if self.tokens[place] == "(")

    def duration(self) -> int:
        number = int(self.take())
        if re.fullmatch(r"[smhd]|(second|minute|hour|day)s?", self.peek()):
            return number * _SECONDS[self.take()[0]]
        return number

    def rule(self) -> Rule:
        head = self.take()
        args = []
        self.take("(")
        while not self.taken(")"):
            args.append(Var(self.take()))
            self.taken(",")
        self.take("<-")
        body = [self.atom()]
        while self.taken(","):
            body.append(self.atom())
        self.take(".")
        return Rule(head, tuple(args), tuple(body))

    def atom(self) -> Atom:
        expr = self.either()
        self.take("(")
        src = self.term()
        self.take(",")
        trg = self.term()
        self.take(")")
        return Atom(expr, src, trg, self.take() if self.taken("as") else None)

    def term(self) -> Term:
        token = self.take()
        if token.startswith('"'):
            return str(json.loads(token))
        return int(token) if re.fullmatch(r"-?\d+", token) else Var(token)

    def either(self) -> Expr:
        parts = [self.then()]
        while self.taken("|"):
            parts.append(self.then())
        return parts[0] if len(parts) == 1 else Alt(tuple(parts))

    def then(self) -> Expr:
        parts = [self.backwards()]
        while self.taken("/"):
            parts.append(self.backwards())
        return parts[0] if len(parts) == 1 else Seq(tuple(parts))

    def backwards(self) -> Expr:
        return Back(self.backwards()) if self.taken("^") else self.repeated()

    def repeated(self) -> Expr:
        expr = self.primary()
        while True:
            if self.taken("*"):
                expr = Rep(expr, 0, None)
            elif self.taken("+"):
                expr = Rep(expr, 1, None)
            elif self.taken("?"):
                expr = Rep(expr, 0, 1)
            elif self.taken("{"):
                low = int(self.take())
                high = (None if self.peek() == "}" else int(self.take())) if self.taken(",") else low
                self.take("}")
                expr = Rep(expr, low, high)
            else:
                return expr

    def primary(self) -> Expr:
        if self.taken("("):
            expr = self.either()
            self.take(")")
            return expr
        name = self.take()
        if name in self.heads:
            return Step(name)
        stream, dot, label = name.partition(".")
        return Step(label, stream) if dot else Step(name, self.only)
