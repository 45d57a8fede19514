"""The command: `meander run | explain | bench | demo`.

Exit status 0; 1 if a run failed; 2 for an invalid query or invalid arguments, with the message on standard error.
Results go to standard output, everything else to standard error. Modules that take long to import are imported by the
command that needs them.
"""

from __future__ import annotations

import os
import signal
import sys

from meander.errors import MeanderError

__all__ = ["main"]


def main() -> None:
    """Run the command and end the process with its status."""
    # NumPy's BLAS starts threads on import, which takes as long as the rest of NumPy; nothing here uses them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show ⋈ gets an escape instead of an error.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        # Imported here, so that an interrupt is quiet while this takes its time, too.
        from meander.cli.commands import app

        app(prog_name="meander")
    except MeanderError as error:
        _end(error)
    except KeyboardInterrupt as stop:
        _interrupted(stop)
    except SystemExit as end:
        interrupt = _interrupt_behind(end)
        if interrupt is None:
            raise
        _interrupted(interrupt)
    except BrokenPipeError:
        # The reader of the output has closed it: nothing is to be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if os.environ.get("MEANDER_DEBUG"):
            raise
        print(f"error: unexpected {type(error).__name__}: {error}", file=sys.stderr)
        print("hint: this is a defect of meander; MEANDER_DEBUG=1 shows where it happened", file=sys.stderr)
        sys.exit(1)


def _interrupt_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """The interrupt that Typer has turned into an exit, if there is one."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


def _interrupted(stop: KeyboardInterrupt) -> None:
    """End after Ctrl-C, and leave no Java process behind; a second Ctrl-C changes nothing."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print(str(stop) or "interrupted", file=sys.stderr)
    java = sys.modules.get("meander.spark.workers.java")
    if java is not None:
        java.end_java()
    sys.exit(130)


def _end(error: MeanderError) -> None:
    if os.environ.get("MEANDER_DEBUG"):
        raise error
    from meander.cli.terminal import print_error

    print_error(error)
    sys.exit(error.exit_status)
