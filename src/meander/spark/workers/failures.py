"""Failures of Spark, of its Java process and of its workers, as errors with a cause and a hint.

Whatever Spark raises is text in the end: a Java exception, the traceback of a Python worker, or both, one inside the
other. `FAILURES` is the one table of patterns for failures that a user can do something about. Any other failure is
reported by the line that names the exception, and its full text is written to a file that the hint names.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from meander import errors
from meander.errors import ArgumentError, InputError, MeanderError, OutputError, SparkError, StateError
from meander.spark.checkpoint.notes import START_OVER
from meander.spark.checkpoint.storage import Location
from meander.spark.compat import lost_connection
from meander.spark.workers.java import held_lines, how_java_ended

RAISED = re.compile(r"meander\.errors\.(\w+): (.*?)(?:\n\s*SQLSTATE|\n\n|\n\tat |\Z)", re.DOTALL)
EXCEPTION = re.compile(r"^(?:Caused by: )?((?:\w+\.)*\w*(?:Error|Exception)\w*: \S.*)$", re.MULTILINE)
WRAPPERS = re.compile(r"Py4J\w*|StreamingQueryException|SparkException|RuntimeException")
ANOTHER_PYTHON = "set PYSPARK_PYTHON to a Python that has Meander, such as {python}"
PLENTY = 1 << 26
RESUME = "with a checkpoint, the same run then resumes"


@dataclass(frozen=True)
class Failure:
    """A pattern of a report of Spark, and the error that it stands for.

    Message and hint may use the pattern's groups by name, and `{disk}`, `{java}` and `{python}`.
    """

    pattern: str
    kind: type[MeanderError]
    message: str
    hint: str


FAILURES = (
    Failure(
        r"No space left on device|Disk quota exceeded",
        OutputError,
        "the disk is full: {disk} cannot be written",
        f"free some space, or use another disk; {RESUME}",
    ),
    Failure(
        r"\A(py4j\.protocol\.Py4J(Network)?Error|builtins\.Connection\w+Error)",
        SparkError,
        "Spark's Java process {java}",
        f"a process that was killed may have used more memory than there is; {RESUME}",
    ),
    Failure(
        # The last match is the cause of those before.
        r"(?s:.*)(?P<what>Checksum error: \S+|CANNOT_LOAD_STATE_STORE[\w.]*"
        r"|(?:Incomplete|Malformed) log file \S+|Corruption: [^\n]*)",
        StateError,
        "Spark's part of the checkpoint is damaged: {what}",
        f"restore the checkpoint from a backup, or {START_OVER}",
    ),
    Failure(
        r"java\.lang\.OutOfMemoryError: (?P<what>.*)",
        SparkError,
        "Spark's Java process ran out of memory ({what})",
        f"give it more (spark.driver.memory, spark.executor.memory) or a smaller --batch-rows; {RESUME}",
    ),
    Failure(
        r"PySparkImportError.*(?:grpc|googleapis|zstandard)",
        SparkError,
        "Spark Connect cannot be used: a package that its client needs is missing",
        "pip install 'meander[connect]'",
    ),
    Failure(
        r"No module named '(?P<module>[\w.]+)'",
        SparkError,
        "the Python of Spark's workers has no module {module}",
        ANOTHER_PYTHON,
    ),
    Failure(
        r"(?s:PYTHON_VERSION_MISMATCH.*?(?P<worker>\d+\.\d+).*?driver\D*(?P<driver>\d+\.\d+))",
        SparkError,
        "Spark's workers have Python {worker}, and the driver has {driver}",
        ANOTHER_PYTHON,
    ),
    Failure(
        r"Timed out while waiting for the Python worker to connect back|Python worker failed to connect back",
        SparkError,
        "a Python process of Spark did not start within ten seconds",
        f"the machine has too much to do, or too little memory; {RESUME}",
    ),
    Failure(
        r'Cannot run program "(?P<program>[^"]+)"',
        SparkError,
        "Spark cannot start the Python of its workers: there is no {program}",
        ANOTHER_PYTHON,
    ),
    Failure(
        r"ClassNotFoundException: Class (?P<what>org\.apache\.hadoop\.fs\.\S+) not found"
        r'|(?P<scheme>No FileSystem for scheme "?\w+)',
        ArgumentError,
        "Spark cannot reach the store of the checkpoint: it has no {what}{scheme}",
        "start Spark with --packages org.apache.hadoop:hadoop-aws:VERSION, with the version of its Hadoop, and name "
        "the checkpoint s3a://…",
    ),
    Failure(
        r"UnknownTopicOrPartitionException(?:: (?P<why>.*))?",
        InputError,
        "Kafka has no such topic: {why}",
        "create the topic, or check its name",
    ),
    Failure(
        r"org\.apache\.kafka\.common\.errors\.TimeoutException: (?P<why>.*)",
        InputError,
        "Kafka does not answer: {why}",
        f"check that the broker runs and can be reached; {RESUME}",
    ),
    Failure(
        r"CANNOT_MODIFY_(?:STATIC_)?CONFIG\S* (?P<why>.*)",
        ArgumentError,
        "Spark does not allow a setting to be changed: {why}",
        "start the Spark session with that setting",
    ),
)


def translate_error(error: BaseException, paths: Sequence[Location] = ()) -> MeanderError:
    """The error that a failure of Spark stands for; `paths` are those that the run writes to."""
    if isinstance(error, MeanderError):
        return error
    text = f"{type(error).__module__}.{type(error).__name__}: {error}"
    raised = RAISED.search(text)
    kind = getattr(errors, raised.group(1), None) if raised is not None else None
    if raised is not None and kind is not None:
        message, _, hint = raised.group(2).strip().partition("\nhint: ")
        ours: MeanderError = kind(message, hint=hint)
        return ours
    for failure in FAILURES:
        match = re.search(failure.pattern, text)
        if match is None:
            continue
        words = {name: (value or "").strip() for name, value in match.groupdict().items()}
        words["python"] = sys.executable
        if "{disk}" in failure.message:
            words["disk"] = fullest(paths)
        if "{java}" in failure.message:
            ended = how_java_ended()
            if ended is None:
                continue  # It is another connection that failed.
            words["java"] = ended
        return failure.kind(failure.message.format(**words), hint=failure.hint.format(**words))
    return SparkError(
        f"the Spark query failed: {essence(error)}",
        hint=f"the full trace is in {keep_trace(text)}; MEANDER_DEBUG=1 shows it as it comes",
    )


@contextmanager
def translated(*paths: Location) -> Iterator[None]:
    """Translates errors that Spark raises within; `paths` as for `translate_error`."""
    try:
        yield
    except MeanderError:
        raise
    except Exception as error:
        raise translate_error(error, paths) from error


@contextmanager
def java_may_have_ended() -> Iterator[None]:
    """Ignores errors of calls to Java, as a run ends, if Java has ended first."""
    try:
        yield
    except lost_connection():
        if how_java_ended() is None:
            raise


def essence(error: BaseException) -> str:
    """The most informative line: the innermost exception that is not a wrapper, or else the first line."""
    text = str(error)
    lines = [line for line in text.splitlines() if line.strip()]
    named = [
        line for line in EXCEPTION.findall(text) if not WRAPPERS.match(line.split(":")[0].rsplit(".", 1)[-1])
    ]
    if named:
        return str(named[-1])
    return lines[0].strip() if lines else type(error).__name__


def fullest(paths: Sequence[Location]) -> str:
    """Of the paths, and the folder of temporary files, the one whose disk has the least space left."""
    candidates = (*(path for path in paths if isinstance(path, Path)), Path(tempfile.gettempdir()))
    free = []
    for path in candidates:
        existing = next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())
        free.append((shutil.disk_usage(existing).free, str(path)))
    least, path_of_least = min(free)
    if least > PLENTY:
        # It has been freed since, or is the disk of another machine.
        return " or ".join([*(str(path) for path in candidates), "a worker's disk"])
    return path_of_least


def keep_trace(text: str) -> str:
    """Write the text of an unknown failure, and the last lines of Java before it, to a file; returns its path."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="meander-", suffix=".log", delete=False, encoding="utf-8"
        ) as file:
            file.write("".join(held_lines()) + "\n" + text + "\n")
            return file.name
    except OSError:
        return "no file, as none could be written"
