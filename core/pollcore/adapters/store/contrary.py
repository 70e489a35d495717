"""Rows that contradict one another: what a foreign hand leaves behind that neither chain, counters nor triggers tell.

Job: questions, grants and contracts against the events and digests beside them; objects of the schema that are not
ours. Must not know: keys, sealed copies, how a contradiction is mended. Whoever edits events and rows alike is told by
the sealed copies alone (`audit verify --with-key`).
Source: spec A5, E7, G4, S8; docs/audit.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any, Final

import msgspec

from pollcore.adapters.store import schema
from pollcore.adapters.store.library import sqlite3, utilities
from pollcore.contract.digest import digest_of
from pollcore.facts import ChoiceKind, EventName, StopReason

MAX_FOUND: Final = 100
MAX_ROWS: Final = 1_000_000
"""Of operations that wait for a person: more are not looked at."""
_GIVE_NOTHING: Final = frozenset({ChoiceKind.CHECK_AGAIN, ChoiceKind.ASK_AGAIN})
"""Answers told as `granted` that are no new authority: no grant is kept of them."""
_HUMAN: Final = (EventName.GRANTED, EventName.REJECTED, EventName.CLOSED, EventName.HELD, EventName.HOLD_ENDED)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


_STANDS: Final = (
    "SELECT o.id, o.status, (SELECT count(*) FROM escalation q WHERE q.operation=o.op AND q.decided_at IS NULL) "
    "FROM operation o WHERE o.status IN ('escalated', 'awaiting_approval') LIMIT ?"
)
_LIVE: Final = "NOT EXISTS(SELECT 1 FROM archived a WHERE a.op=o.op)"
# What people decided, told by events: one walk over them, which no index helps, for all three comparisons. One answer
# about a contract's first use settles the questions of its other operations, too (X7): it is no grant of theirs.
_DECIDED: Final = f"""
WITH told AS MATERIALIZED (SELECT operation AS op, at, event='{EventName.GRANTED}'
    AND coalesce(decision, '') NOT IN ({_listed(sorted(_GIVE_NOTHING))})
    AND reason IS NOT '{StopReason.FIRST_USE}' AS gives
  FROM event WHERE event IN ({_listed(_HUMAN)}) AND operation IS NOT NULL),
given AS (SELECT op, sum(gives) AS events FROM told GROUP BY op HAVING sum(gives) > 0)
SELECT 'question', o.id, q.escalation_id, q.decision, 0 FROM escalation q JOIN operation o ON o.op=q.operation
  WHERE q.decided_at IS NOT NULL AND q.operator IS NOT NULL AND {_LIVE}
  AND (o.op, q.decided_at) NOT IN (SELECT op, at FROM told)
UNION ALL SELECT 'grant', o.id, g.grant_id, NULL, 0 FROM "grant" g JOIN operation o ON o.op=g.operation
  WHERE {_LIVE} AND (o.op, g.granted_at) NOT IN (SELECT op, at FROM told)
UNION ALL SELECT 'given', o.id, given.events, NULL, (SELECT count(*) FROM "grant" g WHERE g.operation=o.op)
  FROM given JOIN operation o ON o.op=given.op
  WHERE {_LIVE} AND (SELECT count(*) FROM "grant" g WHERE g.operation=o.op) < given.events
LIMIT ?
"""
"""Kind, operation, then of a question its id and decision; of a grant its id; else how many were given and are kept."""


def run(conn: Any) -> list[str]:
    """What contradicts what, a sentence each, MAX_FOUND at most; empty: nothing that can be told.

    All of one moment: a core that writes between two of the questions is no foreign hand.
    """
    if conn.in_transaction:  # an earlier ROLLBACK failed
        conn.execute("ROLLBACK")
    conn.execute("BEGIN")
    try:
        found = [*foreign(conn), *_contracts(conn), *_questions(conn), *_grants_and_events(conn)]
    finally:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
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


def _grants_and_events(conn: Any) -> Iterator[str]:
    """What people decided, as questions and grants keep it and as events tell it."""
    for kind, name, first, decision, kept in conn.execute(_DECIDED, (MAX_FOUND,)).fetchall():
        if kind == "question":
            yield f"question {first} of {name}: marked as decided ({decision}), and no event tells that"
        elif kind == "grant":
            yield f"grant {first} of {name}: no event tells that it was given"
        else:
            yield f"operation {name}: {first} grants were given by its events, {kept} are kept"
