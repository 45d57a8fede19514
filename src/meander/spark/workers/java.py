"""Spark's Java process: starting it, what it writes to standard error, and its end.

Java, log4j and Spark's own Python processes write lines to standard error that are of no use to a user. In a session
that Meander starts, Java's standard error is filtered here. Noise is dropped. Errors of Spark's log are held back: if
a run fails, its own error is one sentence instead of their hundred lines. `MEANDER_DEBUG=1` shows them. Other lines
pass.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext, java_gateway

from meander.errors import SparkError
from meander.spark import WITHOUT_SPARK

NOISE = re.compile(
    r"""\s*$
    | WARNING:\ Using\ incubator\ modules
    | Using\ Spark's\ default\ log4j\ profile
    | To\ adjust\ logging\ level
    | Setting\ (default|Spark)\ log\ level
    | (Starting\ )?Streaming\ TransformWithState\w*\ Python\ worker
    | \d\d/\d\d/\d\d\ [\d:]{8}\ (WARN|INFO)\ """,
    re.VERBOSE,
)
RECORD = re.compile(r"\d\d/\d\d/\d\d [\d:]{8} ([A-Z]+) ")
"""How a record of Spark's log begins. It lasts until the next one: an exception's message may have any lines."""

HELD = 5000
LEAST_JAVA = 17
PATIENCE = 3.0
"""The seconds that Java has to end by itself, before it is killed."""

_held: deque[str] = deque(maxlen=HELD)
_java: subprocess.Popen[bytes] | None = None


def start_context(conf: SparkConf) -> None:
    """Start Java and the Spark context of the next session, unless Java already runs.

    If that fails or is interrupted, no Java process is left behind.
    """
    global _java
    if SparkContext._gateway is not None:
        return
    lines, stderr = os.pipe()
    started = threading.Event()
    reader = threading.Thread(
        target=filter_lines, args=(os.fdopen(lines, "rb"), started), name="spark-stderr", daemon=True
    )
    reader.start()

    def popen(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        global _java
        _java = subprocess.Popen(*arguments, **options)
        return _java

    # Spark returns the process once Java is ready; this gets it from its start, so that it can be ended before.
    gateway_module: Any = java_gateway
    gateway_module.Popen = popen
    try:
        gateway = gateway_module.launch_gateway(conf, {"stderr": stderr})
        context: Any = SparkContext(conf=conf, gateway=gateway)
        started.set()
        if not os.environ.get("MEANDER_DEBUG"):
            # When Java is gone, Spark's Python side would print a stack for each of its connections.
            context._accumulatorServer.handle_error = lambda request, address: None
            logging.getLogger("py4j").setLevel(logging.CRITICAL)
            logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)
    except BaseException as error:
        os.close(stderr)
        stderr = -1
        end_java()
        SparkContext._gateway = SparkContext._jvm = None
        reader.join(PATIENCE)
        if "JAVA_GATEWAY_EXITED" in str(error):
            raise no_start(list(_held)) from None
        raise
    finally:
        gateway_module.Popen = subprocess.Popen
        if stderr >= 0:
            os.close(stderr)


def end_java() -> None:
    """End the Java process that was started here, if it still runs, and wait for its end."""
    if _java is None or _java.poll() is not None:
        return
    _java.terminate()
    try:
        _java.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        _java.kill()
        _java.wait()


def how_java_ended() -> str | None:
    """How the Java process ended, as the end of a sentence; None if it still runs."""
    java: Any = _java or getattr(SparkContext._gateway, "proc", None)
    if java is None:
        return "does not answer any more"  # it is the parent of this process, or on another machine
    try:
        status = java.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        return None
    return f"was killed ({signal.Signals(-status).name})" if status < 0 else f"has ended (status {status})"


def no_start(lines: Sequence[str]) -> SparkError:
    """Why Java did not start: there is none, it is too old, or an error that it wrote."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    hint = f"install a JDK {LEAST_JAVA} or newer and set JAVA_HOME to its folder; {WITHOUT_SPARK}"
    if shutil.which(java) is None:
        reason = f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no java in PATH"
        return SparkError(f"Spark needs Java {LEAST_JAVA} or newer: {reason}", hint=hint)
    version = java_version(java)
    if version is not None and version < LEAST_JAVA:
        return SparkError(
            f"Spark needs Java {LEAST_JAVA} or newer: {shutil.which(java)} is Java {version}", hint=hint
        )
    unresolved = next((line for line in lines if "unresolved dependency: " in line), None)
    if unresolved is not None:
        package = (
            unresolved.split("unresolved dependency: ")[1].split(": ")[0].replace("#", ":").replace(";", ":")
        )
        return SparkError(
            f"Spark did not start: it cannot download {package}",
            hint="give it a repository that it can reach, or, for Kafka, set MEANDER_KAFKA_JARS to a folder with "
            "the connector's jars",
        )
    error = next(
        (line.strip() for line in lines if re.search(r"Error|Exception|Invalid|Could not", line)), ""
    )
    return SparkError(
        f"Spark did not start: {error or 'its Java process ended at once'}",
        hint="MEANDER_DEBUG=1 shows all that it wrote",
    )


def java_version(java: str) -> int | None:
    """The major version of a Java, if it reports one; 8 reports 1.8."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match.group(1)) if match is not None else None


def held_lines() -> list[str]:
    """The last lines that were held back."""
    return list(_held)


def filter_lines(lines: Iterable[bytes], started: threading.Event | None = None) -> None:
    """Write lines to standard error: without noise and, unless debugging, without errors of Spark's log.

    Until Spark has `started` all lines are held back: if it does not start, they have the reason.
    """
    debugging = bool(os.environ.get("MEANDER_DEBUG"))
    in_error = False
    for line in lines:
        text = line.decode(errors="replace")
        record = RECORD.match(text)
        if record is not None:
            in_error = record.group(1) in ("ERROR", "FATAL")
        if NOISE.match(text):
            continue
        starting = started is not None and not started.is_set()
        if not debugging and (in_error or starting):
            _held.append(text)
        else:
            sys.stderr.write(text)
            sys.stderr.flush()
