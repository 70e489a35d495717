"""When something of a record comes due: its next request, its end. One reading for table, lists and hand-over.

Job: pure: one record and the present -> instants, spans, the one word for a time that is behind us. Must not know:
widgets, colours, other records.
Source: spec T9, B5, V1.
"""

from __future__ import annotations

from typing import Final

from pollconsole import words
from pollcore.facts import Instant, Moment, Operation, Status, deadline_left

PASSED: Final = "passed"
"""Of a deadline, everywhere: nothing is left, and how long ago that was helps nobody."""


def next_at(operation: Operation) -> Instant | None:
    """When its next request goes out, of a held one when the hold ends; None: nothing will be sent by itself."""
    if operation.status is Status.HELD:
        return operation.hold_until
    return operation.next_poll_at if operation.status is Status.WAITING else None


def time_left(operation: Operation, now: Moment) -> int:
    """ms until nothing may be asked any more: until the deadline or `useful_until`, whichever is nearer."""
    left = deadline_left(operation, now)
    return left if operation.useful_until is None else min(left, operation.useful_until - now.wall)


def next_words(operation: Operation, now: Moment, *, polled: bool) -> str:
    """`10:15:30`, `now`, `-`. Not *polled*: no core lives, so nothing whose time has passed goes out now."""
    at = next_at(operation)
    if at is not None and at <= now.wall:
        return "now" if polled else words.NOTHING
    return words.clock(at, now.wall)


def left_words(operation: Operation, now: Moment) -> str:
    """`1 h 4 min`, `passed`, `-` for what has ended."""
    if operation.status.is_end:
        return words.NOTHING
    left = time_left(operation, now)
    return words.span(left) if left > 0 else PASSED
