"""Rows that contradict one another: what a foreign hand leaves behind that neither chain, counters nor triggers tell.

Job: questions, grants and contracts against the events and digests beside them; objects of the schema that are not
ours. Must not know: keys, sealed copies, how a contradiction is mended. Whoever edits events and rows alike is told by
the sealed copies alone (`audit verify --with-key`).
Source: spec A5, E7, G4, S8; docs/audit.md.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import Any, Final

import msgspec

from pollcore.adapters.store import schema
from pollcore.adapters.store.library import sqlite3, utilities
from pollcore.contract.digest import digest_of
from pollcore.facts import ChoiceKind, EventName, StopReason

MAX_FOUND: Final = 100
MAX_ROWS: Final = 1_000_000
"""Of one table, the newest: more are not looked at."""
_GIVE_NOTHING: Final = frozenset({ChoiceKind.CHECK_AGAIN, ChoiceKind.ASK_AGAIN})
"""Answers told as `granted` that are no new authority: no grant is kept of them."""
_HUMAN: Final = (EventName.GRANTED, EventName.REJECTED, EventName.CLOSED, EventName.HELD, EventName.HOLD_ENDED)
_STANDS: Final = (
    "SELECT o.id, o.status, (SELECT count(*) FROM escalation q WHERE q.operation=o.op AND q.decided_at IS NULL) "
    "FROM operation o WHERE o.status IN ('escalated', 'awaiting_approval') LIMIT ?"
)
_DECIDED: Final = (
    "SELECT q.escalation_id, o.id, o.op, q.decided_at, q.decision "
    "FROM escalation q JOIN operation o ON o.op=q.operation WHERE q.decided_at IS NOT NULL AND q.operator IS NOT NULL "
    "AND NOT EXISTS(SELECT 1 FROM archived a WHERE a.op=o.op) ORDER BY q.rowid DESC LIMIT ?"
)
_EVENTS: Final = (
    f"SELECT operation, at, event, decision, reason FROM event WHERE event IN ({','.join('?' * len(_HUMAN))}) "
    "AND operation IS NOT NULL ORDER BY seq DESC LIMIT ?"
)
_GRANTS: Final = (
    'SELECT g.operation, o.id, g.granted_at, g.grant_id FROM "grant" g JOIN operation o ON o.op=g.operation '
    "WHERE NOT EXISTS(SELECT 1 FROM archived a WHERE a.op=o.op) ORDER BY g.rowid DESC LIMIT ?"
)


def run(conn: Any) -> list[str]:
    """What contradicts what, a sentence each, MAX_FOUND at most; empty: nothing that can be told."""
    found = [*foreign(conn), *_contracts(conn), *_questions(conn), *_grants_and_events(conn)]
    return found[:MAX_FOUND]


def foreign(conn: Any) -> list[str]:
    """Tables, indexes, triggers and views that this version does not make, has made otherwise, or misses."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        db = utilities(model)
        for number in sorted(schema.STEPS):
            schema.STEPS[number](db)
        ours = _objects(model)
    there = _objects(conn)
    found = [f"{kind} {name}: not made by this program" for kind, name in sorted(there.keys() - ours.keys())]
    found += [f"{kind} {name}: is missing" for kind, name in sorted(ours.keys() - there.keys())]
    found += [f"{key[0]} {key[1]}: altered" for key in sorted(ours.keys() & there.keys()) if ours[key] != there[key]]
    return [f"the store's schema: {line}" for line in found]


def _objects(conn: Any) -> dict[tuple[str, str], str]:
    """By kind and name: the statement that makes it, in one spacing. SQLite's own (`sqlite_...`) are left out."""
    rows = conn.execute("SELECT type, name, sql FROM sqlite_master WHERE name NOT GLOB 'sqlite_*'").fetchall()
    return {(str(kind), str(name)): " ".join(str(sql).split()) for kind, name, sql in rows}


def _contracts(conn: Any) -> list[str]:
    """A contract is addressed by the digest of its text and settings (S8)."""
    found = []
    for digest, name, text, settings in conn.execute("SELECT digest, name, text, instance FROM contract").fetchall():
        if _digest(text, settings) != digest:
            found.append(f"contract {name}: its text is not the one of its digest {str(digest)[:12]}; nothing uses it")
    return found


def _digest(text: str, settings: str) -> str | None:
    try:
        return digest_of(text, msgspec.json.decode(settings, type=dict[str, Any]))
    except msgspec.MsgspecError:
        return None


def _questions(conn: Any) -> list[str]:
    """E7: a stop asks, with one open question."""
    return [
        f"operation {name}: its status is {status}, and {asked or 'no'} questions are open: somebody decided without a "
        "record, or removed what was asked"
        for name, status, asked in conn.execute(_STANDS, (MAX_ROWS,)).fetchall()
        if asked != 1
    ]


def _grants_and_events(conn: Any) -> list[str]:
    """What people decided, as questions and grants keep it and as events tell it."""
    told = conn.execute(_EVENTS, (*_HUMAN, MAX_ROWS)).fetchall()
    moments = {(op, at) for op, at, *_ in told}
    found = [
        f"question {question} of {name}: marked as decided ({decision}), and no event tells that"
        for question, name, op, at, decision in conn.execute(_DECIDED, (MAX_ROWS,)).fetchall()
        if (op, at) not in moments
    ]
    granted = Counter(
        op
        for op, _, event, decision, reason in told
        # one answer about a contract's first use settles the questions of its other operations, too (X7)
        if event == EventName.GRANTED and decision not in _GIVE_NOTHING and reason != StopReason.FIRST_USE
    )
    kept: Counter[int] = Counter()
    names: dict[int, str] = {}
    for op, name, at, grant in conn.execute(_GRANTS, (MAX_ROWS,)).fetchall():
        kept[op] += 1
        names[op] = name
        if (op, at) not in moments:
            found.append(f"grant {grant} of {name}: no event tells that it was given")
    for op, count in granted.items():
        if kept[op] < count:
            who = names.get(op) or conn.execute("SELECT id FROM operation WHERE op=?", (op,)).fetchone()[0]
            if conn.execute("SELECT 1 FROM archived WHERE op=?", (op,)).fetchone() is None:
                found.append(f"operation {who}: {count} grants were given by its events, {kept[op]} are kept")
    return found
