"""The log of arrivals: every edge that a path may use, with its own time, in order of time.

An edge that arrives twice is in the log twice. Lists by source and by target, newest first, find the arrivals of a
vertex. A retraction shortens an arrival; those that have expired go away when the log is packed.
"""

from __future__ import annotations

from typing import NamedTuple

from meander.kernels.jit import Array, kernel

ARRIVALS = 0  # in `Arrivals.counts`


class Arrivals(NamedTuple):
    src: Array
    trg: Array
    source: Array  # int16: which input
    time: Array
    exp: Array
    next_out: Array
    next_in: Array
    first_out: Array  # by vertex: its newest arrival or -1
    first_in: Array
    counts: Array


@kernel
def link_arrival(log: Arrivals, row: int) -> None:
    src, trg = log.src[row], log.trg[row]
    log.next_out[row] = log.first_out[src]
    log.first_out[src] = row
    log.next_in[row] = log.first_in[trg]
    log.first_in[trg] = row


@kernel
def add_arrivals(log: Arrivals, src: Array, trg: Array, ts: Array, exp: Array, source: Array) -> None:
    """Add arrivals, none older than those in the log. Needs room for all."""
    for i in range(ts.size):
        row = log.counts[ARRIVALS]
        log.counts[ARRIVALS] = row + 1
        log.src[row], log.trg[row], log.source[row] = src[i], trg[i], source[i]
        log.time[row], log.exp[row] = ts[i], exp[i]
        link_arrival(log, row)


@kernel
def pack_arrivals(log: Arrivals, horizon: int) -> None:
    """Drop the arrivals that are expired at `horizon`."""
    kept = 0
    for row in range(log.counts[ARRIVALS]):
        if log.exp[row] > horizon:
            log.src[kept], log.trg[kept], log.source[kept] = log.src[row], log.trg[row], log.source[row]
            log.time[kept], log.exp[kept] = log.time[row], log.exp[row]
            kept += 1
    log.counts[ARRIVALS] = kept
    log.first_out[:] = -1
    log.first_in[:] = -1
    for row in range(kept):
        link_arrival(log, row)


@kernel
def mark_arrivals(log: Arrivals, horizon: int, live: Array) -> None:
    """Mark the ends of the arrivals that are valid after `horizon`."""
    for row in range(log.counts[ARRIVALS]):
        if log.exp[row] > horizon:
            live[log.src[row]] = True
            live[log.trg[row]] = True
