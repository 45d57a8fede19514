"""Every law of the algebra that Meander uses, in one ordered tuple.

A law is a function from a plan to the plans that it makes of its *root*; the engine looks at all places. The
docstring is the law. What a law gives has the arity and the label of what it was given, and the same answers on
every snapshot.

`NORMALIZING` laws go one way and settle: a plan is better for each. So do those of the `PLAN_WIDE` plan. `EXPLORING`
laws lead through the space of plans, mostly in pairs that undo each other; which of their results is better is a
question of cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from meander.algebra.nodes import Plan
from meander.rewrite.laws.filters import (
    merge_filters,
    pushdown_filter_into_path,
    pushdown_filter_into_pattern,
    pushdown_filter_into_union,
    reverse_bound_target,
)
from meander.rewrite.laws.nesting import (
    nest_alternation,
    nest_closure,
    nest_concatenation,
    unnest_path,
    unnest_pattern,
    unnest_union,
)
from meander.rewrite.laws.paths import (
    eliminate_trivial_path,
    fold_alternation,
    fold_concatenation,
    simplify_path,
    split_alternation,
    split_concatenation,
    split_empty_word,
)
from meander.rewrite.laws.patterns import (
    distribute_pattern,
    eliminate_duplicate_inputs,
    eliminate_renaming,
    eliminate_trivial_pattern,
    merge_patterns,
    split_pattern,
)
from meander.rewrite.laws.sharing import share_common_subplans
from meander.rewrite.laws.unions import eliminate_trivial_union, factor_union, flatten_union
from meander.rewrite.laws.wscan import merge_wscans, pushdown_filter_into_wscan, split_wscan

Law = Callable[[Plan], Iterator[Plan]]

NORMALIZING: tuple[Law, ...] = (
    # Trivial nodes first: a filter or a label that stands behind one is then seen by the laws below.
    simplify_path,
    eliminate_trivial_path,
    eliminate_trivial_pattern,
    eliminate_renaming,
    flatten_union,
    eliminate_trivial_union,
    # Filters are merged before they move: two that sink one after the other would pass each node twice.
    merge_filters,
    pushdown_filter_into_union,
    pushdown_filter_into_pattern,
    pushdown_filter_into_path,
    pushdown_filter_into_wscan,
    # Last, since repetition shows only between inputs in their plain form.
    eliminate_duplicate_inputs,
)

# For the root alone, once all else has settled: what a subplan may be called depends on all that is around it, and
# from a part of the plan another name can look like the right one.
PLAN_WIDE: tuple[Law, ...] = (share_common_subplans,)

# The order is the order in which plans are numbered: first what changes the shape of the closures, the paper's
# own alternatives, then joins, then what moves little. Under a bound on the number of plans the first are kept.
EXPLORING: tuple[Law, ...] = (
    unnest_pattern,
    unnest_path,
    unnest_union,
    nest_concatenation,
    split_concatenation,
    split_alternation,
    nest_alternation,
    nest_closure,
    fold_concatenation,
    fold_alternation,
    split_empty_word,
    reverse_bound_target,
    merge_patterns,
    split_pattern,
    factor_union,
    distribute_pattern,
    merge_wscans,
    split_wscan,
)

LAWS: tuple[Law, ...] = NORMALIZING + PLAN_WIDE + EXPLORING
