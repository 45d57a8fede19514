"""A measurement in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from meander.bench.report.sections import rate, span, times
from meander.bench.results import Record, Results


def outline(record: Record) -> str:
    """What was measured, and the outcome in brief."""
    what = _what(record)
    if "failure" in record:
        return f"{what}: FAILED: {record['failure']}"
    return f"{what}: {_OUTLINES[record['kind']](record['result'])}"


def failed_variants(results: Results) -> list[str]:
    """A line for each variant that failed, of tasks that did not."""
    return [
        f"{_what(record)}, {name}: FAILED: {variant['failure']}"
        for record in results.measurements.values()
        if "failure" not in record
        for name, variant in record["result"].get("variants", {}).items()
        if "failure" in variant
    ]


def _what(record: Record) -> str:
    words = (record["experiment"], record["data"], record["query"], record["name"])
    return " ".join(word for word in words if word)


def _meander(result: dict[str, Any]) -> str:
    measured = [variant for variant in result["variants"].values() if "failure" not in variant]
    failed = len(result["variants"]) - len(measured)
    rates = span([rate(variant) for variant in measured], lambda value: f"{value:,.0f}")
    return f"{rates} edges/s" + (f", {failed} of {len(result['variants'])} variants FAILED" if failed else "")


def _peer(result: dict[str, Any]) -> str:
    if result["peer"] is None:
        return "not one slide within the time limit"
    own, peer = rate(result["meander"]), rate(result["peer"])
    return (
        f"{peer:,.0f} edges/s over {result['peer']['edges']:,} edges, Meander {own:,.0f}, "
        f"{times(own / peer)} times"
    )


def _cells(result: dict[str, Any]) -> str:
    spreads = [f"{spread['seconds']:.2f} s with {spread['cells']}" for spread in result["spreads"]]
    return f"{', '.join(spreads)} cells"


def _values(result: dict[str, Any]) -> str:
    if "ratios" in result:
        return ", ".join(times(ratio["ratio"]) for ratio in result["ratios"])
    if "Meander" not in result:
        return "DuckDB did not complete a slide within the time limit"
    return f"{times(result['Meander'] / result['DuckDB'])} times DuckDB's rate"


def _spark(result: dict[str, Any]) -> str:
    if all(isinstance(value, dict) for value in result.values()):
        return ", ".join(f"{query} {row['ratio']:.2f} of Spark's rate" for query, row in result.items())
    return ", ".join(f"{name} {value:,.2f}" for name, value in result.items())


def _profile(result: dict[str, Any]) -> str:
    parts = sorted(result["parts"].items(), key=lambda part: -part[1])[:3]
    return ", ".join(f"{name} {seconds / result['seconds']:.0%}" for name, seconds in parts)


_OUTLINES: dict[str, Callable[[dict[str, Any]], str]] = {
    "meander": _meander,
    "peer": _peer,
    "cells": _cells,
    "values": _values,
    "spark": _spark,
    "profile": _profile,
}
