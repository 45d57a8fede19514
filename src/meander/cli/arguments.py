"""Arguments of the command line: read and checked, or refused with what is accepted."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from meander.dataflow.files import local_path
from meander.dataflow.sources.registry import is_path
from meander.errors import ArgumentError
from meander.syntax.values import ValueType

LANGUAGES = {".dl": "datalog", ".gcore": "gcore"}
_LONGEST_QUERY_FILE = 16 * 2**20
_QUERY_WORDS = re.compile(r"<-|\b(stream|construct|match|path|graph\s+view)\b[\s\S]*[(:]", re.IGNORECASE)


def read_query(argument: str) -> tuple[str, str | None]:
    """The text of a query, and its language if the extension of its file tells it.

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
            f"{name} is not a query", hint="is this a data file? Data files are named by --stream"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ArgumentError(
            f"{name} is not UTF-8 text: byte {content[error.start]:#04x} in line {line}",
            hint="save the query as UTF-8",
        ) from None


def input_types(given: Sequence[str], columns: Sequence[str]) -> Mapping[str, Mapping[str, ValueType]]:
    """The types of properties that the inputs of `--stream` options know; what is wrong with the options is reported
    by those who read them."""
    from meander.dataflow.sources.columns import InputTypes, url_types

    def types_of(stream: str) -> Mapping[str, ValueType | None]:
        paths = [path for name, path in map(_named_path, given) if name in ("", stream)]
        prefixes = {option: _STREAM_PREFIX.fullmatch(option) for option in columns}
        own = [option for option, prefix in prefixes.items() if prefix is None or prefix.group(1) == stream]
        try:
            mapped = read_columns(own, [stream]).get(stream)
        except ArgumentError:
            mapped = None
        return url_types(paths[0], mapped) if len(paths) == 1 and paths[0] else {}

    return InputTypes(types_of)


def _named_path(option: str) -> tuple[str, str]:
    """The name and the path of `NAME=PATH`; "" for the name if there is none."""
    name, equals, path = option.partition("=")
    return ("", option) if not equals or re.search(r"[/\\:]", name) else (name, path)


def read_streams(given: Sequence[str], streams: Sequence[str], needed: Sequence[str]) -> dict[str, str]:
    """The path of each of a query's `needed` streams: from `NAME=PATH` options, or `PATH` if it has one stream.

    `streams` are all that the query declares; a path for a stream that its plan does not read is ignored.
    """
    paths: dict[str, str] = {}
    for option in given:
        name, path = _named_path(option)
        if not name:
            if len(streams) != 1:
                raise ArgumentError(
                    f"--stream {option} does not name its stream",
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


_STREAM_PREFIX = re.compile(r"\s*(\w+):(.*)", re.DOTALL)
_COLUMN = re.compile(r'\s*(\w+)=("(?:[^"]|"")*"|[^,]*)(?:,|$)')


def read_columns(given: Sequence[str], streams: Sequence[str]) -> dict[str, dict[str, str]]:
    """By stream the column of each field and property, from `NAME:FIELD=COLUMN,…` options.

    With one stream `NAME:` may be omitted. A column with a comma in its name is written in quotes.
    """
    columns: dict[str, dict[str, str]] = {}
    for option in given:
        prefix = _STREAM_PREFIX.fullmatch(option)
        name, rest = (prefix.group(1), prefix.group(2)) if prefix else ("", option)
        name = _stream_of("--columns", option, name, streams, ":" + rest)
        at = 0
        while at < len(rest):
            pair = _COLUMN.match(rest, at)
            if pair is None or not pair.group(2):
                raise ArgumentError(
                    f"--columns {option} cannot be read from {rest[at:]!r} on",
                    hint=f"write --columns {name}:src=account_from,trg=account_to,ts=time",
                )
            field, column = pair.groups()
            if column.startswith('"') and column.endswith('"') and len(column) > 1:
                column = column[1:-1].replace('""', '"')
            if field in columns.get(name, {}):
                raise ArgumentError(f"--columns gives {field} of the stream {name} twice")
            columns.setdefault(name, {})[field] = column
            at = pair.end()
    return columns


def read_labels(given: Sequence[str], streams: Sequence[str]) -> dict[str, str]:
    """By stream the label of all of its rows, from `NAME=LABEL` options; with one stream `NAME=` may be omitted."""
    labels: dict[str, str] = {}
    for option in given:
        name, equals, label = option.partition("=")
        if not equals:
            name, label = "", option
        name = _stream_of("--label", option, name, streams, "=" + label)
        if not label:
            raise ArgumentError(f"--label {option} has no label", hint=f"write --label {name}=LABEL")
        if name in labels:
            raise ArgumentError(f"the label of the stream {name} is given twice")
        labels[name] = label
    return labels


def _stream_of(option: str, given: str, name: str, streams: Sequence[str], rest: str) -> str:
    """The stream that an option's value names before the `rest`; the only one if it names none."""
    if not name and len(streams) != 1:
        raise ArgumentError(
            f"{option} {given} does not name its stream",
            hint=f"the query has the streams {', '.join(streams)}: write {option} {streams[0]}{rest}",
        )
    if name and name not in streams:
        raise ArgumentError(f"the query has no stream {name}", hint=f"its streams are {', '.join(streams)}")
    return name or streams[0]


def check_streams(paths: Mapping[str, str]) -> None:
    """Refuse a stream whose path does not exist."""
    for name, path in paths.items():
        if is_path(path) and not local_path(path, "stream").exists():
            raise ArgumentError(
                f"{path} does not exist", hint=f"--stream {name}=PATH names a file or a folder"
            )


def keep_apart(option: str, output: str | None, inputs: Sequence[str]) -> None:
    """Refuse an output that would overwrite an input."""
    for path in inputs:
        if output is not None and is_same_file(output, path):
            raise ArgumentError(f"{option} would overwrite {path}, which is read", hint="name another file")


def is_same_file(path: str, other: str) -> bool:
    """Whether two paths are of one file, which may not exist yet."""
    if path == "-":
        return False
    try:
        return (
            Path(path).samefile(other)
            if Path(path).exists()
            else Path(path).resolve() == Path(other).resolve()
        )
    except (OSError, ValueError):  # the other does not exist, or is the text of a query
        return False
