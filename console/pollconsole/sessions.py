"""Sessions of credentials in a few words: what is left of them, and that one has ended.

Job: pure: what is left -> a span for the status line; two looks -> what ended between them. Must not know: the core, who
may grant one.

Source: spec G6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pollconsole import words
from pollconsole.draw import Span, text
from pollconsole.mailbox import SessionLeft
from pollcore.facts import MINUTE, Instant

MAX_NAME: Final = 20
SOON_MS: Final = 10 * MINUTE
FEW_CALLS: Final = 10
"""With less time or fewer calls left than these, the status line shows it as running out."""
TICK_MS: Final = 5_000
"""A session that is gone so shortly before its time is taken to have ended by it."""


def span(sessions: Sequence[SessionLeft], now: Instant, form: int) -> Span | None:
    """` session acme-prod 188 calls 1 h 29 min `, ` 3 sessions, 12 calls `; None: there is none.

    With several, what is left of the one that ends first. *form*: 0 all words, from 2 on the count alone.
    """
    if not sessions:
        return None
    first = min(sessions, key=lambda each: (each.until, each.calls_left))
    low = first.until - now < SOON_MS or first.calls_left < FEW_CALLS
    role = "attention" if low else "calm"
    if form >= 2:
        return f" {len(sessions)} session{'s' * (len(sessions) > 1)} ", role
    what = f"session {text(first.credential, limit=MAX_NAME)[0]}" if len(sessions) == 1 else f"{len(sessions)} sessions"
    left = f"{first.calls_left:,} calls" + (f" {words.span(max(0, first.until - now))}" if form < 1 else "")
    return f" {what} {left} ", role


def ended(before: Sequence[SessionLeft], after: Sequence[SessionLeft], now: Instant) -> list[str]:
    """One sentence for each session that was there and is not any more."""
    still = {each.session_id for each in after}
    return [
        f"the session of {each.credential} has ended: {_why(each, now)}; its next use asks"
        for each in before
        if each.session_id not in still
    ]


def _why(each: SessionLeft, now: Instant) -> str:
    if each.until - TICK_MS <= now:
        return "its time is over"
    left = f"{each.calls_left:,} of {each.calls:,} calls were left when it was looked at last"
    return f"it was ended, its calls are used up, or its run has ended ({left})"
