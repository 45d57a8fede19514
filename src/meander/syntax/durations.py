"""Durations and sizes as people write them: `24h`, `24 hours`, `30d`, `15 minutes`, `1 week`, `1.5h`, `3600`, `4GB`.

Time in Meander is an integer in a stream's unit (seconds, milliseconds or microseconds). A duration with a
unit is converted to the stream's; a bare number is already in it. Arithmetic is exact, and a duration
that is not a whole number of the stream's unit is refused rather than rounded.
"""

from __future__ import annotations

import difflib
import re
from fractions import Fraction

from meander.errors import ArgumentError

LONGEST = 10**18
"""The longest duration, in the stream's unit: a time and a duration added up stay within 64 bits."""

UNITS = ("s", "ms", "us")
"""The units that a stream's time may have."""

_NAMES = {
    1: ("us", "µs", "μs", "usec", "usecs", "microsecond", "microseconds"),
    1_000: ("ms", "msec", "msecs", "millisecond", "milliseconds"),
    1_000_000: ("s", "sec", "secs", "second", "seconds"),
    60_000_000: ("m", "min", "mins", "minute", "minutes"),
    3_600_000_000: ("h", "hr", "hrs", "hour", "hours"),
    86_400_000_000: ("d", "day", "days"),
    604_800_000_000: ("w", "week", "weeks"),
}
MICROSECONDS = {name: size for size, names in _NAMES.items() for name in names}
"""The length of each unit of time."""

_NUMBER_AND_UNIT = re.compile(r"(-?[0-9]{1,40}(?:\.[0-9]{1,40})?)\s*([^\W\d]\w*)?")


def parse_duration(text: str, unit: str = "s") -> int:
    """The duration in whole units of a stream's time (`unit`, one of `UNITS`).

    Raises `ArgumentError` if the text is not a duration, is negative, too long, or not a whole number of units.
    Zero is accepted; callers that need more check for it.
    """
    if unit not in UNITS:
        raise ArgumentError(f"unknown time unit {unit!r}", hint=f"it is one of {', '.join(UNITS)}")
    shown = " ".join(text.split())
    match = _NUMBER_AND_UNIT.fullmatch(shown)
    if match is None:
        raise ArgumentError(
            f"invalid duration: {shown[:60]}", hint="write 24h, 15 minutes, or a number in the stream's unit"
        )
    number, name = match.groups()
    if name is not None and name.lower() not in MICROSECONDS:
        raise ArgumentError(f"unknown unit of time {name[:60]}", hint=_nearest_unit(name.lower()))
    amount = Fraction(number)
    if name is not None:
        amount *= Fraction(MICROSECONDS[name.lower()], MICROSECONDS[unit])
    if amount < 0:
        raise ArgumentError(f"{shown} is negative", hint="a duration is a length of time, zero or more")
    if amount.denominator != 1:
        raise ArgumentError(
            f"{shown} is not a whole number of {unit}",
            hint="times are integers in the stream's unit: use another duration, or a stream with a finer unit",
        )
    if amount > LONGEST:
        raise ArgumentError(f"{shown} is too long", hint=f"the longest duration is {LONGEST} {unit}")
    return int(amount)


def format_duration(amount: int, unit: str = "s") -> str:
    """The duration in the largest unit of which it is a whole number: 86400 s is 1d; `parse_duration` reads it."""
    micros = amount * MICROSECONDS[unit]
    size = max((size for size in _NAMES if micros % size == 0), default=1) if amount else MICROSECONDS[unit]
    return f"{micros // size}{_NAMES[size][0]}"


def about_duration(amount: int, unit: str = "s") -> str:
    """The duration in the largest unit up to days of which it has at least one, without the rest: 100000 s is 1d."""
    micros = amount * MICROSECONDS[unit]
    size = max(
        (size for size in _NAMES if size <= min(micros, MICROSECONDS["d"])), default=MICROSECONDS[unit]
    )
    return f"{micros // size:,}{_NAMES[size][0]}"


def _nearest_unit(name: str) -> str:
    if name.startswith(("mo", "y")):
        return "months and years differ in length: write days, such as 30d or 365d"
    close = difflib.get_close_matches(name, MICROSECONDS, n=1)
    return f"did you mean {close[0]}?" if close else "units are us, ms, s, m, h, d and w, or their names"


_BYTES = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}


def parse_size(text: str) -> int:
    """A size in bytes, in powers of 1024: `4GB`, `512 MB`, `1.5g`, `1000000`."""
    match = re.fullmatch(r"\s*([0-9]{1,18}(?:\.[0-9]{1,6})?)\s*([kmgt]?i?b?)\s*", text, re.IGNORECASE)
    size = 0.0
    if match is not None:
        letter = match[2].upper().replace("I", "").rstrip("B")
        size = float(match[1]) * _BYTES[letter + "B"]
    if size < 1:
        raise ArgumentError(f"invalid size: {text!r}", hint="accepted: a size such as 4GB, 512MB or 1000000")
    return int(size)
