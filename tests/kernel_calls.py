"""Which kernels there are, and, as a plugin of pytest (`-p kernel_calls`), which of them a run has called.

Without compilation a kernel is a Python function; the plugin has each of them note that it was called, and writes
their names to the file that `MEANDER_KERNEL_CALLS` names.
"""

from __future__ import annotations

import ast
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import meander.kernels
from meander.kernels import jit

FOLDER = Path(*meander.kernels.__path__)
DECORATORS = ("kernel", "inner_kernel")

_called: set[str] = set()


def declared_kernels() -> dict[str, ast.FunctionDef]:
    """Every kernel as `module.function`, the module below `meander.kernels`."""
    kernels = {}
    for file in sorted(FOLDER.rglob("*.py")):
        module = ".".join(file.relative_to(FOLDER).with_suffix("").parts)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and any(
                isinstance(decorator, ast.Name) and decorator.id in DECORATORS
                for decorator in node.decorator_list
            ):
                kernels[f"{module}.{node.name}"] = node
    return kernels


def pytest_configure() -> None:
    """Before any kernel is imported."""
    for decorator in DECORATORS:
        setattr(jit, decorator, noting)


def noting(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """In place of the decorator of kernels: note each call."""
    name = f"{kernel.__module__.removeprefix('meander.kernels.')}.{kernel.__name__}"

    @functools.wraps(kernel)
    def call(*arguments: Any) -> Any:
        _called.add(name)
        return kernel(*arguments)

    return call


def pytest_unconfigure() -> None:
    Path(os.environ["MEANDER_KERNEL_CALLS"]).write_text("\n".join(sorted(_called)), encoding="utf-8")
