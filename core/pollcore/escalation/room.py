"""Limits before and after: the one arithmetic that cards show and grants carry out.

Job: what a number of minutes and checks does to a record, whether a check could then go out, and when at the latest.
Must not know: reasons, choices' wording, who decides.
Source: spec E4, E5, B5, T5, T9; invariants.md I3.
"""

from __future__ import annotations

import msgspec

from pollcore import schedule
from pollcore.facts import MINUTE, BootMs, Choice, ChoiceKind, Instant, Moment, Operation, Schedule, deadline_left

TIMELESS = frozenset({ChoiceKind.APPROVE_SESSION})
"""Choices whose minutes and calls bound a credential's session, not the operation."""


class Added(msgspec.Struct, frozen=True):
    """What a grant adds to an operation's limits (I3): minutes, and counts."""

    minutes: int = 0
    checks: int = 0
    transport_failures: int = 0
    rate_limited: int = 0


def added_by(choice: Choice) -> Added:
    """What *choice* adds to its operation's limits; the sum over all grants is the whole difference (I3)."""
    if choice.kind in TIMELESS:
        return Added()
    return Added(choice.minutes, choice.checks, choice.transport_failures, choice.rate_limited)


def deadline_passed(operation: Operation, now: Moment) -> bool:
    """By whichever clock is nearer (T9)."""
    return deadline_left(operation, now) <= 0


def end_of_wait(operation: Operation, now: Moment) -> Instant:
    """Wall time at which nothing may go out any more: deadline by the nearer clock, or `useful_until`."""
    return Instant(now.wall + schedule.room(operation, now))


def first_check_at(operation: Operation, now: Moment, plan: Schedule, cooldown_until: Instant | None = None) -> Instant:
    """T5: the later of open guidance and grant time + min_delay; a shared cool-down counts as guidance (T8)."""
    return Instant(
        max(now.wall + schedule.min_delay(plan), operation.guidance_until or 0, cooldown_until or 0),
    )


def can_check(operation: Operation, now: Moment, plan: Schedule, cooldown_until: Instant | None = None) -> bool:
    """Whether one request could still go out inside the limits of *operation*."""
    due = first_check_at(operation, now, plan, cooldown_until)
    return operation.requests_left > 0 and due < end_of_wait(operation, now)


def last_possible_check(
    operation: Operation, now: Moment, plan: Schedule, cooldown_until: Instant | None = None
) -> Instant | None:
    """When the last permitted check goes out at the latest, the longest local pauses assumed; None: no check can.

    Provider guidance may put single checks later, never past the end of the wait.
    """
    if not can_check(operation, now, plan, cooldown_until):
        return None
    first = first_check_at(operation, now, plan, cooldown_until)
    by_budget = first + (operation.requests_left - 1) * plan.max_delay
    return Instant(min(by_budget, end_of_wait(operation, now)))


def raise_limits(operation: Operation, added: Added, now: Moment) -> Operation:
    """E4: deadline = max(deadline, now) + minutes on both clocks, checks onto the maximum, `useful_until` moved along.

    Never lowers a limit. Zero minutes leave the deadline alone. Changes limits only: not status, version or schedule.
    """
    changes: dict[str, object] = {
        "max_status_requests": operation.max_status_requests + added.checks,
        "max_transport_failures": operation.max_transport_failures + added.transport_failures,
        "max_rate_limited": operation.max_rate_limited + added.rate_limited,
    }
    if added.minutes > 0:
        # boot times of another boot cannot be added to: what the wall clock leaves is taken over first (T9)
        operation = schedule.reanchor(operation, now)
        span = added.minutes * MINUTE
        deadline = Instant(max(operation.deadline_at, now.wall) + span)
        changes["deadline_at"] = deadline
        changes["deadline_boot"] = BootMs(max(operation.deadline_boot, now.boot) + span)
        if operation.useful_until is not None and deadline > operation.useful_until:
            changes["useful_until"] = deadline
    return msgspec.structs.replace(operation, **changes)
