"""Texts of paths: what the kernel reads is what Python's JSON reads."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from law import drawn
from meander.dataflow.answers import path_lists
from meander.dataflow.edges import as_text
from meander.dataflow.path_texts import python_path, read_paths

vertices = (
    st.text(min_size=1, max_size=3)
    | st.integers(-(2**63), 2**63 - 1)
    | st.sampled_from(["a", "é", '"', "\\"])
)
steps = st.tuples(vertices, st.text("ab", min_size=1, max_size=2), vertices)
timed = st.tuples(vertices, st.just("a"), vertices, st.integers(0, 2**61 - 1) | st.none())
junk = st.recursive(st.none() | st.booleans() | vertices | st.floats(), st.lists, max_leaves=6)
values = st.lists(steps | timed, max_size=4) | junk | st.lists(steps.map(list) | junk, max_size=3)


def wanted(text: str) -> Any:
    try:
        path = python_path(json.loads(text))
    except ValueError:
        return None
    return None if path is None else [[*step[:3], *([step[3]] if step[3] >= 0 else [])] for step in path]


@given(st.lists(st.tuples(values, st.sampled_from([None, 0]), st.booleans(), st.integers(0, 40)), max_size=6))
@drawn
def test_a_text_is_read_as_by_a_json_parser(drawn_values: list[tuple[Any, int | None, bool, int]]) -> None:
    texts = []
    for value, indent, as_ascii, cut in drawn_values:
        text = json.dumps(value, indent=indent, ensure_ascii=as_ascii)
        texts.append(
            text.encode("utf-8", "replace").decode() if cut else text[:-1].encode("utf-8", "replace").decode()
        )
    assert list(path_lists(read_paths(as_text(texts)))) == [wanted(text) for text in texts]
