"""Write transactions about questions that belong to no operation, and about contracts that were looked at.

Job: order their steps on the writer, events and audit links with them. Must not know: rows of operations, who decides.
Source: spec G2, G4, G5, O1.
"""

from __future__ import annotations

from collections.abc import Sequence

from pollcore.adapters.store import contract_rows, credential_rows
from pollcore.adapters.store.credential_rows import Held
from pollcore.adapters.store.transaction import Transaction
from pollcore.adapters.store.turns import SqliteTurns
from pollcore.facts import AuditEvent, Escalation, Grant, Moment
from pollcore.ports import CredentialAsked


def contract_seen(store: SqliteTurns, now: Moment, digest: str, operator: str, event: AuditEvent) -> bool:
    """G5: keep who saw a contract first; False: that was known, and nothing is recorded."""

    def work(tx: Transaction) -> bool:
        new = contract_rows.save_seen(tx, digest, now.wall, operator)
        if new:
            tx.next_change()
            store.add_events(tx, (event,))
        return new

    return store.writer.run(now, "recording who saw a contract", work)


def ask(store: SqliteTurns, now: Moment, asked: CredentialAsked, held: Held, event: AuditEvent) -> CredentialAsked:
    """Store a question about a credential, or return the open one that asks for the same. Raises Stale."""

    def work(tx: Transaction) -> CredentialAsked:
        stored = credential_rows.ask(tx, asked, held)
        if stored is asked:
            store.add_events(tx, (event,))
        return stored

    return store.writer.run(now, "asking about a credential", work)


def settle(
    store: SqliteTurns,
    now: Moment,
    closed: Escalation,
    events: Sequence[AuditEvent],
    grant: Grant | None,
    held: Held | None,
) -> None:
    """Settle a question about a credential, with its grant and its effect (G4). Raises Stale."""

    def work(tx: Transaction) -> None:
        credential_rows.settle(tx, closed, grant, held)
        store.add_events(tx, events)

    store.writer.run(now, "recording a decision", work)


def change_documents(store: SqliteTurns, now: Moment, held: Sequence[Held], events: Sequence[AuditEvent]) -> None:
    """Replace or remove small records, only while each is as it was read. Raises Stale."""

    def work(tx: Transaction) -> None:
        for one in held:
            credential_rows.check(tx, one)
        for one in held:
            credential_rows.put(tx, one)
        tx.next_change()
        store.add_events(tx, events)

    store.writer.run(now, "keeping a record", work)
