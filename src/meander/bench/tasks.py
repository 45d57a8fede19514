"""A task is one thing to measure: everything that decides its result, as plain data."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from meander import __version__
from meander.bench.workloads import DataSet, Workload

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Task:
    """What to measure, and with which settings.

    `kind` is who measures (a key of `measures.worker.MEASURES`), `query` is empty for what is measured on the
    whole graph.
    """

    experiment: str
    kind: str
    data: DataSet
    query: str
    settings: Settings  # plain data, as JSON has it
    name: str = ""  # what distinguishes it from the experiment's other tasks of this kind, data set and query
    seconds: float = 3.0  # about how long it takes
    patience: float = 300.0  # after how long it is given up

    @property
    def key(self) -> str:
        parts = (self.experiment, self.kind, self.data.name, self.query, self.name)
        return " ".join(filter(None, parts))

    @property
    def labels(self) -> Sequence[str]:
        """The labels whose edges are read; none: all."""
        if self.query:
            return Workload(self.data, self.query).labels
        labels: Sequence[str] = self.settings.get("labels", ())
        return labels

    def as_dict(self) -> dict[str, Any]:
        """What is stored beside the result: equal for tasks that measure the same."""
        return {
            "experiment": self.experiment,
            "kind": self.kind,
            "data": self.data.name,
            "about": self.data.about,
            "dense": self.data.dense,
            "query": self.query,
            "name": self.name,
            "settings": dict(self.settings),
        }

    def request(self, file: Path) -> dict[str, Any]:
        """What the process that measures is given; `file` has the edges."""
        return {**self.as_dict(), "data_set": asdict(self.data), "file": str(file)}


@cache
def program_version() -> str:
    """Meander's version, and a digest of the source that decides what is measured: not of the reports and the
    command."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        left_out = path.relative_to(package).parts[:2] in (("bench", "report"),) or "cli" in path.parts
        if path.suffix in (".py", ".lark") and not left_out:
            digest.update(str(path.relative_to(package)).encode() + path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:10]}"
