"""Invariants I1 to I11 as predicates over the tables of any store file, for the tests that break things."""

from __future__ import annotations

from typing import Any

from pollcore.facts import TRANSITIONS, Status

LAWS = {
    "I2 counters lie within their limits": (
        "SELECT id FROM operation WHERE status_requests_used < carried "
        "OR status_requests_used > max(carried, max_status_requests) "
        "OR transport_failures_used NOT BETWEEN 0 AND max_transport_failures "
        "OR rate_limited_used NOT BETWEEN 0 AND max_rate_limited"
    ),
    "I4 intents are counted, and numbered without a gap": (
        "SELECT o.id FROM operation o LEFT JOIN intent i ON i.operation = o.op GROUP BY o.op "
        "HAVING count(i.n) <> o.status_requests_used - o.carried OR "
        "coalesce(max(i.n), o.carried) <> o.status_requests_used "
        "OR coalesce(min(i.n), o.carried + 1) <> o.carried + 1"
    ),
    "I5 every observation has its intent": (
        "SELECT o.intent FROM observation o "
        "LEFT JOIN intent i ON i.operation = o.operation AND i.n = o.n AND i.id = o.intent "
        "WHERE i.id IS NULL"
    ),
    "I6 epochs rise from claim to claim": (
        "SELECT a.operation FROM intent a JOIN intent b ON b.operation = a.operation AND b.n = a.n + 1 "
        "WHERE b.epoch < a.epoch OR (b.epoch = a.epoch AND (b.at <> a.at OR b.boot <> a.boot))"
    ),
    "I7 nobody is ahead of the newest owner": (
        "SELECT o.id FROM operation o JOIN intent i ON i.operation = o.op GROUP BY o.op HAVING max(i.epoch) <> o.epoch"
    ),
    "I8 every send lay before the deadline": (
        "SELECT o.id FROM operation o JOIN intent i ON i.operation = o.op WHERE i.at >= o.deadline_at"
    ),
    "I11 one open question at most": (
        "SELECT operation FROM escalation WHERE decided_at IS NULL GROUP BY operation HAVING count(*) > 1"
    ),
    "numbers of events have no gap": "SELECT count(*) FROM event HAVING count(*) <> coalesce(max(seq), 0)",
    "each event names the one before it": (
        "SELECT e.seq FROM event e WHERE e.operation IS NOT NULL AND e.prev IS NOT "
        "(SELECT max(p.seq) FROM event p WHERE p.operation = e.operation AND p.seq < e.seq)"
    ),
    "each operation names its newest event": (
        "SELECT o.id FROM operation o WHERE o.last_event IS NOT (SELECT max(seq) FROM event e WHERE e.operation = o.op)"
    ),
    "each charge has its event": (
        "SELECT o.id FROM operation o WHERE (SELECT count(DISTINCT epoch) FROM intent i WHERE i.operation = o.op) <> "
        "(SELECT count(*) FROM event e WHERE e.operation = o.op AND e.event = 'sent')"
    ),
}


def broken(conn: Any) -> list[str]:
    """The names of the laws that the tables break, with the rows that do."""
    found = []
    for name, sql in LAWS.items():
        rows = conn.execute(sql).fetchall()
        if rows:
            found.append(f"{name}: {rows[:5]}")
    return found


def illegal(before: Status, after: Status) -> bool:
    """Whether TRANSITIONS knows no such way."""
    return before is not after and after not in TRANSITIONS[before]
