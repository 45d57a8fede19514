"""One list of options: validated, with one set of defaults for the command line, `meander.run` and `Session`."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from meander.errors import ArgumentError
from meander.options import OPTION_NAMES, OptionValues, RunOptions, command_line_name


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
        ({"plan": True}, "plan is True", "it must be int or None"),
        ({"plan": -1}, "plan is -1", "plans are numbered from 0"),
        ({"lateness": -1}, "a lateness of -1 is negative", "lateness is a duration, such as 5m"),
        ({"lateness": 1.5}, "lateness is 1.5", "it must be int or str"),
        ({"max_jump": 0}, "invalid max_jump: 0", "such as 7d"),
        ({"batch_rows": 0}, "batch_rows is 0", "a batch has at least one row"),
        ({"memory": 0}, "memory is 0", "such as 4GB"),
        ({"memory": "much"}, "memory: ", "such as 4GB"),
        ({"threads": 0}, "0 threads cannot do any work", "threads is 1 or more"),
        ({"cells": 0}, "0 cells cannot do any work", "cells is 1 or more"),
        ({"idle": -1}, "invalid idle: -1", "a number of seconds, or a duration"),
        ({"snapshot_rows": 0}, "snapshot_rows is 0", "1 or more"),
        ({"latness": 5}, "unknown option latness", "did you mean lateness?"),
        ({"colour": "red"}, "unknown option colour", "options: paths, mode, lateness"),
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
