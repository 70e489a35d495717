"""The checks before a request, in O7's order, and the waits that other operations cause.

Job: may this operation ask now; if not, why not. Must not know: leases, credentials, caps, how requests are made.
Source: spec O7, T4-T6, T8, T9, T11, B3, E7.
"""

from __future__ import annotations

import msgspec

from pollcore import schedule
from pollcore.decide.cause import stop
from pollcore.decide.charge import Charge
from pollcore.decide.limits import passed_limit, spent_budget, stop_of_limits
from pollcore.facts import (
    DelaySource,
    Escalate,
    Instant,
    Moment,
    Operation,
    Policy,
    Status,
    StopReason,
    Wait,
    deadline_left,
    useful_left,
)


class Leave(msgspec.Struct, frozen=True):
    """Nothing to do now; *why*: `final`, `escalated`, `held`, `awaiting_approval`, `not_due`."""

    why: str


class Due(msgspec.Struct, frozen=True):
    """Every check of the record's own holds: the request may be prepared."""


class EndHold(msgspec.Struct, frozen=True):
    """A hold is over: what a stop had asked is asked anew, else the wait goes on (`grants.end_of_hold`)."""


class LimitPassed(msgspec.Struct, frozen=True):
    """E7: a limit passed while a question was open: the record gets a new version, the question stays."""

    reason: StopReason


class Rearm(msgspec.Struct, frozen=True):
    """Looked at, though nothing is due (a new boot, a wall clock set back): `due_boot` is to be worked out anew."""


Before = Leave | Due | Escalate | EndHold | LimitPassed | Rearm


def before(operation: Operation, *, now: Moment) -> Before:
    """The record's own checks before a request (O7): leave; times, also when held; hold; budgets; next poll.

    Called with the record as loaded, when it is due and again with the reservation. Pure; never raises: the record
    holds every limit that is checked here.
    """
    status = operation.status
    if status.is_end:
        return Leave("final")
    if status is Status.ESCALATED:
        return _escalated(operation, now)
    passed = passed_limit(operation, now) or _passed_by_boot_clock(operation, now)
    if passed is not None:
        return stop(operation, passed, shared=operation.delay_source)
    if status is Status.HELD:
        return _held(operation, now)
    if status is Status.AWAITING_APPROVAL:
        return Rearm() if _looked_at(operation, now) else Leave("awaiting_approval")
    spent = stop_of_limits(operation, now)
    if spent is None and not operation.check_once:
        # no record waits with such a budget spent; if one ever does, nothing more goes out (I10)
        spent = spent_budget(operation, _as_stored(operation), None)
    if spent is not None:
        return spent
    if operation.next_poll_at is not None and not schedule.reached(operation, operation.next_poll_at, now):
        return Leave("not_due")
    return Due()


def _looked_at(operation: Operation, now: Moment) -> bool:
    """The time at which the record was to be looked at again has come, on this boot's clock."""
    return operation.boot_id == now.boot_id and operation.due_boot is not None and now.boot >= operation.due_boot


def _escalated(operation: Operation, now: Moment) -> Leave | LimitPassed | Rearm:
    """E7: an open question is left alone, but for a limit that passed since it was last looked at."""
    if not _looked_at(operation, now):
        return Leave("escalated")
    passed = passed_limit(operation, now)
    if passed is StopReason.DEADLINE_EXCEEDED and (operation.due_boot or 0) > operation.deadline_boot:
        # the deadline was told when it passed; what was waited for since is the later time of use
        useful = useful_left(operation, now)
        passed = StopReason.USEFULNESS_ENDED if useful is not None and useful <= 0 else None
    return Rearm() if passed is None else LimitPassed(passed)


def _held(operation: Operation, now: Moment) -> Leave | EndHold | Rearm:
    """A hold is over when both clocks say so: nothing is asked earlier than the operator was told (T9)."""
    same_boot = operation.boot_id == now.boot_id and operation.due_boot is not None
    if operation.hold_until is not None:
        if same_boot and not _looked_at(operation, now):
            return Leave("held")
        if now.wall < operation.hold_until:
            return Rearm() if same_boot else Leave("held")
    return EndHold()


def _passed_by_boot_clock(operation: Operation, now: Moment) -> StopReason | None:
    """T9: a limit that has come by elapsed time, though the wall clock was set back since.

    A waiting record's `due_boot` is the earliest of poll and limits; if it is reached, and the poll lies behind the
    limits, then a limit is what has come.
    """
    at = operation.next_poll_at
    if operation.status is not Status.WAITING or at is None or at <= schedule.end_at(operation):
        return None
    return _nearer_limit(operation) if _looked_at(operation, now) else None


def _nearer_limit(operation: Operation) -> StopReason:
    useful = operation.useful_until
    by_use = useful is not None and useful < operation.deadline_at
    return StopReason.USEFULNESS_ENDED if by_use else StopReason.DEADLINE_EXCEEDED


def _as_stored(operation: Operation) -> Charge:
    return Charge(
        operation.completed_polls,
        operation.transport_failures_used,
        operation.rate_limited_used,
        operation.rate_limited_in_a_row,
    )


# --- waits that others cause ------------------------------------------------------------------------------------------


def shared_wait(
    operation: Operation,
    left_ms: int,
    *,
    policy: Policy,
    now: Moment,
    draw: float,
    source: DelaySource,
    waiting: int = 1,
    per_minute: int | None = None,
    origin: str | None = None,
    notes: tuple[str, ...] = (),
) -> Wait | Escalate:
    """Wait for something outside this record: a cool-down (T8), an origin that is down (T11), a pause, a cap.

    A cool-down is provider guidance: one that carries the operation past its deadline stops it now,
    `guidance_beyond_deadline` (past `useful_until`: `usefulness_ended`). Everything else burns nothing while the
    deadline runs: the wait is cut there, and stops there. Releases are spread; no request before *left_ms* are over.

    Args:
        left_ms: What is left of the common wait on the boot clock.
        waiting: The how many-th this one is of those that wait together; *per_minute*: the cap they are under.
    """
    left_ms = max(0, left_ms)
    guidance = source is DelaySource.SHARED_COOLDOWN
    left, useful = deadline_left(operation, now), useful_left(operation, now)
    if guidance and left_ms >= left:
        return stop(operation, StopReason.GUIDANCE_BEYOND_DEADLINE, origin=origin, shared=source, notes=notes)
    if guidance and useful is not None and left_ms >= useful:
        text = "a shared cool-down lasts beyond useful_until"
        return stop(operation, StopReason.USEFULNESS_ENDED, explanation=text, origin=origin, shared=source, notes=notes)
    room = schedule.room(operation, now)
    least = max(left_ms, schedule.SHORTEST_DELAY)
    delay = schedule.spread(least, draw, waiting=waiting, per_minute=per_minute, room_ms=room)
    delay = max(0, min(delay, room))
    until = Instant(now.wall + left_ms) if guidance else operation.guidance_until
    interval = policy.schedule.max_interval
    if interval is not None and delay > interval:
        notes = (*notes, f"max_interval {interval / 1000:g} s is exceeded: the job or its result may be lost")
    at = Instant(now.wall + delay)
    return Wait(next_poll_at=at, delay_ms=delay, source=source, guidance_until=until, notes=notes)
