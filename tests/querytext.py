"""A regular query as the tests see it: a tree of its own, printed as Datalog text and read back from it.

Strategies draw the tree, the text printed from it goes to the program under test, and the oracle evaluates
the tree itself. So nothing that reads, plans or runs a query in the program can lend its mistakes to the
judge. The reader serves cases written by hand; it is generous, since refusing bad text is not what it is
tested for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

Vertex = str | int
Value = str | int | float | bool

TYPES = ("INT", "FLOAT", "STRING", "BOOL", "TIME")


@dataclass(frozen=True)
class Var:
    """A variable; within the predicate of a step, a property of the edge."""

    name: str


# ---------------------------------------------------------------------------------------------------------
# Predicates


@dataclass(frozen=True)
class Math:
    """`left op right`, with one of + - * /."""

    op: str
    left: Scalar
    right: Scalar


Scalar = Var | Math | Value


@dataclass(frozen=True)
class Compare:
    """`left op right`, with one of = != < <= > >=."""

    op: str
    left: Scalar
    right: Scalar


@dataclass(frozen=True)
class Among:
    """`operand in [values]`"""

    operand: Scalar
    values: tuple[Value, ...]


@dataclass(frozen=True)
class And:
    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or:
    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Not:
    part: Predicate


Predicate = Compare | Among | And | Or | Not


def names_in(predicate: Predicate | Scalar | None) -> set[str]:
    """The variables, or the properties, that a predicate names."""
    match predicate:
        case Var(name):
            return {name}
        case Math(_, left, right) | Compare(_, left, right):
            return names_in(left) | names_in(right)
        case Among(part, _) | Not(part):
            return names_in(part)
        case And(parts) | Or(parts):
            return set().union(*map(names_in, parts))
    return set()


# ---------------------------------------------------------------------------------------------------------
# Paths and rules


@dataclass(frozen=True)
class Step:
    """One edge: of a stream's label, or (`stream` None) of a rule head. With a `predicate`, one that satisfies it.

    A `vertex` step is a vertex tuple; it stands in atoms alone, whose ends are then the same term.
    """

    label: str
    stream: str | None = None
    predicate: Predicate | None = None
    vertex: bool = False

    @property
    def bare(self) -> Step:
        """The step without its predicate."""
        return self if self.predicate is None else replace(self, predicate=None)


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


Term = Var | Vertex


@dataclass(frozen=True)
class Atom:
    """`expr(src, trg, property: value, …) [as name] [order]`; a value is a variable or a literal, the order
    "ascending" or "strictly ascending". `paths` are the path values that it reads of a head."""

    expr: Expr
    src: Term
    trg: Term
    name: str | None = None
    values: tuple[tuple[str, Var | Value], ...] = ()
    order: str = ""
    paths: tuple[tuple[str, Var], ...] = ()


@dataclass(frozen=True)
class Rule:
    """`head(args, property: variable, …) <- body, comparisons.` `paths` are path values: the names of paths of the
    body, or variables that its atoms read path values into."""

    head: str
    args: tuple[Var, ...]
    body: tuple[Atom, ...]
    values: tuple[tuple[str, Var], ...] = ()
    comparisons: tuple[Predicate, ...] = ()
    paths: tuple[tuple[str, Var], ...] = ()


@dataclass(frozen=True)
class Stream:
    """A stream; a table (`table`) or a stream of `tuples`, which have no window. `properties` are the declared ones:
    name and type. With a `source` it is another window on that stream."""

    name: str
    window: int = 0
    slide: int = 1
    properties: tuple[tuple[str, str], ...] = ()
    table: bool = False
    tuples: bool = False
    source: str = ""

    @property
    def input(self) -> str:
        """Whose rows it has: its own, or those of a stream that it reads through another window."""
        return self.source or self.name


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
        """The rules of a head; a path's name that is used as a predicate stands for all paths of its expression."""
        rules = [rule for rule in self.rules if rule.head == head]
        paths = [atom for atom in self.atoms() if atom.name == head][:1]
        ends = Var("x"), Var("y")
        return rules or [Rule(head, ends, (replace(path, src=ends[0], trg=ends[1]),)) for path in paths]

    def atoms(self) -> Iterator[Atom]:
        return (atom for rule in self.rules for atom in rule.body)

    def streams_read(self) -> set[str]:
        """The streams on which the result depends."""
        heads, waiting, streams = {self.result}, [self.result], set()
        while waiting:
            for rule in self.rules_of(waiting.pop()):
                for step in (step for atom in rule.body for step in steps(atom.expr)):
                    if step.stream is not None:
                        streams.add(step.stream)
                    elif step.label not in heads:
                        heads.add(step.label)
                        waiting.append(step.label)
        return streams

    def value_names(self, head: str) -> tuple[str, ...]:
        """The properties of a head's edges, sorted."""
        return tuple(sorted(name for name, _ in self.rules_of(head)[0].values))

    def path_names(self, head: str) -> tuple[str, ...]:
        """The path values of a head's edges, sorted."""
        return tuple(sorted(name for name, _ in self.rules_of(head)[0].paths))

    def windows(self, stream: str) -> set[str]:
        """The streams that have the rows of one of them, or of an input."""
        source = next((each.input for each in self.streams if each.name == stream), stream)
        return {each.name for each in self.streams if each.input == source}

    def named(self, stream: str) -> frozenset[str]:
        """The properties that the query reads of a stream, whatever the label; the time of an edge is none."""
        return frozenset[str]().union(*self.reads(stream).values())

    def reads(self, stream: str) -> dict[tuple[str, bool], frozenset[str]]:
        """The properties that the query reads by label that it mentions, and whether that is one of vertex tuples."""
        names: dict[tuple[str, bool], frozenset[str]] = {}
        windows = self.windows(stream)
        for atom in self.atoms():
            for step in steps(atom.expr):
                if step.stream in windows:
                    read = names_in(step.predicate) | {name for name, _ in atom.values}
                    key = (step.label, step.vertex)
                    names[key] = names.get(key, frozenset()) | (read - {"ts"})
        return names

    def has_vertices(self, stream: str) -> bool:
        """Whether the query reads vertex tuples of a stream."""
        windows = self.windows(stream)
        return any(
            step.vertex and step.stream in windows for atom in self.atoms() for step in steps(atom.expr)
        )

    def types(self, stream: str) -> dict[str, str]:
        """The types of a stream's properties: those declared, and those that a comparison with a literal decides."""
        windows = self.windows(stream)
        declared = dict(pair for each in self.streams if each.name in windows for pair in each.properties)
        for name in self.named(stream) - declared.keys():
            found = {type_of(literal) for literal in self.literals_beside(stream, name)}
            if found == {"INT", "FLOAT"}:
                found = {"FLOAT"}
            if len(found) != 1:
                raise ValueError(f"the type of {stream}.{name} is not known: {sorted(found)}")
            declared[name] = found.pop()
        return declared

    def literals_beside(self, stream: str, name: str) -> Iterator[Value]:
        """The literals that a property of a stream is compared with."""
        windows = self.windows(stream)
        for rule in self.rules:
            for atom in rule.body:
                for step in steps(atom.expr):
                    if step.stream in windows:
                        yield from literals_beside(name, step.predicate)
                        for property_, value in atom.values:
                            if property_ == name and not isinstance(value, Var):
                                yield value
                            elif property_ == name and isinstance(value, Var):
                                for comparison in rule.comparisons:
                                    yield from literals_beside(value.name, comparison)


def type_of(literal: Value) -> str:
    return {bool: "BOOL", int: "INT", float: "FLOAT", str: "STRING"}[type(literal)]


def literals_beside(name: str, predicate: Predicate | None) -> Iterator[Value]:
    """The literals that a variable or property is itself compared with."""
    match predicate:
        case Compare(_, left, right):
            for one, other in ((left, right), (right, left)):
                if one == Var(name) and not isinstance(other, Var | Math):
                    yield other
        case Among(operand, values):
            if operand == Var(name):
                yield from values
        case And(parts) | Or(parts):
            for part in parts:
                yield from literals_beside(name, part)
        case Not(part):
            yield from literals_beside(name, part)


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
    lines = [stream_text(stream) for stream in query.streams]
    lines += [rule_text(rule, qualified=len(query.streams) > 1) for rule in query.rules]
    return "\n".join(lines) + "\n"


def stream_text(stream: Stream) -> str:
    declared = ", ".join(f"{name} {kind}" for name, kind in stream.properties)
    text = f"{'TABLE' if stream.table else 'STREAM'} {stream.name}" + (" TUPLES" if stream.tuples else "")
    text += f" ({declared})" if declared else ""
    text += f" FROM {stream.source}" if stream.source else ""
    if not stream.table and not stream.tuples:
        text += f" WINDOW {stream.window}" + (f" SLIDE {stream.slide}" if stream.slide != 1 else "")
    return text


def rule_text(rule: Rule, *, qualified: bool) -> str:
    args = [*(var.name for var in rule.args), *values_text(rule.paths, rule.values)]
    body = [atom_text(atom, qualified=qualified) for atom in rule.body]
    body += [predicate_text(comparison) for comparison in rule.comparisons]
    return f"{rule.head}({', '.join(args)}) <- {', '.join(body)}."


def atom_text(atom: Atom, *, qualified: bool) -> str:
    expr = expr_text(atom.expr, qualified=qualified)
    if isinstance(atom.expr, Back | Seq | Alt):
        expr = f"({expr})"
    ends = (atom.src,) if isinstance(atom.expr, Step) and atom.expr.vertex else (atom.src, atom.trg)
    args = [*map(term_text, ends), *values_text(atom.paths, atom.values)]
    named = f" as {atom.name}" if atom.name else ""
    return f"{expr}({', '.join(args)}){named}" + (f" {atom.order}" if atom.order else "")


def values_text(paths: tuple[tuple[str, Var], ...], values: tuple[tuple[str, Var | Value], ...]) -> list[str]:
    """A path under its own name stands among the vertices."""
    alone = [name for name, var in paths if name == var.name]
    named = [(name, var) for name, var in paths if name != var.name]
    return [*alone, *(f"{name}: {scalar_text(value)}" for name, value in (*named, *values))]


def scalar_text(scalar: Scalar, inner: int = 0) -> str:
    """A sum is 0, a product 1, what holds together of itself 2; parentheses where `inner` asks for more."""
    match scalar:
        case Var(name):
            return name
        case Math(op, left, right):
            level = 0 if op in "+-" else 1
            text = f"{scalar_text(left, level)} {op} {scalar_text(right, level + 1)}"
            return text if level >= inner else f"({text})"
        case bool():
            return "true" if scalar else "false"
        case str():
            return json.dumps(scalar, ensure_ascii=False)
    return repr(scalar)


def predicate_text(predicate: Predicate, inner: int = 0) -> str:
    """`or` is 0, `and` 1, `not` and comparisons 2."""
    match predicate:
        case Compare(op, left, right):
            return f"{scalar_text(left)} {op} {scalar_text(right)}"
        case Among(operand, values):
            return f"{scalar_text(operand)} in [{', '.join(map(scalar_text, values))}]"
        case Not(part):
            return f"not ({predicate_text(part)})"
        case And(parts):
            level, text = 1, " and ".join(predicate_text(part, 2) for part in parts)
        case Or(parts):
            level, text = 0, " or ".join(predicate_text(part, 1) for part in parts)
    return text if level >= inner else f"({text})"


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
        case Step(label, stream, predicate):
            name = f"{stream}.{label}" if qualified and stream else label
            return name if predicate is None else f"{name}[{predicate_text(predicate)}]"
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
    r'\s+|[#%][^\n]*|(?P<token>"(?:[^"\\]|\\.)*"|<-|[<>!]=|\d+\.\d+(?:[eE][+-]?\d+)?|\d+|\w+(?:\.\w+)?'
    r"|[(){}\[\],./|*+?^:=<>-])",
    re.UNICODE,
)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


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
        while self.peek() in ("STREAM", "TABLE"):
            streams.append(self.stream())
        self.heads = {
            self.tokens[self.opening(at) - 1] for at, token in enumerate(self.tokens) if token == "<-"
        }
        # The names of paths, too.
        self.heads |= {after for token, after in pairwise(self.tokens) if token == "as"}
        self.only = streams[0].name if len(streams) == 1 else None
        rules = []
        while self.peek():
            rules.append(self.rule())
        return Query(tuple(streams), with_paths(rules))

    def stream(self) -> Stream:
        table = self.take() == "TABLE"
        name = self.take()
        tuples = not table and self.taken("TUPLES")
        properties = []
        if self.taken("("):
            while not self.taken(")"):
                properties.append((self.take(), self.take(*TYPES)))
                self.taken(",")
        if table:
            return Stream(name, properties=tuple(properties), table=True)
        if tuples:
            return Stream(name, properties=tuple(properties), tuples=True)
        source = self.take() if self.taken("FROM") else ""
        self.take("WINDOW")
        window = self.duration()
        slide = self.duration() if self.taken("SLIDE") else 1
        return Stream(name, window, slide, tuple(properties), source=source)

    def opening(self, at: int) -> int:
        """Where the last parenthesis before a place opens."""
        return max(place for place in range(at) if self.tokens[place] == "(")

    def duration(self) -> int:
        number = int(self.take())
        return number * self.unit()

    def unit(self) -> int:
        if re.fullmatch(r"[smhd]|(second|minute|hour|day)s?", self.peek()):
            return _SECONDS[self.take()[0]]
        return 1

    def rule(self) -> Rule:
        head = self.take()
        args = []
        values = []
        self.take("(")
        while not self.taken(")"):
            name = self.take()
            if self.taken(":"):
                values.append((name, Var(self.take())))
            else:
                args.append(Var(name))
            self.taken(",")
        self.take("<-")
        body: list[Atom] = []
        comparisons: list[Predicate] = []
        while True:
            item = self.item()
            if isinstance(item, Atom):
                body.append(item)
            else:
                comparisons.append(item)
            if not self.taken(","):
                break
        self.take(".")
        return Rule(head, tuple(args), tuple(body), tuple(values), tuple(comparisons))

    def item(self) -> Atom | Predicate:
        """An atom; where it cannot be one, a comparison."""
        start = self.at
        try:
            return self.atom()
        except ValueError:
            self.at = start
            return self.disjunction()

    def atom(self) -> Atom:
        expr = self.either()
        self.take("(")
        ends: list[Term] = []
        values: list[tuple[str, Var | Value]] = []
        while True:
            if self.tokens[self.at + 1] == ":":
                name = self.take()
                self.take(":")
                values.append((name, self.literal_or_name()))
            else:
                ends.append(self.term())
            if not self.taken(","):
                break
        self.take(")")
        if len(ends) == 1 and isinstance(expr, Step):
            ends *= 2
            expr = replace(expr, vertex=True)
        src, trg, *others = ends
        paths = tuple((each.name, each) for each in others if isinstance(each, Var))
        name = self.take() if self.taken("as") else None
        order = "strictly " if self.taken("strictly") else ""
        order += self.take("ascending") if order or self.peek() == "ascending" else ""
        return Atom(expr, src, trg, name, tuple(values), order, paths)

    def term(self) -> Term:
        value = self.literal_or_name()
        if isinstance(value, bool | float):
            raise ValueError(f"no vertex: {value}")
        return value

    def literal_or_name(self) -> Var | Value:
        if self.taken("-"):
            number = self.literal_or_name()
            if isinstance(number, str | Var):
                raise ValueError(f"no number: {number}")
            return -number
        token = self.take()
        if token.startswith('"'):
            return str(json.loads(token))
        if token in ("true", "false"):
            return token == "true"
        if re.fullmatch(r"\d+", token):
            return int(token) * self.unit()
        if re.fullmatch(r"\d.*", token):
            return float(token)
        if not re.fullmatch(r"\w+", token):
            raise ValueError(f"a value expected before {token!r}")
        return Var(token)

    def disjunction(self) -> Predicate:
        parts = [self.conjunction()]
        while self.taken("or"):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def conjunction(self) -> Predicate:
        parts = [self.negation()]
        while self.taken("and"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def negation(self) -> Predicate:
        if self.taken("not"):
            return Not(self.negation())
        start = self.at
        try:
            return self.comparison()
        except ValueError:
            self.at = start
            self.take("(")
            inner = self.disjunction()
            self.take(")")
            return inner

    def comparison(self) -> Predicate:
        left = self.sum()
        if self.taken("in"):
            self.take("[")
            values = []
            while not self.taken("]"):
                value = self.literal_or_name()
                if isinstance(value, Var):
                    raise ValueError(f"no literal: {value}")
                values.append(value)
                self.taken(",")
            return Among(left, tuple(values))
        return Compare(self.take(*_COMPARISONS), left, self.sum())

    def sum(self) -> Scalar:
        scalar = self.product()
        while self.peek() in ("+", "-"):
            scalar = Math(self.take(), scalar, self.product())
        return scalar

    def product(self) -> Scalar:
        scalar = self.scalar()
        while self.peek() in ("*", "/"):
            scalar = Math(self.take(), scalar, self.scalar())
        return scalar

    def scalar(self) -> Scalar:
        if self.taken("("):
            inner = self.sum()
            self.take(")")
            return inner
        return self.literal_or_name()

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
        if not re.fullmatch(r"\w+(\.\w+)?", name):
            raise ValueError(f"a label expected before {name!r}")
        predicate = None
        if self.taken("["):
            predicate = self.disjunction()
            self.take("]")
        if name in self.heads:
            return Step(name, None, predicate)
        stream, dot, label = name.partition(".")
        return Step(label, stream, predicate) if dot else Step(name, self.only, predicate)


def with_paths(rules: list[Rule]) -> tuple[Rule, ...]:
    """The rules with their path values apart from arguments and other values."""
    known: dict[str, set[str]] = {rule.head: set() for rule in rules}

    def is_head(atom: Atom) -> bool:
        return isinstance(atom.expr, Step) and atom.expr.stream is None

    def paths_in(rule: Rule) -> set[str]:
        found = {atom.name for atom in rule.body if atom.name}
        for atom in rule.body:
            if is_head(atom) and isinstance(atom.expr, Step):
                of_head = known.get(atom.expr.label, ())
                read = [(name, var) for name, var in (*atom.paths, *atom.values) if name in of_head]
                found |= {var.name for _, var in read if isinstance(var, Var)}
        return found

    for _ in rules:
        for rule in rules:
            paths = paths_in(rule)
            known[rule.head] |= {var.name for var in rule.args if var.name in paths}
            known[rule.head] |= {name for name, var in rule.values if var.name in paths}
    apart = []
    for rule in rules:
        paths = paths_in(rule)
        body = []
        for atom in rule.body:
            if is_head(atom) and isinstance(atom.expr, Step):
                of_head = known.get(atom.expr.label, set())
                read = [(name, var) for name, var in atom.values if name in of_head and isinstance(var, Var)]
                values = tuple(value for value in atom.values if value[0] not in of_head)
                atom = replace(atom, values=values, paths=(*atom.paths, *read))
            body.append(atom)
        alone = [(var.name, var) for var in rule.args if var.name in paths]
        named = [(name, var) for name, var in rule.values if var.name in paths]
        apart.append(
            replace(
                rule,
                args=tuple(var for var in rule.args if var.name not in paths),
                body=tuple(body),
                values=tuple((name, var) for name, var in rule.values if var.name not in paths),
                paths=(*alone, *named),
            )
        )
    return tuple(apart)
