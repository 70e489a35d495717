"""Open questions by their cause: one row of a queue each, in the order in which time runs out.

Job: pure: questions and records -> causes, ordered. Must not know: rows of the table, views, widgets, what is asked;
nothing of a screen, because the command line lists in the same order.

Source: spec E10, G7, V4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from pollcore.facts import Escalation, Instant, Operation, StopReason

APPROVALS: Final = frozenset(
    {StopReason.CALL_APPROVAL, StopReason.SESSION_APPROVAL, StopReason.MODE_CHANGE, StopReason.FIRST_USE}
)
"""Questions that no stop raised: they ask for an approval."""
_GO_ON: Final = frozenset({StopReason.EXTENSION_REQUESTED, StopReason.OPERATOR_REQUEST, StopReason.MODE_CHANGE})
"""Questions beside which the wait goes on (E7): nothing stands still for them."""
_FAR: Final = 1 << 62


class Cause(msgspec.Struct, frozen=True):
    """What waits for one cause, counted when rows changed, not at each tick."""

    cause: str
    questions: tuple[Escalation, ...]
    """The oldest first."""
    reason: StopReason
    """The most frequent one."""
    other_reasons: int
    """How many other ones there are beside it."""
    oldest_at: Instant
    ends_at: Instant | None
    """When the first of their waits ends; None: no row is known, or all have ended."""
    expires_at: Instant | None = None
    """When the first of the questions expires (G7); None: none does, or its time does not run yet."""


def wait_ends_at(operation: Operation) -> Instant | None:
    """By our deadline, the end of usefulness or the provider's own expiry, whichever is first; None: it has ended."""
    if operation.status.is_end:
        return None
    ends = (operation.deadline_at, operation.useful_until, operation.provider_expires_at)
    return min(end for end in ends if end is not None)


def by_cause(questions: Sequence[Escalation], operations: Mapping[str, Operation]) -> list[Cause]:
    """Questions with one cause together, the oldest first (E10)."""
    groups: dict[str, list[Escalation]] = {}
    for question in sorted(questions, key=lambda q: (q.asked_at, q.escalation_id)):
        groups.setdefault(question.cause, []).append(question)
    return [_cause(cause, group, operations) for cause, group in groups.items()]


def _cause(cause: str, group: Sequence[Escalation], operations: Mapping[str, Operation]) -> Cause:
    reasons = Counter(question.reason for question in group)
    known = (operations.get(question.operation_id) for question in group)
    ends = [wait_ends_at(operation) for operation in known if operation is not None]
    return Cause(
        cause,
        tuple(group),
        reasons.most_common(1)[0][0],
        len(reasons) - 1,
        group[0].asked_at,
        min((end for end in ends if end is not None), default=None),
        min((question.expires_at for question in group if question.expires_at is not None), default=None),
    )


def by_time_left(causes: Sequence[Cause], now: Instant) -> list[Cause]:
    """What ends soonest first: questions that expire, then waits that end; then what nobody can save by hurrying.

    Of the last, those whose time has passed come before those that have none; equal ones: what stands still until it is
    answered before what goes on meanwhile, then the oldest.
    """

    def key(cause: Cause) -> tuple[int, int, int, bool, int]:
        expires = _FAR if cause.expires_at is None else cause.expires_at
        ends = cause.ends_at
        if ends is None:
            passed, left = 2, 0
        else:
            passed, left = (0, ends) if ends > now else (1, 0)
        return expires, passed, left, cause.reason in _GO_ON, cause.oldest_at

    return sorted(causes, key=key)


def in_order(questions: Sequence[Escalation], operations: Mapping[str, Operation], now: Instant) -> list[Escalation]:
    """Questions one by one in the order of `by_time_left`; those of one cause together, the oldest first."""
    return [each for cause in by_time_left(by_cause(questions, operations), now) for each in cause.questions]
