"""Paths of answers as pictures: every vertex, label and time is drawn, inside the picture, and boxes are apart."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from command import environment
from meander.drawing import draw_paths
from meander.drawing.paths import format_time
from picture_geometry import SVG, number, overlap, rectangle, text_rectangle

DAY = 86_400


def record(path: list[list[Any]], **fields: Any) -> dict[str, Any]:
    ends = {"src": path[0][0], "trg": path[-1][2]} if path else {"src": "u", "trg": "u"}
    return {**ends, "label": "Ring", "ts": 60, "exp": 120, "op": "+", "path": path, **fields}


def ring(length: int, *time: int) -> dict[str, Any]:
    names = [f"account {number}" for number in range(length)]
    return record([[name, "transfer", names[(at + 1) % length], *time] for at, name in enumerate(names)])


def chain(length: int) -> dict[str, Any]:
    return record([[f"v{at}", "t", f"v{at + 1}", 60 * at] for at in range(length)])


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize(
    "answer", [ring(2, 5), ring(3, 1_767_229_200), ring(3), ring(7, 60), chain(1), chain(40)]
)
def test_boxes_are_apart_and_everything_is_inside(answer: dict[str, Any]) -> None:
    svg = draw_paths([answer, answer], "Rings")
    root = ET.fromstring(svg)
    for group in [element for element in root.iter(f"{SVG}g") if element.get("class") == "path"]:
        boxes = [rectangle(rect) for rect in group.iter(f"{SVG}rect")]
        assert not any(overlap(one, other) for one, other in combinations(boxes, 2))
        for text in group.iter(f"{SVG}text"):
            left, top, right, bottom = text_rectangle(text)
            if text.get("text-anchor") == "end":
                left, right = 2 * left - right + (right - left) / 2, (left + right) / 2
            assert left >= 0
            assert top >= 0
            assert right <= number(root, "width")
            assert bottom <= number(root, "height")


def test_steps_have_label_and_time() -> None:
    shown = texts(draw_paths([ring(3, 1_767_229_200)]))
    assert shown.count("transfer") == 3
    assert shown.count("2026-01-01 01:00:00") == 3
    assert shown[0] == "account 0 Ring account 0  [1m, 2m)"


def test_a_ring_has_each_vertex_once_and_a_chain_its_ends() -> None:
    assert texts(draw_paths([ring(3)])).count("account 0") == 1
    assert [text for text in texts(draw_paths([chain(3)])) if text.startswith("v")] == [
        "v0 Ring v3  [1m, 2m)",
        "v0",
        "v1",
        "v2",
        "v3",
    ]


def test_an_edge_that_is_read_backwards_has_its_arrow_so() -> None:
    forwards = draw_paths([record([["u", "a", "v"], ["v", "b", "w"]])])
    backwards = draw_paths([record([["u", "a", "v"], ["w", "b", "v"]], trg="w")])
    assert [text for text in texts(backwards)[1:] if text in "uvw"] == ["u", "v", "w"]
    assert forwards.count("<polygon") == backwards.count("<polygon") == 2
    assert forwards != backwards


def test_values_and_open_ends_are_in_the_caption() -> None:
    (caption, *_) = texts(draw_paths([record([["u", "a", "v"]], exp=None, properties={"amount": 9.5})]))
    assert caption == "u Ring v  [1m, …)  amount: 9.5"


def test_answers_without_a_path_are_left_out() -> None:
    assert texts(draw_paths([record([]), {"src": "u", "trg": "v", "ts": 1, "exp": 2, "op": "-"}])) == [
        "no answer has a path"
    ]


def test_many_answers_are_truncated() -> None:
    shown = texts(draw_paths([chain(1)] * 31, "Chains"))
    assert shown[0] == "Chains (the first 30 of 31 answers)"


def test_times_since_1970_are_dates() -> None:
    assert format_time(90, "s") == "90s"
    assert format_time(20_000 * DAY, "s") == "2024-10-04 00:00:00"
    assert format_time(20_000 * DAY * 1000 + 5, "ms") == "2024-10-04 00:00:00.005000"
    assert format_time(2**60, "s") == str(2**60)


def run_draw(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "meander", "draw", *arguments],
        input=text,
        capture_output=True,
        encoding="utf-8",
        env=environment(),
    )


def test_the_command_draws_a_file_of_answers(tmp_path: Path) -> None:
    answers, picture = tmp_path / "answers.jsonl", tmp_path / "rings.svg"
    answers.write_text(json.dumps(ring(3)) + "\n\n")
    done = run_draw(str(answers), "--svg", str(picture), "--title", "Rings")
    assert done.returncode == 0, done.stderr
    assert texts(picture.read_text())[0] == "Rings"
    done = run_draw("-", "--svg", str(picture), text=json.dumps(ring(2)))
    assert done.returncode == 0, done.stderr


def test_the_command_refuses_what_is_no_answer(tmp_path: Path) -> None:
    done = run_draw("-", "--svg", str(tmp_path / "x.svg"), text='{"src": "u"}\n')
    assert done.returncode == 1
    assert "line 1 of standard input is not an answer" in done.stderr
    done = run_draw(str(tmp_path / "nothing.jsonl"), "--svg", str(tmp_path / "x.svg"))
    assert "nothing.jsonl cannot be read: No such file or directory" in done.stderr
