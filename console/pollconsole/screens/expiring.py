"""What time does to a question, on its card: counted beside what is shown, told when it is over.

Job: pure: a question, its operation and the time -> one line: when it expires, or what comes of it if it is left alone;
why a card is over. Must not know: widgets, keys, the guard. The line
is no part of what is guarded: it runs, and moves no other line.

Source: spec E7, G7, G8.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pollconsole import rows
from pollconsole.causes import wait_ends_at
from pollconsole.draw import Line
from pollconsole.due import PASSED
from pollcore.facts import LEAVE_THE_WAIT_GOING, SECOND, Escalation, Instant, Operation, StopReason, stop_in_force

HURRY_MS: Final = 30 * SECOND
"""With less time left the countdown is loud."""
BAR: Final = 24
WHOLE_MS: Final = 120 * SECOND
"""What the bar is drawn against: the time of a question about one call."""


def does_expire(question: Escalation) -> bool:
    """Whether a question of this kind has a time of its own."""
    return question.reason is StopReason.CALL_APPROVAL


def is_over(question: Escalation, now: Instant) -> bool:
    """Whether its time has passed."""
    return question.expires_at is not None and question.expires_at <= now


def clock_line(question: Escalation, now: Instant) -> Line:
    """` expires in 1:42  ######------  an expiry is no denial: it is asked anew `."""
    if question.expires_at is None:
        return ((" its time begins in a moment", "muted"),)
    left = max(0, question.expires_at - now)
    full, rest = rows.bar(left, WHOLE_MS, BAR)
    role = "danger" if left < HURRY_MS else "attention"
    return (
        (" expires in ", "muted"),
        (f"{rows.countdown(left):<6}", role),
        full,
        rest,
        ("  then it is asked anew; no denial", "muted"),
    )


def alone_line(question: Escalation, operation: Operation | None, now: Instant) -> Line:
    """`left alone: nothing is sent, 20:56 left `: what happens if nobody decides (E7). Short: it stands beside the
    guard's prompt, where it takes no line from the card."""
    if operation is None:
        return (("left alone: nothing changes ", "muted"),)
    goes_on = question.reason in LEAVE_THE_WAIT_GOING and stop_in_force(operation) is None
    return _alone(goes_on, wait_ends_at(operation), now)


def group_alone_line(reasons: Iterable[str], ends: Instant | None, now: Instant) -> Line:
    """The same of many that one cause stopped. *ends*: of the next of their waits; None: all have ended."""
    return _alone(all(each in LEAVE_THE_WAIT_GOING for each in reasons), ends, now)


def _alone(goes_on: bool, ends: Instant | None, now: Instant) -> Line:
    if ends is None:
        return (("left alone: nothing happens ", "muted"),)
    happens = "left alone: polls go on, " if goes_on else "left alone: nothing is sent, "
    if ends <= now:
        return ((f"{happens}time {PASSED} ", "muted"),)
    role = "danger" if ends - now < HURRY_MS else "text"
    return ((happens, "muted"), (f"{rows.short_countdown(ends - now)} left ", role))


def over_lines(*, expired: bool, asked_anew: bool, key: str) -> tuple[Line, Line]:
    """State and prompt of a card that is over: what became of it, and the one key that goes on."""
    what = "   its time is over: nothing was decided, nothing was sent" if expired else "   this question is over"
    state: Line = ((" EXPIRED" if expired else " OVER", "danger"), (what, "muted"))
    if asked_anew:
        return state, ((" press ", "muted"), (key, "key"), (" to open the new question; it is another card", "title"))
    return state, ((" nothing is asked here now; Esc goes back", "title"),)
