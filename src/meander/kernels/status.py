"""How a kernel reports that it stopped, and the start of every cursor by which it resumes.

Kernels never allocate: one that runs out of room returns a status, its caller makes room (`dataflow.resumption`),
and the kernel continues from its cursor.
"""

from __future__ import annotations

# What a kernel returns: it is done, it needs more room in a table, or it cannot do this at all.
DONE, FULL_GRAPH, FULL_OUTPUT, FULL_TABLE, FULL_SCRATCH, FULL_MATRIX, NEEDS_LINKS, UNUSABLE, FULL_STEPS = (
    range(9)
)
STATUS_NAMES = (
    "done",
    "the graph is full",
    "the output is full",
    "the table is full",
    "the scratch space is full",
    "the matrix is full",
    "edges are not linked both ways",
    "unusable",
    "the table of path steps is full",
)

# Positions in every cursor: the next row of the input, and the number of rows in the output.
NEXT_ROW, EMITTED = 0, 1

FOREVER = 1 << 62  # later than every expiry
