"""What changes the store, as calls for the executor that writes.

Job: every async method that writes once, as one call. Must not know: threads, SQL, where a call runs.
Source: design "Store port".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pollcore.adapters.store import archiving, asides, deciding
from pollcore.adapters.store.credential_rows import Held
from pollcore.adapters.store.turns import SqliteTurns
from pollcore.facts import AuditEvent, Escalation, Grant, Instant, Moment, Operation, Snapshot
from pollcore.ports import AuditTip, CredentialAsked, MakeExtension, Pause, Turn, TurnOutcome, Window, Write

T = TypeVar("T")


class WriteFace:
    """All of ports.StoreWrites, and what other adapters keep here. Raises StoreUnusable everywhere."""

    async def _write(self, call: Callable[[SqliteTurns], T]) -> T:
        raise NotImplementedError

    async def turn(self, turn: Turn) -> TurnOutcome:
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

    async def put_document(
        self, now: Moment, kind: str, name: str, value: bytes | None, events: Sequence[AuditEvent] = ()
    ) -> None:
        """Keep or (None) remove a small record of another adapter."""
        await self._write(lambda s: asides.put_document(s, now, kind, name, value, events))

    async def end_sessions(
        self, now: Moment, why: str, *, credential: str | None = None, owner: str | None = None, event: AuditEvent
    ) -> int:
        """End all sessions of a credential, or of a run; the event is recorded if one could still be used."""
        return await self._write(lambda s: asides.end_sessions(s, now, why, credential, owner, event))

    async def mark_seen(self, now: Moment, operation_id: str, escalation_id: str) -> bool:
        """The open question's card was painted; the first time stays. False: no such open question."""
        return await self._write(lambda s: asides.mark_seen(s, now, operation_id, escalation_id))

    async def present(self, now: Moment, owner: str, started_at: Instant) -> None:
        """A console is open on the store, whether or not it polls."""
        await self._write(lambda s: asides.present(s, now, owner, started_at))

    async def set_windows(self, now: Moment, windows: Sequence[Window]) -> int:
        """Start or stop the time of open questions, each only where it is as it was read; how many."""
        return await self._write(lambda s: asides.set_windows(s, now, windows))

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
