"""A disk of a few megabytes that a test can fill: a tmpfs, which root may mount."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


class SmallDisk:
    """A folder with a disk of its own."""

    def __init__(self, folder: Path, size: str) -> None:
        self.folder = folder
        folder.mkdir()
        done = self._mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs")
        if done.returncode != 0:
            pytest.skip(f"a small disk is a tmpfs, which only root may mount: {done.stderr.strip()}")

    def grow(self, size: str) -> None:
        done = self._mount("-o", f"remount,size={size}")
        assert done.returncode == 0, done.stderr

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)

    def _mount(self, *options: str) -> subprocess.CompletedProcess[str]:
        if shutil.which("mount") is None:
            pytest.skip("a small disk is a tmpfs, and there is no mount")
        return subprocess.run(
            ["mount", *options, str(self.folder)], capture_output=True, text=True, check=False
        )
