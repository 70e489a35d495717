"""The simulation sends what the real controller sends, request by request, under the same draws."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.core.whatif.both import contract_of, really, simulated

from pollcore.contract import Contract
from pollcore.facts import HOUR, MINUTE, SECOND
from pollcore.whatif import Arrivals, JobTime, Outage, Parameters

TEN = JobTime("lognormal", 10 * MINUTE, spread=3.0)
SHORT = JobTime("uniform", 20 * SECOND, 4 * MINUTE)
MANY = "max_status_requests = 60; max_transport_failures = 40; max_rate_limited = 40"

CASES: dict[str, tuple[Contract, Parameters]] = {
    "local backoff": (
        contract_of(),
        Parameters(operations=16, duration=15 * MINUTE, job_time=TEN, arrivals=Arrivals.POISSON),
    ),
    "a budget and a deadline that end waits": (
        contract_of(schedule='base_delay = "2s"; max_delay = "30s"', default="max_status_requests = 9"),
        Parameters(operations=16, duration=10 * MINUTE, job_time=TEN, deadline=4 * MINUTE),
    ),
    "guidance": (
        contract_of(schedule='base_delay = "2s"'),
        Parameters(operations=12, duration=20 * MINUTE, job_time=TEN, guidance=45 * SECOND),
    ),
    "guidance into the deadline": (
        contract_of(),
        Parameters(operations=10, duration=20 * MINUTE, job_time=TEN, guidance=9 * MINUTE, deadline=20 * MINUTE),
    ),
    "requests that fail": (
        contract_of(default="max_transport_failures = 4"),
        Parameters(operations=16, duration=10 * MINUTE, job_time=TEN, failure_rate=0.3, arrivals=Arrivals.POISSON),
    ),
    "an outage, asked by one": (
        contract_of(default=MANY),
        Parameters(operations=16, duration=10 * MINUTE, job_time=TEN, outage=Outage(4 * MINUTE, 12 * MINUTE)),
    ),
    "an outage that outlasts budgets": (
        contract_of(default="max_transport_failures = 2"),
        Parameters(operations=12, duration=MINUTE, job_time=TEN, outage=Outage(30 * SECOND, HOUR)),
    ),
    "429 with guidance": (
        contract_of(default=MANY),
        Parameters(operations=16, duration=5 * MINUTE, job_time=SHORT, rate_limit_per_minute=6),
    ),
    "429 without guidance": (
        contract_of(default=MANY),
        Parameters(operations=16, duration=5 * MINUTE, job_time=SHORT, rate_limit_per_minute=6, retry_after=False),
    ),
    "429 until the budget is spent": (
        contract_of(default="max_rate_limited = 2"),
        Parameters(operations=16, duration=MINUTE, job_time=SHORT, rate_limit_per_minute=4, retry_after=False),
    ),
    "a burst": (
        contract_of(schedule='base_delay = "2s"; max_delay = "30s"'),
        Parameters(operations=40, duration=15 * MINUTE, job_time=SHORT, arrivals=Arrivals.BURST),
    ),
    "a burst under our own cap": (
        contract_of(caps="[caps]\nper_minute = 8", default=MANY),
        Parameters(operations=16, duration=15 * MINUTE, job_time=SHORT, arrivals=Arrivals.BURST),
    ),
    "a burst under the limit of a scope": (
        contract_of(caps='[[caps.scopes]]\nscope = "account"\nrequests = 6\nper = "50s"', default=MANY),
        Parameters(operations=12, duration=15 * MINUTE, job_time=SHORT, arrivals=Arrivals.BURST),
    ),
    "an expected duration": (
        contract_of(schedule='base_delay = "10s"; expected_duration = "10m"; max_delay = "4m"'),
        Parameters(operations=12, duration=15 * MINUTE, job_time=TEN),
    ),
    "a job that must be asked": (
        contract_of(schedule='base_delay = "30s"; max_interval = "40s"; max_delay = "10m"', default=MANY),
        Parameters(operations=12, duration=15 * MINUTE, job_time=TEN),
    ),
    "an end that is confirmed": (
        contract_of(rest='[settle]\ndelay = "20s"'),
        Parameters(operations=10, duration=15 * MINUTE, job_time=TEN, failure_rate=0.05),
    ),
    "everything at once": (
        contract_of(caps="[caps]\nper_minute = 16", default=MANY),
        Parameters(
            operations=20,
            duration=5 * MINUTE,
            job_time=TEN,
            arrivals=Arrivals.POISSON,
            failure_rate=0.1,
            rate_limit_per_minute=15,
            outage=Outage(3 * MINUTE, 4 * MINUTE),
        ),
    ),
}


SLOW = {"a burst", "a burst under our own cap", "a burst under the limit of a scope", "everything at once"}
SLOW |= {"a job that must be asked", "an outage, asked by one", "local backoff"}
PLAYED = [
    pytest.param(name, seed, marks=[pytest.mark.slow] if seed > 1 or name in SLOW else [], id=f"{name}-{seed}")
    for name in CASES
    for seed in (1, 2)
]


@pytest.mark.rule("T1", "T2", "T4", "T5", "T6", "T7", "T8", "T10", "T11", "B3", "X2", "X3", "X6", "X8")
@pytest.mark.parametrize(("name", "seed"), PLAYED)
async def test_the_simulation_sends_what_the_controller_sends(name: str, seed: int, tmp_path: Path) -> None:
    contract, asked = CASES[name]
    trace = simulated(contract, asked, seed)
    played = await really(contract, asked, seed, tmp_path / "home")
    assert list(trace.sent) == [at for at, _ in played.sent]
    assert list(trace.requests) == played.requests
    assert sorted(trace.late) == sorted(played.late)
    assert trace.stops == played.stops
    assert len(trace.late) + trace.stops.total() == asked.operations


def test_the_cases_reach_every_stop_that_a_schedule_causes() -> None:
    reached = {reason.value for contract, asked in CASES.values() for reason in simulated(contract, asked, 1).stops}
    assert {
        "deadline_exceeded",
        "request_budget_exhausted",
        "provider_failure",
        "rate_limited",
        "guidance_beyond_deadline",
    } <= reached
