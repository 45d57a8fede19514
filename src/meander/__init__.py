"""Meander: persistent graph queries over streams of edges.

`meander.run` answers a query in this process; `meander.Session` runs queries on Spark. Both are loaded when
they are first used, so that importing Meander costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from meander.errors import MeanderError

if TYPE_CHECKING:
    from meander.api import plans, run
    from meander.spark.session import Session

__version__ = "0.1.0"
__all__ = ["MeanderError", "Session", "__version__", "plans", "run"]


def __getattr__(name: str) -> Any:
    if name in ("run", "plans"):
        from meander import api

        return getattr(api, name)
    if name == "Session":
        from meander.spark.session import Session

        return Session
    raise AttributeError(f"module 'meander' has no attribute {name!r}")
