"""What the tests of recovery share: streams, runs, processes to kill, and the answers of a run without incident."""

from __future__ import annotations

import json
import os
import random
import signal
from collections import defaultdict
from pathlib import Path
from typing import Any

import meander
from judge import instants
from meander.spark.session import Session

CLOSURE = "STREAM s WINDOW 40 SLIDE 4\nAnswer(x, y) <- (a/b*)(x, y) as P."
TRIANGLE = "STREAM s WINDOW 30\nAnswer(x, z) <- a(x, y), b(y, z), a(x, z)."


def generate(seed, rows, *, labels="ab", deletions=False) -> list[tuple[Any, ...]]:
    """Edges among ten vertices, four at an instant."""
    draw = random.Random(seed)
    out = []
    for at in range(rows):
        edge = (f"v{draw.randint(0, 9)}", draw.choice(labels), f"v{draw.randint(0, 9)}", at // 4)
        out.append((*edge, "-") if deletions and draw.random() < 0.1 else edge)
    return out


def write_tsv(path, rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))


def read_records(path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def canonical(records) -> dict[tuple[Any, Any], Any]:
    """For each answer the maximal intervals in which it holds, by all of its records in their order."""
    by_answer = defaultdict(list)
    for record in records:
        by_answer[record["src"], record["trg"]].append(record)
    return {answer: held for answer, ones in by_answer.items() if (held := instants(ones))}


def held_with_values(records) -> dict[tuple[Any, ...], Any]:
    """As `canonical`, of answers of any arity and with properties."""
    by_answer = defaultdict(list)
    for record in records:
        ends = record["answer"] if "answer" in record else (record["src"], record["trg"])
        values = (record.get("properties") or {}).items()
        by_answer[(record.get("label", ""), *ends, *values)].append(record)
    return {answer: held for answer, ones in by_answer.items() if (held := instants(ones))}


def replaced_rows(times, keys=8) -> list[dict[str, Any]]:
    """Rows of a table with few keys that are replaced many times, and now and then deleted."""
    draw = random.Random(times)
    rows = []
    for at in range(times * keys):
        src, trg = (at // 3) % 3, at % keys % 4
        row = {"src": f"v{src}", "label": "a", "trg": f"v{trg}", "ts": at // 5, "w": draw.randint(0, 9)}
        rows.append(row | ({"op": "-", "w": None} if draw.random() < 0.1 else {}))
    return rows


def instants_held(records) -> dict[tuple[Any, Any], set[int]]:
    """For each answer the instants at which it holds."""
    held = {}
    for record in records:
        key = (record["src"], record["trg"])
        if record["op"] == "+":
            held.setdefault(key, set()).update(range(record["ts"], record["exp"]))
        else:
            held[key] = {time for time in held.get(key, ()) if time < record["ts"]}
    return {key: times for key, times in held.items() if times}


def assert_undisturbed(records, text, edges, **options) -> None:
    """The records say what those of a run without incident say, and none is there twice."""
    expected = canonical(meander.run(text, edges, **options))
    assert expected
    assert canonical(records) == expected
    assert not given_twice(records)


def given_twice(records) -> list[dict[str, Any]]:
    """The records that say again what their answer's records have said since its last `-`."""
    messages = defaultdict(set)
    twice = []
    for record in records:
        of_answer = messages[record["src"], record["trg"]]
        text = json.dumps(record)
        if text in of_answer:
            twice.append(record)
        if record["op"] == "-":
            of_answer.clear()
        else:
            of_answer.add(text)
    return twice


def open_session(spark, streams, queries) -> Session:
    session = Session(spark)
    for name, location in streams.items():
        session.stream(name, location if not isinstance(location, Path) else str(location))
    for name, (text, plan) in queries.items():
        session.query(text, name, plan=plan)
    return session


def processes() -> list[tuple[int, int, str, str]]:
    """All processes: number, parent, command, environment at their start."""
    processes = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                environment = (entry / "environ").read_bytes().decode(errors="replace")
            except OSError:
                continue
            processes.append((int(entry.name), parent, command, environment))
    return processes


def descendants(root) -> list[tuple[int, int, str, str]]:
    """The processes that `root` has started, and those that they have."""
    everyone = processes()
    family = {root}
    size = 0
    while size < len(family):
        size = len(family)
        family |= {number for number, parent, _, _ in everyone if parent in family}
    return [process for process in everyone if process[0] in family and process[0] != root]


def kill_workers(run_id, *, daemon) -> int:
    """Kill the Python workers that hold the cells of a run, or the process that they are forked from; how many."""
    mine = [process for process in descendants(os.getpid()) if f"MEANDER_POOL={run_id}" in process[3]]
    numbers = {process[0] for process in mine}
    chosen = [number for number, parent, _, _ in mine if (parent not in numbers) == daemon]
    for number in chosen:
        os.kill(number, signal.SIGKILL)
    return len(chosen)
