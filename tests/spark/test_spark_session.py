"""A session before Spark starts: what it registers, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from incidents import CLOSURE

from meander.engine import compile_query
from meander.errors import ArgumentError
from meander.spark.session import Session


def test_a_query_that_is_compiled_already_is_not_planned_again() -> None:
    compiled = compile_query(CLOSURE, name="q")
    query = Session().register(compiled)
    assert query.compiled is compiled
    assert (query.name, query.streams) == ("q", ("s",))


@pytest.mark.parametrize("name", ["1q", "a b", ""])
def test_names_that_a_query_text_could_not_contain_are_refused(name: str) -> None:
    for register in (lambda: Session().query(CLOSURE, name), lambda: Session().stream(name, "s.tsv")):
        with pytest.raises(ArgumentError) as refused:
            register()
        assert refused.value.hint == "letters, digits and _, not a digit first"


def test_a_name_is_used_once() -> None:
    session = Session()
    session.query(CLOSURE, "q")
    with pytest.raises(ArgumentError, match="there is a query or stream q already"):
        session.query(CLOSURE, "q")
    session.drop("q")
    session.query(CLOSURE, "q")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cells": 0}, "0 cells cannot do any work"),
        ({"time_unit": "ms"}, "unknown option time_unit"),
        ({"plan": 1}, "unknown option plan"),
        ({"latenes": 3}, "unknown option latenes"),
        ({"mode": "all"}, "mode cannot be 'all'"),
        ({"proofs": True, "cells": 2}, "proofs needs one cell, not 2"),
    ],
)
def test_options_are_refused_before_anything_is_opened(options: dict[str, Any], message: str) -> None:
    session = Session()
    query = session.query(CLOSURE, "q")
    for start in (session.start, query.dataframe):
        with pytest.raises(ArgumentError, match=message):
            start(**options)


def test_a_plan_that_does_not_exist_is_refused_with_the_query() -> None:
    session = Session()
    with pytest.raises(ArgumentError, match="Answer has no plan 99"):
        session.query(CLOSURE, "q", plan=99)
    assert session.queries == {}
