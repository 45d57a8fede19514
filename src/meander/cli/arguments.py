"""What a person gives on the command line, made into what the program needs, or refused with what is accepted."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from meander.dataflow.files import local_path
from meander.dataflow.sources.registry import is_path
from meander.errors import ArgumentError, MeanderError
from meander.syntax.durations import parse_duration, parse_size

LANGUAGES = {".dl": "datalog", ".gcore": "gcore"}
_LONGEST_QUERY_FILE = 16 * 2**20
_QUERY_WORDS = re.compile(r"<-|\b(stream|construct|match|path|graph\s+view)\b[\s\S]*[(:]", re.IGNORECASE)


def read_query(argument: str) -> tuple[str, str | None]:
    """The text of a query, and its language where the ending of its file tells.

    `argument` is the path of a file, `-` for standard input, or the text itself.
    """
    if argument == "-":
        return _decode(sys.stdin.buffer.read(_LONGEST_QUERY_FILE + 1), "standard input"), None
    path = Path(argument)
    try:
        exists = bool(argument) and path.exists()
    except (OSError, ValueError):  # too long for a path, or with a NUL in it
        exists = False
    if not exists:
        if _QUERY_WORDS.search(argument):
            return argument, None
        raise ArgumentError(
            f"there is no query file {argument!r}" if argument else "the query is empty",
            hint="a query is the path of a .dl or .gcore file, - for standard input, or the text itself",
        )
    if path.is_dir():
        raise ArgumentError(f"{argument} is a folder", hint="name one of the query files in it")
    try:
        with path.open("rb") as file:
            content = file.read(_LONGEST_QUERY_FILE + 1)
    except OSError as error:
        raise ArgumentError(f"the query file {argument} cannot be read: {error.strerror}") from None
    return _decode(content, argument), LANGUAGES.get(path.suffix.lower())


def _decode(content: bytes, name: str) -> str:
    if len(content) > _LONGEST_QUERY_FILE or b"\0" in content:
        raise ArgumentError(
            f"{name} is no query text", hint="is this a data file? Those are given by --stream"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ArgumentError(
            f"{name} is not UTF-8 text: byte {content[error.start]:#04x} in line {line}",
            hint="save the query as UTF-8",
        ) from None


def read_streams(given: Sequence[str], streams: Sequence[str], needed: Sequence[str]) -> dict[str, str]:
    """Where each of a query's `needed` streams comes from: `NAME=PATH` for each, or one `PATH` for an only one.

    `streams` are all that the query declares; data for one that its plan does not read is let pass.
    """
    paths: dict[str, str] = {}
    for option in given:
        name, equals, path = option.partition("=")
        if not equals or re.search(r"[/\\:]", name):
            name, path = "", option
        if not name:
            if len(streams) != 1:
                raise ArgumentError(
                    f"--stream {option} does not say which stream it is",
                    hint=f"the query has the streams {', '.join(streams)}: write --stream {streams[0]}={path}",
                )
            name = streams[0]
        if not path:
            raise ArgumentError(f"--stream {option} has no path", hint=f"write --stream {name}=PATH")
        if name not in streams:
            raise ArgumentError(
                f"the query has no stream {name}", hint=f"its streams are {', '.join(streams)}"
            )
        if name in paths:
            raise ArgumentError(f"the stream {name} is given twice", hint="a folder may hold several files")
        paths[name] = path
    missing = [name for name in needed if name not in paths]
    if missing:
        raise ArgumentError(
            f"no data for the stream{'s' if len(missing) > 1 else ''} {', '.join(missing)}",
            hint="add " + " ".join(f"--stream {name}=PATH" for name in missing),
        )
    return {name: paths[name] for name in needed}


def check_streams(paths: Mapping[str, str]) -> None:
    """Refuse a stream whose path does not exist."""
    for name, path in paths.items():
        if is_path(path) and not local_path(path, "stream").exists():
            raise ArgumentError(
                f"{path} does not exist", hint=f"--stream {name}=PATH names a file or a folder"
            )


def keep_apart(option: str, output: str | None, inputs: Sequence[str]) -> None:
    """Refuse an output that would be written over one of the inputs."""
    for path in inputs:
        if output is not None and is_same_file(output, path):
            raise ArgumentError(f"{option} would write over {path}, which is read", hint="name another file")


def is_same_file(one: str, other: str) -> bool:
    """Whether two paths lead to one file, which may not be there yet."""
    if one == "-":
        return False
    try:
        return (
            Path(one).samefile(other) if Path(one).exists() else Path(one).resolve() == Path(other).resolve()
        )
    except (OSError, ValueError):  # the other one is not there, or the text of a query
        return False


def one_of(option: str, value: str, accepted: Sequence[str]) -> str:
    """`value`, if it is among those accepted."""
    if value not in accepted:
        raise ArgumentError(f"{option} cannot be {value!r}", hint=f"accepted: {', '.join(accepted)}")
    return value


def read_duration(option: str, value: str, unit: str) -> int:
    """A duration in the unit of the streams."""
    try:
        return parse_duration(value, unit)
    except MeanderError as error:
        raise ArgumentError(f"{option}: {error.message}", hint=error.hint) from None


def read_seconds(option: str, value: str) -> float:
    """A duration of wall time in seconds; a bare number is in seconds."""
    return (
        read_duration(option, value + "s" if re.fullmatch(r"[0-9.]+", value.strip()) else value, "us") / 1e6
    )


def read_size(option: str, value: str) -> int:
    """A size in bytes."""
    try:
        return parse_size(value)
    except MeanderError as error:
        raise ArgumentError(f"{option} cannot be {value!r}", hint=error.hint) from None
