"""What a budget can do at the pace of local backoff: warnings with numbers.

Job: arithmetic over a schedule. Must not know: records, jobs. Source: spec B1 (last sentence), T1, T2, T10.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from pollcore.facts import MINUTE, SECOND, Schedule
from pollcore.schedule import min_delay, raw_delay
from pollcore.submission.limits import span_text

FASTEST: Final = Fraction(1, 2)
"""T1: no local delay is drawn below half of its raw span."""
MEDIAN: Final = Fraction(3, 4)
FIRST_PART: Final = 10
"""Warned if backoff spends the whole budget within this part of the time: one tenth."""


def request_time(schedule: Schedule, requests: int, share: Fraction) -> int:
    """ms from the submission until the *requests*-th request, with every delay at *share* of its raw span."""
    total = left = 0
    for k, delay in _growing(schedule, share):
        left = requests - k - 1
        if left < 0:
            return total
        total += delay
    return total + left * _delay(schedule, _saturated(schedule), share)


def requests_within(schedule: Schedule, span_ms: int, share: Fraction) -> int:
    """How many requests go out in less than *span_ms* at that pace."""
    total = count = 0
    for _, delay in _growing(schedule, share):
        total += delay
        if total >= span_ms:
            return count
        count += 1
    steady = _delay(schedule, _saturated(schedule), share)
    return count + max(0, (span_ms - 1 - total) // steady)


def pace_warnings(schedule: Schedule, max_requests: int, span_ms: int) -> tuple[str, ...]:
    """Warn of a budget that cannot be used up before the end, or that backoff spends in its first tenth.

    Args:
        span_ms: From now until the nearer of deadline and `useful_until`.
    """
    fit = requests_within(schedule, span_ms, FASTEST)
    if fit < max_requests:
        return (
            f"max_status_requests {max_requests} cannot be used up: at the fastest local pace {fit} requests fit into "
            f"the {_whole(span_ms)} until the deadline",
        )
    spent_at = request_time(schedule, max_requests, MEDIAN)
    if spent_at * FIRST_PART <= span_ms:
        return (
            f"max_status_requests {max_requests} is spent after about {_whole(spent_at)} at the "
            f"local pace, in the first tenth of the {_whole(span_ms)} until the deadline; then nothing is asked",
        )
    return ()


def _whole(ms: int) -> str:
    """`56 s`, `39 min 57 s`, `1 h`: whole seconds, cut; with minutes where there are more than two."""
    seconds = ms // SECOND
    if seconds <= 2 * 60 or seconds % 60 == 0:
        return span_text(seconds * SECOND)
    return f"{span_text(seconds // 60 * MINUTE)} {seconds % 60} s"


def _growing(schedule: Schedule, share: Fraction) -> Iterator[tuple[int, int]]:
    """(k, delay before request k+1) until the delays stop growing: a few dozen at most."""
    for k in range(_saturated(schedule) + 1):
        yield k, _delay(schedule, k, share)


def _saturated(schedule: Schedule) -> int:
    """The number of completed polls from which on raw delays are `max_delay`; at least 1."""
    return max(1, (max(1, schedule.max_delay) // max(1, schedule.base_delay)).bit_length())


def _delay(schedule: Schedule, completed: int, share: Fraction) -> int:
    delay = int(raw_delay(schedule, completed) * share)
    if schedule.max_interval is not None:
        delay = min(delay, schedule.max_interval)
    return max(delay, min_delay(schedule))
