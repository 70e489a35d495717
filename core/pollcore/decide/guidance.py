"""Which guidance of an answer holds, and until when.

Job: the checks of T4 that need the record. Must not know: headers and fields (that is `reading`), what is decided then.
Source: spec T3-T5.
"""

from __future__ import annotations

from pollcore.facts import Guidance, Instant, Moment, Observation, Operation, Policy, deadline_left


def valid_guidance(
    operation: Operation, reading: Observation, policy: Policy, now: Moment
) -> tuple[Guidance | None, tuple[str, ...]]:
    """The guidance of *reading* that holds, and notes on what was refused (T4).

    Hints (all but `Retry-After`) beyond `max_hint` or the deadline are refused; local backoff is used then.
    """
    guidance = reading.guidance
    if guidance is None or guidance.is_retry_after:
        return guidance, ()
    if guidance.delay_ms > policy.schedule.max_hint:
        return None, (f"hint_invalid: {guidance.name} beyond max_hint",)
    if answered(reading, now) + guidance.delay_ms >= now.wall + deadline_left(operation, now):
        return None, (f"hint_invalid: {guidance.name} beyond the deadline",)
    return guidance, ()


def answered(reading: Observation, now: Moment) -> Instant:
    """When the answer was complete; now, where the wall clock was set back since."""
    return min(reading.http.answered_at, now.wall)


def open_until(operation: Operation, reading: Observation, policy: Policy, now: Moment) -> Instant | None:
    """Nothing is sent before this, whatever is decided and granted (T5); None: the answer asked for nothing valid."""
    guidance, _ = valid_guidance(operation, reading, policy, now)
    return None if guidance is None else Instant(answered(reading, now) + guidance.delay_ms)
