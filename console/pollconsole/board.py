"""What the screen knows: rows by id, open questions, and which of them a view shows in which order.

Job: pure: deltas in, ordered ids and counts out. Must not know: widgets, the core, disk. Rows keep their identity:
order
and cursor are by operation id, never by row number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from pollconsole import rows, words
from pollconsole.mailbox import Delta
from pollcore.facts import SECOND, Escalation, Instant, Moment, Operation, Status, StopReason

MAX_ENDED: Final = 2_000
"""Ended operations kept on the screen; the store keeps all."""

APPROVALS: Final = frozenset(
    {StopReason.CALL_APPROVAL, StopReason.SESSION_APPROVAL, StopReason.MODE_CHANGE, StopReason.FIRST_USE}
)
"""Questions that no stop raised: they ask for an approval."""


class View(StrEnum):
    """The views, in the order of their digits."""

    ALL = "all"
    NEEDS = "needs you"
    UNKNOWN = "unknown"
    LOW = "low"
    FAILED = "failed"
    DONE = "done"
    MARKED = "marked"


class Sort(StrEnum):
    """What rows are ordered by."""

    ATTENTION = "attention"
    DEADLINE = "deadline"
    NEXT = "next"
    OPERATION = "operation"
    PROVIDER = "provider"
    STATUS = "status"
    REQUESTS = "requests"


SORT_KEYS: Final[dict[str, Sort]] = {
    "a": Sort.ATTENTION,
    "l": Sort.DEADLINE,
    "n": Sort.NEXT,
    "o": Sort.OPERATION,
    "p": Sort.PROVIDER,
    "s": Sort.STATUS,
    "r": Sort.REQUESTS,
}
_FAR: Final = 1 << 62
_UNKNOWN: Final = frozenset({StopReason.UNKNOWN_STATE, StopReason.NEEDS_HUMAN, StopReason.INTEGRATION_FAILURE})
_ENDS: Final = frozenset(status for status in Status if status.is_end)
_FAILED: Final = frozenset({Status.FAILED, Status.CANCELLED, Status.EXPIRED})


class Waiting(msgspec.Struct, frozen=True):
    """What waits for a person, counted for the strip that stands on every view (V4)."""

    approvals: int
    escalations: int
    oldest_ms: int
    causes: int
    """Cards of the decisions: one answer may cover all that one cause stopped (E10)."""

    @property
    def total(self) -> int:
        return self.approvals + self.escalations


class Figures(msgspec.Struct, frozen=True):
    """What is counted over all rows, once a second at most."""

    live: int
    """Operations that have not ended."""
    by_view: dict[View, int]
    handed_over_by: frozenset[str]
    """OS users who handed over what is live."""


class Board:
    """All rows of the screen. One thread."""

    def __init__(self) -> None:
        self.operations: dict[str, Operation] = {}
        self.questions: dict[str, Escalation] = {}
        """Open ones, by operation id (one each, E7)."""
        self.other_questions: tuple[Escalation, ...] = ()
        """Open ones that belong to no operation."""
        self.marked: set[str] = set()
        """Rows that the operator marked, by operation id."""
        self.pinned: dict[str, None] = {}
        """Rows that stand first in every view and order, in the order in which they were pinned."""
        self.latest = Delta()
        self._figures: Figures | None = None
        self._counted_at = -1

    def apply(self, delta: Delta) -> bool:
        """Take in what is new; True when rows or questions changed."""
        changed = bool(delta.operations) or delta.questions != self.latest.questions
        self.latest = msgspec.structs.replace(delta, operations=())
        for operation in delta.operations:
            self.operations[operation.operation_id] = operation
        self.questions = {q.operation_id: q for q in delta.questions if q.operation_id}
        self.other_questions = tuple(q for q in delta.questions if not q.operation_id)
        if delta.operations:
            self._forget_old_ends()
        return changed

    def asked(self, operation: Operation) -> bool:
        """Whether a decision is wanted on it now."""
        question = self.questions.get(operation.operation_id)
        return operation.status in words.NEEDS_A_HUMAN or (question is not None and not self._is_put_off(question))

    def _is_put_off(self, question: Escalation) -> bool:
        """A held operation's own question offers to end the hold; nobody has to answer it until the hold is over."""
        operation = self.operations.get(question.operation_id)
        held = operation is not None and operation.status is Status.HELD
        return held and question.reason is StopReason.OPERATOR_REQUEST

    def wanted(self) -> list[Escalation]:
        """Open questions that wait for a person now."""
        return [q for q in (*self.questions.values(), *self.other_questions) if not self._is_put_off(q)]

    def waiting(self, now: Moment) -> Waiting:
        """What the strip says."""
        asked = self.wanted()
        approvals = sum(question.reason in APPROVALS for question in asked)
        causes = len({question.cause for question in asked if question.reason not in APPROVALS})
        oldest = min((question.asked_at for question in asked), default=now.wall)
        return Waiting(approvals, len(asked) - approvals, max(0, now.wall - oldest), causes)

    def figures(self, now: Moment) -> Figures:
        """Counts over all rows; counted anew at most once a second of *now*, and when the first rows come."""
        second = now.wall // SECOND
        if self._figures is None or self._counted_at != second or bool(self.operations) != bool(self._figures.live):
            self._counted_at = second
            self._figures = self._count(now)
        return self._figures

    def _count(self, now: Moment) -> Figures:
        counted = dict.fromkeys(View, 0)
        live, users = 0, set()
        for operation in self.operations.values():
            end, asked = operation.status in _ENDS, self.asked(operation)
            if not end:
                live += 1
                users.add(operation.submitted.os_user)
                counted[View.LOW] += rows.runs_low(operation, now)
            counted[View.ALL] += asked or not end
            counted[View.NEEDS] += asked
            counted[View.UNKNOWN] += not end and operation.stop_reason in _UNKNOWN
            counted[View.FAILED] += operation.status in _FAILED
            counted[View.DONE] += end
            counted[View.MARKED] += operation.operation_id in self.marked
        return Figures(live, counted, frozenset(users))

    def belongs(self, operation: Operation, view: View, now: Moment) -> bool:
        """Whether *view* shows *operation*. The first view shows live ones and ends that want a decision."""
        match view:
            case View.ALL:
                return not operation.status.is_end or self.asked(operation)
            case View.NEEDS:
                return self.asked(operation)
            case View.UNKNOWN:
                return operation.stop_reason in _UNKNOWN and not operation.status.is_end
            case View.LOW:
                return rows.runs_low(operation, now)
            case View.FAILED:
                return operation.status in _FAILED
            case View.DONE:
                return operation.status.is_end
            case View.MARKED:
                return operation.operation_id in self.marked

    def ordered(self, view: View, needle: str, sort: Sort, reverse: bool, now: Moment) -> list[str]:
        """Ids of *view* that match *needle*, ordered; equal ones by id, so that nothing jumps."""
        fits = finder(needle)
        shown = [o for o in self.operations.values() if self.belongs(o, view, now) and fits(o)]
        key = self._key(sort, now)
        shown.sort(key=lambda operation: (key(operation), operation.operation_id), reverse=reverse)
        ids = [operation.operation_id for operation in shown]
        if not self.pinned:
            return ids
        here = set(ids)
        first = [each for each in self.pinned if each in here]
        return [*first, *(each for each in ids if each not in self.pinned)]

    def _key(self, sort: Sort, now: Moment) -> Callable[[Operation], Any]:
        match sort:
            case Sort.ATTENTION:
                return lambda o: (self._rank(o, now), o.deadline_at)
            case Sort.DEADLINE:
                return lambda o: (o.status.is_end, o.deadline_at)
            case Sort.NEXT:
                return lambda o: _FAR if o.next_poll_at is None or o.status.is_end else o.next_poll_at
            case Sort.OPERATION:
                return lambda o: o.operation_id
            case Sort.PROVIDER:
                return lambda o: (o.submitted.provider, o.submitted.account)
            case Sort.STATUS:
                return lambda o: list(Status).index(o.status)
            case Sort.REQUESTS:
                return lambda o: o.requests_left

    def _rank(self, operation: Operation, now: Moment) -> int:
        """What needs a person first, then what runs low, what runs, what is held, what has ended."""
        if self.asked(operation):
            return 0
        if operation.status.is_end:
            return 4
        if rows.runs_low(operation, now):
            return 1
        return 3 if operation.status is Status.HELD else 2

    def _forget_old_ends(self) -> None:
        ended = [o for o in self.operations.values() if o.status.is_end and not self._is_kept(o.operation_id)]
        if len(ended) > MAX_ENDED:
            for operation in sorted(ended, key=lambda o: o.change)[: len(ended) - MAX_ENDED]:
                del self.operations[operation.operation_id]

    def _is_kept(self, operation_id: str) -> bool:
        return operation_id in self.questions or operation_id in self.marked or operation_id in self.pinned


FIELDS: Final[dict[str, Callable[[Operation], str]]] = {
    "op": lambda o: o.operation_id,
    "status": lambda o: o.status.value,
    "state": lambda o: o.last_known_state or "",
    "provider": lambda o: o.submitted.provider,
    "account": lambda o: o.submitted.account,
    "job": lambda o: o.submitted.job_id,
    "label": lambda o: o.submitted.label or "",
    "reason": lambda o: o.stop_reason.value if o.stop_reason is not None else "",
}
"""What a filter can name: `state:running`."""


def finder(needle: str) -> Callable[[Operation], bool]:
    """A test whether every word of *needle* is in a row: plain words anywhere, `field:word` in that field."""
    named: list[tuple[Callable[[Operation], str], str]] = []
    anywhere: list[str] = []
    for word in needle.lower().split():
        name, colon, rest = word.partition(":")
        if colon and name in FIELDS:
            named.append((FIELDS[name], rest))
        else:
            anywhere.append(word)

    def fits(operation: Operation) -> bool:
        if not all(rest in read(operation).lower() for read, rest in named):
            return False
        if not anywhere:
            return True
        text = "\n".join(read(operation) for read in FIELDS.values()).lower()
        return all(word in text for word in anywhere)

    return fits


class Cause(msgspec.Struct, frozen=True):
    """What waits for one cause, counted when rows changed, not at each tick."""

    cause: str
    questions: tuple[Escalation, ...]
    """The oldest first."""
    reason: str
    """The most frequent one; `provider_failure +1 more` where there are others."""
    oldest_at: Instant
    ends_at: Instant | None
    """When the first of their waits ends; None: no row is known."""


def by_cause(questions: Sequence[Escalation], operations: Mapping[str, Operation]) -> list[Cause]:
    """Questions with one cause together, the oldest first (E10)."""
    groups: dict[str, list[Escalation]] = {}
    for question in sorted(questions, key=lambda q: (q.asked_at, q.escalation_id)):
        groups.setdefault(question.cause, []).append(question)
    return [_cause(cause, group, operations) for cause, group in groups.items()]


def _cause(cause: str, group: Sequence[Escalation], operations: Mapping[str, Operation]) -> Cause:
    reasons = Counter(question.reason.value for question in group)
    reason = reasons.most_common(1)[0][0]
    known = (operations.get(question.operation_id) for question in group)
    return Cause(
        cause,
        tuple(group),
        reason if len(reasons) == 1 else f"{reason} +{len(reasons) - 1} more",
        group[0].asked_at,
        min((wait_ends_at(operation) for operation in known if operation is not None), default=None),
    )


def wait_ends_at(operation: Operation) -> Instant:
    """By our deadline, the end of usefulness or the provider's own expiry, whichever is first."""
    ends = (operation.deadline_at, operation.useful_until, operation.provider_expires_at)
    return min(end for end in ends if end is not None)
