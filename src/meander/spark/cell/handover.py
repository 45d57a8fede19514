"""Operator state on its way from one Python worker to the next, on one machine.

Spark gives a cell to whichever worker is free. With several cells, their operators' arrays are therefore views of
files in the executor's own folder, and a manifest beside them says under which token they stand. It is taken
away while a batch changes the arrays. A worker that gets the cell next, and finds the manifest with the token that
the state store names, copies the arrays and goes on; without one it makes the state again.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pyspark import SparkFiles

from meander.dataflow.dataflow import Dataflow
from meander.dataflow.state import Array
from meander.errors import StateError
from meander.spark.checkpoint.notes import read_note, write_note

MANIFEST = "manifest.json"


def cell_folder(run: str, number: int) -> Path:
    """Where this executor keeps the arrays of a cell; Spark removes it at its end."""
    return Path(SparkFiles.getRootDirectory()) / f"meander-{run[:16]}" / f"cell-{number}"


def withdraw(folder: Path) -> None:
    """The arrays are about to change."""
    (folder / MANIFEST).unlink(missing_ok=True)


def hand_over(folder: Path, token: int, stamp: str, dataflow: Dataflow) -> None:
    """Say that the arrays in the folder are those of the token, under the plan of the stamp."""
    arrays = [
        [owner, name, str(store.folder), array.dtype.str, list(array.shape)]
        for owner, store in dataflow.stores.items()
        for name, array in store.arrays.items()
        if name not in store.scratch
    ]
    write_note(folder / MANIFEST, {"token": token, "stamp": stamp, "arrays": arrays})


def take_over(folder: Path, token: int, stamp: str) -> dict[str, Array] | None:
    """The arrays of the token under this plan, as they stand in the folder, or None where there are none."""
    try:
        manifest = read_note(folder / MANIFEST)
        if (manifest["token"], manifest["stamp"]) != (token, stamp):
            return None
        arrays: dict[str, Array] = {}
        for owner, name, place, dtype, shape in manifest["arrays"]:
            size = int(np.prod(shape, dtype=np.int64))
            arrays[f"{owner}/{name}"] = (
                np.asarray(np.memmap(Path(place) / f"{name}.bin", dtype, "r", shape=tuple(shape)))
                if size
                else np.empty(shape, dtype)
            )
    except (OSError, ValueError, KeyError, StateError):
        return None
    return arrays
