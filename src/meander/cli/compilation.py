"""The message that kernels are being compiled, which explains why a first run takes long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from meander.cli.terminal import print_note

COMPILING = "compiling the kernels of this query, once after installation: this takes a minute or two"


class CompilationNotice:
    """Announces compilation once per run."""

    def __init__(self) -> None:
        self._announced = False

    def announce(self) -> None:
        if not self._announced:
            self._announced = True
            print_note(COMPILING)

    def announce_if_cache_is_empty(self) -> None:
        """Announce what other processes are about to compile."""
        import numba

        # It sets the cache folder.
        import meander.kernels.jit  # noqa: F401

        config: Any = numba.config
        if not config.DISABLE_JIT and not any(Path(config.CACHE_DIR).rglob("*.nbi")):
            self.announce()

    @contextmanager
    def on_compilation(self, interrupted: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
        """Announce when this process begins to compile a kernel; `interrupted` keeps progress off the terminal."""
        from numba.core import event

        announce = self.announce

        class Listener(event.Listener):
            def on_start(self, event: Any) -> None:
                with interrupted():
                    announce()

            def on_end(self, event: Any) -> None:
                pass

        with event.install_listener("numba:compile", Listener()):
            yield
