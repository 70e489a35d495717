"""Budgets, times and guidance after an answer, and the order of their reasons."""

from __future__ import annotations

import pytest
from tests.core.rules.make import (
    NOW,
    T0,
    answer,
    decided,
    fault,
    hint,
    operation,
    retry_after,
    stopped,
    waits,
)

from pollcore.facts import (
    HOUR,
    DelaySource,
    HintFault,
    Instant,
    Moment,
    Observation,
    Operation,
    Policy,
    Schedule,
    StopDetail,
    StopReason,
    Succeed,
    Verdict,
    Wait,
)


@pytest.mark.rule("S9", "O7")
def test_a_final_answer_after_the_deadline_to_a_request_sent_before_it_counts() -> None:
    late = NOW.after(HOUR + 5_000)
    reading = answer(Verdict.SUCCEEDED, "succeeded", at=Instant(T0 + HOUR + 5_000))
    found = decided(operation(status_requests_used=20), reading, now=late)
    assert isinstance(found, Succeed)
    assert found.notes == ("answered 5000 ms after the deadline",)


@pytest.mark.rule("X2", "X1")
def test_the_deadline_stops_whatever_moved_a_moment_ago() -> None:
    found = stopped(operation(), answer(state="half done"), now=NOW.after(HOUR))
    assert found.reason is StopReason.DEADLINE_EXCEEDED
    assert waits(operation(), answer(), now=NOW.after(HOUR - 1)).delay_ms == 1


@pytest.mark.rule("T9")
def test_a_wall_clock_that_was_set_back_gives_no_time() -> None:
    back = Moment(Instant(T0 - HOUR), NOW.after(HOUR).boot, "boot-1")
    assert stopped(operation(), answer(), now=back).reason is StopReason.DEADLINE_EXCEEDED


@pytest.mark.rule("B5")
def test_the_nearer_useful_until_ends_the_wait_earlier() -> None:
    op = operation(useful_until=Instant(T0 + 60_000))
    assert stopped(op, answer(), now=NOW.after(60_000)).reason is StopReason.USEFULNESS_ENDED
    assert stopped(op, answer(), now=NOW.after(HOUR)).reason is StopReason.DEADLINE_EXCEEDED


@pytest.mark.rule("X3")
def test_the_last_permitted_answer_stops_at_once() -> None:
    assert isinstance(decided(operation(status_requests_used=19), answer()), Wait)
    found = stopped(operation(status_requests_used=20), answer())
    assert found.reason is StopReason.REQUEST_BUDGET_EXHAUSTED


@pytest.mark.rule("T7", "H5")
def test_continued_429s_escalate_and_unguided_ones_stretch_the_wait() -> None:
    limited = answer(Verdict.RATE_LIMITED, None, code=429)
    assert 20_000 <= waits(operation(), limited).delay_ms <= 40_000
    assert 80_000 <= waits(operation(rate_limited_used=1, rate_limited_in_a_row=1), limited).delay_ms <= 160_000
    found = stopped(operation(rate_limited_used=2), limited)
    assert (found.reason, found.detail) == (StopReason.RATE_LIMITED, None)


@pytest.mark.rule("T7")
def test_a_guided_429_spends_its_budget_too_and_is_not_stretched() -> None:
    limited = answer(Verdict.RATE_LIMITED, None, code=429, guidance=retry_after(60_000))
    assert 60_000 <= waits(operation(), limited).delay_ms <= 66_000
    assert stopped(operation(rate_limited_used=2), limited).reason is StopReason.RATE_LIMITED


@pytest.mark.rule("H5")
def test_an_exhausted_quota_stops_at_once() -> None:
    found = stopped(operation(), answer(Verdict.QUOTA_EXHAUSTED, None, code=429))
    assert (found.reason, found.detail) == (StopReason.RATE_LIMITED, StopDetail.QUOTA_EXHAUSTED)


@pytest.mark.rule("T5", "T3")
def test_guidance_replaces_local_backoff_and_counts_from_the_answer() -> None:
    found = waits(operation(), answer(guidance=retry_after(120_000)), now=NOW.after(1_000))
    assert found.source is DelaySource.PROVIDER_RETRY_AFTER
    assert T0 + 120_000 <= found.next_poll_at <= T0 + 132_000
    assert found.guidance_until == T0 + 120_000
    assert waits(operation(), answer(guidance=hint(30_000))).source is DelaySource.PROVIDER_POLL_HINT


@pytest.mark.rule("T4")
def test_retry_after_beyond_the_deadline_stops_at_once_and_a_hint_beyond_it_is_refused() -> None:
    assert stopped(operation(), answer(guidance=retry_after(HOUR))).reason is StopReason.GUIDANCE_BEYOND_DEADLINE
    assert isinstance(decided(operation(), answer(guidance=retry_after(HOUR - 1))), Wait)
    found = waits(operation(), answer(guidance=hint(HOUR)))
    assert found.source is DelaySource.LOCAL_BACKOFF
    assert any(note.startswith("hint_invalid") for note in found.notes)


@pytest.mark.rule("T4", "B5")
def test_guidance_beyond_useful_until_ends_the_usefulness() -> None:
    op = operation(useful_until=Instant(T0 + 60_000))
    for guidance in (retry_after(60_000), hint(60_000)):
        assert stopped(op, answer(guidance=guidance)).reason is StopReason.USEFULNESS_ENDED


@pytest.mark.rule("T4")
def test_refused_hints_are_told_with_their_reason() -> None:
    found = waits(operation(), answer(hint_faults=(HintFault("next_check_at", "no time zone"),)))
    assert found.notes == ("hint_invalid: next_check_at no time zone",)


@pytest.mark.rule("T4", "X2")
def test_a_backoff_that_would_pass_the_deadline_wakes_there_and_is_not_shortened_into_a_request() -> None:
    found = waits(operation(completed_polls=9), answer(), now=NOW.after(HOUR - 2_000))
    assert found.next_poll_at == T0 + HOUR
    assert found.notes == ("no further request fits before the deadline",)


@pytest.mark.rule("T4", "B5")
def test_a_backoff_that_would_pass_useful_until_wakes_there() -> None:
    found = waits(operation(useful_until=Instant(T0 + 3_000)), answer())
    assert found.next_poll_at == T0 + 3_000
    assert found.notes == ("no further request fits before the useful_until",)


@pytest.mark.rule("T1", "T7")
def test_a_fault_after_a_429_waits_by_plain_backoff() -> None:
    assert waits(operation(rate_limited_in_a_row=3), fault()).delay_ms <= 10_000


@pytest.mark.rule("T9", "T5")
def test_guidance_counts_from_now_when_the_wall_clock_was_set_back_since_the_answer() -> None:
    back = Moment(Instant(T0 - 10 * 60_000), NOW.boot, "boot-1")
    found = waits(operation(), answer(guidance=retry_after(60_000)), now=back)
    assert 60_000 <= found.delay_ms <= 66_000


@pytest.mark.rule("T10")
def test_guidance_past_the_longest_interval_wins_and_the_risk_is_told() -> None:
    policy = Policy(schedule=Schedule(max_interval=30_000))
    found = waits(operation(), answer(guidance=retry_after(60_000)), policy=policy)
    assert found.delay_ms >= 60_000
    assert any("max_interval 30 s is exceeded" in note for note in found.notes)


ORDER: list[tuple[str, Operation, Observation, StopReason]] = [
    ("said", operation(transport_failures_used=3, deadline_at=T0), answer(Verdict.UNKNOWN), StopReason.UNKNOWN_STATE),
    (
        "failures",
        operation(transport_failures_used=2, deadline_at=T0),
        answer(Verdict.TRANSPORT_FAILURE),
        StopReason.PROVIDER_FAILURE,
    ),
    (
        "rate",
        operation(rate_limited_used=2, transport_failures_used=3, deadline_at=T0),
        answer(Verdict.RATE_LIMITED),
        StopReason.RATE_LIMITED,
    ),
    (
        "deadline",
        operation(deadline_at=T0, useful_until=T0, status_requests_used=20),
        answer(),
        StopReason.DEADLINE_EXCEEDED,
    ),
    ("useful", operation(useful_until=T0, status_requests_used=20), answer(), StopReason.USEFULNESS_ENDED),
    (
        "requests",
        operation(status_requests_used=20),
        answer(guidance=retry_after(9 * HOUR)),
        StopReason.REQUEST_BUDGET_EXHAUSTED,
    ),
    ("guidance", operation(), answer(guidance=retry_after(9 * HOUR)), StopReason.GUIDANCE_BEYOND_DEADLINE),
]


@pytest.mark.rule("O7")
@pytest.mark.parametrize(("op", "reading", "reason"), [row[1:] for row in ORDER], ids=[row[0] for row in ORDER])
def test_after_an_answer_the_first_reason_in_order_is_named(
    op: Operation, reading: Observation, reason: StopReason
) -> None:
    assert stopped(op, reading).reason is reason
