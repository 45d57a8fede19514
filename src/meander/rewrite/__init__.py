"""From the canonical plan to the plan that runs: laws, their engine, the plan space, the choice, and demand."""

from meander.rewrite.choice import choose
from meander.rewrite.demand import pass_demand
from meander.rewrite.engine import simplify
from meander.rewrite.enumerate import enumerate_plans
from meander.rewrite.laws import LAWS

__all__ = ["LAWS", "choose", "enumerate_plans", "pass_demand", "simplify"]
