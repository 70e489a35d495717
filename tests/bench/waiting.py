#!/usr/bin/env python3
"""What a due poll costs when many operations wait: 1,000 due among 100,000, against 1,000 due among 1,000.

Real store on a file, real transport, real controller; both homes are filled first, then polled in turns (A B A B ...).
Prints CPU and wall time a poll as medians, and the ratio that is promised to stay within 1.3.

    python tests/bench/waiting.py [--waiting 100000] [--due 1000] [--polls 3] [--rounds 3]
"""

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

import msgspec
from _common import JobServer, median
from peer_pollconsole import CONTRACT
from pollcore.actions import SubmitSpec
from pollcore.adapters.audit_plain import PlainAudit
from pollcore.adapters.keyring_store import MemoryBackend
from pollcore.adapters.store import InlineStore
from pollcore.assembly import open_core
from pollcore.facts import DAY, HOUR, BootMs, Instant


BACKEND = MemoryBackend()
"""One keyring for all opens of a home: it holds the audit's anchor."""


class Clear:
    """A sealer for records that have nothing to seal."""

    def seal(self, purpose, plain):
        return plain

    def open(self, purpose, sealed):
        return sealed


async def fill(home, url, waiting, due):
    """A home with *due* operations due at once, one in every waiting/due of *waiting*."""
    (home / "providers").mkdir(parents=True, mode=0o700)
    text = CONTRACT.replace('deadline = "1h"', 'deadline = "30d"')
    (home / "providers/bench.toml").write_text(text)
    (home / "config.toml").write_text(f'[providers.bench-1]\ncontract = "bench"\nbase_url = "{url}"\n')
    async with open_core(home, kind="cli", backend=BACKEND) as core:
        first = (await core.actions.submit(SubmitSpec(provider="bench-1", job_id="first"))).operation
        snapshot = await core.store.snapshot(first.contract_digest)
        path = str(core.home.database)
    store = InlineStore(Clear(), PlainAudit(), path=path)
    store.turns.conn.execute("PRAGMA synchronous=OFF")
    every = waiting // due
    for i in range(waiting):
        later = 0 if i % every == 0 else 20 * DAY
        submitted = msgspec.structs.replace(first.submitted, job_id=f"job-{i:06d}")
        one = msgspec.structs.replace(
            first,
            operation_id=f"op-{i:06d}",
            submitted=submitted,
            next_poll_at=Instant(first.started_at + later),
            due_boot=BootMs((first.due_boot or 0) + later),
        )
        await store.submit(core.clock.now(), one, snapshot, [])
    store.turns.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    await store.close()


async def poll(home, srv, polls, due):
    """One round: every due operation *polls* times, then it is due no more; CPU and wall seconds a poll."""
    srv.reset(1_000_000)
    async with open_core(home, kind="run", backend=BACKEND) as core:
        controller = core.controller()
        stop = asyncio.Event()

        async def watch():
            while (await asyncio.to_thread(srv.stats))["requests"] < polls * due:
                await asyncio.sleep(0.1)
            stop.set()

        watching = asyncio.create_task(watch())
        cpu, wall = time.process_time(), time.perf_counter()
        await controller.run(stop, for_ms=HOUR)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        await watching
        sent = controller.report.sent
    return cpu / sent, wall / sent


async def main(a):
    with tempfile.TemporaryDirectory() as scratch, JobServer(1_000_000) as srv:
        homes = {n: Path(scratch) / f"home-{n}" for n in (a.due, a.waiting)}
        for n, home in homes.items():
            await fill(home, srv.url, n, a.due)
        figures = {n: [] for n in homes}
        for _ in range(a.rounds):
            for n, home in homes.items():
                figures[n].append(await poll(home, srv, a.polls, a.due))
    cpu = {n: min(f[0] for f in got) for n, got in figures.items()}
    wall = {n: median([f[1] for f in got]) for n, got in figures.items()}
    print(
        json.dumps(
            {
                "cpu_us_a_poll": {n: round(v * 1e6) for n, v in cpu.items()},
                "wall_us_a_poll": {n: round(v * 1e6) for n, v in wall.items()},
                "cpu_ratio": round(cpu[a.waiting] / cpu[a.due], 3),
                "wall_ratio": round(wall[a.waiting] / wall[a.due], 3),
            }
        )
    )


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--waiting", type=int, default=100_000)
    ap.add_argument("--due", type=int, default=1_000)
    ap.add_argument("--polls", type=int, default=3)
    ap.add_argument("--rounds", type=int, default=3)
    asyncio.run(main(ap.parse_args()))
