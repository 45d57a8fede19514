"""Plans as short text, for fixtures: read and written.

a   a|b   t.a@20   a[src=1, trg="x", loop]         a scan: labels, stream (s) and window (10), condition
σ[src=1](PLAN)
∪[label](PLAN, PLAN)
⋈[label: v0 v2](PLAN(v0, v1), PLAN(v1, v2))        the output, then each input with its ends
𝒫[label: 0/1*](PLAN, PLAN)                         the expression over the inputs by number
"""

from __future__ import annotations

import json
import re

from meander.algebra.nodes import Condition, Filter, Path, Pattern, Plan, Union, WScan
from meander.algebra.printing import conditions
from meander.rewrite.trees import pattern
from meander.syntax.printing import expression_text
from meander.syntax.query import Either, Inverse, Label, PathExpr, Repeat, Then

STREAM, WINDOW = "s", 10


def write(plan: Plan) -> str:
    match plan:
        case WScan(stream, labels, window, _, condition):
            name = "|".join(labels) if stream == STREAM else f"{stream}.{'|'.join(labels)}"
            condition_text = f"[{_asked(condition)}]" if condition != Condition() else ""
            return name + ("" if window == WINDOW else f"@{window}") + condition_text
        case Filter(inner, condition):
            return f"σ[{_asked(condition)}]({write(inner)})"
        case Union(inputs, label):
            return f"∪[{label}]({', '.join(map(write, inputs))})"
        case Pattern(inputs, ends, output, label):
            atoms = ", ".join(
                f"{write(inner)}({_variable(src)}, {_variable(trg)})"
                for inner, (src, trg) in zip(inputs, ends, strict=True)
            )
            return f"⋈[{label}: {' '.join(map(_variable, output))}]({atoms})"
        case Path(inputs, expr, label):
            return f"𝒫[{label}: {expression_text(expr, str)}]({', '.join(map(write, inputs))})"


def _asked(condition: Condition) -> str:
    return ", ".join(conditions(condition)).replace(" = ", "=").replace("src=trg", "loop")


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
            condition = self.condition()
            self.take(r"\(")
            inner = self.plan()
            self.take(r"\)")
            return Filter(inner, condition)
        if self.taken("∪["):
            label = self.take(r"[^\]]+")
            self.take(r"\]\(")
            return Union(tuple(self.plans()), label)
        if self.taken("⋈["):
            label = self.take(r"[^:\]]+")
            output = self.take(r":[\w ]*").lstrip(":").split()
            self.take(r"\]\(")
            inputs, ends = self.atoms()
            return pattern(inputs, ends, output, label)
        if self.taken("𝒫["):
            label = self.take(r"[^:\]]+")
            expr = _Expression(self.take(r":[^\]]+").lstrip(":")).either()
            self.take(r"\]\(")
            return Path(tuple(self.plans()), expr, label)
        return self.scan()

    def plans(self) -> list[Plan]:
        plans = [self.plan()]
        while self.taken(","):
            plans.append(self.plan())
        self.take(r"\)")
        return plans

    def atoms(self) -> tuple[list[Plan], list[tuple[str, str]]]:
        inputs, ends = [], []
        while True:
            inputs.append(self.plan())
            self.take(r"\(")
            src = self.take(r"\w+")
            self.take(",")
            ends.append((src, self.take(r"\w+")))
            self.take(r"\)")
            if not self.taken(","):
                self.take(r"\)")
                return inputs, ends

    def scan(self) -> WScan:
        name = self.take(r"[\w.|]+")
        stream, _, labels = name.rpartition(".")
        window = int(self.take(r"\d+")) if self.taken("@") else WINDOW
        condition = self.condition() if self.taken("[") else Condition()
        return WScan(stream or STREAM, tuple(labels.split("|")), window, condition=condition)

    def condition(self) -> Condition:
        condition_text: dict[str, str | int | bool] = {}
        for term in self.take(r"[^\]]+").split(","):
            end, _, value = term.strip().partition("=")
            condition_text[end] = json.loads(value) if value else True
        self.take(r"\]")
        return Condition(**condition_text)  # type: ignore[arg-type]


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
