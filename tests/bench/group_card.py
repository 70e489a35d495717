#!/usr/bin/env python3
"""One cause that stopped 3,000 operations, on the real console over a pty: seconds until its card is open, and until
one answer was carried out. Goals on a quiet machine: card within 1 s, answer within 2 s.

    python tests/bench/group_card.py [--operations 3000] [--rounds 3]
"""

import argparse
import asyncio
import re
import tempfile
import time
from pathlib import Path

from _console import Pty, console, median, noise, told

from tests.outage.made import home_in, outage, seed


def fill(folder, count):
    from pollcore.assembly import open_core

    folder.mkdir()
    home = home_in(folder)

    async def write():
        async with open_core(home, kind="cli") as core:
            await seed(core, outage(core.clock.now(), count))

    asyncio.run(write())
    return home


def once(home, count):
    """(seconds to the card, seconds from the letter to the outcome)"""
    with Pty(console(home), columns=100, rows=45) as p:
        p.until(f"{count:,} decisions")
        p.run_for(3)
        p.send(b"E")
        p.until("open the card")
        p.settle(0.3)
        at = time.perf_counter()
        p.send(b"\r")
        p.until(" LOCKED ")
        opened = p.read_at - at
        armed(p)
        p.send(b"1")
        letter = armed(p, r"press (\w) to confirm")[1]
        at = time.perf_counter()
        p.send(letter.encode())
        p.until("what the answer did", limit=120)
        return opened, p.read_at - at


def armed(p, asks=r"press one of"):
    """The card is armed and asks for this key; it is scrolled until all of it was on the screen."""
    end = time.perf_counter() + 60
    while time.perf_counter() < end:
        till = time.perf_counter() + 1.5
        while time.perf_counter() < till:
            p.pump(0.02)
            found = re.search(asks, p.screen.text())
            if found and " ARMED " in p.screen.text() and p.screen.whole:
                return found
        p.send(b"\x1b[6~")
    raise SystemExit(f"not armed: {p.screen.text()}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--operations", type=int, default=3_000)
    ap.add_argument("--rounds", type=int, default=3)
    a = ap.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        took = [once(fill(Path(scratch) / f"h{n}", a.operations), a.operations) for n in range(a.rounds)]
    told(
        bench="group card",
        operations=a.operations,
        card_s=round(median([t[0] for t in took]), 2),
        answer_s=round(median([t[1] for t in took]), 2),
        **noise(),
    )
