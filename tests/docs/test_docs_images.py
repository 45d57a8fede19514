"""The pictures in the documentation are those that the program draws today, and the laws those that it has.

`MEANDER_REGENERATE=1 pytest tests/docs` draws them again.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from architecture_picture import draw_architecture

import meander
from meander.algebra.nodes import Plan
from meander.algebra.printing import notation
from meander.cli.demo import EDGES, HOUR, QUERY, _timeline
from meander.drawing import draw_paths, draw_plan, draw_proof
from meander.explain.stages import Explanation
from meander.rewrite import LAWS
from picture_geometry import check_picture

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "img"

Q4 = {
    "q4-sga": ("𝒫_{D+}(⋈(𝒲(S_a), 𝒲(S_b), 𝒲(S_c)))", "the canonical plan"),
    "q4-p1": ("𝒫_{(a/b/c)+}(𝒲(S_a), 𝒲(S_b), 𝒲(S_c))", "one automaton"),
    "q4-p2": ("𝒫_{(a/(b/c))+}(𝒲(S_a), ⋈(𝒲(S_b), 𝒲(S_c)))", "b⋈c as one step"),
    "q4-p3": ("𝒫_{((a/b)/c)+}(⋈(𝒲(S_a), 𝒲(S_b)), 𝒲(S_c))", "a⋈b as one step"),
}


def explanation(name: str) -> Explanation:
    return Explanation((ROOT / "examples" / name).read_text(encoding="utf-8"))


def shape(plan: Plan) -> str:
    """The notation without windows, join conditions and labels."""
    text = re.sub(r"\^\{[^{}]*\}", "", notation(plan))
    text = re.sub(r"⋈_\{[^{}]*\}", "⋈", text)
    return re.sub(r"𝒲_(\{[^{}]*\}|\d+)", "𝒲", text)


def q4_plan(name: str) -> str:
    wanted, words = Q4[name]
    plans = explanation("q4.dl").query.plans["Answer"]
    [number] = [number for number, plan in enumerate(plans) if shape(plan) == wanted]
    return draw_plan({"Answer": plans[number]}, f"Q4, plan {number}: {words}")


def demo_answers() -> str:
    edges = [(src, label, trg, hour * HOUR) for hour, src, label, trg in EDGES]
    return _timeline(meander.run(QUERY, edges))


def fraud_rings() -> str:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, str(ROOT / "examples" / "fraud" / "generate.py"), folder],
            check=True,
            capture_output=True,
        )
        answers = list(
            meander.run(
                (ROOT / "examples" / "fraud" / "loops.dl").read_text(encoding="utf-8"),
                Path(folder, "transfers.csv"),
                columns={"bank": {"src": "from_account", "trg": "to_account", "ts": "booked_at"}},
                labels={"bank": "transfer"},
                paths=True,
            )
        )
    return draw_paths(answers, "Rings of three transfers within an hour")


def proof_of_notify() -> str:
    examples = ROOT / "examples"
    text = (examples / "notify.dl").read_text(encoding="utf-8")
    answers = meander.run(text, examples / "social.tsv", proofs=True)
    (proof,) = [each["proof"] for each in answers if (each["src"], each["trg"]) == ("ann", "m2")]
    return draw_proof(proof, "why ann,m2 at 7h")


DRAWN = {
    "why": proof_of_notify,
    "fraud-rings": fraud_rings,
    "architecture": draw_architecture,
    "demo-answers": demo_answers,
    "notify-canonical": lambda: explanation("notify.dl").draw("logical", "notify.dl"),
    "notify-physical": lambda: explanation("notify.dl").draw("physical", "notify.dl"),
    **{name: (lambda name=name: q4_plan(name)) for name in Q4},
}


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_a_picture_in_the_documentation_is_current(name: str) -> None:
    path = IMAGES / f"{name}.svg"
    drawn = DRAWN[name]()
    if os.environ.get("MEANDER_REGENERATE"):
        path.write_text(drawn, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == drawn


def test_the_architecture_is_drawn_without_overlaps() -> None:
    check_picture(draw_architecture())


def test_every_picture_is_shown_somewhere() -> None:
    pages = "".join(
        page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    )
    assert [image.name for image in sorted(IMAGES.iterdir()) if f"img/{image.name}" not in pages] == []


@pytest.mark.parametrize("law", [law.__name__ for law in LAWS])
def test_every_law_is_named_in_the_documentation(law: str) -> None:
    assert f"`{law}`" in (ROOT / "docs" / "algebra.md").read_text(encoding="utf-8")
