"""The options of a run: one validated list with one set of defaults.

The command line, `meander.run`, `meander.Session`, the cells on Spark and the benchmarks all hold a `RunOptions`.
What a run reads and writes (streams, sinks, a checkpoint, rejects, metrics) is not an option.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict

from meander.errors import ArgumentError, MeanderError
from meander.physical.path_operators import PATH_OPERATORS
from meander.syntax.durations import UNITS, parse_duration, parse_size

RUNNERS = ("spark", "local")
MODES = ("intervals", "changes")
LOCAL_BATCH_ROWS = 65_536
SPARK_BATCH_ROWS = 500_000
SPARK_OPTIONS = ("cells", "idle", "snapshot_rows")
"""The options that mean nothing to the local runner."""


class _AutoCells(int):
    """Stands for a number of cells that is chosen when the run starts; no number is equal to it by identity."""

    def __repr__(self) -> str:
        return "auto"

    __str__ = __repr__


AUTO_CELLS = _AutoCells(0)


class OptionValues(TypedDict, total=False):
    """The options as a person gives them: durations and sizes may be text, such as "5m" and "4GB"."""

    paths: bool
    proofs: bool
    mode: str
    lateness: int | str
    max_jump: int | str | None
    time_unit: str
    plan: int | None
    path_operator: str
    batch_rows: int | None
    memory: int | str | None
    demand: bool
    threads: int
    cells: int | str
    idle: float | str
    snapshot_rows: int


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a query is run. An invalid value raises `ArgumentError`."""

    paths: bool = False  # emit the path that proves each answer
    proofs: bool = False  # emit the tree that proves each answer, down to edges of the input
    mode: str = "intervals"
    lateness: int = 0  # in `time_unit`
    max_jump: int | None = None  # in `time_unit`
    time_unit: str = "s"
    plan: int | None = None  # the number of an equivalent plan; None: the one with the lowest estimated cost
    path_operator: str = "auto"
    batch_rows: int | None = None  # None: LOCAL_BATCH_ROWS or SPARK_BATCH_ROWS
    memory: int | None = None  # in bytes
    demand: bool = True  # sideways information passing into closures
    threads: int = 1
    cells: int = 1  # or AUTO_CELLS
    idle: float = 60.0  # in seconds of wall time
    snapshot_rows: int = 250_000

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in OPTION_NAMES}
        for name, value in _read(given, self.time_unit, str).items():
            object.__setattr__(self, name, value)
        if self.proofs:
            check_proofs(self.cells, self.plan)

    @classmethod
    def of(cls, *, spelled: Callable[[str], str] = str, **given: Any) -> RunOptions:
        """The options with the given values, which may be text, in place of the defaults.

        `spelled` is how messages write the name of an option (see `command_line_name`).
        """
        unit = str(given.get("time_unit", DEFAULTS.time_unit))
        read = _read(given, unit, spelled)
        if read.get("proofs"):
            check_proofs(read.get("cells", 1), read.get("plan"), spelled)
        return cls(**read)

    def check_local(self, *, spelled: Callable[[str], str] = str, hint: str) -> None:
        """Refuse an option that only Spark has, unless it has its default value."""
        for name in SPARK_OPTIONS:
            if getattr(self, name) != getattr(DEFAULTS, name):
                raise ArgumentError(f"{spelled(name)} needs Spark", hint=hint)


OPTION_NAMES = tuple(field.name for field in fields(RunOptions))
SESSION_OPTIONS = tuple(name for name in OPTION_NAMES if name not in ("time_unit", "plan"))
"""The options of `Session.start`: the time unit belongs to the session, and a plan to a query."""


def check_proofs(cells: int = 1, plan: int | None = None, spelled: Callable[[str], str] = str) -> None:
    """Refuse what proofs cannot be found with: a proof is about the query as written, in one cell."""
    if cells > 1:
        raise ArgumentError(
            f"{spelled('proofs')} needs one cell, not {cells}",
            hint=f"leave out {spelled('cells')}: a proof may need the edges of every cell",
        )
    if plan:
        raise ArgumentError(
            f"{spelled('proofs')} runs plan 0, not plan {plan}",
            hint=f"leave out {spelled('plan')}: a proof follows the rules of the query as written",
        )


def command_line_name(name: str) -> str:
    """The option's name on the command line: `--max-jump` for `max_jump`."""
    return f"--{name.replace('_', '-')}"


def check_choice(option: str, value: object, accepted: Sequence[str]) -> str:
    """`value`, if it is one of those accepted."""
    if not isinstance(value, str) or value not in accepted:
        raise ArgumentError(f"{option} cannot be {value!r}", hint=f"accepted: {', '.join(accepted)}")
    return value


Reader = Callable[[str, Any, str], Any]
"""Validates a value: (the option as messages write it, the value, the unit of the streams' times)."""


def _read(given: Mapping[str, Any], unit: str, spelled: Callable[[str], str]) -> dict[str, Any]:
    for name in given:
        if name not in _READERS:
            similar = difflib.get_close_matches(name, _READERS, n=1)
            hint = f"did you mean {spelled(similar[0])}?" if similar else f"options: {', '.join(_READERS)}"
            raise ArgumentError(f"unknown option {spelled(name)}", hint=hint)
    # The unit first: durations are read in it.
    names = sorted(given, key=lambda name: name != "time_unit")
    return {name: _READERS[name](spelled(name), given[name], unit) for name in names}


def _flag(option: str, value: Any, unit: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong_type(option, value, "bool")
    return value


def _choice(accepted: Sequence[str]) -> Reader:
    return lambda option, value, unit: check_choice(option, value, accepted)


def _integer(least: int, message: str, hint: str, accepted: str = "int") -> Reader:
    """An integer from `least` on; `message` has the fields `option` and `value`."""

    def read(option: str, value: Any, unit: str) -> int:
        try:
            number = operator.index(value)
        except TypeError:
            number = None
        if number is None or isinstance(value, bool):
            raise _wrong_type(option, value, accepted)
        if number < least:
            raise ArgumentError(message.format(option=option, value=value), hint=hint.format(option=option))
        return number

    return read


def _optional(read: Reader) -> Reader:
    return lambda option, value, unit: None if value is None else read(option, value, unit)


def _text_or(read: Reader, parse: Callable[[str, str], Any]) -> Reader:
    """What `parse` makes of a text, or a number; `read` validates both."""

    def read_either(option: str, value: Any, unit: str) -> Any:
        if not isinstance(value, str):
            return read(option, value, unit)
        try:
            number = parse(value, unit)
        except MeanderError as error:
            raise ArgumentError(f"{option}: {error.message}", hint=error.hint) from None
        return read(option, number, unit)

    return read_either


def _parse_seconds(text: str, unit: str) -> float:
    """A duration of wall time; a bare number is in seconds, whatever the unit of the streams' times."""
    bare = re.fullmatch(r"[0-9.]+", text.strip())
    return parse_duration(text + "s" if bare else text, "us") / 1e6


def _seconds(option: str, value: Any, unit: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong_type(option, value, "float or str")
    if value < 0 or math.isnan(value):
        raise ArgumentError(f"invalid {option}: {value}", hint="write a number of seconds, or a duration")
    return float(value)


def _wrong_type(option: str, value: object, accepted: str) -> ArgumentError:
    return ArgumentError(f"{option} is {value!r}", hint=f"it must be {accepted}")


_cell_count = _integer(
    1, "{value} cells cannot do any work", "{option} is auto, or 1 or more", "int or 'auto'"
)
INTEGER = re.compile(r"[+-]?[0-9]+")


def _cells(option: str, value: Any, unit: str) -> int:
    if value is AUTO_CELLS or value == str(AUTO_CELLS):
        return AUTO_CELLS
    if isinstance(value, str):
        if INTEGER.fullmatch(value) is None:
            raise ArgumentError(f"invalid {option}: {value!r}", hint=f"{option} is auto, or 1 or more")
        value = int(value)
    number: int = _cell_count(option, value, unit)
    return number


_READERS: Mapping[str, Reader] = {
    "paths": _flag,
    "proofs": _flag,
    "mode": _choice(MODES),
    "lateness": _text_or(
        _integer(0, "a lateness of {value} is negative", "{option} is a duration, such as 5m", "int or str"),
        parse_duration,
    ),
    "max_jump": _optional(
        _text_or(
            _integer(
                1,
                "invalid {option}: {value}",
                "write a duration longer than any pause of the stream, such as 7d",
                "int or str or None",
            ),
            parse_duration,
        )
    ),
    "time_unit": _choice(UNITS),
    "plan": _optional(_integer(0, "{option} is {value}", "plans are numbered from 0", "int or None")),
    "path_operator": _choice(tuple(PATH_OPERATORS)),
    "batch_rows": _optional(
        _integer(1, "{option} is {value}", "a batch has at least one row", "int or None")
    ),
    "memory": _optional(
        _text_or(
            _integer(1, "{option} is {value}", "write a size such as 4GB or 512MB", "int or str or None"),
            lambda text, unit: parse_size(text),
        )
    ),
    "demand": _flag,
    "threads": _integer(1, "{value} threads cannot do any work", "{option} is 1 or more"),
    "cells": _cells,
    "idle": _text_or(_seconds, _parse_seconds),
    "snapshot_rows": _integer(1, "{option} is {value}", "it is 1 or more"),
}
DEFAULTS = RunOptions()
