"""Every law of the algebra that Meander uses, in one ordered tuple.

A law is a function from a plan to the plans that it derives by rewriting the *root*; the engine applies it at every
node. The docstring is the law. A derived plan has the arity, the label and, on every snapshot, the answers of the
original.

`NORMALIZING` laws always improve a plan and reach a fixpoint; so do `PLAN_WIDE` ones, which see the whole plan.
`EXPLORING` laws span the plan space, mostly in pairs that undo each other; which of their results is better is a
question of cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from meander.algebra.nodes import Plan
from meander.rewrite.laws.comparisons import eliminate_unused_values, pushdown_comparison_into_inputs
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
from meander.rewrite.laws.wscan import (
    merge_scan_predicates,
    merge_wscans,
    pushdown_filter_into_wscan,
    split_wscan,
)

Law = Callable[[Plan], Iterator[Plan]]

NORMALIZING: tuple[Law, ...] = (
    # Trivial nodes first: they hide filters and labels from the laws below.
    simplify_path,
    eliminate_trivial_path,
    eliminate_trivial_pattern,
    eliminate_renaming,
    flatten_union,
    eliminate_trivial_union,
    # Filters are merged before they are pushed down: two of them would pass each node twice.
    merge_filters,
    pushdown_filter_into_union,
    pushdown_filter_into_pattern,
    pushdown_filter_into_path,
    pushdown_filter_into_wscan,
    # A value is unused once the comparisons that need it have moved to its input.
    pushdown_comparison_into_inputs,
    eliminate_unused_values,
    # Last, since duplicates are recognized only between inputs in normal form.
    eliminate_duplicate_inputs,
)

# For the root alone, at the fixpoint of the others: the label that a subplan can have depends on the whole plan.
PLAN_WIDE: tuple[Law, ...] = (share_common_subplans,)

# The order is the order in which plans are numbered: first those that change the shape of closures, the
# paper's own alternatives, then joins, then minor ones. A bound on the number of plans keeps the first.
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
    merge_scan_predicates,
)

LAWS: tuple[Law, ...] = NORMALIZING + PLAN_WIDE + EXPLORING
