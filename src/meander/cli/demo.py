"""A small query over a small stream, shown from its text to its answers; all is left in a folder to go on with.

The stream is in the manner of the paper's running example: people follow each other, post, and like what is posted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from meander.cli.arguments import read_query
from meander.cli.running import Request, run_in_process, run_on_spark, streams_read
from meander.drawing import GraphEdge, draw_graph
from meander.errors import ArgumentError
from meander.explain.stages import Explanation
from meander.syntax import parse
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


def run_demo(folder: Path, runner: str) -> None:
    """Write the query and the stream to `folder`, run it, and tell what happens."""
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
    _tell("The query", QUERY)
    _tell("The stream", "".join(f"{hour:>4}h  {src} {label} {trg}\n" for hour, src, label, trg in EDGES))
    explanation = Explanation(QUERY)
    _tell("The operators that answer it", "\n".join(s.text for s in explanation.stage("physical")[:1]))
    files["plan.svg"].write_text(explanation.draw("plans", "notify.dl"), encoding="utf-8")
    _run(files, runner)
    answers = [json.loads(line) for line in files["answers.jsonl"].read_text(encoding="utf-8").splitlines()]
    _tell("The answers, each with the time in which it holds", "\n".join(map(_answer_line, answers)))
    files["answers.svg"].write_text(_picture(answers), encoding="utf-8")
    _tell(
        "To try next",
        f"open {files['plan.svg']} and {files['answers.svg']} in a browser\n"
        f"meander explain {files['notify.dl']}\n"
        f"add edges to {files['social.tsv']}, or change the window in {files['notify.dl']}, and then:\n"
        f"meander run {files['notify.dl']} --stream {files['social.tsv']} --out - --runner {runner} --paths",
    )


def _run(files: dict[str, Path], runner: str) -> None:
    text, _ = read_query(str(files["notify.dl"]))
    query = parse(text)
    files["answers.jsonl"].unlink(missing_ok=True)
    request = Request(
        text=text,
        query=query,
        streams={name: str(files["social.tsv"]) for name in streams_read(query)},
        out=str(files["answers.jsonl"]),
        rejects=None,
        paths=True,
        mode="intervals",
        lateness=0,
        time_unit="s",
        plan=None,
        path_operator="auto",
        batch_rows=None,
        idle=60.0,
        memory=None,
        overwrite=True,
    )
    if runner == "local":
        run_in_process(request)
    else:
        run_on_spark(request)


def _answer_line(answer: dict[str, Any]) -> str:
    begin, end = format_duration(answer["ts"]), format_duration(answer["exp"])
    line = f"{begin:>4} to {end:<4} {answer['src']} {answer['label']} {answer['trg']}"
    if answer.get("path"):
        line += "  by " + ", ".join(f"{src} {label} {trg}" for src, label, trg in answer["path"])
    return line


def _picture(answers: list[dict[str, Any]]) -> str:
    window = 24
    edges = [GraphEdge(src, label, trg, hour, hour + window) for hour, src, label, trg in EDGES]
    found = [
        GraphEdge(answer["src"], answer["label"], answer["trg"], answer["ts"] // HOUR, answer["exp"] // HOUR)
        for answer in answers
    ]
    return draw_graph(edges, found, "Edges, answers, and the hours in which they hold")


def _tell(title: str, text: str) -> None:
    print(title)
    for line in text.rstrip("\n").split("\n"):
        print(f"  {line}".rstrip())
    print(flush=True)
