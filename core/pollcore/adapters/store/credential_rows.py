"""Questions that belong to a credential and to no operation: asked once, settled once, durable.

Job: their rows, and the document of the credential that they are about, compared before it is changed. Must not know:
modes and their order, who may ask or decide.
Source: spec G2, G4, G6, E7.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pollcore.adapters.store import encoding
from pollcore.adapters.store.transaction import Transaction
from pollcore.facts import Escalation, Grant, Stale
from pollcore.ports import CredentialAsked

MAX_ROWS: Final = 10_000
SUPERSEDED: Final = "superseded"
_ROW: Final = "SELECT asked, decided_at, decision, operator, decision_text FROM credential_question"
_read: Final = msgspec.json.Decoder(CredentialAsked)


class Held(msgspec.Struct, frozen=True):
    """A document that must be as it was read (None: not there), and what it becomes (None: it is removed)."""

    kind: str
    name: str
    before: bytes | None
    after: bytes | None


def listing(conn: Any, open_only: bool) -> tuple[Escalation, ...]:
    """Oldest first."""
    where = " WHERE decided_at IS NULL" if open_only else ""
    found = conn.execute(f"{_ROW}{where} ORDER BY asked_at, rowid LIMIT {MAX_ROWS}").fetchall()
    return tuple(_record(row).question for row in found)


def find(conn: Any, escalation_id: str) -> CredentialAsked | None:
    """One question, open or decided."""
    row = conn.execute(f"{_ROW} WHERE escalation_id=?", (escalation_id,)).fetchone()
    return None if row is None else _record(row)


def _record(row: tuple[Any, ...]) -> CredentialAsked:
    asked = _read.decode(row[0])
    question = msgspec.structs.replace(
        asked.question, decided_at=row[1], decision=row[2], operator=row[3], decision_text=row[4]
    )
    return msgspec.structs.replace(asked, question=question)


def ask(tx: Transaction, asked: CredentialAsked, held: Held) -> CredentialAsked:
    """Insert; an open question for the same is returned as it is, one for something else is superseded.

    Raises Stale: the credential is not as *held* says.
    """
    check(tx, held)
    name = asked.info.name
    row = tx.conn.execute(f"{_ROW} WHERE credential=? AND decided_at IS NULL", (name,)).fetchone()
    if row is not None:
        former = _record(row)
        if (former.info, former.after) == (asked.info, asked.after):
            return former
        tx.conn.execute(
            "UPDATE credential_question SET decided_at=?, decision=? WHERE escalation_id=?",
            (tx.now.wall, SUPERSEDED, former.question.escalation_id),
        )
    tx.conn.execute(
        "INSERT INTO credential_question(escalation_id, credential, asked, asked_at) VALUES(?,?,?,?)",
        (asked.question.escalation_id, name, encoding.dump(asked), asked.question.asked_at),
    )
    tx.next_change()
    return asked


def settle(tx: Transaction, closed: Escalation, grant: Grant | None, held: Held | None) -> None:
    """Close the question, keep its grant, change the credential. Raises Stale: decided already, or *held* moved."""
    done = tx.conn.execute(
        "UPDATE credential_question SET decided_at=?, decision=?, operator=?, decision_text=? "
        "WHERE escalation_id=? AND decided_at IS NULL",
        (
            closed.decided_at,
            encoding.text(closed.decision),
            encoding.text(closed.operator),
            encoding.text(closed.decision_text),
            closed.escalation_id,
        ),
    ).rowcount
    if not done:
        raise Stale(f"question {closed.escalation_id} was decided already; nothing was done")
    if held is not None:
        check(tx, held)
        put(tx, held)
    if grant is not None:
        tx.conn.execute(
            "INSERT INTO credential_grant(grant_id, escalation_id, granted_at, body) VALUES(?,?,?,?)",
            (grant.grant_id, closed.escalation_id, grant.granted_at, encoding.dump(grant)),
        )
    tx.next_change()


def check(tx: Transaction, held: Held) -> None:
    """Raises Stale: the document is not as it was read."""
    row = tx.conn.execute("SELECT value FROM document WHERE kind=? AND name=?", (held.kind, held.name)).fetchone()
    if (None if row is None else bytes(row[0])) != held.before:
        raise Stale(f"{held.kind} {held.name} has changed since it was read; nothing was done: look again")


def put(tx: Transaction, held: Held) -> None:
    """What the document becomes."""
    if held.after is None:
        tx.conn.execute("DELETE FROM document WHERE kind=? AND name=?", (held.kind, held.name))
        return
    tx.conn.execute(
        "INSERT OR REPLACE INTO document(kind, name, value) VALUES(?,?,?)", (held.kind, held.name, held.after)
    )
