"""What must hold on a home after anything was done to its workers: the provider's count against the store's.

It knows the store's tables and the invariants of reliability section 3, not what was done to the workers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pollcore.actions import SubmitSpec
from pollcore.assembly import Core, open_core
from pollcore.facts import EventName, Operation, Status
from pollcore.ports import Filter
from tests.adapters.store.laws import broken

OPEN: Final = frozenset({Status.WAITING, Status.HELD, Status.AWAITING_APPROVAL})
TICK_MS: Final = 15_000
"""The longest sleep of a worker in one piece (T9)."""
LEASE_MS: Final = 30_000

#: Each finds rows that must not be there.
QUERIES: Final = {
    "I9: a request was charged after the end": (
        "SELECT o.id FROM operation o JOIN event s ON s.operation = o.op AND s.event = 'sent' "
        "JOIN event e ON e.operation = o.op AND e.decision IN ('succeed', 'stop', 'escalate') AND e.seq < s.seq "
        "WHERE NOT EXISTS (SELECT 1 FROM event g WHERE g.operation = o.op AND g.event = 'granted' AND g.seq > e.seq "
        "AND g.seq < s.seq)"
    ),
    "I9: two ends": (
        "SELECT o.id FROM operation o JOIN event e ON e.operation = o.op AND e.decision = 'succeed' "
        "GROUP BY o.op HAVING count(*) > 1"
    ),
    "I10: stopped without a question": (
        "SELECT o.id FROM operation o WHERE o.status IN ('escalated', 'failed', 'cancelled', 'expired') AND NOT EXISTS "
        "(SELECT 1 FROM escalation q WHERE q.operation = o.op)"
    ),
    "I11: an escalated operation with another number of open questions than one": (
        "SELECT o.id FROM operation o WHERE o.status = 'escalated' AND (SELECT count(*) FROM escalation q "
        "WHERE q.operation = o.op AND q.decided_at IS NULL) <> 1"
    ),
    "I5: a request of an ended operation has neither answer nor `answer_lost`": (
        "SELECT o.id, i.n FROM operation o JOIN intent i ON i.operation = o.op "
        "LEFT JOIN observation v ON v.intent = i.id WHERE o.status NOT IN ('waiting', 'held') AND v.intent IS NULL"
    ),
    "O2: a lease on an operation that has ended": (
        "SELECT id FROM operation WHERE status NOT IN ('waiting', 'held') AND lease_owner IS NOT NULL"
    ),
}


async def settled(home: Path, limit_s: float) -> bool:
    """Wait until nothing waits any more; False: something still does after *limit_s*."""
    end = time.monotonic() + limit_s
    async with open_core(home, kind="cli") as core:
        seen = 0
        while True:
            counts = await core.store.counts()
            if not any(counts.get(status, 0) for status in OPEN):
                return True
            if time.monotonic() > end:
                return False
            seen = await core.store.wait_for_change(seen, 0.5)


async def wrong(
    home: Path, seen: Mapping[str, int], specs: Mapping[str, SubmitSpec], lease_ms: int = LEASE_MS
) -> list[str]:
    """Every promise that the home breaks, in words; empty: all of them hold. *seen*: requests by job id."""
    async with open_core(home, kind="cli") as core:
        found = [*await core.store.check(), *await core.store._read(lambda r: _tables(r.conn))]
        operations = await core.store.operations(Filter(limit=10_000))
        if len(operations) != len(specs):
            found.append(f"{len(specs)} were submitted, {len(operations)} are there")
        for o in operations:
            found += _counts(o, seen.get(o.submitted.job_id, 0), specs[o.submitted.job_id])
            found += await _in_time(core, o, lease_ms)
    return found


def _tables(conn: Any) -> list[str]:
    found = broken(conn)
    found += [f"integrity: {row[0]}" for row in conn.execute("PRAGMA integrity_check").fetchall() if row[0] != "ok"]
    for what, query in QUERIES.items():
        rows = conn.execute(query).fetchall()
        if rows:
            found.append(f"{what}: {rows[:5]}")
    return found


def _counts(o: Operation, seen: int, spec: SubmitSpec) -> list[str]:
    """I1, I2, I3: what the provider saw, what was counted, what was allowed; nobody raised a limit."""
    found = []
    used, allowed = o.status_requests_used, spec.max_status_requests
    if not seen <= used <= (allowed or 0):
        found.append(f"I1, I2: {o.operation_id}: the provider saw {seen}, counted are {used}, allowed were {allowed}")
    limits = (o.max_status_requests, o.max_transport_failures, o.max_rate_limited)
    if limits != (allowed, spec.max_transport_failures, spec.max_rate_limited):
        found.append(f"I3: {o.operation_id}: its limits are {limits} now")
    if o.status in OPEN:
        found.append(f"I26: {o.operation_id} is still {o.status.value}")
    return found


async def _in_time(core: Core, o: Operation, lease_ms: int) -> list[str]:
    """I26: the end, or the question, came at most a lease and two ticks after the deadline."""
    ends = [e.at for _, e in await core.store.events(o.operation_id) if e.decision in ("succeed", "stop", "escalate")]
    late = [at - o.deadline_at for at in ends if at > o.deadline_at + lease_ms + 2 * TICK_MS]
    return [f"I26: {o.operation_id}: ended {late} ms after its deadline"] if late else []


async def counted(home: Path, name: EventName) -> int:
    """How many events of that name were recorded."""
    async with open_core(home, kind="cli") as core:
        return sum(event.event is name for _, event in await core.store.events(limit=100_000))
