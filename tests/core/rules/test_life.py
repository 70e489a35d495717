"""Whole lives of one operation over any provider: bounded in requests and in time, obedient to guidance."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.rules.make import NOW, RESULT, T0, operation, schedules

from pollcore import decide, outcome, schedule
from pollcore.facts import (
    HOUR,
    MINUTE,
    BootMs,
    Escalate,
    Fault,
    FaultKind,
    Guidance,
    HttpFact,
    Instant,
    Moment,
    Observation,
    Operation,
    Policy,
    Schedule,
    Status,
    StopReason,
    Verdict,
    deadline_left,
)

MAX_LOOKS = 2_000


class Said(msgspec.Struct, frozen=True):
    """What the provider does with one request."""

    verdict: Verdict | FaultKind
    guidance_ms: int | None
    takes_ms: int
    wall_step_ms: int
    """The wall clock is moved by this while the answer is on its way."""
    sleeps_ms: int
    """The machine sleeps this much longer than asked before the next look."""


said = st.builds(
    Said,
    st.sampled_from([Verdict.WAITING] * 6 + list(Verdict) + list(FaultKind)),
    st.none() | st.integers(0, 20 * MINUTE),
    st.integers(0, 30_000),
    st.sampled_from([0, 0, 0, -HOUR, HOUR // 2]),
    st.sampled_from([0, 0, 0, 10 * MINUTE, 8 * HOUR]),
)


def bring(what: Said, now: Moment) -> Observation | Fault:
    if isinstance(what.verdict, FaultKind):
        return Fault(what.verdict, True, now.wall)
    guidance = None if what.guidance_ms is None else Guidance(what.guidance_ms, "Retry-After", True)
    result = RESULT if what.verdict is Verdict.SUCCEEDED else None
    http = HttpFact(200, now.wall, now.wall)
    return Observation(verdict=what.verdict, http=http, state="s", guidance=guidance, result=result)


@pytest.mark.rule("B1", "B2", "B3", "X1", "T5", "T6", "T9")
@given(st.lists(said, min_size=1, max_size=12), schedules(), st.integers(1, 12), st.floats(0, 1, exclude_max=True))
def test_every_life_is_bounded_and_obeys_guidance_whatever_provider_and_clocks_do(
    script: list[Said], plan: Schedule, budget: int, draw: float
) -> None:
    policy = Policy(schedule=plan)
    now = NOW
    op = operation(max_status_requests=budget, status_requests_used=0)
    sent, open_until, looks = 0, NOW.boot, 0
    while op.status is Status.WAITING:
        looks += 1
        assert looks < MAX_LOOKS
        found = decide.before(op, now=now)
        if isinstance(found, Escalate):
            op = outcome.after_stop(op, found, now=now)
            break
        if not isinstance(found, decide.Due):
            assert isinstance(found, decide.Leave)
            assert op.due_boot is not None
            now = now.after(max(1, op.due_boot - now.boot))
            continue
        what = script[sent % len(script)]
        assert now.boot >= open_until, "asked before the provider's guidance was over"
        assert now.boot < NOW.boot + HOUR, "asked after the deadline by elapsed time"
        assert deadline_left(op, now) > 0
        sent += 1
        op = msgspec.structs.replace(op, status_requests_used=op.status_requests_used + 1)
        now = Moment(Instant(now.wall + what.takes_ms), BootMs(now.boot + what.takes_ms), now.boot_id)
        reading = bring(what, now)
        decision = decide.decide(op, reading, policy=policy, now=now, draw=draw)
        if what.guidance_ms is not None and isinstance(reading, Observation):
            open_until = BootMs(now.boot + what.guidance_ms)
        op = outcome.after_reading(op, reading, op.memory, decision, policy=policy, now=now)
        # the step comes after the record: a wait that is set is not moved by it
        step = what.wall_step_ms
        now = Moment(Instant(now.wall + step + what.sleeps_ms), BootMs(now.boot + what.sleeps_ms), now.boot_id)
    assert sent <= budget
    assert op.status_requests_used == sent
    assert op.completed_polls == sent
    assert op.status is Status.SUCCEEDED or op.stop_reason is not None


def live(verdict: Verdict, budget: int, **limits: int) -> tuple[Operation, int]:
    """Play one answer for ever; the record at its end and how many requests were sent."""
    op, now, sent = operation(max_status_requests=budget, status_requests_used=0, **limits), NOW, 0
    while op.status is Status.WAITING:
        found = decide.before(op, now=now)
        if isinstance(found, decide.Due):
            sent += 1
            op = msgspec.structs.replace(op, status_requests_used=op.status_requests_used + 1)
            reading = bring(Said(verdict, None, 0, 0, 0), now)
            decision = decide.decide(op, reading, policy=Policy(), now=now, draw=0.3)
            op = outcome.after_reading(op, reading, op.memory, decision, policy=Policy(), now=now)
        elif isinstance(found, Escalate):
            op = outcome.after_stop(op, found, now=now)
        else:
            assert op.due_boot is not None
            now = now.after(op.due_boot - now.boot)
    return op, sent


@pytest.mark.rule("X3", "B2", "S3")
def test_a_job_that_runs_for_ever_ends_with_its_budget() -> None:
    op, sent = live(Verdict.WAITING, 5)
    assert (sent, op.stop_reason) == (5, StopReason.REQUEST_BUDGET_EXHAUSTED)


@pytest.mark.rule("X2", "T4")
def test_a_job_that_outlives_its_deadline_ends_there_with_budget_left() -> None:
    op, sent = live(Verdict.WAITING, 1_000)
    assert op.stop_reason is StopReason.DEADLINE_EXCEEDED
    assert 30 < sent < 70
    assert op.due_boot is None


@pytest.mark.rule("B4", "X6", "T7")
def test_failures_and_429s_for_ever_end_with_their_own_budgets() -> None:
    failed, sent = live(Verdict.TRANSPORT_FAILURE, 20)
    assert (sent, failed.transport_failures_used, failed.stop_reason) == (3, 3, StopReason.PROVIDER_FAILURE)
    limited, asked = live(Verdict.RATE_LIMITED, 20)
    assert (asked, limited.rate_limited_used, limited.stop_reason) == (3, 3, StopReason.RATE_LIMITED)
    assert schedule.due_boot(limited, NOW) == NOW.boot + HOUR
    assert limited.deadline_at == T0 + HOUR
