"""What is asked of the store, as calls for the executor that reads.

Job: every async method that reads once, as one call. Must not know: threads, SQL, where a call runs.
Source: design "Store port".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pollcore.adapters.store import approvals, archiving, bulk, contract_rows, credential_rows, replaying
from pollcore.adapters.store.reads import MAX_ROWS, Reads
from pollcore.facts import (
    ActionRecord,
    AuditEvent,
    CallGrant,
    Escalation,
    EventName,
    Instant,
    Intent,
    Operation,
    Session,
    Snapshot,
    StopReason,
)
from pollcore.ports import AuditLink, AuditTip, ContractKnown, CredentialAsked, Denial, Filter, Stored, Worker

T = TypeVar("T")


class ReadFace:
    """All of ports.StoreReads, and what other adapters look up here. Raises StoreUnusable everywhere."""

    async def _read(self, call: Callable[[Reads], T]) -> T:
        raise NotImplementedError

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

    async def events_named(self, name: EventName, *, limit: int = 10_000) -> Sequence[tuple[int, AuditEvent]]:
        """The newest events of one name, oldest first."""
        return await self._read(lambda r: bulk.events_named(r, name, limit))

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

    async def load_of(self, caller: str | None, account: str, since: Instant) -> tuple[int, int]:
        """Operations of one caller and account that have not ended, and their requests since then (B1)."""
        return await self._read(lambda r: r.load_of(caller, account, since))

    async def intents(self, operation_id: str) -> Sequence[Intent]:
        """Every charge of one operation."""
        return await self._read(lambda r: r.intents(operation_id))

    async def actions(self, operation_id: str) -> Sequence[ActionRecord]:
        """Cancels, fetches and resubmits."""
        return await self._read(lambda r: r.actions(operation_id))

    async def actions_of(self, operation_ids: Sequence[str]) -> Mapping[str, Sequence[ActionRecord]]:
        """Cancels, fetches and resubmits of each; absent: none."""
        return await self._read(lambda r: bulk.actions_of(r, operation_ids))

    async def unsettled_actions(self, limit: int = 1_000) -> Sequence[ActionRecord]:
        """Cancels, fetches and resubmits whose outcome nobody recorded yet, oldest first."""
        return await self._read(lambda r: bulk.unsettled_actions(r, limit))

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

    async def archived(self, operation_id: str | None = None) -> tuple[int, str] | None:
        """The newest archive that holds events of this operation, or of any: its number and file; None: none does."""
        return await self._read(lambda r: archiving.archived(r.conn, operation_id))

    async def screens(self) -> Sequence[tuple[Instant, Instant]]:
        """Start and newest sign of life of each console."""
        return await self._read(lambda r: approvals.screens(r.conn))
