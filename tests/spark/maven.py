"""Jars for tests, which Maven brings once: those that a file of Maven names."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path


class NoJars(Exception):
    """Why there are no jars on this machine."""


def jars(pom: Path) -> Path:
    """The folder of the jars that a file of Maven names, fetched if they are not there yet."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    number = hashlib.sha256(pom.read_bytes()).hexdigest()[:12]
    folder = Path(home) / "meander" / pom.parent.name / f"{pom.stem}-{number}"
    if (folder / "complete").exists():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise NoJars("Maven is not installed")
    command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
    command += ["-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise NoJars("Maven cannot fetch the jars: " + (done.stdout.strip().splitlines() or ["?"])[0])
    (folder / "complete").touch()
    return folder
