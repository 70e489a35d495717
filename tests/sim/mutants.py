"""Seeded bugs: each breaks one thing in the real code, and the simulation must find each within a number of seeds.

Job: one small context manager a bug. A survivor means a missing invariant. Must not know: how a bug is found.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from typing import Any, Final
from unittest import mock

import msgspec

from pollcore import decide, outcome, schedule
from pollcore.actions import gate
from pollcore.adapters.store import claims, leases, opening
from pollcore.adapters.store import shared as store_shared
from pollcore.adapters.store.claims import Claims
from pollcore.adapters.store.leases import LeaseWatch
from pollcore.adapters.store.transaction import Transaction, Writer
from pollcore.adapters.store.turns import SqliteTurns
from pollcore.adapters.store.writes import Batch
from pollcore.controller import Controller, exchange, prepare
from pollcore.controller.shared import Shared
from pollcore.decide import answer, charge, guidance, limits
from pollcore.escalation import room
from pollcore.facts import Escalate, FaultKind, Instant, Moment, Operation, StopReason, Verdict, Wait, deadline_left
from pollcore.grants import effects
from pollcore.reading import guidance as read_guidance

before: Any = importlib.import_module("pollcore.decide.before")  # the package gives the function that name
Mutant = Callable[[], contextlib.AbstractContextManager[Any]]
MUTANTS: Final[dict[str, Mutant]] = {}
SEEDS: Final[dict[str, int]] = {}
"""How many seeds a mutant may live."""


def mutant(seeds: int = 40) -> Callable[[Callable[[], Iterator[None]]], Mutant]:
    """Register one."""

    def register(make: Callable[[], Iterator[None]]) -> Mutant:
        made = contextlib.contextmanager(make)
        MUTANTS[make.__name__], SEEDS[make.__name__] = made, seeds
        return made

    return register


def _sql(module: Any, name: str, old: str, new: str) -> Any:
    text = getattr(module, name)
    assert old in text, f"{name} no longer holds {old!r}: mend this mutant"
    return mock.patch.object(module, name, text.replace(old, new))


# --- the charge -------------------------------------------------------------------------------------------------------


@mutant()
def counter_is_not_raised_with_the_charge() -> Iterator[None]:
    with _sql(
        claims,
        "_CLAIM",
        "status_requests_used=status_requests_used+?1",
        "status_requests_used=status_requests_used+0*?1",
    ):
        yield


@mutant()
def a_failed_commit_counts_as_done() -> Iterator[None]:
    """A request goes out under a charge that was rolled back."""
    with mock.patch.object(Writer, "_landed", lambda self: True):
        yield


@mutant(150)
def no_fence_on_the_charge() -> Iterator[None]:
    real = Claims._holds

    def holds(self: Claims, claim: Any, fence: Any, charges: int) -> bool:
        fresh = msgspec.structs.replace(claim, operation=msgspec.structs.replace(claim.operation, change=fence.change))
        return real(self, fresh, fence, charges)

    with mock.patch.object(Claims, "_holds", holds):
        yield


@mutant(250)
def deadline_is_not_in_the_charge() -> Iterator[None]:
    real = Claims._holds

    def holds(self: Claims, claim: Any, fence: Any, charges: int) -> bool:
        late = msgspec.structs.replace(claim.operation, deadline_at=1 << 60, deadline_boot=1 << 60)
        return real(self, msgspec.structs.replace(claim, operation=late), fence, charges)

    with (
        mock.patch.object(Claims, "_holds", holds),
        _sql(
            claims, "_CLAIM", "AND deadline_at>?12 AND (boot<>?13 OR deadline_boot>?14)", "AND (?12 OR ?13 OR ?14 OR 1)"
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
        _sql(
            claims,
            "_CLAIM",
            "status_requests_used+?1<=max_status_requests",
            "status_requests_used+?1<=max_status_requests+1",
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


@mutant()
def caps_are_not_counted() -> Iterator[None]:
    with mock.patch.object(Claims, "_room", lambda self, claim, charges: True):
        yield


@mutant(150)
def a_late_send_is_not_burned() -> Iterator[None]:
    with mock.patch.object(exchange, "MAX_PAUSE_MS", 1 << 60):
        yield


# --- leases -----------------------------------------------------------------------------------------------------------


@mutant(150)
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
        mock.patch.object(LeaseWatch, "dead", lambda self: []),
        mock.patch.object(LeaseWatch, "is_dead", lambda self, *_: False),
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
        return msgspec.structs.replace(real(operation, stop, **named), version=operation.version)

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
        mock.patch.object(exchange, "question_for", lambda *_: None),
        mock.patch.object(prepare, "question_for", lambda *_: None),
    ):
        yield


@mutant(60)
def two_open_questions() -> Iterator[None]:
    real, take = opening.open_writer, Batch.take

    def opened(path: str) -> Any:
        conn = real(path)
        conn.execute("DROP INDEX escalation_open")
        return conn

    def both(self: Batch, write: Any, *, release: bool, supersede: bool) -> int:
        return take(self, write, release=release, supersede=False)

    with mock.patch.object(opening, "open_writer", opened), mock.patch.object(Batch, "take", both):
        yield


# --- grants -----------------------------------------------------------------------------------------------------------


@mutant(60)
def an_extension_adds_twice() -> Iterator[None]:
    def twice(operation: Operation, added: room.Added, now: Moment) -> Operation:
        return room.raise_limits(operation, msgspec.structs.replace(added, checks=2 * added.checks), now)

    with mock.patch.object(effects, "raise_limits", twice):
        yield


@mutant(60)
def a_grant_is_used_twice() -> Iterator[None]:
    real = SqliteTurns.commit

    def commit(self: SqliteTurns, now: Moment, writes: Any, check: Any = None) -> Any:
        found = real(self, now, writes, check)
        if writes[0].grant is not None:
            grant = writes[0].grant
            op = self.reads.operation(writes[0].after.operation_id)
            assert op is not None
            again = msgspec.structs.replace(grant, grant_id=f"{grant.grant_id}-2", version=op.version)
            more = msgspec.structs.replace(
                op, max_status_requests=op.max_status_requests + grant.choice.checks, version=op.version + 1
            )
            write = msgspec.structs.replace(
                writes[0],
                after=more,
                fence_change=op.change,
                fence_version=None,
                grant=again,
                events=(),
                open_question=None,
                close_question=None,
            )
            real(self, now, (write,), None)
        return found

    with mock.patch.object(SqliteTurns, "commit", commit):
        yield


@mutant(100)
def a_stale_card_is_carried_out() -> Iterator[None]:
    real = gate.decide

    async def decided(desk: Any, operation_id: str, escalation_id: str, key: str, digest: str, *rest: Any) -> Any:
        fresh = await gate.shown(desk, operation_id)
        return await real(desk, operation_id, fresh.question.escalation_id, key, fresh.digest, *rest)

    with mock.patch.object(gate, "decide", decided):
        yield


# --- budgets ----------------------------------------------------------------------------------------------------------


@mutant()
def off_by_one_in_the_failure_budget() -> Iterator[None]:
    real = limits.spent_budget

    def spent(operation: Operation, *args: Any, **named: Any) -> Any:
        more = msgspec.structs.replace(operation, max_transport_failures=operation.max_transport_failures + 1)
        return real(more, *args, **named)

    with mock.patch.object(answer, "spent_budget", spent), mock.patch.object(before, "spent_budget", spent):
        yield


@mutant()
def a_failure_budget_stops_one_too_early() -> Iterator[None]:
    real = limits.spent_budget

    def spent(operation: Operation, *args: Any, **named: Any) -> Any:
        fewer = msgspec.structs.replace(operation, max_transport_failures=operation.max_transport_failures - 1)
        return real(fewer, *args, **named)

    with mock.patch.object(answer, "spent_budget", spent), mock.patch.object(before, "spent_budget", spent):
        yield


@mutant(60)
def a_lost_answer_spends_the_failure_budget() -> Iterator[None]:
    with mock.patch.object(charge, "SPENDS_FAILURE_BUDGET", charge.SPENDS_FAILURE_BUDGET | {FaultKind.ANSWER_LOST}):
        yield


@mutant()
def a_429_with_guidance_spends_nothing() -> Iterator[None]:
    with mock.patch.object(charge, "RATE_VERDICTS", frozenset({Verdict.QUOTA_EXHAUSTED})):
        yield


# --- time -------------------------------------------------------------------------------------------------------------


@mutant()
def retry_after_is_ignored() -> Iterator[None]:
    with mock.patch.object(read_guidance, "_retry_after", lambda *_: None):
        yield


@mutant()
def the_spread_of_guidance_is_negative() -> Iterator[None]:
    real = schedule.guided_delay

    def guided(plan: Any, guidance_ms: int, draw: float, *, room_ms: int | None = None) -> int:
        return 2 * max(guidance_ms, schedule.min_delay(plan)) - real(plan, guidance_ms, draw, room_ms=room_ms)

    with mock.patch.object(schedule, "guided_delay", guided):
        yield


@mutant(60)
def the_cool_down_is_ignored() -> Iterator[None]:
    forbids = store_shared.InForce.forbids

    def without(self: Any, claim: Any, now: Moment) -> bool:
        return forbids(msgspec.structs.replace(self, cooldowns=()), claim, now)

    with (
        mock.patch.object(Shared, "cooldown", lambda *_: None),
        mock.patch.object(store_shared.InForce, "forbids", without),
    ):
        yield


@mutant(60)
def missed_intervals_are_made_up_for() -> Iterator[None]:
    real = decide.decide

    def planned(operation: Operation, *args: Any, **named: Any) -> Any:
        found = real(operation, *args, **named)
        if isinstance(found, Wait) and operation.next_poll_at is not None:
            at = Instant(operation.next_poll_at + found.delay_ms)
            return msgspec.structs.replace(found, next_poll_at=min(at, found.next_poll_at))
        return found

    with mock.patch.object(decide, "decide", planned):
        yield


@mutant(100)
def a_wall_step_back_gives_more_time() -> Iterator[None]:
    def left(operation: Operation, now: Moment) -> int:
        return operation.deadline_at - now.wall

    real = Claims._holds

    def holds(self: Claims, claim: Any, fence: Any, charges: int) -> bool:
        by_wall = msgspec.structs.replace(claim.operation, deadline_boot=1 << 60)
        return real(self, msgspec.structs.replace(claim, operation=by_wall), fence, charges)

    with contextlib.ExitStack() as stack:
        for module in (limits, answer, before, guidance, schedule):
            stack.enter_context(mock.patch.object(module, "deadline_left", left))
        stack.enter_context(mock.patch.object(Claims, "_holds", holds))
        stack.enter_context(_sql(claims, "_CLAIM", "deadline_boot>?14", "deadline_boot>?14*0"))
        stack.enter_context(mock.patch.object(before, "_passed_by_boot_clock", lambda *_: None))
        yield


@mutant()
def the_deadline_stops_nothing() -> Iterator[None]:
    with (
        mock.patch.object(limits, "passed_limit", lambda *_: None),
        mock.patch.object(before, "passed_limit", lambda *_: None),
        mock.patch.object(before, "_passed_by_boot_clock", lambda *_: None),
    ):
        yield


@mutant(150)
def a_late_final_answer_is_dropped() -> Iterator[None]:
    real = decide.decide

    def dropped(operation: Operation, *args: Any, now: Moment, **named: Any) -> Any:
        if deadline_left(operation, now) <= 0:
            return decide.stop(operation, StopReason.DEADLINE_EXCEEDED)
        return real(operation, *args, now=now, **named)

    with mock.patch.object(decide, "decide", dropped):
        yield


# --- what is shared ---------------------------------------------------------------------------------------------------


@mutant(100)
def an_origin_that_is_down_is_asked_by_all() -> Iterator[None]:
    forbids = store_shared.InForce.forbids

    def without(self: Any, claim: Any, now: Moment) -> bool:
        return forbids(msgspec.structs.replace(self, origins=()), claim, now)

    with (
        mock.patch.object(Shared, "may_probe", lambda *_: True),
        mock.patch.object(store_shared.InForce, "forbids", without),
    ):
        yield


@mutant(100)
def a_refused_secret_is_sent_again() -> Iterator[None]:
    with mock.patch.object(Shared, "denial", lambda *_: None):
        yield


@mutant(100)
def a_pause_is_ignored() -> Iterator[None]:
    forbids = store_shared.InForce.forbids

    def without(self: Any, claim: Any, now: Moment) -> bool:
        return forbids(msgspec.structs.replace(self, pauses=()), claim, now)

    with (
        mock.patch.object(Shared, "pause", lambda *_: None),
        mock.patch.object(store_shared.InForce, "forbids", without),
    ):
        yield
