"""Plans as short text, for fixtures: read and written.

a   a|b   t.a@20   a[src=1, trg="x", loop]         a scan: labels, stream (s) and window (10), predicate
a{m}[m > 5]                                        a scan with a column; all properties are INT, ts is the time
σ[src=1, m > 5](PLAN)                              src and trg, and values by their names
∪[label](PLAN, PLAN)
⋈[label: v0 v2](PLAN(v0, v1), PLAN(v1, v2))        the output, then each input with its columns
⋈[label: v0 v1 m=v2 | v2 < v4](PLAN(v0, v1, v2), …)  values with their names, and a predicate over variables
𝒫[label: 0/1*](PLAN, PLAN)                         the expression over the inputs by number
𝒫[label: 0/1* ascending](PLAN, PLAN)
"""

from __future__ import annotations

import re

from meander.algebra.nodes import Filter, Path, Pattern, Plan, Union, WScan
from meander.algebra.printing import conditions, filter_terms
from meander.rewrite.trees import pattern
from meander.syntax.datalog import parse_condition
from meander.syntax.printing import expression_text
from meander.syntax.query import Either, Inverse, Label, PathExpr, PathOrder, Repeat, Then
from meander.syntax.values import (
    IS_LOOP,
    SRC,
    TRG,
    Const,
    Predicate,
    Property,
    Ref,
    ValueType,
    conjunction,
    conjuncts,
    equals_vertex,
    map_refs,
    refs,
)

STREAM, WINDOW = "s", 10
VERTEX, INT = ValueType.VERTEX, ValueType.INT
NAMED = tuple(Property(name, INT) for name in ("k", "m", "n"))


def write(plan: Plan) -> str:
    match plan:
        case WScan(stream, labels, window, _, predicate, _, values):
            name = "|".join(labels) if stream == STREAM else f"{stream}.{'|'.join(labels)}"
            columns = "{" + " ".join(value.name for value in values) + "}" if values else ""
            predicate_text = f"[{_asked(conditions(predicate))}]" if predicate is not None else ""
            return name + ("" if window == WINDOW else f"@{window}") + columns + predicate_text
        case Filter(inner):
            return f"σ[{_asked(filter_terms(plan))}]({write(inner)})"
        case Union(inputs, label):
            return f"∪[{label}]({', '.join(map(write, inputs))})"
        case Pattern(inputs, ends, output, label, predicate, values):
            atoms = ", ".join(
                f"{write(inner)}({', '.join(map(_variable, columns))})"
                for inner, columns in zip(inputs, ends, strict=True)
            )
            shown = [_variable(number) for number in output]
            shown[plan.arity :] = [
                f"{value.name}={name}" for value, name in zip(values, shown[plan.arity :], strict=True)
            ]
            variables = [_variable(number) for number in range(plan.variables)]
            predicate_text = f" | {_asked(conditions(predicate, variables))}" if predicate is not None else ""
            return f"⋈[{label}: {' '.join(shown)}{predicate_text}]({atoms})"
        case Path(inputs, expr, label):
            order = f" {plan.order}" if plan.order else ""
            return f"𝒫[{label}: {expression_text(expr, str)}{order}]({', '.join(map(write, inputs))})"


def _asked(terms: list[str]) -> str:
    return ", ".join(terms).replace(" = ", "=").replace("src=trg", "loop")


def _variable(number: int) -> str:
    return f"v{number}"


def read(text: str) -> Plan:
    """The plan of a text; spaces and line ends mean nothing."""
    reader = _Reader(text)
    plan = reader.plan()
    if reader.rest:
        raise ValueError(f"more than a plan: {reader.rest}")
    return plan


class _Reader:
    def __init__(self, text: str) -> None:
        self.rest = " ".join(text.split())

    def take(self, regex: str) -> str:
        match = re.match(r"\s*(?:" + regex + ")", self.rest)
        if match is None:
            raise ValueError(f"{regex} expected at: {self.rest}")
        self.rest = self.rest[match.end() :]
        return match[0].strip()

    def taken(self, token: str) -> bool:
        stripped = self.rest.lstrip()
        if stripped.startswith(token):
            self.rest = stripped[len(token) :]
            return True
        return False

    def plan(self) -> Plan:
        if self.taken("σ["):
            predicate = self.predicate()
            self.take(r"\(")
            inner = self.plan()
            self.take(r"\)")
            columns = {SRC: 0, TRG: 1} | {value.name: i for i, value in enumerate(inner.values, start=2)}
            return Filter(inner, _named(predicate, columns))
        if self.taken("∪["):
            label = self.take(r"[^\]]+")
            self.take(r"\]\(")
            return Union(tuple(self.plans()), label)
        if self.taken("⋈["):
            label = self.take(r"[^:\]]+")
            output = self.take(r":[\w =]*").lstrip(":").split()
            predicate = self.predicate() if self.taken("|") else None
            self.take(r"\(" if predicate is not None else r"\]\(")
            inputs, ends = self.atoms()
            types = {
                name: kind
                for inner, columns in zip(inputs, ends, strict=True)
                for name, kind in zip(columns, inner.types, strict=True)
            }
            values = [name.split("=") for name in output if "=" in name]
            return pattern(
                inputs,
                ends,
                [name.rpartition("=")[2] for name in output],
                label,
                predicate and map_refs(predicate, lambda ref: Ref(ref.name, types[str(ref.name)])),
                tuple(Property(name, types[variable]) for name, variable in values),
            )
        if self.taken("𝒫["):
            label = self.take(r"[^:\]]+")
            written = self.take(r":[^\]a-z]+").lstrip(":")
            order = PathOrder(self.take(r"[a-z ]*"))
            self.take(r"\]\(")
            return Path(tuple(self.plans()), _Expression(written).either(), label, order=order)
        return self.scan()

    def plans(self) -> list[Plan]:
        plans = [self.plan()]
        while self.taken(","):
            plans.append(self.plan())
        self.take(r"\)")
        return plans

    def atoms(self) -> tuple[list[Plan], list[list[str]]]:
        inputs, ends = [], []
        while True:
            inputs.append(self.plan())
            self.take(r"\(")
            columns = [self.take(r"\w+")]
            while self.taken(","):
                columns.append(self.take(r"\w+"))
            ends.append(columns)
            self.take(r"\)")
            if not self.taken(","):
                self.take(r"\)")
                return inputs, ends

    def scan(self) -> WScan:
        name = self.take(r"[\w.|]+")
        stream, _, labels = name.rpartition(".")
        window = int(self.take(r"\d+")) if self.taken("@") else WINDOW
        values = tuple(map(_property, self.take(r"[\w ]+").split())) if self.taken("{") else ()
        if values:
            self.take(r"\}")
        predicate = self.predicate() if self.taken("[") else None
        named = NAMED if values or any(ref.name not in (SRC, TRG) for ref in refs(predicate)) else ()
        return WScan(
            stream or STREAM,
            tuple(labels.split("|")),
            window,
            predicate=predicate,
            values=values,
            named=named,
        )

    def predicate(self) -> Predicate:
        """Terms up to the bracket that closes them; `loop` is `src = trg`."""
        terms: list[Predicate] = []
        for term in self.take(r"(?:[^\[\]]|\[[^\]]*\])+").split(", "):
            if term.strip() == "loop":
                terms.append(IS_LOOP)
            else:
                terms += conjuncts(_typed(parse_condition(term.strip())))
        self.take(r"\]")
        found = conjunction(terms)
        assert found is not None
        return found


def _property(name: str) -> Property:
    return Property(name, ValueType.TIME if name == "ts" else INT)


def _typed(predicate: Predicate) -> Predicate:
    """The predicate with the types of ends and properties, and a vertex where an end equals one."""
    match predicate:
        case _ if (ends := [ref.name for ref in refs(predicate) if ref.name in (SRC, TRG)]) and (
            isinstance(getattr(predicate, "right", None), Const) and predicate.op == "="  # type: ignore[union-attr]
        ):
            return equals_vertex(ends[0], predicate.right.value)  # type: ignore[union-attr]
    return map_refs(
        predicate,
        lambda ref: Ref(ref.name, VERTEX if ref.name in (SRC, TRG) else _property(str(ref.name)).type),
    )


def _named(predicate: Predicate, columns: dict[str, int]) -> Predicate:
    return map_refs(predicate, lambda ref: Ref(columns[str(ref.name)], ref.type))


class _Expression:
    """A path expression over numbers, by precedence: `|`, `/`, `^`, then what follows."""

    def __init__(self, text: str) -> None:
        self.tokens = [*re.findall(r"\d+(?![\d,}])|\{\d+(?:,\d*)?\}|[|/^()*+?]", text.replace(" ", "")), ""]

    def taken(self, *tokens: str) -> str:
        return self.tokens.pop(0) if self.tokens[0] in tokens else ""

    def either(self) -> PathExpr:
        parts = [self.then()]
        while self.taken("|"):
            parts.append(self.then())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def then(self) -> PathExpr:
        parts = [self.inverse()]
        while self.taken("/"):
            parts.append(self.inverse())
        return parts[0] if len(parts) == 1 else Then(tuple(parts))

    def inverse(self) -> PathExpr:
        return Inverse(self.inverse()) if self.taken("^") else self.repeated()

    def repeated(self) -> PathExpr:
        if self.taken("("):
            expr = self.either()
            self.taken(")")
        else:
            expr = Label(self.tokens.pop(0))
        marks = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        while self.tokens[0] in marks or self.tokens[0].startswith("{"):
            token = self.tokens.pop(0)
            low, comma, high = token.strip("{}").partition(",")
            bounds = marks.get(token) or (int(low), int(high) if high else None if comma else int(low))
            expr = Repeat(expr, *bounds)
        return expr
