"""Many changes of a tuple's expiry, summed up, do what they do one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from meander.kernels.expiries import bound_expiries

LATE = np.iinfo(np.int64).max
CHANGES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(-2, 9), st.sampled_from((1, 1, -1)))
)


@given(CHANGES, st.integers(0, 30))
def test_changes_summed_up_do_what_they_do_one_by_one(changes, before) -> None:
    time, rows = 0, []
    expiry = dict.fromkeys(range(3), before)
    for number, gap, length, op in changes:
        time += gap
        exp = time + (max(1, length) if op > 0 else length)
        rows.append((number, time, exp, op))
        expiry[number] = max(expiry[number], exp) if op > 0 else min(expiry[number], max(exp, time))
    key, ts, exp, op = (
        (np.array(column, np.int64) for column in zip(*rows, strict=True))
        if rows
        else [np.empty(0, np.int64)] * 4
    )
    least, most = np.zeros(3, np.int64), np.full(3, LATE)
    bound_expiries(key, ts, exp, op.astype(np.int8), least, most)
    assert [max(least[number], min(most[number], before)) for number in range(3)] == list(expiry.values())
