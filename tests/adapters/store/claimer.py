"""A worker process for the tests: claims and answers as fast as it can, on a shared file, until the budget is spent.

Run: python claimer.py HOME OWNER SECONDS. Prints `ready`, then one `op n` line before each pretended send.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import msgspec
from tests.adapters.store.builders import NoAudit, Seal, claim, result
from tests.adapters.store.test_leases import lost_write

from pollcore.adapters.store import ThreadedStore
from pollcore.adapters.worker_lock import Deaths, WorkerLock
from pollcore.facts import BootMs, Instant, Moment, Status
from pollcore.ports import Turn, Write

LOOK = 5
PAUSE_S = 0.002


def now() -> Moment:
    return Moment(
        Instant(time.time_ns() // 1_000_000), BootMs(time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000), "b"
    )


async def work(home: Path, owner: str, seconds: float) -> None:
    lock = WorkerLock(home / "workers", owner)
    store = await ThreadedStore.open(str(home / "pollconsole.db"), Seal(), NoAudit(), Deaths(home / "workers"))
    print("ready", flush=True)
    writes: list[Write] = []
    claims = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        out = await store.turn(Turn(now=now(), owner=owner, writes=tuple(writes), claims=tuple(claims), look=LOOK))
        writes, claims = [], []
        for claimed in out.claimed:
            if claimed is not None:
                print(claimed.operation.operation_id, *claimed.intents, flush=True)
                write = result(claimed.operation, claimed.intents[-1], now(), delay=1)
                if claimed.operation.requests_left == 0:
                    stop = msgspec.structs.replace(write.after, status=Status.ESCALATED, version=2, due_boot=None)
                    write = msgspec.structs.replace(write, after=stop)
                writes.append(write)
        lost = dict(out.answer_lost)
        for o in out.due:
            if o.operation_id in lost:
                writes.append(lost_write(o, lost[o.operation_id], now()))
            elif o.requests_left > 0:
                claims.append(claim(o, now()))
        if not writes and not claims:
            await asyncio.sleep(PAUSE_S)
            live = await store.counts()
            if live.get("waiting", 0) == 0:
                break
    await store.close()
    lock.release()


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
