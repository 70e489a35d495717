"""The long version of test_killed: round after round of real workers, killed and stopped at random.

Run: python -m tests.processes --minutes 10 --seed 1. Each round has a seed of its own, printed before it;
`--seed N --rounds 1` repeats one. It ends with 1 and keeps the home at the first promise that is broken.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import msgspec

from pollcore.adapters.store import library
from pollcore.facts import EventName
from tests.processes.herd import PROGRAM, Herd, hand_over, lay_out, shortened, specs
from tests.processes.provider import CountingProvider, script
from tests.processes.verdict import counted, settled, wrong

DEADLINE_S: Final = 120
LEASE_MS: Final = 30_000
SHORT_MS: Final = 3_000
LONG_STOP_S: Final = 40.0
MARGIN_S: Final = 60
WAVE: Final = 5
SOUND: Final = library.has_wal_reset_bug


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """What one round is made of; all of it drawn from its seed."""

    seed: int
    journal: str
    lease_ms: int
    workers: int
    jobs: int
    share: int
    chaos_s: float
    stop_s: float


def drawn(seed: int) -> Round:
    """The round of that seed: a short lease with stops beyond it, or the real one with stops up to 40 s."""
    chance = random.Random(seed)
    short = chance.random() < 0.7
    return Round(
        seed=seed,
        journal=chance.choice(["WAL", "WAL", "DELETE"]),
        lease_ms=SHORT_MS if short else LEASE_MS,
        workers=chance.randint(2, 4),
        jobs=chance.randint(40, 100) * (1 if short else 2),
        share=chance.choice([1, 1, 4]),
        chaos_s=chance.uniform(10, 20) if short else 45.0,
        stop_s=chance.uniform(1, 8) if short else LONG_STOP_S,
    )


async def play(this: Round, base: Path, sound: bool) -> tuple[list[str], str]:
    """One round: what it broke, and one line about it."""
    chance = random.Random(this.seed + 1)
    library.has_wal_reset_bug = SOUND if this.journal == "WAL" else (lambda version: True)
    wanted = specs(chance, this.jobs, deadline_s=DEADLINE_S, share=this.share)
    home = base / "home"
    command = PROGRAM if sound else shortened(this.lease_ms, this.journal)
    with CountingProvider({job: script(chance, 9) for job in wanted}) as provider:
        lay_out(home, provider.url)
        with Herd(home, base, this.workers, command) as herd:
            herd.wait_ready()
            chaos = asyncio.to_thread(herd.chaos, chance, this.chaos_s, this.stop_s)
            await asyncio.gather(chaos, hand_over(home, wanted, WAVE, WAVE * this.chaos_s / this.jobs))
            ended = await settled(home, DEADLINE_S + this.lease_ms / 1000 + MARGIN_S)
            codes = herd.end()
        found = await wrong(home, provider.seen, wanted, this.lease_ms)
    if not ended:
        found.append("something still waits")
    if set(codes) != {0}:
        found.append(f"exit codes {codes}")
    return found, (
        f"{sum(provider.seen.values())} requests, {herd.kills} kills, {herd.stops} stops, "
        f"{await counted(home, EventName.ANSWER_LOST)} answers lost, {await counted(home, EventName.LATE_RESULT)} late"
    )


def main() -> int:
    """Rounds until the time is over."""
    parser = argparse.ArgumentParser(prog="python -m tests.processes", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10_000)
    asked = parser.parse_args()
    end, requests = time.monotonic() + asked.minutes * 60, 0
    for k in range(asked.rounds):
        this = drawn(asked.seed + k)
        print(this, flush=True)
        base = Path(tempfile.mkdtemp(prefix=f"pollconsole-soak-{this.seed}-"))
        sound = this.journal == "WAL" and this.lease_ms == LEASE_MS
        found, line = asyncio.run(play(this, base, sound))
        print(f"  {line}", flush=True)
        requests += int(line.split()[0])
        if found:
            print(*found, f"kept: {base}", sep="\n  ")
            return 1
        shutil.rmtree(base)
        if time.monotonic() > end:
            break
    print(f"{k + 1} rounds, {requests} requests, nothing broken")
    return 0


if __name__ == "__main__":
    sys.exit(main())
