"""A small query over a small stream, shown from its text to its answers; all files are kept in a folder.

The stream resembles the paper's running example: people follow each other, post, and like what is posted.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from meander.cli.running import QUERY_NAME, Request, run
from meander.drawing import Answer, Row, draw_timeline
from meander.engine import compile_query
from meander.errors import ArgumentError
from meander.explain.stages import Explanation
from meander.options import RunOptions
from meander.physical.printing import tree
from meander.syntax.durations import format_duration

QUERY = """\
# Notify people of posts by those whose posts they recently liked, directly or through others.
STREAM social WINDOW 24h SLIDE 1h
RL(u1, u2)    <- likes(u1, m), follows+(u1, u2) as FP, posts(u2, m).
Because(u, v) <- RL+(u, v) as RLP.
Notify(u, m)  <- Because(u, v), posts(v, m).
RESULT Notify, Because
"""

# Hours, in order.
EDGES = (
    (1, "ann", "follows", "bob"),
    (2, "bob", "follows", "cem"),
    (3, "cem", "posts", "soup"),
    (4, "bob", "likes", "soup"),
    (5, "bob", "posts", "bread"),
    (6, "ann", "likes", "bread"),
    (10, "cem", "posts", "salad"),
    (26, "ann", "follows", "cem"),
    (27, "ann", "likes", "salad"),
)
HOUR = 3600
WINDOW = 24

# Edges to add, to see what changes.
MORE = "dan\\tfollows\\tann\\t100800\\ndan\\tlikes\\tsalad\\t100800\\n"

Pair = tuple[str, str]


def run_demo(folder: Path, runner: str) -> None:
    """Write the query and the stream to `folder`, run it, and show what happens."""
    files = {
        name: folder / name
        for name in ("notify.dl", "social.tsv", "answers.jsonl", "plan.svg", "answers.svg")
    }
    lines = [f"{src}\t{label}\t{trg}\t{hour * HOUR}\n" for hour, src, label, trg in EDGES]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files["notify.dl"].write_text(QUERY, encoding="utf-8")
        files["social.tsv"].write_text("".join(lines), encoding="utf-8")
    except OSError as error:
        raise ArgumentError(
            f"{folder} cannot be written: {error.strerror}", hint="give another --folder"
        ) from None
    _show("The query", QUERY)
    _show("The stream", "".join(f"{hour:>4}h  {src} {label} {trg}\n" for hour, src, label, trg in EDGES))
    options = RunOptions(paths=True)
    query = compile_query(QUERY, options, name=QUERY_NAME)
    explanation = Explanation(query)
    _show("The operators that answer it", tree(explanation.physical))
    files["plan.svg"].write_text(explanation.draw(name="notify.dl"), encoding="utf-8")
    files["answers.jsonl"].unlink(missing_ok=True)
    streams = dict.fromkeys(query.streams_read, str(files["social.tsv"]))
    run(Request(query, options, streams, str(files["answers.jsonl"]), overwrite=True), runner)
    answers = [json.loads(line) for line in files["answers.jsonl"].read_text(encoding="utf-8").splitlines()]
    _show("The answers, each with the time in which it holds", "\n".join(map(_answer_line, answers)))
    files["answers.svg"].write_text(_timeline(answers), encoding="utf-8")
    _show(
        "Pictures, for a browser",
        f"{files['plan.svg']}: the operators\n{files['answers.svg']}: the answers over time, with their proofs",
    )
    query_file, stream_file = (shlex.quote(str(files[name])) for name in ("notify.dl", "social.tsv"))
    _show(
        "To try next: the plan and its state, two more edges, and their answers",
        f"{_program()} explain {query_file}\n"
        f"printf '{MORE}' >> {stream_file}\n"
        f"{_program()} run {query_file} --stream {stream_file} --out - --runner {runner} --paths",
    )


def _program() -> str:
    """The command that started this process, as it can be typed again."""
    started = sys.argv[0]
    if Path(started).stem == "__main__":
        return f"{shlex.quote(sys.executable)} -m meander"
    installed = shutil.which(Path(started).name)
    is_on_path = installed is not None and Path(installed).samefile(started)
    return shlex.quote(Path(started).name if is_on_path else started)


def _answer_line(answer: dict[str, Any]) -> str:
    begin, end = format_duration(answer["ts"]), format_duration(answer["exp"])
    line = f"{begin:>4} to {end:<4} {answer['src']} {answer['label']} {answer['trg']}"
    if answer.get("path"):
        line += "  by " + ", ".join(f"{src} {label} {trg}" for src, label, trg in answer["path"])
    return line


def _timeline(answers: Iterable[dict[str, Any]]) -> str:
    """A row for each answer, with a bar for each of its records and the edges that prove these."""
    intervals: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
    for answer in answers:
        name = answer["src"], answer["label"], answer["trg"]
        intervals.setdefault(name, []).append((answer["ts"], answer["exp"]))
    rows = []
    for name, times in intervals.items():
        proof = dict.fromkeys(edge for ts, exp in times for edge in _proof(name, ts, exp))
        edges = tuple(
            Row(f"{src} {label} {trg}", ((hour * HOUR, (hour + WINDOW) * HOUR),))
            for hour, src, label, trg in sorted(proof)
        )
        rows.append(Answer(" ".join(name), tuple(times), name[1], edges))
    return draw_timeline(rows, "The answers, and the edges that prove them")


def _proof(answer: tuple[str, str, str], ts: int, exp: int) -> list[tuple[int, str, str, str]]:
    """Edges that are valid throughout `[ts, exp)` and prove the answer, none of which can be left out."""
    proof = [edge for edge in EDGES if edge[0] * HOUR <= ts and exp <= (edge[0] + WINDOW) * HOUR]
    for edge in list(proof):
        rest = [other for other in proof if other != edge]
        if answer in _evaluate(rest):
            proof = rest
    return proof


def _evaluate(edges: Iterable[tuple[int, str, str, str]]) -> set[tuple[str, str, str]]:
    """The answers to the query on a set of edges, without time."""
    pairs: dict[str, set[Pair]] = {"follows": set(), "likes": set(), "posts": set()}
    for _, src, label, trg in edges:
        pairs[label].add((src, trg))
    follows = _closure(pairs["follows"])
    likers = {(u, v) for u, m in pairs["likes"] for v, n in pairs["posts"] if m == n and (u, v) in follows}
    because = _closure(likers)
    notify = {(u, m) for u, v in because for w, m in pairs["posts"] if v == w}
    return {(u, "Because", v) for u, v in because} | {(u, "Notify", m) for u, m in notify}


def _closure(pairs: set[Pair]) -> set[Pair]:
    while more := {(x, z) for x, y in pairs for w, z in pairs if y == w} - pairs:
        pairs = pairs | more
    return pairs


def _show(title: str, text: str) -> None:
    print(title)
    for line in text.rstrip("\n").split("\n"):
        print(f"  {line}".rstrip())
    print(flush=True)
