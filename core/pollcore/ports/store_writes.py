"""The store's half that changes records.

Job: name each transaction, what it is conditional on, and what it raises. Must not know: SQL, threads, how records are
read for people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from pollcore.facts import AuditEvent, Escalation, Instant, Moment, Operation, Snapshot
from pollcore.ports.brakes import Pause
from pollcore.ports.turn import Turn, TurnOutcome
from pollcore.ports.write import Write


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """G7: the time of one open question: it runs to *expires_at*, or stands still with *left_ms* left."""

    escalation_id: str
    before: Instant | None
    """`expires_at` as it was read."""
    expires_at: Instant | None
    left_ms: int | None


class StoreWrites(Protocol):
    """Everything that changes the records; each call is one whole transaction on the one writer."""

    async def turn(self, turn: Turn) -> TurnOutcome: ...

    async def renew(self, now: Moment, owner: str, epochs: Mapping[str, int]) -> Sequence[str]:
        """Renew the leases of requests in flight ({operation id: epoch}); returns the operations still ours."""
        ...

    async def commit(
        self, now: Moment, writes: Sequence[Write], check: Callable[[], None] | None = None
    ) -> tuple[int, ...]:
        """All or nothing: raises Stale when a fence does not hold. Returns the new change numbers. Not for
        lease owners.
        """
        ...

    async def commit_each(self, now: Moment, writes: Sequence[Write]) -> tuple[str | None, ...]:
        """One transaction in which each write stands for itself (E10): None where it was taken, whole; else why not.
        A reason that begins with `moved`: the record changed, its version may not have. Not for lease owners.
        """
        ...

    async def submit(
        self,
        now: Moment,
        operation: Operation,
        snapshot: Snapshot,
        events: Sequence[AuditEvent],
        question: Escalation | None = None,
        resubmit: Write | None = None,
    ) -> Operation:
        """Insert. Raises Refused: `duplicate_job` (an open operation for the same provider, account and job; names it),
        `id_taken` (same id, different submission). *resubmit*: the write on the old operation, same transaction (E6).
        """
        ...

    async def keep_snapshot(self, now: Moment, snapshot: Snapshot) -> None:
        """Store a snapshot that an operation is about to adopt; known digests are left alone."""
        ...

    async def record(self, now: Moment, events: Sequence[AuditEvent]) -> None:
        """Events that change no record (a step of the clock)."""
        ...

    async def pause(self, now: Moment, pause: Pause, event: AuditEvent) -> None: ...

    async def mark_seen(self, now: Moment, operation_id: str, escalation_id: str) -> bool:
        """The open question's card was painted; the first time counts. False: no such open question."""
        ...

    async def present(self, now: Moment, owner: str, started_at: Instant) -> None:
        """A console is open on the store, whether or not it polls (G7)."""
        ...

    async def set_windows(self, now: Moment, windows: Sequence[Window]) -> int:
        """Start or stop the time of open questions (G7); each only where it still is as *before*. How many."""
        ...

    async def end_sessions(
        self, now: Moment, why: str, *, credential: str | None = None, owner: str | None = None, event: AuditEvent
    ) -> int:
        """End all sessions of a credential or of a run, for good; *event* is recorded if there was one. How many."""
        ...

    async def contract_seen(self, now: Moment, digest: str, operator: str, event: AuditEvent) -> bool:
        """G5: keep that an operator has seen this contract; False, and no event: it was kept already."""
        ...
