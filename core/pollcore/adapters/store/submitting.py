"""Submissions: the same again, a duplicate, or a new row with its contract, events and question.

Job: what `submit` decides and inserts, inside the running transaction. Must not know: limits, ceilings, earlier
counters (the caller carried them over).
Source: spec S7, S8, B2, O1.
"""

from __future__ import annotations

from collections.abc import Sequence

from pollcore.adapters.store import encoding, rows
from pollcore.adapters.store.questions import save_question
from pollcore.adapters.store.reads import Reads
from pollcore.adapters.store.schema import OPEN
from pollcore.adapters.store.transaction import Prev, Transaction
from pollcore.adapters.store.writes import contract_number
from pollcore.facts import AuditEvent, Escalation, Operation, Refused, Snapshot


def already(reads: Reads, operation: Operation) -> bool:
    """True: this very submission is stored. Raises Refused (`id_taken`): another one has the id."""
    op = reads.known.op(operation.operation_id)
    if op is None:
        return False
    (digest,) = reads.conn.execute("SELECT digest FROM submission WHERE op=?", (op,)).fetchone()
    if digest != rows.submission_digest(operation.submitted):
        raise Refused(
            f"operation {operation.operation_id}: the id is taken by another submission: choose another or none",
            code="id_taken",
            operation_id=operation.operation_id,
        )
    return True


def keep_snapshot(tx: Transaction, snapshot: Snapshot) -> int:
    """Store a contract once; returns its number."""
    done = tx.conn.execute(
        "INSERT OR IGNORE INTO contract(digest, name, text, instance) VALUES(?,?,?,?)",
        (snapshot.digest, snapshot.name, snapshot.text, encoding.dump(dict(snapshot.instance))),
    ).rowcount
    tx.wrote = tx.wrote or done > 0
    return contract_number(tx, snapshot.digest)


def insert(
    tx: Transaction,
    reads: Reads,
    operation: Operation,
    snapshot: Snapshot,
    events: Sequence[AuditEvent],
    question: Escalation | None,
) -> None:
    """Insert everything that belongs to a new operation. Raises Refused (`duplicate_job`)."""
    s = operation.submitted
    if not operation.status.is_end:
        first = tx.conn.execute(
            f"SELECT id FROM operation WHERE provider=? AND account=? AND job_id=? AND {OPEN}",
            (s.provider, s.account, s.job_id),
        ).fetchone()
        if first is not None:
            raise Refused(
                f"operation {first[0]} already waits for job {s.job_id} at {s.provider}: use that one (S7)",
                code="duplicate_job",
                operation_id=first[0],
            )
    contract = keep_snapshot(tx, snapshot)
    op = 1 + (tx.conn.execute("SELECT max(op) FROM operation").fetchone()[0] or 0)
    change = tx.next_change(op)
    prev = Prev(op, None)
    for event in events:
        tx.record(event, prev)
    identity = [
        operation.operation_id,
        s.provider,
        s.account,
        s.job_id,
        operation.started_at,
        operation.submitted_at,
        # B2: what an earlier operation for the same job had used; its intents stay with that one
        operation.status_requests_used,
        operation.status_requests_used,
        operation.epoch,
    ]
    columns = reads.columns
    values = [
        *identity,
        *columns.hot(operation, change, (None, None), prev.last),
        *columns.cold(operation, contract, tx.boot),
    ]
    tx.conn.execute(f"INSERT INTO operation(op,{','.join(rows.INSERTED)}) VALUES(?{',?' * len(values)})", [op, *values])
    tx.conn.execute(
        "INSERT INTO submission(op, digest, submitted, status_url, idempotency_key) VALUES(?,?,?,?,?)",
        columns.submission(op, s),
    )
    if question is not None:
        save_question(tx, op, question)
