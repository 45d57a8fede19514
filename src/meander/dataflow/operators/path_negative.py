"""PATH by the negative-tuple algorithm of Pacaci et al. (SIGMOD 2020), which the paper compares S-PATH with."""

from __future__ import annotations

from meander.dataflow.operators.path_trees import PathTrees
from meander.kernels.forest import pack_nodes


class PathNegativeTuples(PathTrees):
    """The negative-tuple algorithm: a tree keeps the first path found, and searches for another when that expires."""

    first_path = True

    @property
    def may_underreport_expiry(self) -> bool:
        return True

    def backfill(self, on: bool, time: int) -> None:
        """A replay keeps the longest paths, as S-PATH does: every tuple then has its largest expiry at once."""
        self.keeps_first_path = not on
        if on:
            self.bind()
        else:
            pack_nodes(self.forest, time, self.states, self.walk.queue)
            self._collect_expiries()
