"""One list of options: validated, with one set of defaults for the command line, `meander.run` and `Session`."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

import meander
from meander.cli import commands
from meander.engine import compile_query, query_plans
from meander.errors import ArgumentError
from meander.options import OPTION_NAMES, OptionValues, RunOptions, command_line_name
from meander.spark.session import Query, Session


def test_durations_and_sizes_may_be_text() -> None:
    options = RunOptions.of(lateness="5m", max_jump="7d", memory="2GB", idle="2m", time_unit="ms")
    assert (options.lateness, options.max_jump) == (300_000, 7 * 86_400_000)
    assert (options.memory, options.idle) == (2 * 2**30, 120.0)


def test_a_bare_number_is_in_the_streams_unit_but_for_wall_time() -> None:
    options = RunOptions.of(lateness="5", idle="5", time_unit="us")
    assert (options.lateness, options.idle) == (5, 5.0)


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ({"mode": "all"}, "mode cannot be 'all'", "accepted: intervals, changes"),
        ({"mode": None}, "mode cannot be None", "accepted: intervals, changes"),
        ({"time_unit": "h", "lateness": "5m"}, "time_unit cannot be 'h'", "accepted: s, ms, us"),
        ({"path_operator": "dfs"}, "path_operator cannot be 'dfs'", "accepted: auto, s-path"),
        ({"paths": 1}, "paths is 1", "it must be bool"),
        ({"plan": "1"}, "plan is '1'", "it must be int or None"),
        ({"proofs": True, "cells": 2}, "proofs needs one cell, not 2", "leave out cells"),
        ({"proofs": True, "plan": 3}, "proofs runs plan 0, not plan 3", "leave out plan"),
        ({"plan": True}, "plan is True", "it must be int or None"),
        ({"plan": -1}, "plan is -1", "plans are numbered from 0"),
        ({"lateness": -1}, "a lateness of -1 is negative", "lateness is a duration, such as 5m"),
        ({"lateness": 1.5}, "lateness is 1.5", "it must be int or str"),
        ({"max_jump": 0}, "invalid max_jump: 0", "such as 7d"),
        ({"batch_rows": 0}, "batch_rows is 0", "a batch has at least one row"),
        ({"memory": 0}, "memory is 0", "such as 4GB"),
        ({"memory": "much"}, "memory: ", "such as 4GB"),
        ({"threads": 0}, "0 threads cannot do any work", "threads is 1 or more"),
        ({"cells": 0}, "0 cells cannot do any work", "cells is auto, or 1 or more"),
        ({"cells": "-1"}, "-1 cells cannot do any work", "cells is auto, or 1 or more"),
        ({"cells": "many"}, "invalid cells: 'many'", "cells is auto, or 1 or more"),
        ({"cells": "1.5"}, "invalid cells: '1.5'", "cells is auto, or 1 or more"),
        ({"cells": 1.5}, "cells is 1.5", "it must be int or 'auto'"),
        ({"idle": -1}, "invalid idle: -1", "a number of seconds, or a duration"),
        ({"snapshot_rows": 0}, "snapshot_rows is 0", "1 or more"),
        ({"latness": 5}, "unknown option latness", "did you mean lateness?"),
        ({"colour": "red"}, "unknown option colour", "options: paths, proofs, mode, lateness"),
    ],
)
def test_an_invalid_option_is_named_with_what_is_accepted(
    given: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(ArgumentError) as raised:
        RunOptions.of(**given)
    assert message in raised.value.message
    assert hint in raised.value.hint


def test_messages_can_write_options_as_the_command_line_does() -> None:
    with pytest.raises(ArgumentError, match=r"^invalid --max-jump: 0"):
        RunOptions.of(max_jump="0", spelled=command_line_name)


def test_the_constructor_and_replace_validate_too() -> None:
    with pytest.raises(ArgumentError, match="0 threads"):
        RunOptions(threads=0)
    with pytest.raises(ArgumentError, match="0 cells"):
        replace(RunOptions(), cells=0)


def test_a_plan_that_was_chosen_before_is_refused_with_proofs() -> None:
    query = compile_query("STREAM s WINDOW 5\nAnswer(x, y) <- (a/b)(x, y).", RunOptions(plan=1))
    with pytest.raises(ArgumentError, match="proofs runs plan 0, not plan 1"):
        query_plans(query, RunOptions(proofs=True))


def test_options_do_not_change_and_travel_to_workers() -> None:
    options = RunOptions.of(lateness="5m", cells=3)
    with pytest.raises(FrozenInstanceError):
        options.cells = 4  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(options)) == options


def test_an_option_that_only_spark_has_is_refused_locally() -> None:
    RunOptions.of(threads=2).check_local(hint="")
    with pytest.raises(ArgumentError, match="--snapshot-rows needs Spark"):
        RunOptions.of(snapshot_rows=5).check_local(spelled=command_line_name, hint="")


def test_the_values_that_a_person_may_give_are_of_the_same_options() -> None:
    assert tuple(OptionValues.__annotations__) == OPTION_NAMES == tuple(f.name for f in fields(RunOptions))


def test_the_command_line_has_the_same_defaults() -> None:
    """Its defaults are text where it takes text: read as options, they are those of `RunOptions`."""
    defaults = {
        name: parameter.default
        for command in (commands.run, commands.explain)
        for name, parameter in inspect.signature(command).parameters.items()
        if name in OPTION_NAMES
    }
    assert set(OPTION_NAMES) - set(defaults) == {"snapshot_rows"}
    assert RunOptions.of(**defaults) == RunOptions()


@pytest.mark.parametrize("function", [meander.run, Session.start, Query.dataframe])
def test_python_has_no_defaults_of_its_own(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters
    assert not set(parameters) & set(OPTION_NAMES)
    assert parameters["options"].kind is inspect.Parameter.VAR_KEYWORD


def test_an_option_that_python_does_not_have_is_refused() -> None:
    text = "STREAM s WINDOW 9 Answer(x, y) <- a(x, y)."
    with pytest.raises(ArgumentError, match=r"unknown option batchrows\nhint: did you mean batch_rows\?"):
        meander.run(text, [], batchrows=5)  # type: ignore[call-arg]
    with pytest.raises(
        ArgumentError, match=r"cells needs Spark\nhint: leave it out, or use meander\.Session"
    ):
        meander.run(text, [], cells=2)
