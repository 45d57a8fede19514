"""The registries of sources: which class reads which URL, and which file format has which ending.

To add a source, write a subclass of `Source` in a file of its own and give it a line in `SOURCES`; to add a file
format, write a subclass of `FileFormat` and give it a line in `FORMATS`.
"""

from __future__ import annotations

import re
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from meander.dataflow.sinks.registry import Entry
from meander.errors import ArgumentError

if TYPE_CHECKING:
    from meander.dataflow.sources.source import FileFormat, Source


class FormatEntry(NamedTuple):
    """A file format; a format of text can be compressed as a whole (`.gz`)."""

    entry: Entry
    is_text: bool = True


PATH = "path"

SOURCES = {
    PATH: Entry("meander.dataflow.sources.files:FileSource"),
    "kafka:": Entry("meander.spark.input.kafka:KafkaSource", spark_only="Kafka"),
}
"""By the scheme of a URL with its colon; what has no scheme is a path."""

FORMATS = {
    ".tsv": FormatEntry(Entry("meander.dataflow.sources.tsv:TsvFormat")),
    ".csv": FormatEntry(Entry("meander.dataflow.sources.csv:CsvFormat")),
    ".jsonl": FormatEntry(Entry("meander.dataflow.sources.jsonl:JsonlFormat")),
    ".parquet": FormatEntry(Entry("meander.dataflow.sources.parquet:ParquetFormat"), is_text=False),
}
"""By the ending of a file."""

ENDINGS = (*FORMATS, *(f"{ending}.gz" for ending, known in FORMATS.items() if known.is_text))

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:")


def source_key(url: str | PathLike[str]) -> str:
    """The key of `SOURCES` under which the class for a URL is found."""
    scheme = SCHEME.match(fspath(url))
    key = "" if scheme is None else scheme.group().lower()
    return key if key in SOURCES else PATH


def needs_spark(url: str | PathLike[str]) -> bool:
    """Whether only Spark can read this URL."""
    return bool(SOURCES[source_key(url)].spark_only)


def is_path(url: str | PathLike[str]) -> bool:
    """Whether this is a path of the file system, and not a URL."""
    return source_key(url) == PATH


def open_url(url: str) -> Source:
    """The source that a path or URL names; nothing is read yet."""
    source: Source = SOURCES[source_key(url)].load()(url)
    return source


def check_local_source(url: str) -> None:
    """Refuse a URL that the local runner cannot read."""
    spark_only = SOURCES[source_key(url)].spark_only
    if spark_only:
        raise ArgumentError(
            f"{url} cannot be read by the local runner", hint=f"{spark_only} needs --runner spark"
        )


def format_ending(name: str) -> str:
    """The ending of a file name that names its format, without `.gz`."""
    return Path(name.removesuffix(".gz")).suffix


def file_format(path: Path) -> FileFormat:
    """The format of a file, by its ending."""
    implementation: type[FileFormat] = FORMATS[format_ending(path.name)].entry.load()
    return implementation()


def is_splittable(path: Path) -> bool:
    """Whether a file is lines of text, so that a part of it can be read by itself."""
    return path.suffix != ".gz" and FORMATS[format_ending(path.name)].is_text


def checked_ending(path: Path) -> Path:
    """The path, if its ending names a format."""
    if not path.name.endswith(ENDINGS):
        raise ArgumentError(f"unknown file extension: {path}", hint="extensions are " + ", ".join(ENDINGS))
    return path
