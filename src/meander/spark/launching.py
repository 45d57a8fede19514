"""Starting Spark's Java process so that it says nothing that is not for the user.

Java, log4j and Spark's own Python processes write lines to standard error that tell a user nothing. In a session of
our own, Java's standard error comes here, and what is known to be noise ends here; the rest goes on as it is.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

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


def start_context(conf: SparkConf) -> None:
    """Start Java and a Spark context, which the next session is of; nothing where Java runs already."""
    if SparkContext._gateway is not None:
        return
    launch: Callable[..., Any] = launch_gateway  # which has no types
    gateway = launch(conf, {"stderr": subprocess.PIPE})
    threading.Thread(target=pass_on, args=(gateway.proc.stderr,), name="spark-stderr", daemon=True).start()
    SparkContext(conf=conf, gateway=gateway)


def pass_on(lines: IO[bytes]) -> None:
    """What is no noise, to standard error."""
    for line in lines:
        text = line.decode(errors="replace")
        if not NOISE.match(text):
            sys.stderr.write(text)
            sys.stderr.flush()
