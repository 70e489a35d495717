"""Open questions by their cause: one row of a queue each, in the order in which time runs out.

Job: pure: questions and records -> causes, ordered; the one order of questions, `urgency`, that the table follows as
well. Must not know: rows of the table, views, widgets, what is asked; nothing of a screen, because the command line
lists in the same order.

Source: spec E10, G7, V4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from pollcore.facts import Escalation, Instant, Operation, StopReason

APPROVALS: Final = frozenset(
    {StopReason.CALL_APPROVAL, StopReason.SESSION_APPROVAL, StopReason.MODE_CHANGE, StopReason.FIRST_USE}
)
"""Questions that no stop raised: they ask for an approval."""
_GO_ON: Final = frozenset({StopReason.EXTENSION_REQUESTED, StopReason.OPERATOR_REQUEST, StopReason.MODE_CHANGE})
"""Questions beside which the wait goes on (E7): nothing stands still for them."""


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
    wait_ends: tuple[Instant | None, ...]
    """By question, when its wait ends; None: its row is not known, or it has ended."""

    def ends_at(self, now: Instant) -> Instant | None:
        """When the next of the waits ends; once all have passed, when the last one did. None: none ends."""
        return _next(self.wait_ends, now)

    def expires_at(self, now: Instant) -> Instant | None:
        """When the next of the questions expires (G7); once all have, when the last one did. None: none does, or their
        time does not run yet."""
        return _next([each.expires_at for each in self.questions], now)


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
    known = [operations.get(question.operation_id) for question in group]
    return Cause(
        cause,
        tuple(group),
        reasons.most_common(1)[0][0],
        len(reasons) - 1,
        group[0].asked_at,
        tuple(None if operation is None else wait_ends_at(operation) for operation in known),
    )


def _next(instants: Iterable[Instant | None], now: Instant) -> Instant | None:
    """The first of *instants* that is still to come, else the last of them."""
    known = [at for at in instants if at is not None]
    return min((at for at in known if at > now), default=max(known, default=None))


def urgency(
    question: Escalation, wait_ends: Instant | None, now: Instant
) -> tuple[int, Instant | int, bool, Instant, str]:
    """The one order of what waits for a person, by what ends next on it: its own time, or its wait's.

    What still runs comes first, soonest first; then what has passed its time; then what has none, because it has
    ended. Equal ones, and all that no hurry saves: what stands still until it is answered before what goes on
    meanwhile, then the oldest.
    """
    known = question_ends(question, wait_ends)
    left = min((at for at in known if at > now), default=None)
    rank, at = (0, left) if left is not None else (1, 0) if known else (2, 0)
    return rank, at, question.reason in _GO_ON, question.asked_at, question.escalation_id


def question_ends(question: Escalation, wait_ends: Instant | None) -> tuple[Instant, ...]:
    """What ends on one question: its own time, and its wait's."""
    return tuple(at for at in (question.expires_at, wait_ends) if at is not None)


def by_time_left(causes: Sequence[Cause], now: Instant) -> list[Cause]:
    """In the order of `urgency`: a cause stands where the first of its questions stands."""

    def key(cause: Cause) -> tuple[int, Instant | int, bool, Instant, str]:
        return min(urgency(*each, now) for each in zip(cause.questions, cause.wait_ends, strict=True))

    return sorted(causes, key=key)


def in_order(questions: Sequence[Escalation], operations: Mapping[str, Operation], now: Instant) -> list[Escalation]:
    """Questions one by one in the order of `by_time_left`; those of one cause together, in the same order."""
    found: list[Escalation] = []
    for cause in by_time_left(by_cause(questions, operations), now):
        pairs = sorted(
            zip(cause.questions, cause.wait_ends, strict=True), key=lambda each: urgency(each[0], each[1], now)
        )
        found += [question for question, _ in pairs]
    return found
