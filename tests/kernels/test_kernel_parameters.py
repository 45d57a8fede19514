"""A kernel has at most eight parameters: what belongs together is a table or a NamedTuple of tables."""

from __future__ import annotations

from kernel_calls import declared_kernels

MOST = 8


def test_no_kernel_has_more_than_eight_parameters() -> None:
    counts = {name: len(kernel.args.args) for name, kernel in declared_kernels().items()}
    assert len(counts) > 100
    assert {name: count for name, count in counts.items() if count > MOST} == {}
