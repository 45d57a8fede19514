"""Proofs as pictures: every tuple is drawn, texts are inside their boxes, and boxes are apart."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from meander.drawing import draw_proof
from meander.drawing.proofs import MOST_TUPLES, proof_text
from picture_geometry import SVG, boxes_of, number, overlap, rectangle, text_rectangle

Node = dict[str, Any]


def edge(src: str, label: str, trg: str, **fields: Any) -> Node:
    return {"edge": [src, label, trg], "ts": 60, "exp": 3600, **fields}


def path(length: int) -> Node:
    steps = [edge(f"v{at}", "a", f"v{at + 1}") for at in range(length)]
    return edge("v0", "P", f"v{length}", because=steps)


def deep(depth: int) -> Node:
    node = edge("u", "a", "v")
    for level in range(depth):
        node = edge("u", f"D{level}", "v", because=[node, edge("v", "b" * level, "w")])
    return node


PROOFS = {
    "an edge": edge("u", "Answer", "v", because=[edge("u", "a", "v")]),
    "a path": edge("v0", "Answer", "v9", because=[path(9), edge("u", "c", "v")]),
    "a deep tree": deep(8),
    "long names": edge("u" * 200, "Answer", "v" * 90, because=[edge("u" * 200, "a", "v" * 90)]),
    "values": edge("u", "Answer", "v", exp=None, properties={"amount": 9.5}, because=[]),
}


@pytest.mark.parametrize("proof", PROOFS.values(), ids=PROOFS)
def test_boxes_are_apart_and_everything_is_inside(proof: Node) -> None:
    svg = draw_proof(proof, "why u,v at 7h")
    root = ET.fromstring(svg)
    boxes = [(rectangle(rect), group) for group, rect in boxes_of(svg)]
    for place, (box, group) in enumerate(boxes):
        assert not any(overlap(box, other) for other, _ in boxes[place + 1 :])
        assert box[0] >= 0
        assert box[1] >= 0
        assert box[2] <= number(root, "width")
        assert box[3] <= number(root, "height")
        for text in group.iter(f"{SVG}text"):
            left, top, right, bottom = text_rectangle(text)
            assert left >= box[0]
            assert right <= box[2]
            assert top >= box[1]
            assert bottom <= box[3]


def test_every_tuple_is_drawn_with_a_line_from_what_it_proves() -> None:
    root = ET.fromstring(draw_proof(PROOFS["a path"], "why"))
    texts = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert texts[:2] == ["why", "v0 -Answer→ v9"]
    assert [text for text in texts if text.startswith("v0 -a")] == ["v0 -a→ v1"]
    assert texts.count("[1m, 1h)") == 11  # the answer, and ten edges of the input
    assert len(list(root.iter(f"{SVG}path"))) == 11


def test_a_large_proof_is_cut_level_by_level() -> None:
    steps = [edge("u", "D", "v", because=[edge("u", "a", "v")] * 3) for _ in range(MOST_TUPLES // 3)]
    svg = draw_proof(edge("u", "P", "v", because=steps))
    assert svg.count("<rect") == 2 + len(steps)
    assert svg.count("u -D→ v  …") == len(steps)


def test_every_kind_of_tuple_has_its_text() -> None:
    assert proof_text({"vertex": ["u", "account"]}) == "account(u)"
    assert proof_text({"answer": ["u", 1, "v"], "label": "Answer"}) == "Answer(u, 1, v)"
    assert proof_text(PROOFS["values"]) == "u -Answer→ v  amount: 9.5  (the empty path)"
