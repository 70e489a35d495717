"""Rules that hold in every simulation: budgets, deadlines, floors; and the shortcuts against the table of decisions."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.whatif.both import chances, contract_of, source, worker

from pollcore import decide
from pollcore.facts import (
    HOUR,
    MINUTE,
    SECOND,
    BootMs,
    DelaySource,
    HttpFact,
    Instant,
    Limits,
    Observation,
    Operation,
    Policy,
    RateScope,
    Schedule,
    StopReason,
    Verdict,
    Wait,
)
from pollcore.schedule import min_delay
from pollcore.whatif import Arrivals, JobTime, Outage, Parameters
from pollcore.whatif.caps import Caps
from pollcore.whatif.provider import Provider, arrivals, job_times, until_next_minute
from pollcore.whatif.run import Run
from pollcore.whatif.simulate import record
from pollcore.whatif.waits import BEGINNING, Steps, Waiting, look_again, moment, plain_delay

spans = st.integers(1, 10 * MINUTE)
schedules = st.builds(
    Schedule,
    base_delay=spans,
    max_delay=st.integers(1, HOUR),
    min_delay=st.none() | spans,
    first_delay=st.none() | spans,
    expected_duration=st.none() | st.integers(1, 2 * HOUR),
    max_interval=st.none() | spans,
    guidance_spread=st.sampled_from([0.0, 0.1, 0.5]),
    settle_delay=st.none() | spans,
)
times = st.one_of(
    st.builds(JobTime, st.just("fixed"), st.integers(1, 2 * HOUR)),
    st.builds(lambda low, more: JobTime("uniform", low, low + more), spans, spans),
    st.builds(lambda low, spread: JobTime("lognormal", low, spread=spread), spans, st.floats(1.0, 20.0)),
)
asked_for = st.builds(
    Parameters,
    operations=st.integers(1, 12),
    duration=st.integers(1, HOUR),
    job_time=times,
    arrivals=st.sampled_from(Arrivals),
    failure_rate=st.sampled_from([0.0, 0.0, 0.2, 0.9]),
    rate_limit_per_minute=st.none() | st.integers(1, 30),
    retry_after=st.booleans(),
    guidance=st.none() | st.integers(1, 1_200).map(lambda seconds: seconds * SECOND),
    outage=st.none() | st.builds(Outage, st.integers(0, HOUR), st.integers(1, HOUR)),
)
limits = st.builds(
    Limits,
    deadline=st.integers(MINUTE, 3 * HOUR),
    max_status_requests=st.integers(1, 40),
    max_transport_failures=st.integers(1, 10),
    max_rate_limited=st.integers(1, 10),
)
draws = st.floats(0.0, 1.0, exclude_max=True)


class Watched(Run):
    """A run that keeps which wait each request was of, and how each ended."""

    def go_watched(self) -> tuple[list[tuple[int, int]], list[Waiting]]:
        waits: list[Waiting] = []
        requests: list[tuple[int, int]] = []
        submit, answer = self._steps.submit, self._steps.answer

        def submitted(index: int, at: int, ends: int) -> Waiting:
            waits.append(submit(index, at, ends))
            return waits[-1]

        def answered(wait: Waiting, fate, at: int):  # type: ignore[no-untyped-def]
            requests.append((wait.index, at))
            return answer(wait, fate, at)

        self._steps.submit, self._steps.answer = submitted, answered  # type: ignore[method-assign]
        self.go()
        return requests, waits


def watched(
    plan: Schedule, bounds: Limits, asked: Parameters, seed: int, caps: Caps
) -> tuple[list[tuple[int, int]], list[Waiting], Operation]:
    contract = contract_of()
    policy = msgspec.structs.replace(contract.policy, schedule=plan, default=bounds)
    contract = msgspec.structs.replace(contract, policy=policy)
    chance = chances(seed)
    template = record(contract, asked, remote=False, ceilings=Limits())
    comes = arrivals(asked, chance.world)
    takes = job_times(asked, asked.job_time or JobTime("fixed", 1), chance.world)
    steps = Steps(template, policy, worker(), asked, chance.draws, 30_000)
    run = Watched(steps, Provider(asked, chance.fates), caps, comes, takes, 100)
    requests, waits = run.go_watched()
    return requests, waits, template


@pytest.mark.rule("B2", "B3", "X2", "X3", "T2", "T6")
@given(plan=schedules, bounds=limits, asked=asked_for, seed=st.integers(0, 1_000))
@settings(max_examples=150, deadline=None)
def test_no_simulated_request_is_beyond_budget_or_deadline_or_below_the_floor(
    plan: Schedule, bounds: Limits, asked: Parameters, seed: int
) -> None:
    requests, waits, template = watched(plan, bounds, asked, seed, Caps(None, (), "status", 1.0))
    floor = min_delay(plan)
    if plan.settle_delay is not None:
        floor = min(floor, plan.settle_delay)  # the request that confirms an end (X8)
    for wait in waits:
        own = [at for index, at in requests if index == wait.index]
        assert len(own) == wait.used <= template.max_status_requests
        assert all(at < wait.deadline for at in own)
        assert own == sorted(set(own))
        assert all(later - sooner >= floor for sooner, later in itertools.pairwise([wait.at, *own]))


@pytest.mark.rule("T8")
@given(
    asked=asked_for,
    per_minute=st.integers(1, 20),
    requests=st.integers(1, 20),
    per=st.integers(SECOND, 10 * MINUTE),
    seed=st.integers(0, 1_000),
)
@settings(max_examples=50, deadline=None)
def test_no_simulated_minute_and_no_scope_has_more_requests_than_the_caps(
    asked: Parameters, per_minute: int, requests: int, per: int, seed: int
) -> None:
    scope = RateScope("account", requests, per)
    plan, bounds = Schedule(base_delay=SECOND), Limits(20 * MINUTE, 30, 10, 10)
    sent, _, _ = watched(plan, bounds, asked, seed, Caps(per_minute, (scope,), "status", 1.0))
    ats = [at for _, at in sent]
    for most, span in ((per_minute, MINUTE), (requests, per)):
        for begin in range(len(ats) - most):
            assert ats[begin + most] - ats[begin] >= span


@pytest.mark.rule("T1", "T4", "T10")
@given(plan=schedules, used=st.integers(1, 39), polls=st.integers(0, 38), left=st.integers(1, 3 * HOUR), draw=draws)
def test_the_shortcut_after_a_plain_answer_is_what_the_table_decides(
    plan: Schedule, used: int, polls: int, left: int, draw: float
) -> None:
    now = moment(5_000)
    operation = made(left, used=used, polls=polls)
    answer = Observation(verdict=Verdict.WAITING, http=HttpFact(200, now.wall, now.wall), state="running")
    decision = decide.decide(operation, answer, policy=Policy(schedule=plan), now=now, draw=draw)
    assert isinstance(decision, Wait)
    assert decision.next_poll_at - now.wall == plain_delay(plan, polls + 1, draw, left)
    assert decision.source is DelaySource.LOCAL_BACKOFF


@pytest.mark.rule("T11")
@given(left=st.integers(1, 3 * HOUR), again=st.integers(0, HOUR))
def test_the_shortcut_while_an_origin_is_down_is_what_the_table_decides(left: int, again: int) -> None:
    now, operation = moment(5_000), made(left)
    wait = decide.shared_wait(operation, again, policy=Policy(), now=now, draw=0.0, source=DelaySource.ORIGIN_DOWN)
    assert isinstance(wait, Wait)
    assert wait.next_poll_at - now.wall == look_again(again, left)


def made(left: int, *, used: int = 1, polls: int = 0) -> Operation:
    asked = Parameters(operations=1, duration=HOUR, job_time=JobTime("fixed", HOUR))
    template = record(contract_of(), asked, remote=False, ceilings=Limits())
    return msgspec.structs.replace(
        template,
        deadline_at=Instant(BEGINNING + 5_000 + left),
        deadline_boot=BootMs(5_000 + left),
        max_status_requests=40,
        status_requests_used=used,
        completed_polls=polls,
    )


def test_a_wait_is_stopped_at_its_deadline_and_not_before() -> None:
    asked = Parameters(operations=3, duration=HOUR, job_time=JobTime("fixed", 5 * HOUR), deadline=10 * MINUTE)
    chance = chances(1)
    template = record(contract_of(), asked, remote=False, ceilings=Limits())
    steps = Steps(template, contract_of().policy, worker(), asked, chance.draws, 30_000)
    comes = arrivals(asked, chance.world)
    trace = Run(steps, Provider(asked, chance.fates), Caps(None, (), "status", 1.0), comes, [5 * HOUR] * 3, 100).go()
    assert trace.stops == {StopReason.DEADLINE_EXCEEDED: 3}
    assert trace.end == comes[-1] + 10 * MINUTE


@pytest.mark.parametrize("kind", list(Arrivals))
def test_arrivals_rise_and_lie_within_the_duration(kind: Arrivals) -> None:
    asked = Parameters(operations=500, duration=HOUR, job_time=JobTime("fixed", 1), arrivals=kind)
    found = arrivals(asked, source(1, "world"))
    assert found == sorted(found)
    assert len(found) == 500
    assert 0 <= found[0] <= found[-1] < HOUR
    assert (len(set(found)) == 1) == (kind is Arrivals.BURST)


def test_log_normal_job_times_have_their_median_and_spread() -> None:
    asked = Parameters(operations=20_000, duration=HOUR, job_time=JobTime("lognormal", 10 * MINUTE, spread=2.0))
    found = sorted(job_times(asked, JobTime("lognormal", 10 * MINUTE, spread=2.0), source(1, "world")))
    assert found[10_000] == pytest.approx(10 * MINUTE, rel=0.03)
    within = sum(5 * MINUTE <= time <= 20 * MINUTE for time in found) / len(found)
    assert within == pytest.approx(0.683, abs=0.015)


def test_a_429_names_the_whole_seconds_until_the_providers_next_minute() -> None:
    assert [until_next_minute(at) for at in (0, 1, 58_500, 59_001, 60_000)] == [60_000, 60_000, 2_000, 1_000, 60_000]
