"""The Store port over two executors: one for writes, one for reads.

Job: every async method once, as one call for an executor. Must not know: threads, SQL. Where a call runs is up to the
subclass: InlineStore runs it here and now, ThreadedStore on its threads.
Source: design "Store port", "Change feed".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from pollcore.adapters.store import (
    approvals,
    archiving,
    bulk,
    check,
    contract_rows,
    credential_rows,
    deciding,
    opening,
    replaying,
)
from pollcore.adapters.store.credential_rows import Held
from pollcore.adapters.store.look import Outcome
from pollcore.adapters.store.reads import MAX_ROWS, Reads
from pollcore.adapters.store.turns import SqliteTurns
from pollcore.facts import (
    ActionRecord,
    AuditEvent,
    CallGrant,
    Escalation,
    Grant,
    Instant,
    Intent,
    Moment,
    Operation,
    Session,
    Snapshot,
    StopReason,
)
from pollcore.ports import (
    AuditLink,
    AuditTip,
    ContractKnown,
    CredentialAsked,
    Denial,
    Filter,
    MakeExtension,
    Pause,
    Stored,
    Turn,
    Window,
    Worker,
    Write,
)

T = TypeVar("T")
FEED_S: Final = 0.25
"""How often a waiter asks for `data_version`: 6 microseconds a call."""


class StoreFace:
    """All of ports.Store, and what other adapters keep here. Raises StoreUnusable everywhere."""

    path: str

    async def _write(self, call: Callable[[SqliteTurns], T]) -> T:
        raise NotImplementedError

    async def _read(self, call: Callable[[Reads], T]) -> T:
        raise NotImplementedError

    async def _version(self) -> int:
        """A number that differs whenever another connection committed."""
        raise NotImplementedError

    # --- writing --------------------------------------------------------------------------------------------------

    async def turn(self, turn: Turn) -> Outcome:
        """One transaction of the loop."""
        return await self._write(lambda s: s.turn(turn))

    async def renew(self, now: Moment, owner: str, epochs: Mapping[str, int]) -> Sequence[str]:
        """Renew the leases of requests in flight ({operation id: epoch}) in one statement; returns those still ours."""
        return await self._write(lambda s: s.renew(now, owner, epochs))

    async def commit(
        self, now: Moment, writes: Sequence[Write], check: Callable[[], None] | None = None
    ) -> tuple[int, ...]:
        """All or nothing; raises Stale. *check* runs on the writer's thread, inside the transaction."""
        return await self._write(lambda s: s.commit(now, writes, check))

    async def commit_each(self, now: Moment, writes: Sequence[Write]) -> tuple[str | None, ...]:
        """One transaction, each write for itself: None where it was taken, else why it was not."""
        return await self._write(lambda s: s.commit_each(now, writes))

    async def submit(
        self,
        now: Moment,
        operation: Operation,
        snapshot: Snapshot,
        events: Sequence[AuditEvent],
        question: Escalation | None = None,
        resubmit: Write | None = None,
    ) -> Operation:
        """Insert, or return what the same submission made before; raises Refused (`duplicate_job`, `id_taken`)."""
        return await self._write(lambda s: s.submit(now, operation, snapshot, events, question, resubmit))

    async def keep_snapshot(self, now: Moment, snapshot: Snapshot) -> None:
        """Keep a contract that an operation is about to adopt (S8)."""
        await self._write(lambda s: s.keep_snapshot(now, snapshot))

    async def pause(self, now: Moment, pause: Pause, event: AuditEvent) -> None:
        """Send nothing to a provider (and account) before a time; a longer pause stays."""
        await self._write(lambda s: s.pause(now, pause, event))

    async def record(self, now: Moment, events: Sequence[AuditEvent]) -> None:
        """Events that change no record."""
        await self._write(lambda s: s.record(now, events))

    async def extend_audit(self, now: Moment, make: MakeExtension) -> AuditTip | None:
        """Add links that no event stands behind; *make* runs on the writer's thread. Returns the tip after it."""
        return await self._write(lambda s: s.extend_audit(now, make))

    async def archive(self, now: Moment, wanted: archiving.Cutting) -> int:
        """Remove what an archive file holds; returns its number. Raises Stale: something moved meanwhile."""
        return await self._write(lambda s: s.archive(now, wanted))

    async def archived(self, operation_id: str | None = None) -> tuple[int, str] | None:
        """The newest archive that holds events of this operation, or of any: its number and file; None: none does."""
        return await self._read(lambda r: archiving.archived(r.conn, operation_id))

    async def put_document(
        self, now: Moment, kind: str, name: str, value: bytes | None, events: Sequence[AuditEvent] = ()
    ) -> None:
        """Keep or (None) remove a small record of another adapter."""
        await self._write(lambda s: s.put_document(now, kind, name, value, events))

    async def end_sessions(
        self, now: Moment, why: str, *, credential: str | None = None, owner: str | None = None, event: AuditEvent
    ) -> int:
        """End all sessions of a credential, or of a run; the event is recorded if one could still be used."""
        return await self._write(lambda s: s.end_sessions(now, why, credential, owner, event))

    async def mark_seen(self, now: Moment, operation_id: str, escalation_id: str) -> bool:
        """The open question's card was painted; the first time stays. False: no such open question."""
        return await self._write(lambda s: s.mark_seen(now, operation_id, escalation_id))

    async def present(self, now: Moment, owner: str, started_at: Instant) -> None:
        """A console is open on the store, whether or not it polls."""
        await self._write(lambda s: s.present(now, owner, started_at))

    async def screens(self) -> Sequence[tuple[Instant, Instant]]:
        """Start and newest sign of life of each console."""
        return await self._read(lambda r: approvals.screens(r.conn))

    async def set_windows(self, now: Moment, windows: Sequence[Window]) -> int:
        """Start or stop the time of open questions, each only where it is as it was read; how many."""
        return await self._write(lambda s: s.set_windows(now, windows))

    async def contract_seen(self, now: Moment, digest: str, operator: str, event: AuditEvent) -> bool:
        """Keep that an operator has seen this contract; False: it was kept already."""
        return await self._write(lambda s: deciding.contract_seen(s, now, digest, operator, event))

    async def ask_credential(
        self, now: Moment, asked: CredentialAsked, held: Held, event: AuditEvent
    ) -> CredentialAsked:
        """Store a question about a credential, or return the open one that asks for the same. Raises Stale."""
        return await self._write(lambda s: deciding.ask(s, now, asked, held, event))

    async def settle_credential(
        self,
        now: Moment,
        closed: Escalation,
        events: Sequence[AuditEvent],
        grant: Grant | None = None,
        held: Held | None = None,
    ) -> None:
        """Settle a question about a credential, with its grant and its effect. Raises Stale."""
        await self._write(lambda s: deciding.settle(s, now, closed, events, grant, held))

    async def change_documents(self, now: Moment, held: Sequence[Held], events: Sequence[AuditEvent] = ()) -> None:
        """Replace or remove small records, only while each is as it was read. Raises Stale."""
        await self._write(lambda s: deciding.change_documents(s, now, held, events))

    # --- reading --------------------------------------------------------------------------------------------------

    async def operation(self, operation_id: str) -> Operation | None:
        """One operation."""
        return await self._read(lambda r: r.operation(operation_id))

    async def by_job(self, provider: str, account: str, job_id: str) -> Sequence[Operation]:
        """All operations for one job, newest first."""
        return await self._read(lambda r: r.by_job(provider, account, job_id))

    async def operations(self, wanted: Filter) -> Sequence[Operation]:
        """By change number, newest first."""
        return await self._read(lambda r: r.operations(wanted))

    async def questions(self, operation_id: str | None = None, *, open_only: bool = True) -> Sequence[Escalation]:
        """Questions, oldest first."""
        return await self._read(lambda r: r.questions(operation_id, open_only=open_only))

    async def asked(
        self, cause: str | None = None, *, limit: int = MAX_ROWS, reasons: Sequence[StopReason] = ()
    ) -> Sequence[tuple[Operation, Escalation]]:
        """Open questions with their operations, oldest first."""
        return await self._read(lambda r: bulk.asked(r, cause, limit, reasons))

    async def approval(self, operation_id: str) -> CallGrant | None:
        """The leave for one call that is granted and not used yet; it may have expired."""
        return await self._read(lambda r: approvals.unused(r.conn, r.known, operation_id))

    async def sessions(self) -> Sequence[Session]:
        """Sessions that nobody ended; their time, calls or run may be over."""
        return await self._read(lambda r: approvals.sessions(r.conn, r.known))

    async def questions_by_id(self, escalation_ids: Sequence[str]) -> Mapping[str, Escalation]:
        """Questions, open or decided, by their own id."""
        return await self._read(lambda r: bulk.questions_by_id(r, escalation_ids))

    async def contracts_known(self, digests: Sequence[str]) -> Mapping[str, ContractKnown]:
        """What operators did with each contract digest; every digest is there."""
        return await self._read(lambda r: contract_rows.known(r.conn, digests))

    async def credential_questions(self, *, open_only: bool = True) -> Sequence[Escalation]:
        """Questions that belong to a credential, oldest first."""
        return await self._read(lambda r: credential_rows.listing(r.conn, open_only))

    async def credential_question(self, escalation_id: str) -> CredentialAsked | None:
        """One question about a credential, open or decided."""
        return await self._read(lambda r: credential_rows.find(r.conn, escalation_id))

    async def events(
        self, operation_id: str | None = None, *, after: int = 0, limit: int = 10_000
    ) -> Sequence[tuple[int, AuditEvent]]:
        """In the order written."""
        return await self._read(lambda r: r.events(operation_id, after=after, limit=limit))

    async def snapshot(self, digest: str) -> Snapshot | None:
        """A contract as it was at submission."""
        return await self._read(lambda r: r.snapshot(digest))

    async def last_answer(self, operation_id: str) -> Stored | None:
        """The newest answer with its envelope; raises SealedUnreadable."""
        return await self._read(lambda r: r.last_answer(operation_id))

    async def last_answers(self, operation_ids: Sequence[str]) -> Mapping[str, Stored]:
        """The newest answer of each with its envelope; absent: none, or it cannot be opened."""
        return await self._read(lambda r: bulk.last_answers(r, operation_ids))

    async def answered_under(
        self, contract: str, since: Instant, *, after: str | None = None, limit: int = 100
    ) -> Sequence[Operation]:
        """Operations under any text of a contract with an answer since then, page by page."""
        return await self._read(lambda r: replaying.answered_under(r, contract, since, after, limit))

    async def answers(self, operation_id: str, *, after: int = 0, limit: int = 100) -> Sequence[Stored]:
        """Answers of one operation by number; raises SealedUnreadable."""
        return await self._read(lambda r: replaying.answers(r, operation_id, after, limit))

    async def denials(self) -> Sequence[Denial]:
        """All refused secrets that are remembered (H3)."""
        return await self._read(lambda r: r.denials())

    async def requests_since(self, at: Instant, operation_ids: Sequence[str]) -> int:
        """How many status requests of these operations were charged since *at* (B1)."""
        return await self._read(lambda r: r.requests_since(at, operation_ids))

    async def intents(self, operation_id: str) -> Sequence[Intent]:
        """Every charge of one operation."""
        return await self._read(lambda r: r.intents(operation_id))

    async def actions(self, operation_id: str) -> Sequence[ActionRecord]:
        """Cancels, fetches and resubmits."""
        return await self._read(lambda r: r.actions(operation_id))

    async def actions_of(self, operation_ids: Sequence[str]) -> Mapping[str, Sequence[ActionRecord]]:
        """Cancels, fetches and resubmits of each; absent: none."""
        return await self._read(lambda r: bulk.actions_of(r, operation_ids))

    async def counts(self) -> Mapping[str, int]:
        """Operations by status, and `questions`."""
        return await self._read(lambda r: r.counts())

    async def workers(self) -> Sequence[Worker]:
        """Heartbeats, newest first."""
        return await self._read(lambda r: r.workers())

    async def audit_links(self, after: int = 0, limit: int = 10_000) -> Sequence[AuditLink]:
        """Links of the audit chain, in order."""
        return await self._read(lambda r: r.audit_links(after, limit))

    async def audit_tip(self) -> AuditTip | None:
        """The last link of the audit chain."""
        return await self._read(lambda r: r.audit_tip())

    async def audit_notes(self, after: int = 0, limit: int = 10_000) -> Sequence[tuple[int, str]]:
        """Signed checkpoints, by the number of their link."""
        return await self._read(lambda r: r.audit_notes(after, limit))

    async def documents(self, kind: str) -> Mapping[str, bytes]:
        """Small records of another adapter, by name."""
        return await self._read(lambda r: r.documents(kind))

    async def document(self, kind: str, name: str) -> bytes | None:
        """One small record of another adapter."""
        return await self._read(lambda r: r.document(kind, name))

    async def check(self) -> Sequence[str]:
        """What does not add up; empty: all well."""
        return await self._read(lambda r: check.run(r.conn))

    async def copies(self) -> Sequence[str]:
        """Copies of the store that were made when this process brought it up to date."""
        return await self._write(lambda s: tuple(s.copies))

    async def health(self) -> opening.Health:
        """What `doctor` says of the store."""
        return await self._read(lambda r: opening.health(r.conn, self.path))

    async def backup(self, path: str) -> None:
        """A consistent copy through SQLite's own interface, into a new file."""
        await self._read(lambda r: opening.write_copy(r.conn, path))

    # --- change feed ----------------------------------------------------------------------------------------------

    async def change(self) -> int:
        """The store's change number."""
        return await self._read(lambda r: r.change())

    async def wait_for_change(self, after: int, timeout: float) -> int:
        """The change number once it is above *after*, or as it is after *timeout* seconds. Asks no provider."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        seen: int | None = None
        while True:
            version = await self._version()
            if version != seen:
                seen, change = version, await self.change()
                if change > after:
                    return change
            left = end - loop.time()
            if left <= 0:
                return await self.change()
            await asyncio.sleep(min(FEED_S, left))
