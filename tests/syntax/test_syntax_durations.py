"""Durations, exactly converted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meander.errors import ArgumentError
from meander.syntax.durations import LONGEST, UNITS, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("24h", 86_400),
        ("24 hours", 86_400),
        ("24  HOURS", 86_400),
        ("1 hour", 3_600),
        ("2hrs", 7_200),
        ("30d", 2_592_000),
        ("30 days", 2_592_000),
        ("15m", 900),
        ("15 minutes", 900),
        ("15 min", 900),
        ("1 week", 604_800),
        ("2w", 1_209_600),
        ("90s", 90),
        ("90 sec", 90),
        ("1.5h", 5_400),
        ("2000ms", 2),
        ("3000000us", 3),
        ("3000000µs", 3),
        ("3600", 3_600),
        (" 0 ", 0),
    ],
)
def test_a_duration_in_seconds(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "unit", "amount"),
    [("1.5s", "ms", 1_500), ("1ms", "us", 1_000), ("7", "us", 7), ("1h", "us", 3_600_000_000)],
)
def test_a_duration_in_a_finer_unit(text: str, unit: str, amount: int) -> None:
    assert parse_duration(text, unit) == amount


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "invalid duration"),
        ("soon", "invalid duration"),
        ("1h30m", "unknown unit of time h30m"),
        ("1e3", "unknown unit of time e3"),
        ("-5s", "negative"),
        ("2 months", "months and years differ in length"),
        ("3 hors", "did you mean hours?"),
        ("3 parsecs", "did you mean secs?"),
        ("3 zz", "units are us, ms, s, m, h, d and w"),
        ("1500ms", "not a whole number of s"),
        ("0.5", "not a whole number of s"),
        ("9" * 30, "too long"),
        ("9" * 100_000, "invalid duration"),
        ("٣h", "invalid duration"),
    ],
)
def test_an_invalid_duration_is_refused(text: str, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_duration(text)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 300


@settings(deadline=None)
@given(st.integers(0, LONGEST), st.sampled_from(UNITS))
def test_a_formatted_duration_is_read_back(amount: int, unit: str) -> None:
    assert parse_duration(format_duration(amount, unit), unit) == amount


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(86_400, "1d"), (3_600, "1h"), (5_400, "90m"), (604_800, "1w"), (90, "90s"), (0, "0s")],
)
def test_a_duration_is_formatted_in_the_largest_unit_that_fits(seconds: int, text: str) -> None:
    assert format_duration(seconds) == text
