#!/usr/bin/env python3
"""What a turn of the store costs: CPU a poll, bytes a poll, 100,000 waiting against 1,000, the start's check.

Knows the store and the tests' builders, no transport, no controller. CPU is process time (user + system) of turns
of 100 results and 100 claims with a look for the next 100, on a real file, WAL, synchronous=FULL; the time that fsync
waits is not in it. Sealing costs nothing here. Prints one JSON object.

    python tests/bench/store_turn.py [--turns 40] [--no-check]
"""

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [ROOT, os.path.join(ROOT, "core")]

from pollcore.adapters.store import InlineStore  # noqa: E402
from pollcore.ports import Turn  # noqa: E402
from tests.adapters.store.builders import NoAudit, at, claim, operation, result, submit  # noqa: E402

BATCH = 100


class Plain:
    """A sealer that costs nothing: what sealing costs is the audit's bench."""

    def seal(self, purpose, plain):
        return b"s" * 28 + plain

    def open(self, purpose, sealed):
        return sealed[28:]


ENVELOPE = json.dumps(
    {"http": {"status": 200}, "headers": {"date": "x"}, "body": {"status": "running", "n": 1}}
).encode()


async def fill(store, count, due):
    """*count* waiting operations; *due* of them, spread over all, are due at once."""
    turns = store.turns
    chosen = set(random.Random(1).sample(range(count), due))
    conn = turns.conn
    await submit(store, "op-000000", max_status_requests=100_000)
    for i in range(1, count):
        now = at()
        later = 0 if i in chosen else 100_000_000
        o = operation(f"op-{i:06d}", now, due_boot=now.boot + later, max_status_requests=100_000)
        if i % 2000 == 1:
            conn.execute("PRAGMA synchronous=OFF")
        await store.submit(now, o, SNAP, [])
    conn.execute("PRAGMA synchronous=FULL")
    conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


async def run(count, due, turns, folder):
    store = InlineStore(Plain(), NoAudit(), os.path.join(folder, f"bench-{count}.db"))
    await fill(store, count, due)
    out = await store.turn(Turn(now=at(1), owner="w-1", look=BATCH))
    flying, ready = [], out.due
    times, walls, polls = [], [], 0
    size0 = pages(store)
    warm = max(2 * due // BATCH, 5)
    for i in range(turns + warm):
        now = at(10 + i)
        if i == warm:
            size0, polls = pages(store), 0
        writes = tuple(result(c.operation, c.intents[0], now, delay=due // BATCH, envelope=ENVELOPE) for c in flying)
        claims = tuple(claim(o, now) for o in ready)
        cpu, wall = time.process_time(), time.perf_counter()
        out = await store.turn(Turn(now=now, owner="w-1", writes=writes, claims=claims, look=BATCH))
        if i >= warm:
            times.append(time.process_time() - cpu)
            walls.append(time.perf_counter() - wall)
            polls += len(writes)
        assert all((*out.taken, *out.claimed)), "a write or a claim was not taken"
        flying, ready = list(out.claimed), out.due
    per = sum(times) / max(1, polls) * 1e6
    best = sorted(times)[len(times) // 2] / BATCH * 1e6
    grown = (pages(store) - size0) / max(1, polls)
    report = {
        "cpu_us_a_poll_mean": round(per, 1),
        "cpu_us_a_poll_median": round(best, 1),
        "turn_wall_ms_median": round(sorted(walls)[len(walls) // 2] * 1e3, 2),
        "bytes_a_poll": round(grown),
        "polls": polls,
    }
    await store.close()
    return report


def pages(store):
    ask = lambda p: store.turns.conn.execute(f"PRAGMA {p}").fetchone()[0]  # noqa: E731
    return (ask("page_count") - ask("freelist_count")) * ask("page_size")


async def check_time(folder, operations=100_000, each=20):
    """The start's check over operations * each intents, made by plain SQL."""
    store = InlineStore(Plain(), NoAudit(), os.path.join(folder, "check.db"))
    await submit(store, "op-first")
    conn = store.turns.conn
    conn.execute("PRAGMA synchronous=OFF")
    conn.execute("BEGIN")
    columns = [r[1] for r in conn.execute("PRAGMA table_info(operation)").fetchall()]
    changed = {"op": "v.value", "id": "'op-' || v.value", "job_id": "'job-' || v.value", "max_status_requests": "1000"}
    changed["status_requests_used"] = str(each)
    changed["epoch"] = "1"
    picked = ",".join(changed.get(c, c) for c in columns)
    series = (
        "(WITH RECURSIVE s(value) AS (VALUES(2) UNION ALL SELECT value + 1 FROM s WHERE value < {}) SELECT * FROM s)"
    )
    conn.execute(
        f"INSERT INTO operation SELECT {picked} FROM operation o, {series.format(operations)} v WHERE o.op = 1"
    )
    conn.execute("INSERT INTO request SELECT 1, 1, 1, 1, 1, 'GET', 1")
    conn.execute(
        f"INSERT INTO intent SELECT o.op, v.value - 1, o.op * {each} + v.value, 1, 'status', 1, 1, 1 FROM operation o, "
        f"{series.format(each + 1)} v WHERE o.op > 1"
    )
    conn.execute("UPDATE meta SET intents = (SELECT count(*) FROM intent)")
    conn.execute("COMMIT")
    began = time.perf_counter()
    found = await store.check()
    spent = time.perf_counter() - began
    intents = conn.execute("SELECT count(*) FROM intent").fetchone()[0]
    await store.close()
    return {"operations": operations, "intents": intents, "seconds": round(spent, 3), "found": found}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--turns", type=int, default=60)
    ap.add_argument("--no-check", action="store_true")
    a = ap.parse_args()
    with tempfile.TemporaryDirectory(prefix="storebench-") as folder:
        small = asyncio.run(run(1_000, 1_000, a.turns, folder))
        big = asyncio.run(run(100_000, 1_000, a.turns, folder))
        ratio = big["cpu_us_a_poll_median"] / small["cpu_us_a_poll_median"]
        out = {"1,000 waiting": small, "100,000 waiting, 1,000 due": big, "ratio": round(ratio, 2)}
        if not a.no_check:
            out["check"] = asyncio.run(check_time(folder))
    print(json.dumps(out, indent=1))


from tests.adapters.store.builders import SNAPSHOT as SNAP  # noqa: E402

if __name__ == "__main__":
    main()
