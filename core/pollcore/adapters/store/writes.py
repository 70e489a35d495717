"""Conditional writes: results of lease owners, decisions of operators, every change of an operation but a claim.

Job: check each fence against the row as it is, then write row, observation, question, grant, action and events in one
batch. Must not know: when a write is due, who decided it.
Source: spec O2, O3, E7, S9, G4; reliability I2-I7, I9, I11, I12.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pollcore.adapters.store import approvals, contract_rows, encoding, rows
from pollcore.adapters.store.fences import Fence, load_intents
from pollcore.adapters.store.memory import Known
from pollcore.adapters.store.questions import close_question, save_action, save_question
from pollcore.adapters.store.transaction import Transaction
from pollcore.facts import (
    TRANSITIONS,
    AuditEvent,
    Escalation,
    EventName,
    Refused,
    Stale,
    Status,
    StoreUnusable,
)
from pollcore.ports import Write

MAX_BODY_BYTES: Final = 16 << 10
MAX_ENVELOPE_BYTES: Final = 8 << 10
"""The reader keeps envelopes to 2 KiB; a longer one is not kept at all rather than cut into something else."""
SUPERSEDED: Final = "superseded"

_OBSERVE: Final = (
    "INSERT INTO observation(intent, operation, n, answered_at, http_code, fault, state, verdict, decision, "
    "draw, envelope) "
    "VALUES(?,?,?,?,?,?,?,?,?,?,?)"
)


class Batch:
    """Writes of one transaction, gathered and then executed together."""

    def __init__(
        self, tx: Transaction, columns: rows.Columns, known: Known, fences: dict[str, Fence], writes: Sequence[Write]
    ) -> None:
        self._tx = tx
        self._columns = columns
        self._known = known
        self._fences = fences
        self._hot: list[list[Any]] = []
        self._all: list[list[Any]] = []
        self._seen: list[list[Any]] = []
        self._bodies: list[tuple[int, int, bytes]] = []
        self._pending: list[Fence] = []
        pairs = [
            (fences[w.after.operation_id].op, w.stored.n) for w in writes if w.stored and w.after.operation_id in fences
        ]
        self._intents = load_intents(tx.conn, pairs)

    def refusal(self, write: Write) -> str | None:
        """Why *write* cannot be taken, in words; None: it can. Begins with `moved` if only the base is older."""
        after = write.after
        fence = self._fences.get(after.operation_id)
        if fence is None:
            return "no such operation"
        if write.fence_epoch is not None:
            if fence.epoch != write.fence_epoch:
                return f"lease epoch {write.fence_epoch} was taken over by {fence.epoch}"
        elif write.fence_change is None:
            return "a write without a fence"
        ended = Status(fence.status).is_end
        base = after.change if write.fence_epoch is not None else write.fence_change
        if base != fence.change:
            return f"{'ended' if ended else 'moved'}: change {base} is now {fence.change}"
        if write.fence_version is not None and write.fence_version != fence.version:
            return f"version {write.fence_version} is now {fence.version}"
        if after.status.value != fence.status and after.status not in TRANSITIONS[Status(fence.status)]:
            return f"there is no way from {fence.status} to {after.status.value}"
        return self._refused_parts(write, fence)

    def _refused_parts(self, write: Write, fence: Fence) -> str | None:
        ask = self._tx.conn.execute
        if write.stored is not None:
            n = write.stored.n
            known = self._intents.get((fence.op, n))
            if known is None:
                return f"request {n} was never charged"
            if known[1]:
                return f"request {n} has its answer already"
        if write.grant is not None:
            if write.grant.version != fence.version:
                return f"the card showed version {write.grant.version}, it is {fence.version} now"
            if ask('SELECT 1 FROM "grant" WHERE grant_id=?', (write.grant.grant_id,)).fetchone():
                return "the grant was used already"
        if write.contract_use is not None and (
            why := contract_rows.refusal(self._tx.conn, write.after.contract_digest, write.contract_use, write.grant)
        ):
            return why
        if (
            write.close_question is not None
            and not ask(
                "SELECT 1 FROM escalation WHERE escalation_id=? AND operation=? AND decided_at IS NULL",
                (write.close_question.escalation_id, fence.op),
            ).fetchone()
        ):
            return "the question was decided already"
        return None

    def question_in_the_way(self, write: Write) -> str | None:
        """A write that opens a question while another one is open and stays so."""
        if write.open_question is None:
            return None
        closing = write.close_question.escalation_id if write.close_question else None
        other = self._tx.conn.execute(
            "SELECT escalation_id FROM escalation WHERE operation=? AND decided_at IS NULL AND escalation_id IS NOT ?",
            (self._fences[write.after.operation_id].op, closing),
        ).fetchone()
        return None if other is None else f"question {other[0]} is open already"

    def take(self, write: Write, *, release: bool, supersede: bool) -> int:
        """Gather a write that was not refused; returns its change number.

        *release*: the lease ends with it. *supersede*: an open question that stands in the way is closed (E7).
        """
        tx, after = self._tx, write.after
        fence = self._fences[after.operation_id]
        if fence.pending:
            self.flush()
        change = tx.next_change(fence.op)
        for event in write.events:
            tx.record(event, fence)
        if write.close_question is not None:
            close_question(tx, write.close_question)
        if write.open_question is not None:
            self._open(fence, write.open_question, supersede)
        elif supersede and after.status.is_end and not Status(fence.status).is_end:
            # E7: an end without a question of its own settles the one that left the wait going
            self._supersede(fence)
        if write.stored is not None:
            self._observe(fence, write)
        if write.grant is not None:
            self._grant(fence, write)
            if write.contract_use is not None:
                told = contract_rows.save_use(tx, after.contract_digest, write.contract_use, write.grant)
                if told is not None:
                    tx.record(told, fence)
        if write.action is not None:
            save_action(tx, fence.op, write.action)
        if write.uses is not None and not approvals.use(tx, fence.op, write.uses, write.uses.used_for or "?"):
            raise Stale(
                f"operation {after.operation_id}: the leave for this call is used up or expired; nothing was done"
            )
        if write.approval is not None:
            approvals.save_approval(tx, fence.op, write.approval)
        if write.session is not None:
            approvals.save_session(tx, write.session)
        lease = (None, None) if release else (fence.lease_owner, fence.lease_until)
        self._row(write, fence, change, lease)
        fence.change, fence.version, fence.status = change, after.version, after.status.value
        fence.lease_owner, fence.lease_until = lease
        return change

    def _row(self, write: Write, fence: Fence, change: int, lease: tuple[int | None, int | None]) -> None:
        after = write.after
        values = self._columns.hot(after, change, lease, fence.last)
        fence.pending = True
        self._pending.append(fence)
        if _is_hot(write, fence):
            self._hot.append([*values, fence.op, fence.change])
            return
        contract = fence.contract
        if self._known.contract(contract) != after.contract_digest:
            contract = contract_number(self._tx, after.contract_digest)
        fence.contract = contract
        self._all.append([*values, *self._columns.cold(after, contract, fence.boot), fence.op, fence.change])

    def late(self, write: Write, why: str) -> None:
        """Leave nothing of a refused result but one event (O2)."""
        after, stored = write.after, write.stored
        fence = self._fences.get(after.operation_id)
        if fence is None:
            return
        if fence.pending:
            self.flush()
        self._tx.record(
            AuditEvent(
                at=self._tx.now.wall,
                event=EventName.LATE_RESULT,
                operation_id=after.operation_id,
                state=stored.state if stored else None,
                http=stored.http_code if stored else None,
                fault=stored.fault if stored else None,
                requests_used=stored.n if stored else None,
                detail=why,
            ),
            fence,
        )
        held = fence.lease_owner is not None and fence.epoch == write.fence_epoch and write.release_lease
        if held:  # ours still, over an operation that has ended meanwhile
            fence.lease_owner = fence.lease_until = None
        self._tx.conn.execute(
            "UPDATE operation SET last_event=?, lease_owner=?, lease_until=? WHERE op=?",
            (fence.last, fence.lease_owner, fence.lease_until, fence.op),
        )

    def flush(self) -> None:
        """Execute what was gathered; every row must still be as its fence said."""
        conn, wanted = self._tx.conn, len(self._hot) + len(self._all)
        if wanted:
            got = conn.executemany(rows.UPDATE_HOT, self._hot).rowcount if self._hot else 0
            got += conn.executemany(rows.UPDATE_ALL, self._all).rowcount if self._all else 0
            must(got, wanted, "operations took their write")
        if self._seen:
            conn.executemany(_OBSERVE, self._seen)
        if self._bodies:
            conn.executemany("INSERT OR REPLACE INTO last_body(op, n, body) VALUES(?,?,?)", self._bodies)
        for gathered in (self._hot, self._all, self._seen, self._bodies):
            gathered.clear()
        for fence in self._pending:
            fence.pending = False
        self._pending.clear()

    def _observe(self, fence: Fence, write: Write) -> None:
        stored = write.stored
        assert stored is not None
        seal = self._columns.sealer.seal
        intent, _ = self._intents[fence.op, stored.n]
        self._intents[fence.op, stored.n] = (intent, True)
        keep = 0 < len(stored.envelope) <= MAX_ENVELOPE_BYTES
        self._seen.append(
            [
                intent,
                fence.op,
                stored.n,
                stored.answered_at,
                stored.http_code,
                encoding.text(stored.fault),
                encoding.text(stored.state),
                str(stored.verdict),
                str(stored.decision),
                stored.draw,
                seal("observation.envelope", stored.envelope) if keep else None,
            ]
        )
        if stored.last_body is not None and len(stored.last_body) <= MAX_BODY_BYTES:
            self._bodies.append((fence.op, stored.n, seal("operation.last_body", stored.last_body)))

    def _open(self, fence: Fence, question: Escalation, supersede: bool) -> None:
        if supersede:
            self._supersede(fence)
        save_question(self._tx, fence.op, question)

    def _supersede(self, fence: Fence) -> None:
        self._tx.conn.execute(
            "UPDATE escalation SET decided_at=?, decision=? WHERE operation=? AND decided_at IS NULL",
            (self._tx.now.wall, SUPERSEDED, fence.op),
        )

    def _grant(self, fence: Fence, write: Write) -> None:
        grant = write.grant
        assert grant is not None
        self._tx.conn.execute(
            'INSERT INTO "grant"(grant_id, operation, escalation_id, version, granted_at, body) VALUES(?,?,?,?,?,?)',
            (grant.grant_id, fence.op, grant.escalation_id, grant.version, grant.granted_at, encoding.dump(grant)),
        )


def _is_hot(write: Write, fence: Fence) -> bool:
    """Nothing but HOT columns can differ: `version` counts limits, contract, credential, question and status."""
    after = write.after
    return (
        after.version == fence.version
        and after.status.value == fence.status
        and after.stop_reason is None
        and after.result is None
        and write.grant is None
        and write.open_question is None
        and write.close_question is None
    )


def must(got: int, wanted: int, what: str) -> None:
    """Stop, and undo everything, when a statement did not do what the checks before it had promised."""
    if got != wanted:
        raise StoreUnusable(f"store: only {got} of {wanted} {what}; nothing was done: this is our fault, report it")


def contract_number(tx: Transaction, digest: str) -> int:
    """The number of a stored snapshot. Raises Refused: it was never stored."""
    row = tx.conn.execute("SELECT no FROM contract WHERE digest=?", (digest,)).fetchone()
    if row is None:
        raise Refused(f"contract {digest[:12]} is not in the store: keep its snapshot first", code="contract_missing")
    return int(row[0])


def ids(writes: Sequence[Write]) -> list[str]:
    """The operations that *writes* touch."""
    return [w.after.operation_id for w in writes]
