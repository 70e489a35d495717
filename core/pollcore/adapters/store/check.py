"""Do the books add up? Counters against recorded sends, and what no index or trigger can promise.

Job: find what bit rot, a lost WAL or a foreign hand left behind (integrity_check sees none of these). Must not know:
how to mend it. Reads in chunks, so that no long read pins the WAL.
Source: spec O6; reliability sections 3 (I2, I4, I5, I11) and 4.
"""

from __future__ import annotations

from typing import Any, Final

CHUNK: Final = 20_000
MAX_FOUND: Final = 100

_COUNTS: Final = """
SELECT o.id, o.status_requests_used, o.carried, o.epoch, i.c, i.lo, i.hi, i.e, coalesce(a.sends, 0) FROM operation o
LEFT JOIN archived a ON a.op = o.op
LEFT JOIN (SELECT operation, count(*) c, min(n) lo, max(n) hi, max(epoch) e FROM intent
WHERE operation BETWEEN ?1 AND ?2 GROUP BY operation) i ON i.operation = o.op
WHERE o.op BETWEEN ?1 AND ?2 AND (o.status_requests_used - o.carried IS NOT coalesce(i.c, 0) + coalesce(a.sends, 0)
OR (i.c > 0 AND (i.lo <> o.carried + 1 OR i.hi <> o.status_requests_used OR i.e > o.epoch)))
LIMIT ?3
"""
# What an earlier operation had used is carried over and may lie above the later one's limits (B2).
_LIMITS: Final = (
    "SELECT id FROM operation WHERE op BETWEEN ?1 AND ?2 AND (status_requests_used > max(max_status_requests, carried) "
    "OR carried = 0 AND (transport_failures_used > max_transport_failures OR rate_limited_used > max_rate_limited)) "
    "LIMIT ?3"
)


def run(conn: Any) -> list[str]:
    """What does not add up, one sentence each, MAX_FOUND at most; empty: all well."""
    found: list[str] = []
    last = conn.execute("SELECT coalesce(max(op), 0) FROM operation").fetchone()[0]
    for first in range(1, last + 1, CHUNK):
        span = (first, first + CHUNK - 1, MAX_FOUND)
        for name, used, carried, epoch, count, low, high, newest, sends in conn.execute(_COUNTS, span).fetchall():
            found.append(
                f"operation {name}: {used} requests counted ({carried} carried over), {count or 0} recorded as "
                f"{low}..{high}, {sends} archived, lease {epoch} against {newest}"
            )
        for (name,) in conn.execute(_LIMITS, span).fetchall():
            found.append(f"operation {name}: more was used than the limits allow")
        if len(found) >= MAX_FOUND:
            return found[:MAX_FOUND]
    found += _totals(conn)
    return found[:MAX_FOUND]


def _totals(conn: Any) -> list[str]:
    found = []
    requests, links, events = conn.execute(
        "SELECT coalesce(sum(requests), 0), coalesce(max(last), 0), coalesce(max(events), 0) FROM archive"
    ).fetchone()
    counted, recorded, newest = conn.execute(
        "SELECT (SELECT intents FROM meta), (SELECT count(*) FROM request), (SELECT max(id) FROM request)"
    ).fetchone()
    if recorded + requests != (newest or 0):
        found.append(f"requests: {recorded} rows, numbered to {newest}, {requests} archived")
    held, sends = conn.execute(
        "SELECT (SELECT count(*) FROM intent), (SELECT coalesce(sum(sends), 0) FROM archived)"
    ).fetchone()
    if held + sends != counted:
        found.append(f"requests: the store counted {counted} charges, {held} are recorded and {sends} archived")
    for table, name, archived in (("event", "events", events), ("audit", "audit", links)):
        rows, first, last = conn.execute(f"SELECT count(*), min(seq), coalesce(max(seq), 0) FROM {table}").fetchone()
        if rows + archived != last or (rows and first != archived + 1):
            behind = f" from {first}, behind {archived} archived" if archived else ""
            found.append(f"{name}: {rows} rows, numbered to {last}{behind}")
    return found
