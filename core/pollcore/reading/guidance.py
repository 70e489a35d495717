"""When the provider says to ask again.

Job: `Retry-After` and the contract's hints -> one valid guidance, or why it was refused. Must not know: deadlines,
backoff, jitter (that is schedule). Source: spec T3, T4, T5 (precedence); RFC 9110 section 10.2.3.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore.contract.parts import Hint
from pollcore.facts import SECOND, Answer, Guidance, HintFault, Instant
from pollcore.reading import times
from pollcore.reading.look import Look, RuleFailed

AGREES: Final = 2 * SECOND
"""Clocks this near are taken as one: of both readings the later instant counts."""


class Clocks(msgspec.Struct, frozen=True, gc=False):
    """The answer's `Date` against our clock. *skew* in ms (positive: the provider is ahead); None: no usable Date."""

    date: Instant | None
    skew: int | None


_NO_DATE: Final = Clocks(None, None)


def clocks(answer: Answer) -> Clocks:
    """Our exchange is a stretch, the `Date` was written somewhere in it: skew is counted from its nearer end."""
    text = answer.header("date")
    if text is None:
        return _NO_DATE
    try:
        date = times.http_date(text, answer.answered_at)
    except ValueError:
        return _NO_DATE
    if date > answer.answered_at:
        return Clocks(date, date - answer.answered_at)
    # a Date has whole seconds only
    return Clocks(date, min(0, date + SECOND - 1 - answer.sent_at))


def until(target: Instant, answer: Answer, found: Clocks) -> int:
    """ms from the complete answer until *target* (negative: past), measured against the answer's Date (T3)."""
    ours = target - answer.answered_at
    if found.date is None or found.skew is None:
        return ours
    theirs = target - found.date
    return max(ours, theirs) if abs(found.skew) <= AGREES else theirs


class Guided(msgspec.Struct, frozen=True, gc=False):
    guidance: Guidance | None
    faults: tuple[HintFault, ...]
    clock_skew_ms: int | None


def guided(look: Look) -> Guided:
    """The guidance that holds: the largest valid `Retry-After`, else the largest valid hint."""
    found = clocks(look.answer)
    skew = found.skew if found.skew is not None and abs(found.skew) > AGREES else None
    faults: list[HintFault] = []
    best = _retry_after(look.answer, found, faults)
    if look.contract.hints:
        hint = _hints(look, found, faults)
        best = best if best is not None else hint
    return Guided(best, tuple(faults), skew)


def _retry_after(answer: Answer, found: Clocks, faults: list[HintFault]) -> Guidance | None:
    best: int | None = None
    for name, raw in answer.headers:
        if name != "retry-after":
            continue
        text = raw.strip(" \t")
        delay = times.retry_after_span(text)
        try:
            if delay is None:
                if times.is_negative(text):
                    raise ValueError("negative")
                delay = until(times.http_date(text, answer.answered_at), answer, found)
                if delay < 0:
                    raise ValueError("in the past")
        except ValueError as error:
            faults.append(HintFault("retry-after", str(error)))
            continue
        best = delay if best is None else max(best, delay)
    return None if best is None else Guidance(best, "Retry-After", True)


def _hints(look: Look, found: Clocks, faults: list[HintFault]) -> Guidance | None:
    best: Guidance | None = None
    for hint in look.contract.hints:
        try:
            delay = _hint(look, hint, found)
        except RuleFailed:
            faults.append(HintFault(hint.name, "its expression failed on this answer"))
            continue
        except ValueError as error:
            faults.append(HintFault(hint.name, str(error)))
            continue
        if delay is not None and (best is None or delay > best.delay_ms):
            best = Guidance(delay, hint.name, False)
    return best


def _hint(look: Look, hint: Hint, found: Clocks) -> int | None:
    """ms, or None when this answer gives no such hint. Raises ValueError: why it is refused (T4)."""
    if hint.when is not None and not look.holds(hint.when, f"hint {hint.name}"):
        return None
    value = look.value(hint.path, f"hint {hint.name}")
    if value is None:
        return None
    if hint.unit in times.SPANS:
        delay = times.span(value, hint.unit)
    else:
        delay = until(times.instant(value, hint.unit, look.answer.answered_at), look.answer, found)
        if delay < 0:
            raise ValueError("in the past")
    most = look.contract.policy.schedule.max_hint
    if hint.cap is not None and hint.cap < most:
        most = hint.cap
    if delay > most:
        # refused, not cut to the cap: what a field says beyond its contract is no guidance (its unit may have changed)
        raise ValueError(f"{seconds(delay)} is beyond its cap of {seconds(most)}: not believed, local backoff instead")
    return delay


def seconds(ms: int) -> str:
    """`3600 s`, `3600.5 s`: exact, so that a value just beyond a limit does not read as the limit."""
    whole, part = divmod(ms, SECOND)
    return f"{whole}.{part:03}".rstrip("0") + " s" if part else f"{whole} s"
