"""What the screen knows: rows by id, open questions, and which of them a view shows in which order.

Job: pure: deltas in, ordered ids and counts out. Must not know: widgets, the core, disk. Rows keep their identity:
order and cursor are by operation id, never by row number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from pollconsole import words
from pollconsole.causes import APPROVALS, question_ends, urgency
from pollconsole.mailbox import Delta
from pollconsole.row_facts import RowFacts, finder
from pollconsole.tally import FAILED, UNKNOWN, Tally
from pollcore.facts import SECOND, Escalation, Instant, Moment, Operation, Status, StopReason

MAX_ENDED: Final = 2_000
"""Ended operations kept on the screen; the store keeps all."""


class View(StrEnum):
    """The views, in the order of their digits."""

    OPEN = "open"
    """Live ones, and ended ones whose card is open; with `done` every row once."""
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
_ENDS: Final = frozenset(status for status in Status if status.is_end)
_STATUSES: Final = {status: number for number, status in enumerate(Status)}


class Asked(msgspec.Struct, frozen=True):
    """What waits in one queue."""

    count: int
    """Questions."""
    cards: int
    """One answer may cover all that one cause stopped (E10)."""
    oldest_ms: int
    ends_ms: int | None
    """Until the first of them expires, or its wait ends; None: nothing that a decision could still save runs out."""


class Waiting(msgspec.Struct, frozen=True):
    """What waits for a person, counted for the strip that stands on every view (V4)."""

    approvals: Asked
    decisions: Asked

    @property
    def total(self) -> int:
        return self.approvals.count + self.decisions.count


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
        """Of every row, of its newest record."""
        self._tally = Tally(self._facts)
        self._ended: dict[str, None] = {}
        self._figures: Figures | None = None
        self._counted_at = -1

    def apply(self, delta: Delta) -> bool:
        """Take in what is new; True when rows or questions changed."""
        before = self.latest.questions
        changed = bool(delta.operations) or (delta.questions is not before and delta.questions != before)
        self.latest = msgspec.structs.replace(delta, operations=())
        for operation in delta.operations:
            key = operation.operation_id
            self.operations[key] = operation
            before_it, row = self._facts.get(key), RowFacts(operation)
            self._facts[key] = row
            self._tally.put(row, before_it)
            if operation.status in _ENDS:
                self._ended[key] = None
            else:
                self._ended.pop(key, None)
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
        approvals = [question for question in asked if question.reason in APPROVALS]
        decisions = [question for question in asked if question.reason not in APPROVALS]
        return Waiting(self._in_queue(approvals, now.wall), self._in_queue(decisions, now.wall))

    def _in_queue(self, questions: Sequence[Escalation], wall: Instant) -> Asked:
        oldest = min((question.asked_at for question in questions), default=wall)
        ends = min((at for question in questions for at in self._ends(question) if at > wall), default=None)
        cards = len({question.cause for question in questions})
        return Asked(len(questions), cards, max(0, wall - oldest), None if ends is None else ends - wall)

    def _ends(self, question: Escalation) -> tuple[Instant, ...]:
        """When it expires, and when its operation's wait ends."""
        operation = self.operations.get(question.operation_id)
        return question_ends(question, None if operation is None else self.facts(operation).ends_at)

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
        return known if known is not None and known.operation is operation else RowFacts(operation)

    def _asked_for(self) -> set[str]:
        """Operations with an open question that is not put off."""
        return {key for key, question in self.questions.items() if not self._is_put_off(question)}

    def _count(self, now: Moment) -> Figures:
        tally = self._tally
        asked = [row for key in self._asked_for() if (row := self._facts.get(key)) is not None and not row.needs]
        ends_asked = tally.needing_ends + sum(row.end for row in asked)
        counted = {
            View.OPEN: tally.live + ends_asked,
            View.NEEDS: tally.needing + len(asked),
            View.UNKNOWN: tally.unknown,
            View.LOW: tally.low(now),
            View.FAILED: tally.failed,
            View.DONE: len(self.operations) - tally.live - ends_asked,
            View.MARKED: self.marked_here(),
        }
        return Figures(tally.live, counted, frozenset(tally.users))

    def _fits(self, view: View, now: Moment) -> Callable[[RowFacts], bool]:
        """Whether *view* shows a row. The first view shows live ones and ends that want a decision."""
        open_ones = self._asked_for()
        match view:
            case View.OPEN:
                return lambda row: not row.end or row.needs or row.operation_id in open_ones
            case View.NEEDS:
                return lambda row: row.needs or row.operation_id in open_ones
            case View.UNKNOWN:
                return lambda row: not row.end and row.operation.stop_reason in UNKNOWN
            case View.LOW:
                return lambda row: row.low is not None and row.low.at(now)
            case View.FAILED:
                return lambda row: row.operation.status in FAILED
            case View.DONE:
                return lambda row: row.end and not row.needs and row.operation_id not in open_ones
            case View.MARKED:
                return lambda row: row.operation_id in self.marked

    def ordered(self, view: View, needle: str, sort: Sort, reverse: bool, now: Moment) -> list[str]:
        """Ids of *view* that match *needle*, ordered; equal ones by id, so that nothing jumps."""
        belongs = self._fits(view, now)
        shown = [row for row in self._facts.values() if belongs(row)]
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

    def _by_attention(self, now: Moment) -> Callable[[RowFacts], tuple[Any, ...]]:
        """What needs a person first (in the order of its queue), then what runs low, what runs, what is held, what has
        ended."""
        open_ones = self._asked_for()

        def key(row: RowFacts) -> tuple[Any, ...]:
            operation = row.operation
            question = self.questions.get(row.operation_id)
            if question is not None and (row.needs or row.operation_id in open_ones):
                return 0, *urgency(question, row.ends_at, now.wall)
            if row.needs:  # its question comes with the next look
                return 0, 3
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
            self._tally.drop(self._facts.pop(key))

    def _is_kept(self, operation_id: str) -> bool:
        return operation_id in self.questions or operation_id in self.marked or operation_id in self.pinned
