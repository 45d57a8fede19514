"""The one loop around kernels that stop for room and are called again.

A kernel never allocates: when a table or its output is full it returns a status, its caller makes room, and the
kernel continues where it stopped. Room is made by dropping what has expired or by growing a table. If neither helps,
the kernel stops at the same point for the same reason, and would do so forever; here that is an error instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from meander.dataflow.state import Array, Store
from meander.errors import StalledError
from meander.kernels.status import DONE, EMITTED, NEXT_ROW, STATUS_NAMES


def run_to_end(
    store: Store, cursor: Array, attempt: Callable[[], int], make_room: Mapping[int, Callable[[], object]]
) -> None:
    """Call `attempt` until it returns DONE; after any other status, call what `make_room` has for it.

    `cursor` begins with the next row and the number of output rows. Room may be made once without growth, by dropping
    what has expired; if the kernel stops again for the same reason before it has taken or emitted a row, a table of
    `store` must grow.
    """
    reached = -1, -1
    without_growth: set[int] = set()
    while (status := attempt()) != DONE:
        stop, growths = (int(cursor[NEXT_ROW]), int(cursor[EMITTED])), store.growths
        make_room[status]()
        if stop != reached or store.growths != growths:
            without_growth.clear()
        if store.growths == growths:
            if status in without_growth:
                raise StalledError(
                    f"{store.owner} stopped twice at row {stop[0]} for the same reason ({STATUS_NAMES[status]}): "
                    "it took no row and its tables did not grow",
                    hint="this is a defect of Meander, and the run ends instead of looping forever; please report "
                    "the query and the edges of the last batch",
                )
            without_growth.add(status)
        reached = stop
