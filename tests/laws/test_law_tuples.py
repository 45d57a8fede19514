"""Answers are streams: a chain of two runs gives at every instant what one text gives.

Queries are cut in two at a rule. The answers of the first run, in either mode, are the tuples of the second.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from chains import HANDS, OF_ONE_TYPE, cuts, hold_chain, is_mixed
from law import EXAMPLES, MANY_EXAMPLES, naming
from oracle import TooLarge
from strategies import Case, cases, path_value_cases, property_cases

pytestmark = pytest.mark.filterwarnings("ignore:no edge of the stream")

loose = settings(deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
drawn_cases = st.one_of(cases(), property_cases(), path_value_cases())
chained = drawn_cases.filter(lambda case: bool(cuts(case.query)))


def hold(case: Case, data: st.DataObject, mode: str) -> None:
    head = data.draw(st.sampled_from(cuts(case.query)), label="cut at")
    hand = data.draw(st.sampled_from(list(HANDS)), label="by")
    assume(hand not in OF_ONE_TYPE or not is_mixed(case))
    try:
        with naming(case), tempfile.TemporaryDirectory() as folder:
            hold_chain(case, head, hand, mode, Path(folder))
    except TooLarge:
        assume(False)


@pytest.mark.parametrize("mode", ["intervals", "changes"])
@given(case=chained, data=st.data())
@settings(loose, max_examples=max(1, EXAMPLES // 4))
def test_a_chain_of_two_runs_gives_what_one_text_gives(mode: str, case: Case, data: st.DataObject) -> None:
    hold(case, data, mode)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["intervals", "changes"])
@given(case=chained, data=st.data())
@settings(loose, max_examples=max(1, MANY_EXAMPLES // 10), derandomize=False)
def test_many_more_chains_of_two_runs_give_what_one_text_gives(
    mode: str, case: Case, data: st.DataObject
) -> None:
    hold(case, data, mode)
