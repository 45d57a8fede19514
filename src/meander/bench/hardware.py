"""A description of the machine."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path


def describe() -> dict[str, str | int]:
    """Cores, memory, processor, system and Python."""
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "memory_gib": _memory(),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def machine_in_words(machine: Mapping[str, str | int]) -> str:
    """The machine in plain words."""
    memory = f" and {machine['memory_gib']} GiB of memory" if machine["memory_gib"] else ""
    return (
        f"a machine with {machine['cores']} cores{memory} ({machine['processor']}, {machine['system']}), "
        f"Python {machine['python']}"
    )


def _memory() -> int:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (ValueError, OSError):
        return 0


def _processor() -> str:
    try:
        match = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        match = None
    return match[1].strip() if match else platform.processor() or "unknown processor"
