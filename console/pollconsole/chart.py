"""The waits and the answers of one operation, drawn as two short lines of text.

Job: pure: events as documents -> two lines. Must not know: widgets, where events come from. Letters and ASCII alone,
so that it survives every terminal, font and screen reader.

Source: spec T1, S1 (waits are ours, answers are the provider's).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from pollconsole import words
from pollconsole.draw import Line

MAX_DRAWN: Final = 40
"""The newest requests."""
LEVELS: Final = "_.:-=+*#"
"""From the shortest wait to the longest, by its logarithm."""
_ASKED: Final = ("polled", "faulted", "answer_lost")


def chart_lines(events: Sequence[Mapping[str, Any]], name: int) -> list[Line]:
    """`waits  __.:=+#  5 s _ to # 2 min` and `answers  222!22`; empty before the first answer.

    One sign for each wait between two requests, and one for that until the next, if it is planned.

    Args:
        events: documents of `audit show --json`.
        name: cells of the names in front.
    """
    asked = [event for event in events if event.get("event") in _ASKED][-MAX_DRAWN:]
    if not asked:
        return []
    waits = _waits(asked)
    lines: list[Line] = []
    if waits:
        low, high = min(waits), max(waits)
        drawn = "".join(_level(wait, low, high) for wait in waits)
        said = words.span(low) if low == high else f"{words.span(low)} _ to # {words.span(high)}"
        lines.append(((f"{'waits':<{name}} ", "muted"), (drawn, "bar-full"), (f"  {said}", "muted")))
    answers: Line = ((f"{'answers':<{name}} ", "muted"),)
    for event in asked:
        answers = (*answers, _answer(event))
    said = "  2 3 4 5: HTTP 2xx to 5xx, !: none"
    lines.append((*answers, (said, "faint")))
    return lines


def _answer(event: Mapping[str, Any]) -> tuple[str, str]:
    code = event.get("http")
    if not isinstance(code, int) or event.get("event") != "polled":
        return (str(code // 100), "attention") if isinstance(code, int) else ("!", "danger")
    return str(code // 100), "good" if code < 300 else "attention"


def _waits(asked: Sequence[Mapping[str, Any]]) -> list[int]:
    """ms from each answer to when the next request went out, whatever had been planned; then to the planned one."""
    sent = [instant_of(event.get("sent_at") or event.get("at")) for event in asked]
    last = instant_of(asked[-1].get("next_poll_at"))
    known = zip((instant_of(event.get("at")) for event in asked), [*sent[1:], last], strict=True)
    return [max(0, ends - begun) for begun, ends in known if begun is not None and ends is not None]


def instant_of(value: Any) -> int | None:
    if not isinstance(value, str):
        return None
    try:
        return round(datetime.fromisoformat(value).timestamp() * 1000)
    except ValueError:
        return None


def _level(wait: int, low: int, high: int) -> str:
    if high <= low:
        return LEVELS[0]
    part = math.log1p(wait - low) / math.log1p(high - low)
    return LEVELS[round(part * (len(LEVELS) - 1))]
