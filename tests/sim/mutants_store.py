"""Seeded bugs of the store and of those who hold leases: charges, fences, renewals, questions.

Job: break one thing each. Must not know: how a bug is found. A survivor means a missing invariant.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import msgspec

from pollcore import outcome
from pollcore.adapters.store import claims, leases, opening
from pollcore.adapters.store.claims import Claims
from pollcore.adapters.store.leases import LeaseWatch
from pollcore.adapters.store.transaction import Transaction, Writer
from pollcore.adapters.store.writes import Batch
from pollcore.controller import Controller, exchange, unsent
from pollcore.facts import Escalate, Moment, Operation
from tests.sim.mutant import always, mutant, patched_sql

# --- the charge -------------------------------------------------------------------------------------------------------


@mutant()
def counter_is_not_raised_with_the_charge() -> Iterator[None]:
    with patched_sql(
        claims,
        "_CLAIM",
        ("status_requests_used=status_requests_used+?1", "status_requests_used=status_requests_used+0*?1"),
    ):
        yield


@mutant(80)
def a_failed_commit_counts_as_done() -> Iterator[None]:
    """A request goes out under a charge that was rolled back."""
    with mock.patch.object(Writer, "_landed", always(True)):
        yield


@mutant(150)
def no_fence_on_the_charge() -> Iterator[None]:
    real = Claims._holds

    def holds(self: Claims, claim: Any, fence: Any, charges: int) -> bool:
        fresh = msgspec.structs.replace(claim, operation=msgspec.structs.replace(claim.operation, change=fence.change))
        return real(self, fresh, fence, charges)

    fence = ("AND change=?8 AND epoch=?9 AND renewed=?10 ", "")
    with mock.patch.object(Claims, "_holds", holds), patched_sql(claims, "_CLAIM", fence):
        yield


@mutant(1_000, focus="keyring")
def deadline_is_not_in_the_charge() -> Iterator[None]:
    real = Claims._holds

    def holds(self: Claims, claim: Any, fence: Any, charges: int) -> bool:
        late = msgspec.structs.replace(claim.operation, deadline_at=1 << 60, deadline_boot=1 << 60)
        return real(self, msgspec.structs.replace(claim, operation=late), fence, charges)

    with (
        mock.patch.object(Claims, "_holds", holds),
        patched_sql(
            claims, "_CLAIM", ("AND deadline_at>?12 ", ""), ("(boot<>?13 OR deadline_boot>?14)", "(?13 OR ?14 OR 1)")
        ),
    ):
        yield


@mutant()
def one_request_more_than_allowed() -> Iterator[None]:
    real = Claims._holds

    def holds(self: Claims, claim: Any, fence: Any, charges: int) -> bool:
        more = msgspec.structs.replace(claim.operation, max_status_requests=claim.operation.max_status_requests + 1)
        return real(self, msgspec.structs.replace(claim, operation=more), fence, charges)

    left = property(lambda self: self.max_status_requests - self.status_requests_used + 1)
    with (
        mock.patch.object(Claims, "_holds", holds),
        patched_sql(
            claims,
            "_CLAIM",
            ("status_requests_used+?1<=max_status_requests", "status_requests_used+?1<=max_status_requests+1"),
        ),
        mock.patch.object(Operation, "requests_left", left),
    ):
        yield


@mutant()
def no_audit_intent() -> Iterator[None]:
    real = Transaction.record

    def record(self: Transaction, event: Any, prev: Any) -> None:
        if event.event.value != "sent":
            real(self, event, prev)

    with mock.patch.object(Transaction, "record", record):
        yield


@mutant(100)
def caps_are_not_counted() -> Iterator[None]:
    with mock.patch.object(Claims, "_room", always(True)):
        yield


@mutant(400, focus="after commit")
def a_late_send_is_not_burned() -> Iterator[None]:
    with mock.patch.object(exchange, "MAX_PAUSE_MS", 1 << 60):
        yield


# --- leases -----------------------------------------------------------------------------------------------------------


@mutant(300)
def a_stale_owner_may_write_an_end() -> Iterator[None]:
    real = Batch.refusal

    def refusal(self: Batch, write: Any) -> str | None:
        why = real(self, write)
        late = why is not None and write.fence_epoch is not None and "ended" not in why
        return None if late and write.after.status.is_end else why

    with mock.patch.object(Batch, "refusal", refusal):
        yield


@mutant()
def the_lease_is_kept_after_the_answer() -> Iterator[None]:
    real = Batch.take
    with mock.patch.object(
        Batch, "take", lambda self, write, *, release, supersede: real(self, write, release=False, supersede=supersede)
    ):
        yield


@mutant(100)
def a_renewal_reaches_far_ahead() -> Iterator[None]:
    real = leases.renew
    with mock.patch.object(leases, "renew", lambda c, k, now, me, e: real(c, k, now.after(3_600_000), me, e)):
        yield


@mutant()
def takeover_without_proof_of_death() -> Iterator[None]:
    real = LeaseWatch.scan

    def scan(self: LeaseWatch, conn: Any, known: Any, now: Moment, me: str) -> None:
        real(self, conn, known, now, me)
        self._dead = {op: (w.epoch, w.renewed) for op, w in self._seen.items() if known.name(w.owner) != me}

    with mock.patch.object(LeaseWatch, "scan", scan):
        yield


@mutant(60)
def lost_answers_are_never_noticed() -> Iterator[None]:
    with (
        mock.patch.object(LeaseWatch, "dead", always([])),
        mock.patch.object(LeaseWatch, "is_dead", always(False)),
    ):
        yield


# --- writes -----------------------------------------------------------------------------------------------------------


@mutant(60)
def no_conditional_change() -> Iterator[None]:
    """What was changed meanwhile is written over."""
    real = Batch.refusal

    def refusal(self: Batch, write: Any) -> str | None:
        fence = self._fences.get(write.after.operation_id)
        if fence is not None and write.fence_epoch is not None:
            write = msgspec.structs.replace(write, after=msgspec.structs.replace(write.after, change=fence.change))
        elif fence is not None and write.fence_change is not None:
            write = msgspec.structs.replace(write, fence_change=fence.change)
        return real(self, write)

    with mock.patch.object(Batch, "refusal", refusal):
        yield


@mutant()
def status_changes_without_a_new_version() -> Iterator[None]:
    real = outcome.after_stop

    def after_stop(operation: Operation, stop: Escalate, **named: Any) -> Operation:
        after: Operation = msgspec.structs.replace(real(operation, stop, **named), version=operation.version)
        return after

    with mock.patch.object(outcome, "after_stop", after_stop):
        yield


@mutant()
def counters_are_reset_by_a_restart() -> Iterator[None]:
    real = Controller.run

    async def run(self: Controller, *args: Any, **named: Any) -> Any:
        self._store._world.sql.execute(  # type: ignore[attr-defined]
            "UPDATE operation SET transport_failures_used=0, rate_limited_used=0 WHERE status='waiting'"
        )
        return await real(self, *args, **named)

    with mock.patch.object(Controller, "run", run):
        yield


@mutant()
def a_stop_asks_nothing() -> Iterator[None]:
    with (
        mock.patch.object(exchange, "question_for", always(None)),
        mock.patch.object(unsent, "question_for", always(None)),
    ):
        yield


@mutant(60)
def two_open_questions() -> Iterator[None]:
    real, take = opening.open_writer, Batch.take

    def opened(path: str, **named: Any) -> Any:
        conn = real(path, **named)
        conn.execute("DROP INDEX escalation_open")
        return conn

    def both(self: Batch, write: Any, *, release: bool, supersede: bool) -> int:
        return take(self, write, release=release, supersede=False)

    with mock.patch.object(opening, "open_writer", opened), mock.patch.object(Batch, "take", both):
        yield
