"""Seeded bugs of the rules: grants, budgets, time, what operations share.

Job: break one thing each. Must not know: how a bug is found. A survivor means a missing invariant.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import msgspec

from pollcore import decide, schedule
from pollcore.actions import gate
from pollcore.adapters.store import claims
from pollcore.adapters.store import shared as store_shared
from pollcore.adapters.store.claims import Claims
from pollcore.adapters.store.turns import SqliteTurns
from pollcore.controller.contracts import Contracts
from pollcore.controller.shared import Shared
from pollcore.decide import answer, charge, guidance, limits
from pollcore.escalation import room
from pollcore.facts import (
    SECOND,
    ContractUse,
    FaultKind,
    Instant,
    Moment,
    Observation,
    Operation,
    StopReason,
    Verdict,
    Wait,
    deadline_left,
)
from pollcore.grants import effects
from pollcore.reading import guidance as read_guidance
from tests.sim.mutant import always, mutant, patched_sql

before: Any = importlib.import_module("pollcore.decide.before")
"""The package gives the function that name."""


# --- grants -----------------------------------------------------------------------------------------------------------


@mutant(20)
def a_contract_that_nobody_tried_is_trusted() -> Iterator[None]:
    async def use(self: Contracts, contract: Any) -> ContractUse:
        return ContractUse.READ_ONLY

    with mock.patch.object(Contracts, "use", use):
        yield


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
    with mock.patch.object(read_guidance, "_retry_after", always(None)):
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
        mock.patch.object(Shared, "cooldown", always(None)),
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
        stack.enter_context(patched_sql(claims, "_CLAIM", ("deadline_boot>?14", "deadline_boot>?14*0")))
        stack.enter_context(mock.patch.object(before, "_passed_by_boot_clock", always(None)))
        yield


@mutant()
def the_deadline_stops_nothing() -> Iterator[None]:
    with (
        mock.patch.object(limits, "passed_limit", always(None)),
        mock.patch.object(before, "passed_limit", always(None)),
        mock.patch.object(before, "_passed_by_boot_clock", always(None)),
    ):
        yield


@mutant(500)
def a_late_final_answer_is_dropped() -> Iterator[None]:
    """Also one that comes in the last seconds: answers after the deadline are too rare in these worlds."""
    real = decide.decide

    def dropped(operation: Operation, reading: Any, *, now: Moment, **named: Any) -> Any:
        final = isinstance(reading, Observation) and reading.verdict.is_final
        if final and deadline_left(operation, now) <= 20 * SECOND:
            return decide.stop(operation, StopReason.DEADLINE_EXCEEDED)
        return real(operation, reading, now=now, **named)

    with mock.patch.object(decide, "decide", dropped):
        yield


# --- what is shared ---------------------------------------------------------------------------------------------------


@mutant(100)
def an_origin_that_is_down_is_asked_by_all() -> Iterator[None]:
    forbids = store_shared.InForce.forbids

    def without(self: Any, claim: Any, now: Moment) -> bool:
        return forbids(msgspec.structs.replace(self, origins=()), claim, now)

    with (
        mock.patch.object(Shared, "may_probe", always(True)),
        mock.patch.object(store_shared.InForce, "forbids", without),
    ):
        yield


@mutant(100)
def a_refused_secret_is_sent_again() -> Iterator[None]:
    forbids = store_shared.InForce.forbids

    def without(self: Any, claim: Any, now: Moment) -> bool:
        return forbids(msgspec.structs.replace(self, denials=()), claim, now)

    with (
        mock.patch.object(Shared, "denial", always(None)),
        mock.patch.object(store_shared.InForce, "forbids", without),
    ):
        yield


@mutant(100)
def a_pause_is_ignored() -> Iterator[None]:
    forbids = store_shared.InForce.forbids

    def without(self: Any, claim: Any, now: Moment) -> bool:
        return forbids(msgspec.structs.replace(self, pauses=()), claim, now)

    with (
        mock.patch.object(Shared, "pause", always(None)),
        mock.patch.object(store_shared.InForce, "forbids", without),
    ):
        yield
