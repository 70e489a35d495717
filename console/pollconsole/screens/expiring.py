"""The time of a question that expires, on its card: counted beside what is shown, told when it is over.

Job: pure: a question and the time -> one line; why a card is over. Must not know: widgets, keys, the guard. The line
is no part of what is guarded: it runs, and moves no other line.

Source: spec G7, G8.
"""

from __future__ import annotations

from typing import Final

from pollconsole import rows
from pollconsole.draw import Line
from pollcore.facts import SECOND, Escalation, Instant, StopReason

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


def over_lines(*, expired: bool, asked_anew: bool, key: str) -> tuple[Line, Line]:
    """State and prompt of a card that is over: what became of it, and the one key that goes on."""
    what = "   its time is over: nothing was decided, nothing was sent" if expired else "   this question is over"
    state: Line = ((" EXPIRED" if expired else " OVER", "danger"), (what, "muted"))
    if asked_anew:
        return state, ((" press ", "muted"), (key, "key"), (" to open the new question; it is another card", "title"))
    return state, ((" nothing is asked here now; Esc goes back", "title"),)
