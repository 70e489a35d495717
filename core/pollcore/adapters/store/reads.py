"""Reading: operations, questions, events, answers, figures, on any one connection.

Job: rows to records, every cursor read to its end at once (a half-read one pins the WAL). Must not know: writing.
Source: spec V1, A2, B2; reliability section 4 (readers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from pollcore.adapters.store import event_rows, rows, schema, shared
from pollcore.adapters.store.memory import Known
from pollcore.adapters.store.transaction import AUDIT_NOTE, audit_tip
from pollcore.facts import (
    ActionKind,
    ActionOutcome,
    ActionRecord,
    AuditEvent,
    BootMs,
    Escalation,
    Instant,
    Intent,
    Operation,
    Snapshot,
    StopReason,
)
from pollcore.ports import AuditLink, AuditTip, Denial, Filter, Sealer, Stored, Worker

MAX_ROWS: Final = 100_000
"""No list is longer, whatever is asked for."""
QUESTION: Final = [
    "escalation_id",
    *(f for f in Escalation.__struct_fields__ if f not in ("escalation_id", "operation_id")),
]
ANSWER: Final = "o.n, o.answered_at, o.http_code, o.fault, o.state, o.verdict, o.decision, o.envelope, b.body, o.draw"
ANSWERED: Final = "JOIN observation o ON o.intent=i.id LEFT JOIN last_body b ON b.op=i.operation AND b.n=i.n"
ACTION: Final = "action_id, kind, outcome, at, answered_at, http_code, detail, grant_id"
_EVENTS: Final = ", ".join(f"e.{c}" for c in event_rows.EVENT_COLUMNS)
_WITH_CALLER: Final = "FROM operation o JOIN submission s ON s.op=o.op"
_OF_CALLER: Final = "WHERE o.account=?1 AND json_extract(s.submitted,'$.caller') IS ?2"
# From the newest event of the operation backwards: there is no index by operation (schema.py says why).
_STORY: Final = f"""
WITH RECURSIVE story(seq) AS (SELECT last_event FROM operation WHERE op=?1
  UNION ALL SELECT e.prev FROM story s JOIN event e ON e.seq = s.seq WHERE e.prev > ?2)
SELECT e.seq, {_EVENTS} FROM story s JOIN event e ON e.seq = s.seq WHERE e.seq > ?2 ORDER BY e.seq LIMIT ?3
"""


class Reads:
    """All reads over one connection."""

    def __init__(self, conn: Any, sealer: Sealer) -> None:
        self.conn = conn
        self.columns = rows.Columns(sealer)
        self.known = Known(conn, self.columns)

    def records(self, found: Sequence[tuple[Any, ...]]) -> tuple[Operation, ...]:
        """The operations of rows in the order of rows.COLUMNS."""
        known, make = self.known, self.columns.operation
        made = []
        for row in found:
            op, owner = row[0], row[6]
            known.keep_op(row[1], op)
            name = None if owner is None else known.name(owner)
            made.append(make(row, known.submitted(op), name, known.contract(row[8]), known.boot(row[12])))
        return tuple(made)

    def operation(self, operation_id: str) -> Operation | None:
        """One operation."""
        found = self.conn.execute(f"{rows.SELECT} WHERE id=?", (operation_id,)).fetchall()
        return self.records(found)[0] if found else None

    def by_job(self, provider: str, account: str, job_id: str) -> tuple[Operation, ...]:
        """All operations for one job, newest first (B2)."""
        found = self.conn.execute(
            f"{rows.SELECT} WHERE job_id=? AND provider=? AND account=? ORDER BY op DESC LIMIT ?",
            (job_id, provider, account, MAX_ROWS),
        )
        return self.records(found.fetchall())

    def operations(self, wanted: Filter) -> tuple[Operation, ...]:
        """By change number, newest first. *since*: submitted at or after it."""
        where: list[str] = ["1"]
        values: list[str | int] = []
        if wanted.statuses:
            where.append(f"status IN ({','.join('?' * len(wanted.statuses))})")
            values += [s.value for s in wanted.statuses]
        if wanted.provider is not None:
            where.append("provider=?")
            values.append(wanted.provider)
        if wanted.since is not None:
            where.append("submitted_at>=?")
            values.append(wanted.since)
        if wanted.changed_since is not None:
            where.append("change>?")
            values.append(wanted.changed_since)
            if self._listed(wanted.changed_since):
                where.append("op IN (SELECT op FROM touched WHERE change>?)")
                values.append(wanted.changed_since)
        limit = max(0, min(wanted.limit, MAX_ROWS))
        found = self.conn.execute(
            f"{rows.SELECT} WHERE {' AND '.join(where)} ORDER BY change DESC, op DESC LIMIT {limit}", values
        )
        return self.records(found.fetchall())

    def _listed(self, since: int) -> bool:
        """Whether `touched` lists every write after *since*."""
        oldest = self.conn.execute("SELECT min(change) FROM touched").fetchone()[0]
        return oldest is not None and oldest <= since + 1

    def questions(self, operation_id: str | None = None, *, open_only: bool = True) -> tuple[Escalation, ...]:
        """Questions, oldest first."""
        where, values = ["1"], []
        if operation_id is not None:
            where.append("o.id=?")
            values.append(operation_id)
        if open_only:
            where.append("e.decided_at IS NULL")
        found = self.conn.execute(
            f"SELECT o.id, {', '.join('e.' + c for c in QUESTION)} "
            "FROM escalation e JOIN operation o ON o.op=e.operation "
            f"WHERE {' AND '.join(where)} ORDER BY e.asked_at, e.rowid LIMIT {MAX_ROWS}",
            values,
        ).fetchall()
        return tuple(question_record(row) for row in found)

    def events(
        self, operation_id: str | None = None, *, after: int = 0, limit: int = 10_000
    ) -> tuple[tuple[int, AuditEvent], ...]:
        """In the order written: (sequence number, event)."""
        limit = max(0, min(limit, MAX_ROWS))
        if operation_id is not None:
            op = self.known.op(operation_id)
            if op is None:
                return ()
            found = self.conn.execute(_STORY, (op, after, limit)).fetchall()
            return tuple((row[0], event_rows.event_record(operation_id, row[1:])) for row in found)
        found = self.conn.execute(
            f"SELECT e.seq, o.id, {_EVENTS} FROM event e LEFT JOIN operation o ON o.op=e.operation "
            "WHERE e.seq>? ORDER BY e.seq LIMIT ?",
            (after, limit),
        ).fetchall()
        return tuple((row[0], event_rows.event_record(row[1], row[2:])) for row in found)

    def snapshot(self, digest: str) -> Snapshot | None:
        """The contract as it was at submission (S8)."""
        row = self.conn.execute(
            "SELECT digest, name, text, instance FROM contract WHERE digest=?", (digest,)
        ).fetchone()
        if row is None:
            return None
        return Snapshot(digest=row[0], name=row[1], text=row[2], instance=msgspec.json.decode(row[3]))

    def last_answer(self, operation_id: str) -> Stored | None:
        """The newest answer with its envelope, and its body if kept. Raises SealedUnreadable."""
        op = self.known.op(operation_id)
        if op is None:
            return None
        row = self.conn.execute(
            f"SELECT {ANSWER} FROM intent i {ANSWERED} "
            "WHERE i.operation=? AND o.http_code IS NOT NULL ORDER BY i.n DESC LIMIT 1",
            (op,),
        ).fetchone()
        if row is None:
            return None
        return self.stored(operation_id, row)

    def stored(self, operation_id: str, row: tuple[Any, ...]) -> Stored:
        """An answer from a row in the order of ANSWER. Raises SealedUnreadable."""
        unseal = self.columns.sealer.open
        return Stored(
            operation_id=operation_id,
            n=row[0],
            answered_at=row[1],
            http_code=row[2],
            fault=row[3],
            state=row[4],
            verdict=row[5],
            decision=row[6],
            envelope=b"" if row[7] is None else unseal("observation.envelope", row[7]),
            last_body=None if row[8] is None else unseal("operation.last_body", row[8]),
            draw=row[9],
        )

    def load_of(self, caller: str | None, account: str, since: Instant) -> tuple[int, int]:
        """Operations of one caller and account that have not ended, and their requests since then (B1).

        Intents are read of those alone that can have one since: answered or failed since then, or still in flight.
        """
        (unended,) = self.conn.execute(
            f"SELECT count(*) {_WITH_CALLER} {_OF_CALLER} AND o.{schema.OPEN}", (account, caller)
        ).fetchone()
        (charged,) = self.conn.execute(
            f"SELECT count(*) {_WITH_CALLER} CROSS JOIN intent i ON i.operation=o.op {_OF_CALLER} AND i.at>=?3 "
            "AND (o.lease_owner IS NOT NULL OR o.http_answered_at>=?3 OR o.last_fault_at>=?3)",
            (account, caller, since),
        ).fetchone()
        return int(unended), int(charged)

    def denials(self) -> tuple[Denial, ...]:
        """All refused secrets that are remembered (H3)."""
        return shared.denials(self.conn)

    def intents(self, operation_id: str) -> tuple[Intent, ...]:
        """Every charge of one operation, in order."""
        found = self.conn.execute(
            "SELECT i.n, i.request, i.step, i.epoch, i.at, i.boot, coalesce(r.boot_no, 0) FROM intent i "
            "LEFT JOIN request r ON r.id=i.request WHERE i.operation=? ORDER BY i.n",
            (self.known.op(operation_id),),
        ).fetchall()
        return tuple(Intent(operation_id, n, r, s, e, Instant(at), BootMs(b), no) for n, r, s, e, at, b, no in found)

    def actions(self, operation_id: str) -> tuple[ActionRecord, ...]:
        """Cancels, fetches and resubmits of one operation, oldest first."""
        found = self.conn.execute(
            f"SELECT {ACTION} FROM action WHERE operation=? ORDER BY rowid",
            (self.known.op(operation_id),),
        ).fetchall()
        return tuple(action_record(operation_id, row) for row in found)

    def counts(self) -> Mapping[str, int]:
        """Operations by status, and open `questions`."""
        found = dict(self.conn.execute("SELECT status, count(*) FROM operation GROUP BY status").fetchall())
        (found["questions"],) = self.conn.execute(
            "SELECT (SELECT count(*) FROM escalation WHERE decided_at IS NULL) "
            "+ (SELECT count(*) FROM credential_question WHERE decided_at IS NULL)"
        ).fetchone()
        return found

    def change(self) -> int:
        """The store's change number."""
        return int(self.conn.execute("SELECT change FROM meta").fetchone()[0])

    def workers(self) -> tuple[Worker, ...]:
        """Heartbeats, newest first."""
        return tuple(shared.workers(self.conn))

    def audit_links(self, after: int = 0, limit: int = 10_000) -> tuple[AuditLink, ...]:
        """Links of the chain, in order, bytes as hashed."""
        found = self.conn.execute(
            "SELECT seq, blob, hash FROM audit WHERE seq>? ORDER BY seq LIMIT ?", (after, max(0, min(limit, MAX_ROWS)))
        ).fetchall()
        return tuple(AuditLink(*row) for row in found)

    def audit_tip(self) -> AuditTip | None:
        """The last link of the chain."""
        return audit_tip(self.conn)

    def audit_notes(self, after: int = 0, limit: int = 10_000) -> tuple[tuple[int, str], ...]:
        """Signed checkpoints, by the number of their link; what is no text is shown as far as it is."""
        found = self.conn.execute(
            "SELECT name, value FROM document WHERE kind=? AND name>? ORDER BY name LIMIT ?",
            (AUDIT_NOTE, f"{after:020d}", max(0, min(limit, MAX_ROWS))),
        ).fetchall()
        return tuple((_number(name), bytes(value).decode("utf-8", "replace")) for name, value in found)

    def document(self, kind: str, name: str) -> bytes | None:
        """One small record of another adapter."""
        found = self.conn.execute("SELECT value FROM document WHERE kind=? AND name=?", (kind, name)).fetchone()
        return None if found is None else bytes(found[0])

    def documents(self, kind: str) -> Mapping[str, bytes]:
        """Small records that other adapters keep here, by name."""
        return dict(
            self.conn.execute("SELECT name, value FROM document WHERE kind=? ORDER BY name", (kind,)).fetchall()
        )


def _number(name: str) -> int:
    """Of a checkpoint's document; 0: no name of ours."""
    return int(name) if len(name) == 20 and name.isascii() and name.isdecimal() else 0


def question_record(row: tuple[Any, ...]) -> Escalation:
    """A question from a row of its operation's id and the columns of QUESTION."""
    fields = dict(zip(QUESTION, row[1:], strict=True))
    fields["reason"] = StopReason(fields["reason"])
    return Escalation(operation_id=row[0], **fields)


def action_record(operation_id: str, row: tuple[Any, ...]) -> ActionRecord:
    """An action from a row of the columns of ACTION."""
    action_id, kind, outcome, at, answered_at, http_code, detail, grant_id = row
    return ActionRecord(
        action_id=action_id,
        operation_id=operation_id,
        kind=ActionKind(kind),
        outcome=ActionOutcome(outcome),
        at=at,
        answered_at=answered_at,
        http_code=http_code,
        detail=detail,
        grant_id=grant_id,
    )
