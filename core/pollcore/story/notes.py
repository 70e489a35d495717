"""Remarks of an event as people read them (A2).

Job: one note of the record -> words; a limit's change is told as its card told it. Must not know: the sentence beside
it, other notes. The record keeps its keys for programs; what is no key of ours is left as it is.
Source: spec A1, A2.
"""

from __future__ import annotations

import re
from typing import Final

from pollcore.facts import LAST_CHECK, AuditEvent, EventName, Instant, parse_instant
from pollcore.story.sentences import time_words

_BUDGET: Final = "max_status_requests"
_LIMITS: Final = frozenset(
    {
        *("deadline", "status_requests", "transport_failures", "rate_limited", "useful_until", LAST_CHECK),
        *("credential", "contract", "observation", "session_minutes", "session_calls"),
    }
)
"""What a grant changes, as its notes name it."""
_KEYS: Final = frozenset(
    {
        *("clock_skew", "clock_step", "hint_invalid", "near_match", "error_details_missing", "answer_lost"),
        *("rule_failed", "expiry_invalid", "useful_until", "max_interval", _BUDGET),
        *("max_transport_failures", "max_rate_limited"),
    }
)
"""Keys of ours that a note begins with."""
_CHANGE: Final = re.compile(r"([a-z_]+) (\S+) -> (\S+)")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_SHOWN: Final = 12
"""Characters of a digest that tell it apart."""


def told(note: str, event: AuditEvent) -> str | None:
    """*note* of *event* in words; None: it says nothing that changed."""
    change = _CHANGE.fullmatch(note)
    if change is not None and change[1] in _LIMITS:
        return _change(change[1], change[2], change[3], event.at)
    key, space, rest = note.partition(" ")
    name = key.rstrip(":")
    if name not in _KEYS:
        return note
    if name == _BUDGET and event.event is EventName.SUBMITTED:  # `budget 12` stands in the sentence already
        return f"the budget {rest.removeprefix(f'{event.max_requests} ')}"
    return f"{key.replace('_', ' ')}{space}{rest}"


def _change(what: str, before: str, after: str, seen_from: Instant) -> str | None:
    name = what.replace("_", " ")
    if what == LAST_CHECK:  # a time that a grant counts anew: where it lies is told, not from where it came
        return f"{name}: {'none' if after == 'none' else f'about {_side(after, seen_from)}'}"
    if before == after:
        return None
    return f"{name} {_side(before, seen_from)} -> {_side(after, seen_from)}"


def _side(value: str, seen_from: Instant) -> str:
    if _DIGEST.fullmatch(value):
        return value[:_SHOWN]
    if value.endswith("Z"):
        try:
            return time_words(parse_instant(value), seen_from)
        except ValueError:
            return value
    return value
