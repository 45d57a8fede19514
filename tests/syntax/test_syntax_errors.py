"""Every wrong query has one message, kept beside it: `errors/NAME.dl` or `.gcore`, and `errors/NAME.txt`.

`MEANDER_REGENERATE=1 .venv/bin/python -m pytest tests/syntax/test_syntax_errors.py` writes the messages again; what
changed is then to be read before it is committed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from meander.errors import QueryError
from meander.syntax import parse

FOLDER = Path(__file__).parent / "errors"
CASES = sorted(path for path in FOLDER.iterdir() if path.suffix in (".dl", ".gcore"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_wrong_query_is_refused_with_its_message(path: Path) -> None:
    text = path.read_bytes().decode()
    with pytest.raises(QueryError) as caught:
        parse(text, language={".dl": "datalog", ".gcore": "gcore"}[path.suffix])
    message = f"{caught.value}\n"
    golden = path.with_suffix(".txt")
    if os.environ.get("MEANDER_REGENERATE"):
        golden.write_text(message)
    assert golden.exists(), f"no message yet for {path.name}; see this file's docstring"
    assert message == golden.read_text()


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_language_of_a_wrong_query_is_guessed_right(path: Path) -> None:
    """So the message without a named language is the same."""
    with pytest.raises(QueryError) as caught:
        parse(path.read_bytes().decode())
    assert f"{caught.value}\n" == path.with_suffix(".txt").read_text()


def test_every_message_has_its_query() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == {path.stem for path in CASES}


def test_every_message_says_what_to_do() -> None:
    for path in FOLDER.glob("*.txt"):
        assert path.read_text().splitlines()[-1].startswith("hint: "), path.name
