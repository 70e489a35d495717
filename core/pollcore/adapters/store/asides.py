"""Write transactions beside the records of operations: sessions, what a screen tells of itself, small documents.

Job: order their steps on the writer, events with them. Must not know: rows of operations, who decides.
Source: spec G6, G7, O1.
"""

from __future__ import annotations

from collections.abc import Sequence

from pollcore.adapters.store import approvals
from pollcore.adapters.store.transaction import Transaction
from pollcore.adapters.store.turns import SqliteTurns
from pollcore.facts import AuditEvent, Instant, Moment
from pollcore.ports import Window


def end_sessions(
    store: SqliteTurns, now: Moment, why: str, credential: str | None, owner: str | None, event: AuditEvent
) -> int:
    """End all sessions of a credential or a run. *event* is recorded if one of them could still be used."""

    def work(tx: Transaction) -> int:
        ended = approvals.end_sessions(tx, why, credential, owner)
        if ended:
            tx.next_change()
            store.add_events(tx, [event])
        return ended

    return store.writer.run(now, "ending sessions", work)


def mark_seen(store: SqliteTurns, now: Moment, operation_id: str, escalation_id: str) -> bool:
    """The card of an open question was painted; the first time stays."""
    op = store.known.op(operation_id)
    if op is None:
        return False
    return store.writer.run(now, "keeping that a card was seen", lambda tx: approvals.mark_seen(tx, op, escalation_id))


def present(store: SqliteTurns, now: Moment, owner: str, started_at: Instant) -> None:
    """A console is open on the store (G7)."""
    store.writer.run(now, "keeping that a console is open", lambda tx: approvals.present(tx, owner, started_at))


def set_windows(store: SqliteTurns, now: Moment, windows: Sequence[Window]) -> int:
    """Start or stop the time of open questions."""
    return store.writer.run(now, "keeping the time of questions", lambda tx: approvals.set_windows(tx, windows))


def put_document(
    store: SqliteTurns, now: Moment, kind: str, name: str, value: bytes | None, events: Sequence[AuditEvent]
) -> None:
    """Keep or (None) remove a small record of another adapter: credential metadata, approvals of a run."""

    def work(tx: Transaction) -> None:
        if value is None:
            tx.conn.execute("DELETE FROM document WHERE kind=? AND name=?", (kind, name))
        else:
            tx.conn.execute("INSERT OR REPLACE INTO document(kind, name, value) VALUES(?,?,?)", (kind, name, value))
        tx.next_change()
        store.add_events(tx, events)

    store.writer.run(now, "keeping a record", work)
