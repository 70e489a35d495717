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

from pollconsole import words
from pollconsole.mailbox import Delta
from pollconsole.row_facts import RowFacts, finder
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
_STATUSES: Final = {status: number for number, status in enumerate(Status)}
_FAILED: Final = frozenset({Status.FAILED, Status.CANCELLED, Status.EXPIRED})


class Waiting(msgspec.Struct, frozen=True):
    """What waits for a person, counted for the strip that stands on every view (V4)."""

    approvals: int
    escalations: int
    oldest_ms: int
    causes: int
    """Cards of the decisions: one answer may cover all that one cause stopped (E10)."""
    approval_cards: int = 0
    """The same of the approvals."""

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
        self._facts: dict[str, RowFacts] = {}
        self._ended: dict[str, None] = {}
        self._figures: Figures | None = None
        self._counted_at = -1

    def apply(self, delta: Delta) -> bool:
        """Take in what is new; True when rows or questions changed."""
        before = self.latest.questions
        changed = bool(delta.operations) or (delta.questions is not before and delta.questions != before)
        self.latest = msgspec.structs.replace(delta, operations=())
        for operation in delta.operations:
            self.operations[operation.operation_id] = operation
            if operation.status in _ENDS:
                self._ended[operation.operation_id] = None
            else:
                self._ended.pop(operation.operation_id, None)
        if delta.questions is not before:
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

    def needing(self) -> int:
        """Operations that wait for a person now: what the view of them shows, and what the strip counts."""
        return sum(question.operation_id in self.operations for question in self.wanted() if question.operation_id)

    def marked_here(self) -> int:
        """Marked rows that are still shown."""
        return sum(each in self.operations for each in self.marked)

    def waiting(self, now: Moment) -> Waiting:
        """What the strip says."""
        asked = self.wanted()
        approvals = sum(question.reason in APPROVALS for question in asked)
        causes = len({question.cause for question in asked if question.reason not in APPROVALS})
        cards = len({question.cause for question in asked if question.reason in APPROVALS})
        oldest = min((question.asked_at for question in asked), default=now.wall)
        return Waiting(approvals, len(asked) - approvals, max(0, now.wall - oldest), causes, cards)

    def figures(self, now: Moment) -> Figures:
        """Counts over all rows; counted anew at most once a second of *now*, and when the first rows come."""
        second = now.wall // SECOND
        if self._figures is None or self._counted_at != second or bool(self.operations) != bool(self._figures.live):
            self._counted_at = second
            self._figures = self._count(now)
        return self._figures

    def facts(self, operation: Operation) -> RowFacts:
        """What is worked out of this record."""
        known = self._facts.get(operation.operation_id)
        if known is None or known.operation is not operation:
            known = self._facts[operation.operation_id] = RowFacts(operation)
        return known

    def _all_facts(self) -> list[RowFacts]:
        known = self._facts
        return [
            row if (row := known.get(key)) is not None and row.operation is operation else self.facts(operation)
            for key, operation in self.operations.items()
        ]

    def _asked_for(self) -> set[str]:
        """Operations with an open question that is not put off."""
        return {key for key, question in self.questions.items() if not self._is_put_off(question)}

    def _count(self, now: Moment) -> Figures:
        open_ones = self._asked_for()
        rows_ = self._all_facts()
        live = [row for row in rows_ if not row.end]
        asked = sum(row.needs or row.operation_id in open_ones for row in rows_)
        ends_asked = sum(row.end and (row.needs or row.operation_id in open_ones) for row in rows_)
        counted = {
            View.ALL: len(live) + ends_asked,
            View.NEEDS: asked,
            View.UNKNOWN: sum(row.operation.stop_reason in _UNKNOWN for row in live),
            View.LOW: sum(row.low is not None and row.low.at(now) for row in live),
            View.FAILED: sum(row.operation.status in _FAILED for row in rows_ if row.end),
            View.DONE: len(rows_) - len(live),
            View.MARKED: sum(key in self.operations for key in self.marked),
        }
        return Figures(len(live), counted, frozenset(row.operation.submitted.os_user for row in live))

    def _fits(self, view: View, now: Moment) -> Callable[[RowFacts], bool]:
        """Whether *view* shows a row. The first view shows live ones and ends that want a decision."""
        open_ones = self._asked_for()
        match view:
            case View.ALL:
                return lambda row: not row.end or row.needs or row.operation_id in open_ones
            case View.NEEDS:
                return lambda row: row.needs or row.operation_id in open_ones
            case View.UNKNOWN:
                return lambda row: not row.end and row.operation.stop_reason in _UNKNOWN
            case View.LOW:
                return lambda row: row.low is not None and row.low.at(now)
            case View.FAILED:
                return lambda row: row.operation.status in _FAILED
            case View.DONE:
                return lambda row: row.end
            case View.MARKED:
                return lambda row: row.operation_id in self.marked

    def ordered(self, view: View, needle: str, sort: Sort, reverse: bool, now: Moment) -> list[str]:
        """Ids of *view* that match *needle*, ordered; equal ones by id, so that nothing jumps."""
        belongs = self._fits(view, now)
        shown = [row for row in self._all_facts() if belongs(row)]
        if needle:
            fits = finder(needle)
            shown = [row for row in shown if fits(row)]
        key = self._key(sort, now)
        keyed = [(key(row), row.operation_id) for row in shown]
        keyed.sort(reverse=reverse)
        ids = [operation_id for _, operation_id in keyed]
        if not self.pinned:
            return ids
        here = set(ids)
        first = [each for each in self.pinned if each in here]
        return [*first, *(each for each in ids if each not in self.pinned)]

    def _key(self, sort: Sort, now: Moment) -> Callable[[RowFacts], Any]:
        match sort:
            case Sort.ATTENTION:
                return self._by_attention(now)
            case Sort.DEADLINE:
                return lambda row: (row.end, row.operation.deadline_at)
            case Sort.NEXT:
                return lambda row: _FAR if row.end or row.operation.next_poll_at is None else row.operation.next_poll_at
            case Sort.OPERATION:
                return lambda row: row.operation_id
            case Sort.PROVIDER:
                return lambda row: (row.operation.submitted.provider, row.operation.submitted.account)
            case Sort.STATUS:
                return lambda row: _STATUSES[row.operation.status]
            case Sort.REQUESTS:
                return lambda row: row.operation.requests_left

    def _by_attention(self, now: Moment) -> Callable[[RowFacts], tuple[int, int]]:
        """What needs a person first, then what runs low, what runs, what is held, what has ended."""
        open_ones = self._asked_for()

        def key(row: RowFacts) -> tuple[int, int]:
            operation = row.operation
            if row.needs or row.operation_id in open_ones:
                return 0, operation.deadline_at
            if row.low is None:
                return 4, operation.deadline_at
            if row.low.at(now):
                return 1, operation.deadline_at
            return 3 if operation.status is Status.HELD else 2, operation.deadline_at

        return key

    def _forget_old_ends(self) -> None:
        if len(self._ended) <= MAX_ENDED:
            return
        ended = [self.operations[key] for key in self._ended if not self._is_kept(key)]
        for operation in sorted(ended, key=lambda o: o.change)[: max(0, len(ended) - MAX_ENDED)]:
            key = operation.operation_id
            del self.operations[key], self._ended[key]
            self._facts.pop(key, None)

    def _is_kept(self, operation_id: str) -> bool:
        return operation_id in self.questions or operation_id in self.marked or operation_id in self.pinned


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
    expires_at: Instant | None = None
    """When the first of the questions expires (G7); None: none does, or its time does not run yet."""


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
        min((question.expires_at for question in group if question.expires_at is not None), default=None),
    )


def by_time_left(causes: Sequence[Cause]) -> list[Cause]:
    """Those that expire soonest first, then those whose wait ends soonest, then the oldest."""

    def key(cause: Cause) -> tuple[int, int, int]:
        expires = _FAR if cause.expires_at is None else cause.expires_at
        return expires, _FAR if cause.ends_at is None else cause.ends_at, cause.oldest_at

    return sorted(causes, key=key)


def wait_ends_at(operation: Operation) -> Instant:
    """By our deadline, the end of usefulness or the provider's own expiry, whichever is first."""
    ends = (operation.deadline_at, operation.useful_until, operation.provider_expires_at)
    return min(end for end in ends if end is not None)
