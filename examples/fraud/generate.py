"""A bank's day files, generated: transfers with planted rings and chains, and the bank's own rating of its accounts.

    python generate.py [FOLDER]

writes transfers.csv, accounts.csv and planted.json (what was planted, to compare answers with). The same seed gives the
same files.
"""

from __future__ import annotations

import csv
import json
import random
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

SEED = 2026
ACCOUNTS = 400
TRANSFERS = 4000
BEGIN = datetime(2026, 3, 2)
DAYS = 3
RINGS = 4
CHAINS = 3
CURRENCIES = ("EUR", "EUR", "EUR", "EUR", "USD", "GBP")
CHANNELS = ("card", "online", "branch", "api")

Row = tuple[datetime, str, str, float, str, str]


def account(number: int) -> str:
    return f"AC{number:04}"


def ordinary(draw: random.Random) -> Iterator[Row]:
    """Transfers as people make them: small amounts, some shops and employers with many."""
    for _ in range(TRANSFERS):
        # The lower an account's number, the more transfers it has.
        src, trg = (int(ACCOUNTS * draw.random() ** 2) for _ in range(2))
        if src == trg:
            continue
        moment = BEGIN + timedelta(seconds=draw.randrange(DAYS * 86_400))
        amount = round(min(draw.lognormvariate(4.2, 1.1), 4_900.0), 2)
        yield moment, account(src), account(trg), amount, draw.choice(CURRENCIES), draw.choice(CHANNELS)


def rings(draw: random.Random) -> Iterator[list[Row]]:
    """Three accounts that pass nearly the same amount around within an hour."""
    for _ in range(RINGS):
        members = [account(number) for number in draw.sample(range(ACCOUNTS), 3)]
        moment = BEGIN + timedelta(seconds=draw.randrange(3_600, DAYS * 86_400 - 7_200))
        amount = draw.uniform(8_000, 9_900)
        transfers: list[Row] = []
        for src, trg in zip(members, members[1:] + members[:1], strict=True):
            transfers.append((moment, src, trg, round(amount, 2), "EUR", "online"))
            moment += timedelta(seconds=draw.randrange(240, 1_500))
            amount *= draw.uniform(0.95, 0.995)
        yield transfers


def chains(draw: random.Random) -> Iterator[list[Row]]:
    """Money that is passed on and on within a day, and ends in an account that the bank distrusts."""
    for _ in range(CHAINS):
        members = [account(number) for number in draw.sample(range(ACCOUNTS), 6)]
        moment = BEGIN + timedelta(seconds=draw.randrange(3_600, (DAYS - 1) * 86_400))
        amount = draw.uniform(20_000, 60_000)
        transfers: list[Row] = []
        for src, trg in zip(members, members[1:], strict=False):
            transfers.append((moment, src, trg, round(amount, 2), "EUR", "api"))
            moment += timedelta(seconds=draw.randrange(1_800, 14_400))
            amount *= draw.uniform(0.9, 0.99)
        yield transfers


def main(folder: Path) -> None:
    draw = random.Random(SEED)
    rows = list(ordinary(draw))
    planted: dict[str, list[list[Row]]] = {"rings": list(rings(draw)), "chains": list(chains(draw))}
    rows += [row for groups in planted.values() for group in groups for row in group]
    rows.sort(key=lambda row: row[0])
    distrusted = {chain[-1][2] for chain in planted["chains"]}
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "transfers.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["booked_at", "from_account", "to_account", "amount", "currency", "channel"])
        writer.writerows(
            (moment.isoformat(), src, trg, f"{amount:.2f}", currency, channel)
            for moment, src, trg, amount, currency, channel in rows
        )
    with (folder / "accounts.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["iban", "risk", "country"])
        for number in range(ACCOUNTS):
            name = account(number)
            risk = 4 if name in distrusted else draw.choice((0, 0, 1, 1, 2))
            writer.writerow([name, risk, draw.choice(("DE", "FR", "LU", "MT", "CY"))])
    summary = {
        kind: [[[src, trg] for _, src, trg, *_ in group] for group in groups]
        for kind, groups in planted.items()
    }
    (folder / "planted.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    print(f"{len(rows)} transfers, {ACCOUNTS} accounts, {RINGS} rings and {CHAINS} chains in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bank"))
