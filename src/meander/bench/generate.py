"""Generated graphs, for a machine that has none of the files: always the same edges, in the shape of the real ones.

They have any number of edges, within the same number of days; vertices grow with the edges.

`cyclic` is a small community in which everybody answers and comments on everybody, some far more than others, so
that closures are dense. `trees` is a social network: persons make friends, moderators open forums, posts start
reply trees, and people like what is new.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

DAY = 86_400
START = 14_600 * DAY
DAYS = 120

Row = tuple[str, str, str, int]


def make_graph(name: str, edges: int) -> pa.Table:
    """The generated graph of that name, with about this number of edges, as a table of src, label, trg and ts."""
    rows = sorted(cyclic(edges) if name == "cyclic" else trees(edges), key=lambda row: row[3])
    src, label, trg, ts = zip(*rows, strict=True)
    return pa.table({"src": src, "label": label, "trg": trg, "ts": pa.array(ts, pa.int64())})


def cyclic(edges: int, seed: int = 1) -> list[Row]:
    """Comments and answers between persons, the chance of each falling with its number."""
    persons = max(10, edges // 30)
    random = np.random.default_rng(seed)
    weight = 1 / np.arange(1, persons + 1)
    chosen = random.choice(persons, (edges, 2), p=weight / weight.sum()).tolist()
    labels = random.choice(["a2q", "c2q", "c2a"], edges, p=[0.3, 0.4, 0.3]).tolist()
    times = np.sort(random.integers(START, START + DAYS * DAY, edges)).tolist()
    return [
        (f"u{src}", label, f"u{trg}", ts) for (src, trg), label, ts in zip(chosen, labels, times, strict=True)
    ]


def trees(edges: int, seed: int = 2) -> list[Row]:
    """Forums, posts, replies to recent messages, likes of recent messages, and friendships."""
    persons, forums, messages = max(10, edges // 225), max(5, edges // 300), edges // 3
    random = np.random.default_rng(seed)
    rows: list[Row] = []

    def recent(count: int) -> int:
        return max(0, count - 1 - int(random.exponential(60)))

    def anyone() -> str:
        return f"p{random.integers(persons)}"

    def spread(count: int) -> Any:
        return np.sort(random.integers(START, START + DAYS * DAY, count)).tolist()

    for forum, ts in enumerate(spread(forums)):
        rows.append((f"f{forum}", "hasModerator", anyone(), ts))
    open_forums = [row[3] for row in rows]
    for message, ts in enumerate(spread(messages)):
        rows.append((f"m{message}", "hasCreator", anyone(), ts))
        if message and random.random() < 0.6:
            rows.append((f"m{message}", "replyOf", f"m{recent(message)}", ts))
        else:
            forum = max(0, int(np.searchsorted(open_forums, ts)) - 1 - int(random.exponential(5)))
            rows.append((f"f{forum}", "containerOf", f"m{message}", ts))
        for _ in range(int(random.poisson(0.8))):
            rows.append((anyone(), "likes", f"m{recent(message + 1)}", ts))
    for ts in spread(persons * 12):
        rows.append((anyone(), "knows", anyone(), ts))
    return rows
