"""The kernels that read values against naive twins: numbers and times mean what Python says they mean."""

from __future__ import annotations

import datetime
import math
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from meander.dataflow.edges import as_text
from meander.dataflow.property_columns import from_spans
from meander.kernels.parsing import BAD_VALUE, FINE, MISSING
from meander.kernels.parsing_times import read_iso_time
from meander.kernels.parsing_values import (
    JSON_BOOL,
    JSON_NUMBER,
    JSON_OTHER,
    JSON_STRING,
    PLAIN,
    Spans,
)
from meander.syntax.values import ValueType

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
UNITS = [(0, 10**6), (3, 10**3), (6, 1)]


def convert(
    texts: list[str], kind: ValueType, span_kind: int = PLAIN, digits: int = 0
) -> tuple[pa.Array, list[int]]:
    """The column of values, and the verdict on each."""
    text = as_text(texts)
    kinds = np.full(len(texts), span_kind, np.int8)
    verdict = np.zeros(len(texts), np.int16)
    column = from_spans(Spans(text.data, text.start, text.end, kinds), kind, verdict, BAD_VALUE, digits)
    return column, verdict.tolist()


number_text = st.one_of(
    st.integers(-(2**66), 2**66).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    st.text(alphabet="0123456789.eE+-", max_size=9),
    st.from_regex(r"-?[0-9]{0,20}\.?[0-9]{0,8}([eE][+-]?[0-9]{1,3})?", fullmatch=True),
)


@settings(deadline=None, max_examples=300)
@given(st.lists(number_text, max_size=5))
@example(["9007199254740993", "1e22", "1e23", "123456789012345678901234567890", "4.9e-324", "-0"])
@example(["1e400", "-1e400", "0.1e-400", ".5", "5.", ".", "-", "1e", "e5", "1e99999999999999999999"])
def test_floats_are_those_of_python(texts: list[str]) -> None:
    column, verdict = convert(texts, ValueType.FLOAT)
    for text, value, found in zip(texts, column.to_pylist(), verdict, strict=True):
        if re.fullmatch(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
            assert found == FINE
            assert (value, math.copysign(1, value)) == (float(text), math.copysign(1, float(text)))
        else:
            assert (value, found) == (None, BAD_VALUE if text else FINE)


@settings(deadline=None, max_examples=300)
@given(st.lists(number_text, max_size=5))
@example([str(2**63 - 1), str(-(2**63)), str(2**63), str(-(2**63) - 1), "-0", "007", "+5", "5.0", " 5"])
def test_integers_are_those_of_python_within_64_bits(texts: list[str]) -> None:
    column, verdict = convert(texts, ValueType.INT)
    for text, value, found in zip(texts, column.to_pylist(), verdict, strict=True):
        if re.fullmatch("-?[0-9]+", text) and -(2**63) <= int(text) < 2**63:
            assert (value, found) == (int(text), FINE)
        else:
            assert (value, found) == (None, BAD_VALUE if text else FINE)


def test_infinities_and_nan_are_read_in_any_case_and_nan_is_null() -> None:
    column, verdict = convert(["inf", "-Infinity", "NaN", "nan", "nanx"], ValueType.FLOAT)
    assert column.to_pylist() == [math.inf, -math.inf, None, None, None]
    assert verdict == [FINE] * 4 + [BAD_VALUE]


def test_bools_are_words_in_any_case_or_digits() -> None:
    column, verdict = convert(["true", "FALSE", "1", "0", "", "yes", "tru", "01"], ValueType.BOOL)
    assert column.to_pylist() == [True, False, True, False, None, None, None, None]
    assert verdict == [FINE] * 5 + [BAD_VALUE] * 3


@pytest.mark.parametrize(
    ("kind", "span_kind", "wanted"),
    [
        (ValueType.INT, JSON_NUMBER, 1),
        (ValueType.INT, JSON_STRING, None),
        (ValueType.FLOAT, JSON_NUMBER, 1.0),
        (ValueType.FLOAT, JSON_STRING, None),
        (ValueType.STRING, JSON_STRING, "1"),
        (ValueType.STRING, JSON_NUMBER, None),
        (ValueType.BOOL, JSON_NUMBER, None),
        (ValueType.BOOL, JSON_STRING, None),
        (ValueType.TIME, JSON_NUMBER, 1),
        (ValueType.TIME, JSON_STRING, None),
        *((kind, JSON_OTHER, None) for kind in ValueType if kind is not ValueType.VERTEX),
    ],
)
def test_a_json_value_has_to_be_of_the_propertys_own_type(
    kind: ValueType, span_kind: int, wanted: object
) -> None:
    column, verdict = convert(["1"], kind, span_kind)
    assert column.to_pylist() == [wanted]
    assert verdict == [BAD_VALUE if wanted is None else FINE]


def test_an_empty_string_of_json_is_a_string_and_an_empty_field_is_null() -> None:
    assert convert([""], ValueType.STRING, JSON_STRING)[0].to_pylist() == [""]
    assert convert([""], ValueType.STRING)[0].to_pylist() == [None]
    assert convert(["true"], ValueType.BOOL, JSON_BOOL)[0].to_pylist() == [True]


def test_rows_that_have_a_verdict_are_skipped() -> None:
    text = as_text(["x", "5"])
    verdict = np.array([MISSING, FINE], np.int16)
    spans = Spans(text.data, text.start, text.end, np.zeros(2, np.int8))
    column = from_spans(spans, ValueType.INT, verdict, BAD_VALUE, 0)
    assert (column.to_pylist(), verdict.tolist()) == ([None, 5], [MISSING, FINE])


zones = st.one_of(st.none(), st.integers(-23 * 60, 23 * 60))
moments = st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30))


def zone_text(zone: int | None, style: str) -> str:
    if zone is None:
        return style
    sign = "-" if zone < 0 else "+"
    return f"{sign}{abs(zone) // 60:02}:{abs(zone) % 60:02}"


@settings(deadline=None, max_examples=300)
@given(
    moments, zones, st.sampled_from(["", "Z", "z"]), st.sampled_from(["T", " ", "t"]), st.sampled_from(UNITS)
)
def test_iso_times_are_those_of_python(
    moment: datetime.datetime, zone: int | None, style: str, separator: str, unit: tuple[int, int]
) -> None:
    digits, microseconds = unit
    text = as_text([moment.isoformat(separator) + zone_text(zone, style)])
    offset = datetime.timedelta(minutes=zone or 0)
    wanted = (moment.replace(tzinfo=datetime.UTC) - offset - EPOCH) // datetime.timedelta(microseconds=1)
    assert read_iso_time(text.data, 0, text.data.size, digits) == (True, wanted // microseconds)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1970-01-01", 0),
        ("2024-02-29", 1_709_164_800),
        ("2024-02-29T12", None),
        ("2024-02-29 12:30", 1_709_209_800),
        ("2024-02-29T12:30:15,999", 1_709_209_815),
        ("2024-02-29T12:30+0130", 1_709_204_400),
        ("2024-02-29T12:30+01", 1_709_206_200),
        ("1969-12-31T23:59:59.5", -1),
        ("2023-02-29", None),
        ("2024-13-01", None),
        ("2024-00-01", None),
        ("2024-01-32", None),
        ("2024-1-1", None),
        ("2024-01-01T24:00", None),
        ("2024-01-01T12:60", None),
        ("2024-01-01T12:00:60", None),
        ("2024-01-01T12:00:00.", None),
        ("2024-01-01T12:00:00 Z", None),
        ("2024-01-01T12:00+1", None),
        ("2024-01-01T12:00+24:00", None),
        ("2024-01-01x", None),
        ("2024-01-01T", None),
        ("20240101", None),
        ("-024-01-01", None),
        ("", None),
    ],
)
def test_dates_and_times_in_seconds(text: str, wanted: int | None) -> None:
    span = as_text([text + "0"])  # a byte beyond the span, which is not read
    found, value = read_iso_time(span.data, 0, len(text), 0)
    assert (found, int(value)) == (wanted is not None, wanted or 0)
