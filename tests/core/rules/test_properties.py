"""What holds for every record, every reading, every clock and every draw."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.rules.make import draws, moments, operations, policies, readings, schedules

from pollcore import decide, outcome, schedule
from pollcore.facts import (
    TRANSITIONS,
    DelaySource,
    Escalate,
    Fault,
    Moment,
    Observation,
    Operation,
    Policy,
    Schedule,
    Status,
    StopReason,
    Succeed,
    Wait,
    deadline_left,
)

LIVE = (Status.WAITING, Status.HELD, Status.ESCALATED, Status.AWAITING_APPROVAL)
FATES = {
    StopReason.JOB_FAILED: Status.FAILED,
    StopReason.JOB_CANCELLED: Status.CANCELLED,
    StopReason.JOB_EXPIRED: Status.EXPIRED,
}


@pytest.mark.rule("X1", "O7")
@given(operations(), readings(), policies, moments(), draws, st.booleans())
def test_every_reading_of_every_record_leads_to_exactly_one_decision_and_replays_to_it(
    operation: Operation, reading: Observation | Fault, policy: Policy, now: Moment, draw: float, counted: bool
) -> None:
    first = decide.decide(operation, reading, policy=policy, now=now, draw=draw, counted=counted)
    again = decide.decide(operation, reading, policy=policy, now=now, draw=draw, counted=counted)
    assert isinstance(first, Wait | Succeed | Escalate)
    assert first == again


@pytest.mark.rule("T4", "T5", "X2")
@given(operations(), readings(), policies, moments(), draws, st.booleans())
def test_no_wait_sleeps_past_a_limit_or_asks_before_valid_guidance(
    operation: Operation, reading: Observation | Fault, policy: Policy, now: Moment, draw: float, counted: bool
) -> None:
    decision = decide.decide(operation, reading, policy=policy, now=now, draw=draw, counted=counted)
    if not isinstance(decision, Wait):
        return
    assert 0 <= decision.delay_ms <= schedule.room(operation, now)
    assert decision.next_poll_at == now.wall + decision.delay_ms
    assert deadline_left(operation, now) > 0
    if isinstance(reading, Observation) and reading.guidance is not None and reading.guidance.is_retry_after:
        since = min(reading.http.answered_at, now.wall)
        assert decision.next_poll_at >= since + reading.guidance.delay_ms
    if decision.guidance_until is not None:
        assert decision.next_poll_at >= decision.guidance_until


@pytest.mark.rule("B1", "B2", "B4")
@given(operations(LIVE), readings(), policies, moments(), draws, st.booleans())
def test_no_counter_ever_passes_its_maximum_or_goes_down(
    operation: Operation, reading: Observation | Fault, policy: Policy, now: Moment, draw: float, counted: bool
) -> None:
    decision = decide.decide(operation, reading, policy=policy, now=now, draw=draw, counted=counted)
    after = outcome.after_reading(
        operation, reading, operation.memory, decision, policy=policy, now=now, counted=counted
    )
    assert operation.transport_failures_used <= after.transport_failures_used <= after.max_transport_failures
    assert operation.rate_limited_used <= after.rate_limited_used <= after.max_rate_limited
    assert after.status_requests_used == operation.status_requests_used
    assert after.completed_polls == operation.completed_polls + counted
    assert (after.deadline_at, after.deadline_boot) == (operation.deadline_at, operation.deadline_boot)
    assert after.max_status_requests == operation.max_status_requests


@pytest.mark.rule("E1", "X4")
@given(operations(), readings(), policies, moments(), draws)
def test_every_stop_names_a_status_that_belongs_to_its_reason(
    operation: Operation, reading: Observation | Fault, policy: Policy, now: Moment, draw: float
) -> None:
    decision = decide.decide(operation, reading, policy=policy, now=now, draw=draw)
    if isinstance(decision, Escalate):
        assert decision.reason not in (StopReason.OPERATOR_REQUEST, StopReason.MODE_CHANGE, StopReason.FIRST_USE)
        if decision.status in FATES.values() or decision.reason in FATES:
            assert FATES[decision.reason] is decision.status
        assert decision.cause
        assert decision.asks or (decision.status is Status.CANCELLED and operation.cancel_granted)


@pytest.mark.rule("O2", "S9", "X2")
@given(operations(), readings(), policies, moments(), draws)
def test_a_status_changes_only_along_the_allowed_ways_and_nothing_comes_after_an_end(
    operation: Operation, reading: Observation | Fault, policy: Policy, now: Moment, draw: float
) -> None:
    decision = decide.decide(operation, reading, policy=policy, now=now, draw=draw)
    after = outcome.after_reading(operation, reading, operation.memory, decision, policy=policy, now=now)
    assert after.status is operation.status or after.status in TRANSITIONS[operation.status]
    if operation.status.is_end:
        assert after == operation
    elif after.status.is_end:
        assert after.due_boot is None
    if after.status is not operation.status:
        assert after.version == operation.version + 1


@pytest.mark.rule("X1", "S9")
@given(operations((Status.WAITING,)), readings(), policies, moments(), draws)
def test_a_wait_is_always_due_again_by_the_nearer_limit(
    operation: Operation, reading: Observation | Fault, policy: Policy, now: Moment, draw: float
) -> None:
    decision = decide.decide(operation, reading, policy=policy, now=now, draw=draw)
    after = outcome.after_reading(operation, reading, operation.memory, decision, policy=policy, now=now)
    if after.status is Status.WAITING:
        assert after.due_boot is not None
        assert now.boot <= after.due_boot <= now.boot + schedule.room(operation, now)


@pytest.mark.rule("A1")
@given(operations(LIVE), readings(), policies, moments(), draws)
def test_every_reading_is_told_by_one_event_with_limits_plan_and_decision(
    operation: Operation, reading: Observation | Fault, policy: Policy, now: Moment, draw: float
) -> None:
    decision = decide.decide(operation, reading, policy=policy, now=now, draw=draw)
    after = outcome.after_reading(operation, reading, operation.memory, decision, policy=policy, now=now)
    (event,) = outcome.reading_events(operation, after, reading, decision, now=now)
    assert event.requests_used == operation.status_requests_used
    assert (event.max_requests, event.deadline_at) == (operation.max_status_requests, operation.deadline_at)
    assert event.planned_at == operation.next_poll_at
    assert event.state_before == operation.last_known_state
    assert event.decision in ("wait", "succeed", "escalate", "stop")
    assert (event.next_poll_at is not None) == isinstance(decision, Wait)
    assert (event.http is None) == isinstance(reading, Fault)


@pytest.mark.rule("O7", "B3", "T6")
@given(operations(), policies, moments())
def test_a_request_is_due_only_inside_every_limit_of_its_record(
    operation: Operation, policy: Policy, now: Moment
) -> None:
    found = decide.before(operation, now=now)
    if isinstance(found, decide.Due):
        assert operation.status is Status.WAITING
        assert schedule.room(operation, now) > 0
        assert operation.requests_left > 0
    if operation.status.is_end:
        assert found == decide.Leave("final")
    if isinstance(found, Escalate):
        after = outcome.after_stop(operation, found, now=now)
        assert after.status is Status.ESCALATED


@pytest.mark.rule("T8", "T11", "T4")
@given(
    operations((Status.WAITING,)),
    st.integers(-1_000, 10**9),
    policies,
    moments(),
    draws,
    st.sampled_from([DelaySource.SHARED_COOLDOWN, DelaySource.ORIGIN_DOWN, DelaySource.PAUSED]),
    st.integers(1, 5_000),
)
def test_a_wait_for_others_never_passes_a_limit_and_a_cool_down_is_never_shortened(
    operation: Operation, left: int, policy: Policy, now: Moment, draw: float, source: DelaySource, waiting: int
) -> None:
    found = decide.shared_wait(operation, left, policy=policy, now=now, draw=draw, source=source, waiting=waiting)
    room = schedule.room(operation, now)
    if isinstance(found, Escalate):
        assert source is DelaySource.SHARED_COOLDOWN
        assert left >= room or room <= 0
    else:
        assert found.delay_ms <= max(0, room)
        assert source is not DelaySource.SHARED_COOLDOWN or found.delay_ms >= left


@pytest.mark.rule("T1", "T7", "T10")
@given(schedules(), st.integers(0, 10**30), st.integers(0, 10**6), draws)
def test_local_backoff_stays_in_its_bounds_for_any_number_of_polls(
    plan: Schedule, polls: int, in_a_row: int, draw: float
) -> None:
    delay = schedule.local_delay(plan, polls, in_a_row, draw)
    floor = schedule.min_delay(plan)
    cap = plan.rate_limit_max_delay if plan.rate_limit_max_delay is not None else 4 * plan.max_delay
    top = max(plan.max_delay, cap, schedule.first_delay(plan))
    assert floor <= delay <= max(floor, top)
    if in_a_row == 0 and polls > 0:
        raw = min(plan.max_delay, plan.base_delay * 2 ** min(polls, 64))
        low = raw / 2 if plan.max_interval is None else min(raw / 2, plan.max_interval)
        assert max(floor, low) <= delay <= max(floor, raw)


@pytest.mark.rule("T5")
@given(schedules(), st.integers(0, 10**9), draws, st.integers(0, 2 * 10**9))
def test_guidance_is_a_floor_and_its_spread_a_tenth_at_most_that_never_crosses_a_limit(
    plan: Schedule, asked: int, draw: float, room: int
) -> None:
    delay = schedule.guided_delay(plan, asked, draw, room_ms=room)
    floor = max(asked, schedule.min_delay(plan))
    assert floor <= delay <= floor * 1.1
    assert delay <= room or delay == floor
