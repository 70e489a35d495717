"""Sessions of credentials in a few words: what is left of them, and that one has ended.

Job: pure: what is left -> a span for the status line; two looks -> what ended between them. Must not know: the core,
who may grant one.

Source: spec G6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pollconsole import rows, words
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
    """` session acme-prod 188 calls 1 h 29 min `, ` 3 sessions, first 12 calls 4:10 `; None: there is none.

    Of several, what is left of the one that ends first. *form*: from 0, all words, to 3, the count alone.
    """
    if not sessions:
        return None
    first = min(sessions, key=lambda each: (each.until, each.calls_left))
    time_left = max(0, first.until - now)
    role = "attention" if time_left < SOON_MS or first.calls_left < FEW_CALLS else "calm"
    many = len(sessions) > 1
    what = f"{len(sessions)} sessions, first" if many else "session"
    calls, left = f"{first.calls_left:,} calls", rows.short_countdown(time_left)
    said = (
        f"{what} {text(first.credential, limit=MAX_NAME)[0]} {calls} {words.span(time_left)}",
        f"{what} {calls} {left}",
        f"{what} {first.calls_left:,} {left}",
        f"{len(sessions)} session{'s' * many}",
    )
    return f" {said[min(form, len(said) - 1)]} ", role


def ended(before: Sequence[SessionLeft], after: Sequence[SessionLeft], now: Instant) -> list[str]:
    """One sentence for each session that was there and is not any more."""
    still = {each.session_id for each in after}
    return [
        f"the session of {each.credential} has ended ({_why(each, now)}); its next use asks"
        for each in before
        if each.session_id not in still
    ]


def _why(each: SessionLeft, now: Instant) -> str:
    """What is known: who ended it, or whether its calls were used up, is in the audit."""
    over = each.until - TICK_MS <= now
    return "its time is over" if over else f"{each.calls_left:,} of {each.calls:,} calls were left a moment before"
