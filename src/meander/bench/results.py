"""The results: one JSON file, written again after each measurement, so that an interrupted run can be continued.

A measurement is used again if it is of the same task, with the same settings, by the same version of the
program on the same machine, and did not fail.
"""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from meander.bench.hardware import describe
from meander.bench.tasks import Task, program_version
from meander.errors import InputError

FORMAT = 1
SAME_MACHINE = ("cores", "memory_gib", "processor", "system")

Record = dict[str, Any]


class Results:
    """Measurements by the key of their task."""

    def __init__(self, machine: dict[str, Any], measurements: dict[str, Record]) -> None:
        self.machine = machine
        self.measurements = measurements

    @classmethod
    def load(cls, path: Path) -> Results:
        """The results of a file; empty ones if there is no file."""
        if not path.is_file():
            return cls({}, {})
        try:
            loaded = json.loads(path.read_text(encoding="utf-8"))
            if loaded["format"] != FORMAT:
                raise ValueError(f"format {loaded['format']}")
            return cls(loaded["machine"], loaded["measurements"])
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{path} does not have the results of this benchmark: {error}",
                hint="name another file with --results, or delete this one",
            ) from None

    def save(self, path: Path) -> None:
        """Write the file; it is replaced at once, so that it is always whole."""
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}")
        content = {"format": FORMAT, "machine": self.machine, "measurements": self.measurements}
        draft.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(draft, path)

    def start(self) -> None:
        """Prepare for measurements by this program on this machine."""
        machine = describe()
        if any(self.machine.get(name) != machine[name] for name in SAME_MACHINE):
            self.measurements.clear()
        self.machine = machine

    def has(self, task: Task) -> bool:
        record = self.measurements.get(task.key)
        return (
            record is not None
            and "failure" not in record
            and record["version"] == program_version()
            and json.loads(json.dumps(task.as_dict())) == {name: record[name] for name in task.as_dict()}
        )

    def drop_others(self, tasks: Iterable[Task]) -> None:
        """Forget the measurements of these tasks' experiments that are not of these tasks."""
        tasks = list(tasks)
        keys, experiments = {task.key for task in tasks}, {task.experiment for task in tasks}
        for key, record in list(self.measurements.items()):
            if record["experiment"] in experiments and key not in keys:
                del self.measurements[key]

    def add(self, task: Task, outcome: dict[str, Any], seconds: float) -> None:
        """Store what came of a task: `{"result": …}` or `{"failure": …}`."""
        self.measurements[task.key] = {
            **task.as_dict(),
            "version": program_version(),
            "date": datetime.date.today().isoformat(),
            "took": round(seconds, 1),
            **outcome,
        }

    def expected_seconds(self, task: Task) -> float:
        """About how long a task takes: as long as the last time, if its settings were the same."""
        record = self.measurements.get(task.key)
        if record is not None and record["settings"] == dict(task.settings):
            return float(record["took"])
        return task.seconds

    def of(self, experiment: str) -> Iterator[Record]:
        """The measurements of an experiment."""
        return (record for record in self.measurements.values() if record["experiment"] == experiment)

    @property
    def failures(self) -> list[Record]:
        return [record for record in self.measurements.values() if "failure" in record]
