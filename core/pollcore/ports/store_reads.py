"""The store's half that answers questions about records.

Job: name each reading, its order and its bounds. Must not know: what is changed, SQL, threads, how a screen shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from pollcore.facts import (
    ActionRecord,
    AuditEvent,
    CallGrant,
    ContractUse,
    Escalation,
    EventName,
    Instant,
    Operation,
    Session,
    Snapshot,
    Status,
    StopReason,
)
from pollcore.ports.turn import Worker
from pollcore.ports.write import Stored


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """What `list` and the screen ask for."""

    statuses: tuple[Status, ...] = ()
    provider: str | None = None
    since: Instant | None = None
    changed_since: int | None = None
    limit: int = 1_000


class ContractKnown(msgspec.Struct, frozen=True, kw_only=True):
    """What operators did with one contract digest: said what its requests are (X7), looked at it (G5).

    An approved first use counts as looked at by that operator, where nobody opened its text before.
    """

    digest: str
    use: ContractUse | None = None
    decided_at: Instant | None = None
    decided_by: str | None = None
    seen_at: Instant | None = None
    seen_by: str | None = None


class StoreReads(Protocol):
    """Everything that is asked of the records; on a connection of its own, so that it waits for no write."""

    async def operation(self, operation_id: str) -> Operation | None: ...

    async def by_job(self, provider: str, account: str, job_id: str) -> Sequence[Operation]:
        """All operations for one job, newest first (B2)."""
        ...

    async def operations(self, wanted: Filter) -> Sequence[Operation]:
        """By change number, newest first."""
        ...

    async def questions(self, operation_id: str | None = None, *, open_only: bool = True) -> Sequence[Escalation]: ...

    async def asked(
        self, cause: str | None = None, *, limit: int = 100_000, reasons: Sequence[StopReason] = ()
    ) -> Sequence[tuple[Operation, Escalation]]:
        """Open questions with their operations in one read, oldest first; *cause*: of this cause alone (E10);
        *reasons*: of these alone.
        """
        ...

    async def approval(self, operation_id: str) -> CallGrant | None:
        """The leave for one call that is granted and not used yet; it may have expired."""
        ...

    async def sessions(self) -> Sequence[Session]:
        """Sessions that nobody ended and nothing replaced; their time, calls or run may be over. Oldest first."""
        ...

    async def screens(self) -> Sequence[tuple[Instant, Instant]]:
        """Start and newest sign of life of each console, also of closed ones."""
        ...

    async def questions_by_id(self, escalation_ids: Sequence[str]) -> Mapping[str, Escalation]:
        """Questions, open or decided, by their own id; unknown ones are absent."""
        ...

    async def events(
        self, operation_id: str | None = None, *, after: int = 0, limit: int = 10_000
    ) -> Sequence[tuple[int, AuditEvent]]:
        """In the order written: (sequence number, event)."""
        ...

    async def events_named(self, name: EventName, *, limit: int = 10_000) -> Sequence[tuple[int, AuditEvent]]:
        """The newest events of one name, in the order written."""
        ...

    async def snapshot(self, digest: str) -> Snapshot | None: ...

    async def contracts_known(self, digests: Sequence[str]) -> Mapping[str, ContractKnown]:
        """What operators did with each; every digest is there."""
        ...

    async def credential_questions(self, *, open_only: bool = True) -> Sequence[Escalation]:
        """Questions that belong to a credential and to no operation, oldest first."""
        ...

    async def load_of(self, caller: str | None, account: str, since: Instant) -> tuple[int, int]:
        """Of one caller's operations with one account: how many have not ended, and how many status requests were
        charged since then (B1).
        """
        ...

    async def last_answer(self, operation_id: str) -> Stored | None:
        """The newest stored answer with its envelope opened. Raises SealedUnreadable."""
        ...

    async def last_answers(self, operation_ids: Sequence[str]) -> Mapping[str, Stored]:
        """`last_answer` of many in one read; absent: there is none, or it cannot be opened now."""
        ...

    async def answered_under(
        self, contract: str, since: Instant, *, after: str | None = None, limit: int = 100
    ) -> Sequence[Operation]:
        """Operations under any text of the contract of that name with an answer at or after *since*, in the order
        stored. *after*: the last operation of the page before.
        """
        ...

    async def answers(self, operation_id: str, *, after: int = 0, limit: int = 100) -> Sequence[Stored]:
        """Answers of one operation with their envelopes opened, by number from *after* on. Raises SealedUnreadable."""
        ...

    async def actions(self, operation_id: str) -> Sequence[ActionRecord]: ...

    async def actions_of(self, operation_ids: Sequence[str]) -> Mapping[str, Sequence[ActionRecord]]:
        """`actions` of many in one read; absent: none."""
        ...

    async def unsettled_actions(self, limit: int = 1_000) -> Sequence[ActionRecord]:
        """Actions still `intended`, of all operations, oldest first: under way, or of a process that died (O5)."""
        ...

    async def counts(self) -> Mapping[str, int]:
        """Operations by status, and `questions`."""
        ...

    async def workers(self) -> Sequence[Worker]: ...
