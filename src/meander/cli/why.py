"""`meander why`: the proof of one answer at one instant, out of what a run has written."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from meander.algebra.trees import tree_lines
from meander.cli.drawing import read_answers
from meander.cli.terminal import is_terminal
from meander.drawing.paths import format_time
from meander.drawing.proofs import interval_text, proof_text
from meander.errors import ArgumentError, InputError, MeanderError
from meander.syntax.durations import MICROSECONDS, parse_duration

Record = Mapping[str, Any]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

SHOWN = 3
"""So many answers, or intervals, a hint names."""


def find_proof(source: str, answer: str, at: str, label: str | None, unit: str) -> Record:
    """The record with the proof of an answer (its vertices, separated by commas) that holds at an instant."""
    time = read_time(at, unit)
    vertices = next(csv.reader([answer], skipinitialspace=True), [])
    chosen = [record for record in read_records(source, vertices) if names_of(record) == vertices]
    named = ", ".join(vertices)
    if not any("proof" in record for record in chosen or islice(read_records(source), 1)):
        raise ArgumentError(
            f"the answers in {source} have no proofs", hint="run the query again with --proofs"
        )
    if not chosen:
        others = dict.fromkeys(",".join(names_of(record)) for record in read_records(source))
        raise ArgumentError(
            f"{source} has no answer {named}",
            hint=f"it has {listed(others)}" if others else "it has no answers at all",
        )
    labels = list(dict.fromkeys(str(record.get("label")) for record in chosen))
    if label is not None:
        chosen = [record for record in chosen if record.get("label") == label]
        if not chosen:
            raise ArgumentError(f"{named} is no answer {label}", hint=f"its labels: {', '.join(labels)}")
    elif len(labels) > 1:
        raise ArgumentError(
            f"{named} is an answer of several labels", hint=f"give --label {' or '.join(labels)}"
        )
    held = holding(chosen)
    holds = [record for record, start, end in held if start <= time and (end is None or time < end)]
    if not holds:
        spans = [
            interval_text({"ts": start, "exp": end}, unit)
            for _, start, end in held
            if end is None or start < end
        ]
        raise ArgumentError(
            f"{named} does not hold at {format_time(time, unit)}",
            hint=f"it holds in {listed(dict.fromkeys(spans))}" if spans else "it never holds",
        )
    return holds[-1]


def read_time(text: str, unit: str) -> int:
    """An instant: a number in the stream's unit, a duration since its beginning, or a date in ISO 8601."""
    try:
        return parse_duration(text, unit)
    except MeanderError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentError(
            f"invalid time: {text}",
            hint="write a number in the stream's unit, or a date such as 2026-01-31T08:00",
        ) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // timedelta(microseconds=1) // MICROSECONDS[unit]


def read_records(source: str, vertices: Sequence[str] | None = None) -> Iterator[Record]:
    """The answers of a .jsonl or .parquet file, or of the files in a folder; with `vertices` at least those of them.

    A proof takes far longer to read than to skip, and answers may be many: those of other vertices are skipped as
    lines, and as rows of columns.
    """
    path = Path(source)
    if source != "-" and path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix == ".parquet")
        if not files:
            raise InputError(
                f"{source} has no .parquet files",
                hint="give a .jsonl or .parquet file of answers, or a folder of .parquet files",
            )
        for file in files:
            yield from read_table(file, vertices)
    elif path.suffix == ".parquet":
        yield from read_table(path, vertices)
    else:
        yield from read_answers(source, None if vertices is None else lambda line: names_all(line, vertices))


def names_all(line: str, vertices: Sequence[str]) -> bool:
    """Whether the text of a record has the names of all vertices, in either of the ways in which JSON writes them."""
    return all(
        name in line or json.dumps(name, ensure_ascii=False)[1:-1] in line or json.dumps(name)[1:-1] in line
        for name in vertices
    )


def read_table(path: Path, vertices: Sequence[str] | None) -> Iterator[Record]:
    """The answers of a .parquet file; if they are not chosen by vertices, without the trees of their proofs."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        names = file.schema_arrow.names
        if not {"ts", "exp", "op"} <= set(names):
            raise InputError(f"{path} has no answers", hint="give what `meander run --out` has written")
        for batch in file.iter_batches(4096, columns=names):
            if vertices is None:
                is_proved = "proof" in names
                rows = batch.select([name for name in names if name != "proof"]).to_pylist()
                yield from (row | {"proof": None} if is_proved else row for row in rows)
                continue
            if len(vertices) == 2 and "src" in names:
                ends = [
                    pc.equal(batch[name].cast(pa.string()), vertex)
                    for name, vertex in zip(("src", "trg"), vertices, strict=True)
                ]
                batch = batch.filter(pc.and_(*ends))
            for row in batch.to_pylist():
                if row.get("proof") is not None and names_of(row) == vertices:
                    row["proof"] = json.loads(row["proof"])
                yield row
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {error}", hint="give a .parquet file of answers") from None


def names_of(record: Record) -> list[str]:
    """The vertices of an answer, as a command names them."""
    return list(
        map(str, record["answer"] if "answer" in record else (record.get("src", ""), record.get("trg", "")))
    )


def holding(records: Sequence[Record]) -> list[tuple[Record, int, int | None]]:
    """The `+` records of an answer, and when each holds: a later `-` of the same values cuts those before it. It has
    no paths, whatever those of the record that it ends."""
    found: list[tuple[Record, int, int | None]] = []
    for record in records:
        if record["op"] == "+":
            found.append((record, record["ts"], record["exp"]))
            continue
        for number, (earlier, start, end) in enumerate(found):
            if values_of(earlier) == values_of(record) and (end is None or end > record["ts"]):
                found[number] = (earlier, start, record["ts"])
    return found


def values_of(record: Record) -> dict[str, Any]:
    """The values of an answer that are no paths."""
    given = (record.get("properties") or {}).items()
    return {name: value for name, value in given if value is not None and not isinstance(value, list)}


def is_of_its_start(record: Record) -> bool:
    """Whether the proof is one of the instant at which the answer starts, as in mode `changes`: the record has no
    end, but what it rests on has."""
    return record["exp"] is None and any(leaf["exp"] is not None for leaf in leaves(record["proof"]))


def leaves(node: Record) -> Iterator[Record]:
    """The edges of the input that a proof rests on."""
    if "because" not in node:
        yield node
    for child in node.get("because", ()):
        yield from leaves(child)


def listed(texts: Mapping[str, Any]) -> str:
    """The first of some texts, and how many others there are."""
    first = list(texts)[:SHOWN]
    more = len(texts) - len(first)
    return "; ".join(first) + (f" and {more} more" if more else "")


def proof_lines(proof: Record, unit: str) -> Iterator[str]:
    """A proof as an indented tree; the answer and the edges of the input have their intervals."""

    def line(node: Record) -> tuple[str, Sequence[Record]]:
        with_time = node is proof or "because" not in node
        interval = f"  {interval_text(node, unit)}" if with_time else ""
        return proof_text(node) + interval, node.get("because", ())

    return tree_lines(proof, line)


def print_proof(proof: Record, unit: str) -> None:
    """A proof on standard output, in color on a terminal."""
    text = "\n".join(proof_lines(proof, unit)) + "\n"
    if not is_terminal(sys.stdout):
        sys.stdout.write(text)
        return
    from rich.console import Console
    from rich.text import Text

    shown = Text(text)
    shown.highlight_regex(r"(?m)^[│├└─ ]+", "dim")
    shown.highlight_regex(r"-[^\n→]+→", "cyan")
    shown.highlight_regex(r"\[[^\n\[]*\)$", "green")
    Console(highlight=False, soft_wrap=True).print(shown, end="")
