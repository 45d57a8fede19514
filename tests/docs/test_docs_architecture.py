"""The page on architecture names files and calls that exist, and its recipes work in a copy of the source."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from command import EXAMPLES, ROOT, environment

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "src" / "meander"
WALK_ROW = re.compile(r"^\| \w* ?\| `(?P<file>[\w/]+\.py)` \| (?P<calls>.+) \|$", re.MULTILINE)
COUNT = re.compile(r"^(\d+) files, (\d+) calls", re.MULTILINE)


def walks() -> list[list[re.Match[str]]]:
    """The rows of the two tables that follow an edge: in one process, and on Spark."""
    local, spark = PAGE.split("\nOn Spark, with one cell", maxsplit=1)
    return [list(WALK_ROW.finditer(half)) for half in (local, spark)]


def defined_names(file: Path) -> set[str]:
    """The functions of a module, and the methods of its classes as `Class.method`."""
    names: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return names


def calls(row: re.Match[str]) -> list[str]:
    return re.findall(r"`([\w.]+)`", row["calls"])


def test_every_call_on_the_way_of_an_edge_exists() -> None:
    for rows in walks():
        assert len(rows) > 10
        for row in rows:
            assert set(calls(row)) <= defined_names(PACKAGE / row["file"]), row["file"]


def test_files_and_calls_on_the_way_of_an_edge_are_counted() -> None:
    counts = [(len({row["file"] for row in rows}), sum(map(len, map(calls, rows)))) for rows in walks()]
    assert [(int(files), int(number)) for files, number in COUNT.findall(PAGE)] == counts


def test_every_file_and_folder_that_the_page_names_exists() -> None:
    paths = re.findall(r"`((?:\w+/)*\w+\.py|[a-z]+(?:/[a-z]+)+)`", PAGE)
    assert len(paths) > 60
    roots = (PACKAGE, ROOT)
    missing = {path for path in paths if not any((root / path).exists() for root in roots)}
    assert missing == {
        "src/meander/dataflow/operators/path_naive.py",
        "src/meander/dataflow/sinks/upper.py",
    }


def test_every_folder_is_in_the_table_and_in_the_order_of_the_layers() -> None:
    config = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    [layers] = re.findall(r'containers = \["meander"\]\nlayers = \[\n(.*?)\]', config, re.DOTALL)
    table = PAGE.split("| folder |")[1].split("\n\n")[0]
    named = [
        name.removesuffix(".py")
        for row in table.splitlines()[2:]
        for name in re.findall(r"`([\w.]+)`", row.split("|")[1])
    ]
    assert sorted(named) == sorted(re.findall(r'"(\w+)"', layers))
    below = [name for name in re.findall(r'"(\w+)"', layers) if name not in ("cli", "bench", "api")]
    assert [name for name in named if name in below] == below


def code(after: str) -> str:
    """The first block of Python after a phrase of the page."""
    [text] = re.findall(r"```python\n(.*?)^ *```", PAGE.split(after)[1].split("\n## ")[0], re.S | re.M)[:1]
    return textwrap.dedent("   " + text.removeprefix("   "))


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source with the page's path operator and sink: a file and a line for each."""
    source = tmp_path_factory.mktemp("extended") / "src"
    shutil.copytree(PACKAGE, source / "meander", ignore=shutil.ignore_patterns("__pycache__"))
    dataflow = source / "meander" / "dataflow"
    shutil.copy(EXAMPLES / "extending" / "path_naive.py", dataflow / "operators")
    add_line(
        source / "meander" / "physical" / "path_operators.py", "PATH_OPERATORS = {", code("## Adding a path")
    )
    (dataflow / "sinks" / "upper.py").write_text(code("## Adding a sink"), encoding="utf-8")
    add_line(dataflow / "sinks" / "registry.py", "SINKS = {", code("by the ending of a file or the scheme"))
    return source


def add_line(file: Path, after: str, line: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(f"\n{after}\n") == 1
    file.write_text(text.replace(f"\n{after}\n", f"\n{after}\n    {line}"), encoding="utf-8")


def run_extended(source: Path, query: str, *options: str) -> str:
    finished = subprocess.run(
        [
            *(sys.executable, "-m", "meander", "run", str(EXAMPLES / query)),
            *("--stream", str(EXAMPLES / "social.tsv"), "--runner", "local", *options),
        ],
        env=environment() | {"PYTHONPATH": str(source), "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


@pytest.mark.parametrize("query", ["notify.dl", "notify.gcore"])
def test_the_path_operator_of_the_page_has_the_answers_of_s_path(extended: Path, query: str) -> None:
    naive, trees = (
        run_extended(extended, query, "--out", "-", "--batch-rows", "3", "--path-operator", operator)
        for operator in ("naive", "s-path")
    )
    assert sorted(naive.splitlines()) == sorted(trees.splitlines()) != []


def test_the_sink_of_the_page_writes_what_it_says(extended: Path, tmp_path: Path) -> None:
    target = tmp_path / "answers.upper"
    target.write_text("of an earlier run")
    run_extended(extended, "notify.dl", "--out", str(target))
    lines = run_extended(extended, "notify.dl", "--out", "-").upper()
    assert target.read_text(encoding="utf-8") == lines != ""
