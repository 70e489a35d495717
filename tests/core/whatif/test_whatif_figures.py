"""Figures of a simulation: the compared loop is arithmetic, a scaled interval holds what simulating all would give."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.whatif.both import chances, contract_of, source, worker

from pollcore.contract import Contract
from pollcore.facts import DAY, HOUR, MAX_SPAN, MINUTE, SECOND, Limits, Refused, StopReason
from pollcore.whatif import Arrivals, Estimate, JobTime, Outage, Parameters, Peak, Simulation, simulate
from pollcore.whatif.figures import MAX_PARTS, Scale, by_second, nearest, parts
from pollcore.whatif.fixed import fixed_loop
from pollcore.whatif.run import MAX_SIMULATED

CONTRACT = contract_of(default="max_status_requests = 60; max_transport_failures = 10; max_rate_limited = 10")
TEN = JobTime("lognormal", 8 * MINUTE, spread=2.0)


def played(asked: Parameters, seed: int = 1, contract: Contract = CONTRACT, **more: Any) -> Simulation:
    return simulate(contract, asked, worker=worker(), chances=chances(seed), remote=False, **more)


# --- the loop ---------------------------------------------------------------------------------------------------------


@given(
    jobs=st.lists(st.tuples(st.integers(0, HOUR), st.integers(1, 3 * HOUR)), min_size=1, max_size=30),
    seconds=st.integers(1, 600),
    deadline=st.integers(1, 2 * HOUR),
)
@settings(deadline=None)
def test_the_compared_loop_is_arithmetic(jobs: list[tuple[int, int]], seconds: int, deadline: int) -> None:
    interval = seconds * SECOND
    asked = Parameters(operations=len(jobs), duration=HOUR, compare_interval=interval)
    loop = fixed_loop(asked, [at for at, _ in jobs], [time for _, time in jobs], deadline, source(1, "fates"))
    ticks: Counter[int] = Counter()
    late = []
    for index, (at, time) in enumerate(jobs):
        own = [at + n * interval for n in range(1, deadline // interval + 1) if n * interval < deadline]
        seen = next((n for n, tick in enumerate(own) if tick >= at + time), None)
        sent = own if seen is None else own[: seen + 1]
        assert loop.requests[index] == len(sent)
        late += [] if seen is None else [own[seen] - at - time]
        ticks.update(tick // SECOND for tick in sent)
    assert list(loop.late) == late
    assert loop.unseen == len(jobs) - len(late)
    assert loop.by_second is not None
    assert {second: count for second, count in enumerate(loop.by_second) if count} == ticks


def test_a_loop_of_ten_minutes_every_thirty_seconds_sends_twenty_requests() -> None:
    asked = Parameters(operations=50, duration=HOUR, job_time=JobTime("fixed", 10 * MINUTE))
    found = played(asked).fixed
    assert found.requests == Estimate(1_000, 1_000, 1_000)
    assert (found.median_requests, found.most_requests, found.seen.value) == (20, 20, 50)


def test_the_loop_asks_on_through_an_outage_and_sees_the_end_after_it() -> None:
    asked = Parameters(
        operations=1, duration=1, job_time=JobTime("fixed", 5 * MINUTE), outage=Outage(4 * MINUTE, 20 * MINUTE)
    )
    found = played(asked).fixed
    assert found.requests.value == 48
    assert found.late.longest == Estimate(19 * MINUTE, 19 * MINUTE, 19 * MINUTE)


def test_what_the_loop_sends_beyond_the_providers_limit_is_told() -> None:
    asked = Parameters(
        operations=100,
        duration=HOUR,
        job_time=JobTime("fixed", 3 * MINUTE),
        arrivals=Arrivals.BURST,
        rate_limit_per_minute=150,
    )
    # 100 at 0:30; 200 in each of the minutes 1 and 2; 100 at 3:00
    assert played(asked).fixed_over_limit == Estimate(100, 100, 100)


# --- exact figures ----------------------------------------------------------------------------------------------------


def test_an_exact_simulation_adds_up_and_repeats() -> None:
    asked = Parameters(
        operations=300, duration=HOUR, job_time=TEN, deadline=30 * MINUTE, failure_rate=0.1, arrivals=Arrivals.POISSON
    )
    found = played(asked)
    assert found.confidence is None
    assert found.planned.seen.value + sum(one.operations.value for one in found.escalations) == 300
    assert sum(part.requests for part in found.by_time) == found.planned.requests.value
    assert sum(part.fixed or 0 for part in found.by_time) == found.fixed.requests.value
    assert found == played(asked)
    assert found != played(asked, seed=2)
    assert {one.reason for one in found.escalations} <= {StopReason.DEADLINE_EXCEEDED, StopReason.PROVIDER_FAILURE}


def test_peaks_are_the_busiest_second_and_minute() -> None:
    sent = [0, 100, 900, 1_100, 61_000, 61_100, 61_200, 61_900, 90_000, 100_000]
    scale = Scale(10, 10)
    assert scale.peak(by_second(sent), 1) == Peak(Estimate(4, 4, 4), 61_000, 1_000)
    assert scale.peak(by_second(sent), 60) == Peak(Estimate(6, 6, 6), 60_000, 60_000)


@given(end=st.integers(0, 2 * MAX_SPAN))
def test_the_parts_of_a_chart_are_few_and_cover_the_time(end: int) -> None:
    size, found = parts(end, by_second([end] * 3), None, 1.0)
    assert len(found) <= MAX_PARTS
    assert found[-1].at <= end < found[-1].at + size
    assert sum(part.requests for part in found) == 3


def test_the_nearest_rank_is_a_value_of_its_own() -> None:
    assert [nearest(20, part) for part in (0.0, 0.5, 0.95, 1.0)] == [0, 9, 18, 19]
    assert nearest(1, 0.5) == 0


# --- scaled figures ---------------------------------------------------------------------------------------------------


def holds(estimate: Estimate | None, exact: Estimate | None) -> bool:
    assert estimate is not None
    assert exact is not None
    return estimate.low <= exact.value <= (math.inf if estimate.high is None else estimate.high)


@pytest.mark.parametrize("seed", range(6))
def test_a_scaled_interval_holds_the_exact_value(seed: int) -> None:
    asked = Parameters(
        operations=4_000, duration=2 * HOUR, job_time=TEN, deadline=15 * MINUTE, arrivals=Arrivals.POISSON
    )
    exact = played(asked, seed)
    scaled = played(Parameters(**{**plain(asked), "sample": 500}), seed + 100)
    assert scaled.simulated == 500
    assert scaled.confidence == 0.99
    assert not scaled.shares
    for of in ("requests", "per_operation", "seen"):
        assert holds(getattr(scaled.planned, of), getattr(exact.planned, of)), of
        assert holds(getattr(scaled.fixed, of), getattr(exact.fixed, of)), of
    for of in ("median", "p95", "longest"):
        assert holds(getattr(scaled.planned.late, of), getattr(exact.planned.late, of)), of
        assert holds(getattr(scaled.fixed.late, of), getattr(exact.fixed.late, of)), of
    stopped = {one.reason: one.operations for one in exact.escalations}
    assert {one.reason: holds(one.operations, stopped[one.reason]) for one in scaled.escalations} == {
        StopReason.DEADLINE_EXCEEDED: True
    }
    assert scaled.planned.per_minute is not None
    assert exact.planned.per_minute is not None
    assert holds(scaled.planned.per_minute.requests, exact.planned.per_minute.requests)


@given(values=st.lists(st.integers(0, 500), min_size=2, max_size=60), more=st.integers(1, 50))
def test_a_scaled_figure_lies_in_its_interval(values: list[int], more: int) -> None:
    scale, ranked = Scale(len(values) * more, len(values)), sorted(values)
    for found in (scale.total(values), scale.mean(values), scale.rank(ranked, 0.5), scale.rank(ranked, 0.95)):
        assert holds(found, found)
    assert scale.total(values).value == sum(values) * more
    for count in (0, 1, len(values)):
        share = scale.share(count)
        assert 0 <= share.low <= share.value <= (share.high or 0) <= scale.operations


def test_ninety_nine_of_a_hundred_intervals_of_a_mean_hold_the_whole() -> None:
    draw, held = source(7, "world"), 0
    for _ in range(400):
        everything = [round(-100 * math.log(1 - draw())) for _ in range(600)]
        held += holds(
            Scale(600, 100).total(everything[:100]), Estimate(sum(everything[100:]) + sum(everything[:100]), 0, 0)
        )
    assert held >= 388


def test_a_limit_of_the_provider_is_split_for_a_sample_and_said_to_be_shared() -> None:
    asked = Parameters(operations=2_000, duration=20 * MINUTE, job_time=TEN, rate_limit_per_minute=300)
    exact, scaled = played(asked), played(Parameters(**{**plain(asked), "sample": 500}))
    assert scaled.shares
    assert scaled.planned.requests.value == pytest.approx(exact.planned.requests.value, rel=0.1)
    with pytest.raises(
        Refused, match=r"30 requests a minute .* cannot be scaled .* simulate 1,500 operations or fewer"
    ):
        played(Parameters(**{**plain(asked), "rate_limit_per_minute": 30, "sample": 500}))


# --- what is refused --------------------------------------------------------------------------------------------------

PLAIN = {"operations": 10, "duration": HOUR, "job_time": JobTime("fixed", MINUTE)}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"operations": 0}, "--operations: 0 is not in 1 to 1,000,000"),
        ({"operations": 1_000_001}, "--operations: 1,000,001 is not in 1 to 1,000,000"),
        ({"duration": 0}, "--duration: 0 s is not above 0 and at most 366 days"),
        ({"duration": MAX_SPAN + 1}, "at most 366 days"),
        ({"job_time": JobTime("fixed", MAX_SPAN + 1)}, "--job-time: .* at most 366 days"),
        ({"job_time": JobTime("uniform", HOUR, MINUTE)}, "--job-time: 1 h to 1 min falls"),
        ({"job_time": JobTime("lognormal", HOUR, spread=math.inf)}, "--job-time: a spread of inf is not in 1 to 100"),
        ({"job_time": JobTime("lognormal", HOUR, spread=math.nan)}, "--job-time: a spread of nan"),
        ({"failure_rate": 1.0}, "--failure-rate: 1 is not in 0 to 0.99"),
        ({"failure_rate": math.nan}, "--failure-rate: nan"),
        ({"failure_rate": -0.1}, "--failure-rate: -0.1"),
        ({"rate_limit_per_minute": 0}, "--rate-limit-per-minute: 0"),
        ({"rate_limit_per_minute": 10**9}, "--rate-limit-per-minute: 1,000,000,000 is not in 1 to 1,000,000"),
        ({"guidance": 1_500}, "--guidance: 1.5 s is not a whole number of seconds"),
        ({"outage": Outage(MAX_SPAN + 1, 1)}, "--outage: its start"),
        ({"outage": Outage(0, 0)}, "--outage: 0 s"),
        ({"compare_interval": 500}, "--compare-interval: 0.5 s is not a whole number of seconds"),
        ({"deadline": 41 * MINUTE}, "--deadline 41 min is above limits.default.deadline"),
        ({"max_status_requests": 61}, "--max-requests 61 is above limits.default.max_status_requests"),
    ],
)
def test_an_absurd_argument_is_refused_with_its_limit(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(Refused, match=named):
        played(Parameters(**{**PLAIN, **changes}))


def test_job_times_that_nobody_names_are_refused_with_the_way_out() -> None:
    with pytest.raises(Refused, match="--job-time is missing, and the contract names no expected_duration"):
        played(Parameters(operations=1, duration=HOUR))
    expecting = contract_of(schedule='base_delay = "5s"; expected_duration = "6m"')
    assert played(Parameters(operations=1, duration=HOUR), contract=expecting).job_time == JobTime("fixed", 6 * MINUTE)


def test_a_simulation_of_too_many_requests_is_refused_before_it_runs() -> None:
    many = contract_of(default='deadline = "30d"; max_status_requests = 50000')
    asked = Parameters(operations=20_000, duration=DAY, job_time=JobTime("fixed", 20 * DAY))
    with pytest.raises(Refused, match=f"at most {MAX_SIMULATED:,} requests are simulated"):
        played(asked, contract=many)


def test_a_simulation_that_grows_beyond_its_limits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pollcore.whatif.run.MAX_LOOKS", 500)
    asked = Parameters(operations=100, duration=HOUR, job_time=TEN)
    with pytest.raises(Refused, match="fewer --operations"):
        played(asked)


def test_a_ceiling_of_the_settings_holds_in_a_simulation() -> None:
    asked = Parameters(**PLAIN)
    assert played(asked, ceilings=Limits(max_status_requests=5)).limits.max_status_requests == 60
    assert played(asked).limits == Limits(40 * MINUTE, 60, 10, 10)


def plain(asked: Parameters) -> dict[str, Any]:
    return {name: getattr(asked, name) for name in asked.__struct_fields__}


# --- what is not played -----------------------------------------------------------------------------------------------

BATCH = """
[status.item]
entries = "body.jobs"
job_id = "item.id"
[status.batch]
max = MOST
url = "http://127.0.0.1:9/jobs"
query = { ids = "{job_ids}" }
"""


@pytest.mark.rule("A5")
@pytest.mark.parametrize("most", [2, 7, 1_000])
@pytest.mark.parametrize("sample", [300, 40])
def test_requests_for_several_are_told_as_not_played_with_the_fewest_that_could_carry_the_polls(
    most: int, sample: int
) -> None:
    made = contract_of(rest=BATCH.replace("MOST", str(most)))
    asked = Parameters(operations=300, duration=HOUR, job_time=TEN, sample=sample)
    found = played(asked, contract=made)
    (told,) = found.left_out
    assert f"its batch of up to {most} operations a request: requests are counted as if each operation asked" in told
    least = int(told.partition("no fewer than ")[2].partition(" ")[0].replace(",", ""))
    assert (least - 1) * most < found.planned.requests.low <= least * most
    # and they are counted so
    alone = played(asked, contract=contract_of())
    assert found.planned.requests == alone.planned.requests
    assert alone.left_out == ()
