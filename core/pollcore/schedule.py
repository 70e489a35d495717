"""When to ask again: pure arithmetic on integer milliseconds.

Job: local backoff, provider guidance, spreads, and when a record is next due on the boot clock.
Must not know: what an answer means, why a wait stops, any clock or chance (both come in as arguments).
Source: spec T1, T2, T4-T11.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from pollcore.facts import (
    MINUTE,
    SECOND,
    BootMs,
    DelaySource,
    Guidance,
    Instant,
    Moment,
    Operation,
    Schedule,
    Status,
    deadline_left,
    useful_left,
)

SHORTEST_DELAY: Final = 1
"""ms: no wait is empty, whatever a contract says, so that a loop always moves on."""
RELEASE_GAP: Final = 100
"""ms between two releases on average when many operations are let go and no rate cap is set (T8, T11)."""
RELEASE_SPREAD: Final = 0.10
"""Share of the time waited over which releases are spread at least."""
RELEASE_LEAST: Final = 1 * SECOND
"""Two operations are never let go within less than a window of this size."""


class FirstPoll(msgspec.Struct, frozen=True):
    """When a new submission is asked about first."""

    next_poll_at: Instant
    source: DelaySource
    guidance_until: Instant | None = None


# --- spans ------------------------------------------------------------------------------------------------------------


def min_delay(schedule: Schedule) -> int:
    """The floor in ms under every delay, also under guidance (T2): set, else D/60, else half of `base_delay`.

    A derived floor gives way to `max_interval`: a job that must be asked to stay alive is asked (T10).
    """
    if schedule.min_delay is not None:
        return max(schedule.min_delay, SHORTEST_DELAY)
    derived = schedule.expected_duration // 60 if schedule.expected_duration else schedule.base_delay // 2
    if schedule.max_interval is not None:
        derived = min(derived, schedule.max_interval)
    return max(derived, SHORTEST_DELAY)


def first_delay(schedule: Schedule) -> int:
    """The raw span in ms before the first request, not yet jittered (T2): set, else D/10, else `base_delay`."""
    if schedule.first_delay is not None:
        return max(schedule.first_delay, SHORTEST_DELAY)
    derived = schedule.expected_duration // 10 if schedule.expected_duration else schedule.base_delay
    return max(derived, SHORTEST_DELAY)


def raw_delay(schedule: Schedule, completed_polls: int, rate_limited_in_a_row: int = 0) -> int:
    """The span in ms before jitter and floor: min(max_delay, base * 2^polls), more after 429s in a row (T1, T7).

    Exact and bounded for any number of polls. Before the first request it is `first_delay`.
    """
    if completed_polls <= 0:
        return first_delay(schedule)
    base, top = max(schedule.base_delay, SHORTEST_DELAY), max(schedule.max_delay, SHORTEST_DELAY)
    # beyond this many doublings base is over top: no shift by a number that a long life made huge
    doublings = (top // base).bit_length()
    raw = top if completed_polls >= doublings else min(top, base << completed_polls)
    return raw if rate_limited_in_a_row <= 0 else _stretched(schedule, raw, rate_limited_in_a_row)


def _stretched(schedule: Schedule, raw: int, in_a_row: int) -> int:
    """Multiply *raw* for each 429 in a row, up to the cap; a 429 never makes a wait shorter."""
    cap = schedule.rate_limit_max_delay if schedule.rate_limit_max_delay is not None else 4 * schedule.max_delay
    factor = schedule.rate_limit_factor
    if cap <= raw or not factor > 1.0:
        return raw
    # compare logarithms first: factor ** in_a_row may not fit into a float
    if not math.isfinite(factor) or in_a_row * math.log(factor) >= math.log(cap / raw):
        return cap
    return min(cap, math.ceil(raw * factor**in_a_row))


def jitter(raw: int, draw: float) -> int:
    """Uniform over the whole milliseconds of [50 %, 100 %] of *raw* (T1)."""
    low = (raw + 1) // 2
    return min(raw, low + int((raw - low + 1) * draw))


def local_delay(schedule: Schedule, completed_polls: int, rate_limited_in_a_row: int, draw: float) -> int:
    """Local backoff in ms (T1, T2, T7, T10).

    Args:
        completed_polls: Requests whose answer or fault is recorded, the present one included.
        rate_limited_in_a_row: 429 answers without a different answer between, the present one included; 0 otherwise.
        draw: From [0.0, 1.0).
    """
    delay = jitter(raw_delay(schedule, completed_polls, rate_limited_in_a_row), draw)
    if schedule.max_interval is not None:
        delay = min(delay, schedule.max_interval)
    return max(delay, min_delay(schedule))


def guided_delay(schedule: Schedule, guidance_ms: int, draw: float, *, room_ms: int | None = None) -> int:
    """Provider guidance in ms, counted from the answer: max(guidance, min_delay) plus 0-10 % upward (T5).

    Args:
        room_ms: What is left, from the answer, until the nearer of deadline and `useful_until`. The spread takes at
            most half of what lies behind the floor, so that it never crosses and a request can still go out.
    """
    floor = max(guidance_ms, min_delay(schedule))
    extra = int(floor * max(0.0, schedule.guidance_spread) * draw)
    if room_ms is not None:
        extra = min(extra, max(0, (room_ms - floor) // 2))
    return floor + extra


def spread(
    span_ms: int, draw: float, *, waiting: int = 1, per_minute: int | None = None, room_ms: int | None = None
) -> int:
    """A common wait of *span_ms*, drawn longer, so that operations are let go spread, never all together (T8, T11).

    Args:
        span_ms: What is left of the cool-down or outage; never shortened. A tenth of it is the smallest window behind.
        waiting: The how many-th this one is of those that are let go, from 1: the first ones are drawn into the
            smallest window, as many as it holds one every gap; each further one has the next gap for itself.
        per_minute: The provider's cap on requests a minute, if any.
        room_ms: What is left from now until deadline or `useful_until`; the spread takes at most half of what lies
            behind *span_ms*.
    """
    gap = MINUTE / per_minute if per_minute else RELEASE_GAP
    window, place = max(RELEASE_LEAST, RELEASE_SPREAD * span_ms), max(1, waiting) * gap
    offset = int(window * draw if place <= window else place - gap * (1 - draw))
    if room_ms is not None:
        offset = min(offset, max(0, (room_ms - span_ms) // 2))
    return max(0, span_ms) + offset


# --- records ----------------------------------------------------------------------------------------------------------


def room(operation: Operation, now: Moment) -> int:
    """ms until the nearer of the deadline (by the nearer clock) and `useful_until`; zero or less: passed."""
    left, useful = deadline_left(operation, now), useful_left(operation, now)
    return left if useful is None else min(left, useful)


def first_poll(
    schedule: Schedule,
    *,
    started_at: Instant,
    now: Moment,
    draw: float,
    room_ms: int,
    guidance: Guidance | None = None,
) -> FirstPoll:
    """When a new submission is asked about first (T2, T5, B6); never past *room_ms*, where the wait stops instead.

    A `first_delay` derived from the expected duration counts from *started_at*: a job handed over late is not let
    rest for a tenth of its time once more.
    """
    hint_ok = guidance is not None and (guidance.is_retry_after or guidance.delay_ms <= schedule.max_hint)
    if guidance is not None and hint_ok and guidance.delay_ms < room_ms:
        delay = guided_delay(schedule, guidance.delay_ms, draw, room_ms=room_ms)
        source = DelaySource.PROVIDER_RETRY_AFTER if guidance.is_retry_after else DelaySource.PROVIDER_POLL_HINT
        until = Instant(now.wall + guidance.delay_ms)
        return FirstPoll(Instant(now.wall + min(delay, room_ms)), source, until)
    delay = local_delay(schedule, 0, 0, draw)
    if schedule.first_delay is None and schedule.expected_duration:
        delay = max(delay - max(0, now.wall - started_at), min_delay(schedule))
    return FirstPoll(Instant(now.wall + max(0, min(delay, room_ms))), DelaySource.LOCAL_BACKOFF)


def due_boot(operation: Operation, now: Moment) -> BootMs | None:
    """When anything is next due for *operation*, on the boot clock of *now*; None: nothing ever by itself.

    To be called at the moment at which a wait is set: it carries wall times over to the boot clock, where a later
    step of the wall clock cannot move them (T9). While a question is open, the passing of a limit is due (E7).
    """
    if operation.status.is_end:
        return None
    left, useful = deadline_left(operation, now), useful_left(operation, now)
    spans = [left] if useful is None else [left, useful]
    if operation.status is Status.ESCALATED:
        spans = [span for span in spans if span > 0]
    elif operation.status is Status.WAITING and operation.next_poll_at is not None:
        spans.append(operation.next_poll_at - now.wall)
    elif operation.status is Status.HELD and operation.hold_until is not None:
        spans.append(operation.hold_until - now.wall)
    return BootMs(now.boot + max(0, min(spans))) if spans else None


def reached(operation: Operation, at: Instant, now: Moment) -> bool:
    """Has the time *at* (next poll, end of a hold) come? By elapsed time while the boot lasts, else by the wall (T9).

    A wall clock that was set back does not lengthen a wait, one that was set forward does not cut guidance short.
    """
    if operation.boot_id == now.boot_id and operation.due_boot is not None and at <= end_at(operation):
        return now.boot >= operation.due_boot
    return now.wall >= at


def end_at(operation: Operation) -> Instant:
    """The nearer of `deadline_at` and `useful_until`, as wall times."""
    if operation.useful_until is None:
        return operation.deadline_at
    return min(operation.deadline_at, operation.useful_until)


def reanchor(operation: Operation, now: Moment) -> Operation:
    """The same record on the clock of the present boot (T9); unchanged if it already is.

    Boot times of another boot mean nothing here: what is left is taken from the wall clock, once.
    """
    if operation.boot_id == now.boot_id:
        return operation
    moved = msgspec.structs.replace(
        operation, boot_id=now.boot_id, deadline_boot=BootMs(now.boot + operation.deadline_at - now.wall)
    )
    return msgspec.structs.replace(moved, due_boot=due_boot(moved, now))
