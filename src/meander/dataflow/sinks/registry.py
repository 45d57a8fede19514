"""The registry of sinks: which class writes to which target.

A target is `-`, a path, a URL such as `kafka://host:port/topic`, or, in Python, a dict or a function. To add a sink,
write a subclass of `Sink` in a file of its own and give it a line in `SINKS`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, NamedTuple

from meander.dataflow.files import local_path
from meander.errors import ArgumentError

if TYPE_CHECKING:
    from meander.dataflow.sinks.sink import Sink, SinkContext


class Entry(NamedTuple):
    """A class as "module:name", which is imported when it is first used.

    `spark_only` is what needs Spark, for the message to a user of the local runner; "" if nothing does.
    """

    implementation: str
    spark_only: str = ""

    def load(self) -> Any:
        module, _, name = self.implementation.partition(":")
        return getattr(importlib.import_module(module), name)


FOLDER, PIPE, FUNCTION = "folder", "pipe", "function"

SINKS = {
    "-": Entry("meander.dataflow.sinks.standard_output:StandardOutput"),
    ".jsonl": Entry("meander.dataflow.sinks.lines:LineFile"),
    ".jsonl.gz": Entry("meander.dataflow.sinks.lines:LineFile"),
    ".parquet": Entry("meander.dataflow.sinks.parquet:ParquetFile"),
    FOLDER: Entry("meander.dataflow.sinks.parquet:ParquetFolder"),
    PIPE: Entry("meander.dataflow.sinks.lines:LinePipe"),
    "kafka:": Entry("meander.spark.output.kafka:KafkaSink", spark_only="Kafka"),
    "format:": Entry("meander.spark.output.dataframes:FormatSink", spark_only="a format of Spark"),
    FUNCTION: Entry("meander.spark.output.dataframes:FunctionSink", spark_only="a function of DataFrames"),
}
"""By `-`, the ending of a file, the scheme of a URL with its colon, or the kind of a target that has neither."""

_ENDINGS = [key for key in SINKS if key.startswith(".")]
SINKS_HINT = (
    f"answers go to a {', '.join(_ENDINGS[:-1])} or {_ENDINGS[-1]} file, a folder, or - for standard output; "
    "with --runner spark also to kafka://host:port/topic or format:NAME?OPTION=VALUE"
)
REJECT_ENDINGS = (".jsonl", ".jsonl.gz")

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:")


def sink_key(target: Any) -> str:
    """The key of `SINKS` under which the class for a target is found."""
    if callable(target):
        return FUNCTION
    if isinstance(target, Mapping) and "format" in target:
        return "format:"
    if not isinstance(target, str | PathLike):
        raise ArgumentError(
            f"not a sink: {target!r}",
            hint='a path, a function of (DataFrame, batch number), or {"format": …, …} with Spark\'s options',
        )
    text = fspath(target)
    if text == "-":
        return text
    scheme = SCHEME.match(text)
    if scheme is not None and scheme.group().lower() in SINKS:
        return scheme.group().lower()
    path = local_path(text, "answers")
    if path.is_dir() or (path.suffix == "" and not path.exists()):
        return FOLDER
    if path.exists() and not path.is_file():
        return PIPE
    ending = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    if ending in SINKS:
        return ending
    raise ArgumentError(f"unknown file extension: {text}", hint=SINKS_HINT)


def sink_class(target: Any) -> type[Sink[Any]]:
    """The class that writes to a target."""
    implementation: type[Sink[Any]] = SINKS[sink_key(target)].load()
    return implementation


def open_sink(target: Any, context: SinkContext) -> Sink[Any]:
    """The sink for a target, opened and checked; nothing of its output has changed yet."""
    return sink_class(target).open(fspath(target) if isinstance(target, PathLike) else target, context)


def check_local_sink(target: str) -> None:
    """Refuse a target to which the local runner cannot write."""
    spark_only = SINKS[sink_key(target)].spark_only
    if spark_only:
        raise ArgumentError(
            f"{target} cannot be written by the local runner", hint=f"{spark_only} needs --runner spark"
        )


def check_rejects(target: str) -> None:
    """Refuse a target that cannot hold rejects."""
    path = local_path(target, "rejects")
    if target != "-" and (not path.name.endswith(REJECT_ENDINGS) or path.is_dir()):
        raise ArgumentError(
            f"rejects cannot go to {target}", hint="they go to a .jsonl or .jsonl.gz file, or to -"
        )
