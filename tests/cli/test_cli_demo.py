"""The demonstration: what it prints, what it leaves, and that what it suggests works as printed."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import meander as library
from command import environment, meander
from meander.cli.demo import EDGES, HOUR, QUERY, _proof

FOLDER = "a demo"  # with a space, which a shell would split


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder in which the demonstration ran, and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    done = meander("demo", "--runner", "local", "--folder", str(folder / FOLDER))
    assert done.returncode == 0, done.stderr
    return folder / FOLDER, done.stdout


def section(printed: str, title: str) -> list[str]:
    """The lines of a section, as they are printed."""
    _, _, rest = printed.partition(title)
    return [line.strip() for line in rest.split("\n\n")[0].splitlines()[1:]]


def test_the_demonstration_leaves_what_it_made(demo: tuple[Path, str]) -> None:
    folder, printed = demo
    assert "ann Because cem  by ann RL bob, bob RL cem" in printed
    names = {path.name for path in folder.iterdir()}
    assert names == {"notify.dl", "social.tsv", "answers.jsonl", "plan.svg", "answers.svg"}


def test_the_picture_of_the_answers_has_a_row_for_each_of_them(demo: tuple[Path, str]) -> None:
    folder, _ = demo
    answers = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    picture = ET.parse(folder / "answers.svg")
    bold = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text") if text.get("font-weight")]
    rows = bold[1:]  # after the title
    assert rows == list(
        dict.fromkeys(f"{answer['src']} {answer['label']} {answer['trg']}" for answer in answers)
    )


def test_the_edges_shown_below_an_answer_prove_it() -> None:
    """The answer holds throughout its interval on these edges alone."""
    edges = [(src, label, trg, hour * HOUR) for hour, src, label, trg in EDGES]
    for answer in library.run(QUERY, edges):
        proof = _proof((answer["src"], answer["label"], answer["trg"]), answer["ts"], answer["exp"])
        alone = [(src, label, trg, hour * HOUR) for hour, src, label, trg in proof]
        assert answer in list(library.run(QUERY, alone))


def test_what_to_try_next_can_be_pasted_as_it_is_printed(demo: tuple[Path, str]) -> None:
    folder, printed = demo
    explain, add, run = section(printed, "To try next")
    pasted = {
        line: subprocess.run(["bash", "-euc", line], capture_output=True, text=True, env=environment())
        for line in (explain, add, run)
    }
    assert [done.returncode for done in pasted.values()] == [0, 0, 0]
    assert pasted[explain].stdout.startswith("Query\n")
    records = [json.loads(line) for line in pasted[run].stdout.splitlines()]
    assert {(record["src"], record["trg"]) for record in records} >= {
        ("dan", "salad"),
        ("dan", "cem"),
        ("ann", "soup"),
    }
    assert (folder / "social.tsv").read_text().endswith("dan\tlikes\tsalad\t100800\n")
