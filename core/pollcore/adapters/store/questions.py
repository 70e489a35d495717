"""Questions and actions of one operation: opened, settled once, never rewritten.

Job: their rows. Must not know: whether a question may be asked or answered now (writes.py checks that).
Source: spec E7, O5; reliability I11.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore.adapters.store import encoding
from pollcore.adapters.store.transaction import Transaction
from pollcore.facts import ActionRecord, Escalation

_QUESTION: Final = tuple(f for f in Escalation.__struct_fields__ if f != "operation_id")


def save_question(tx: Transaction, op: int, question: Escalation) -> None:
    """Insert an open question; a second open one breaks the unique index (I11)."""
    plain = msgspec.to_builtins(question)
    tx.conn.execute(
        f"INSERT INTO escalation(operation, {', '.join(_QUESTION)}) VALUES(?{', ?' * len(_QUESTION)})",
        (op, *(encoding.text(v) if isinstance(v := plain[f], str) else v for f in _QUESTION)),
    )
    tx.wrote = True


def save_action(tx: Transaction, op: int, action: ActionRecord) -> None:
    """Insert an action, or move its outcome on; a settled outcome stays.

    `unknown` without an answer is none: a late one may still tell what became of it (O5).
    """
    tx.conn.execute(
        "INSERT INTO action(action_id, operation, kind, outcome, at, answered_at, http_code, detail, grant_id) "
        "VALUES(?,?,?,?,?,?,?,?,?) ON CONFLICT(action_id) DO UPDATE SET outcome=excluded.outcome, "
        "answered_at=excluded.answered_at, http_code=excluded.http_code, detail=excluded.detail "
        "WHERE outcome='intended' OR (outcome='unknown' AND action.answered_at IS NULL)",
        (
            action.action_id,
            op,
            action.kind.value,
            action.outcome.value,
            action.at,
            action.answered_at,
            action.http_code,
            encoding.text(action.detail),
            action.grant_id,
        ),
    )
    tx.wrote = True


def close_question(tx: Transaction, question: Escalation) -> None:
    """Settle an open question; a settled one stays as it is."""
    tx.conn.execute(
        "UPDATE escalation SET decided_at=?, decision=?, operator=?, decision_text=? "
        "WHERE escalation_id=? AND decided_at IS NULL",
        (
            question.decided_at if question.decided_at is not None else tx.now.wall,
            encoding.text(question.decision),
            encoding.text(question.operator),
            encoding.text(question.decision_text),
            question.escalation_id,
        ),
    )
    tx.wrote = True
