"""What a contract's schedule would cost: from a contract and parameters to figures.

Job: limits as a submission would have them, one run, one loop to compare with, their figures. Must not know: the
store, requests, clocks; chance and the worker's rules come in as arguments.
Source: spec T1-T8, T10, T11, B1, X2, X3, X6.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from pollcore import submission
from pollcore.contract import Contract
from pollcore.facts import MINUTE, SECOND, Limits, Operation, Refused, Submitted
from pollcore.submission import Requested, Terms
from pollcore.submission.pace import FASTEST, requests_within
from pollcore.whatif import figures
from pollcore.whatif.caps import Caps
from pollcore.whatif.fixed import Loop, fixed_loop
from pollcore.whatif.parameters import JobTime, Parameters, Source, check, check_scaled
from pollcore.whatif.provider import Provider, arrivals, job_times
from pollcore.whatif.rules import Worker
from pollcore.whatif.run import MAX_SIMULATED, Run, Trace, too_much
from pollcore.whatif.shapes import Estimate, Simulation, Stopped
from pollcore.whatif.waits import Steps, moment

HEADROOM: Final = 2
"""A simulation is refused at once if this part of its requests, at half of the fastest pace, is beyond the limit."""


class Chances(msgspec.Struct, frozen=True):
    """Three sources of chance, so that one does not move the others."""

    draws: Source
    """Of the schedule: what `Chance.draw` gives the controller."""
    world: Source
    """Arrivals and job times."""
    fates: Source
    """Which requests find no connection; the compared loop's come after them."""


def simulate(
    contract: Contract,
    asked: Parameters,
    *,
    worker: Worker,
    chances: Chances,
    remote: bool,
    ceilings: Limits | None = None,
    per_minute: int | None = None,
) -> Simulation:
    """Play *asked* under *contract*; nothing is sent and nothing stored.

    Args:
        remote: any origin but loopback (B1).
        ceilings: `[ceilings]` of `config.toml`.
        per_minute: our own cap on requests, None: the contract's.

    Raises:
        Refused: code `limit`; a parameter is absurd, a limit above its ceiling, or too much would be simulated.
    """
    check(asked)
    time = _job_time(contract, asked)
    template = record(contract, asked, remote=remote, ceilings=ceilings or Limits())
    span = template.deadline_at - template.started_at
    _refuse_too_much(contract, asked, template, time, span)
    comes, takes = arrivals(asked, chances.world), job_times(asked, time, chances.world)
    trace = run(contract, asked, template, comes, takes, worker=worker, chances=chances, per_minute=per_minute)
    loop = fixed_loop(asked, comes, takes, span, chances.fates)
    return _told(contract, asked, time, template, trace, loop, per_minute)


def record(contract: Contract, asked: Parameters, *, remote: bool, ceilings: Limits) -> Operation:
    """The record of a wait that is handed over at the beginning, with the limits that a submission would have."""
    given = Submitted(provider=contract.name, account="simulated", job_id="simulated", base_url=contract.base_url)
    terms = Terms(policy=contract.policy, contract_digest=contract.digest, remote=remote, ceilings=ceilings)
    wanted = Requested(deadline_in=asked.deadline, max_status_requests=asked.max_status_requests)
    made, _ = submission.new_operation(given, terms, wanted, operation_id="op", now=moment(0), draw=0.0)
    return made


def run(
    contract: Contract,
    asked: Parameters,
    template: Operation,
    comes: list[int],
    takes: list[int],
    *,
    worker: Worker,
    chances: Chances,
    per_minute: int | None = None,
) -> Trace:
    """The events alone. *comes*, *takes*: arrivals and job times of the simulated operations, ms."""
    first = contract.steps[0]
    cap = per_minute or contract.per_minute
    steps = Steps(template, contract.policy, worker, asked, chances.draws, first.request.total_ms, cap)
    if cap is not None:
        check_scaled("the cap per_minute", cap, MINUTE, asked)
    for scope in contract.scopes:
        check_scaled(f"the contract's limit per {scope.scope}", scope.requests, scope.per_ms, asked)
    caps = Caps(cap, contract.scopes, first.name, asked.weight)
    return Run(steps, Provider(asked, chances.fates), caps, comes, takes, worker.slots).go()


def _job_time(contract: Contract, asked: Parameters) -> JobTime:
    expected = contract.policy.schedule.expected_duration
    if asked.job_time is not None:
        return asked.job_time
    if expected is None:
        raise Refused(
            "--job-time is missing, and the contract names no expected_duration: say how long jobs run, like 10m, "
            "5m..20m or 10m/2 (median 10 min, spread 2)",
            code="usage",
        )
    return JobTime("fixed", expected)


def _refuse_too_much(contract: Contract, asked: Parameters, template: Operation, time: JobTime, span: int) -> None:
    """Refuse what would be refused after minutes anyway, as far as the pace of local backoff tells it."""
    if asked.guidance is not None:
        return
    fit = requests_within(contract.policy.schedule, min(time.middle, span), FASTEST * 2)
    sure = asked.simulated * min(template.max_status_requests, fit) // HEADROOM
    if sure > MAX_SIMULATED:
        raise too_much(sure, 0)


def _told(
    contract: Contract,
    asked: Parameters,
    time: JobTime,
    template: Operation,
    trace: Trace,
    loop: Loop,
    per_minute: int | None,
) -> Simulation:
    scale = figures.Scale(asked.operations, asked.simulated)
    planned = figures.by_second(trace.sent)
    fixed = None if loop.by_second is None else figures.dense(loop.by_second)
    last = max(trace.end, fixed.at[-1] * SECOND if fixed is not None and fixed.at else 0)
    part, by_time = figures.parts(last, planned, fixed, scale.weight)
    load = figures.load(scale, trace.requests, trace.late, planned)
    limited = asked.rate_limit_per_minute is not None or contract.scopes or per_minute or contract.per_minute
    return Simulation(
        provider=contract.name,
        digest=contract.digest,
        asked=asked,
        job_time=time,
        schedule=contract.policy.schedule,
        limits=Limits(
            deadline=template.deadline_at - template.started_at,
            max_status_requests=template.max_status_requests,
            max_transport_failures=template.max_transport_failures,
            max_rate_limited=template.max_rate_limited,
        ),
        simulated=asked.simulated,
        confidence=None if scale.exact else figures.CONFIDENCE,
        shares=bool(limited or asked.outage is not None or asked.failure_rate),
        planned=load,
        escalations=tuple(Stopped(reason, scale.share(count)) for reason, count in trace.stops.most_common()),
        fixed=figures.load(scale, loop.requests, loop.late, fixed),
        fixed_over_limit=_over_limit(asked, fixed, scale),
        end=trace.end,
        part=part,
        by_time=by_time,
        left_out=_left_out(contract, load.requests),
    )


def _over_limit(asked: Parameters, seconds: figures.Seconds | None, scale: figures.Scale) -> Estimate | None:
    """Requests of the loop beyond the provider's limit in each of its minutes; scaled: without an interval."""
    limit = asked.rate_limit_per_minute
    if limit is None or seconds is None:
        return None
    found = figures.over(seconds, scale.weight, limit)
    return Estimate(found, found if scale.exact else 0.0, found if scale.exact else None)


def _left_out(contract: Contract, requests: Estimate) -> tuple[str, ...]:
    """What a contract says that is not played. *requests*: of all operations."""
    found = []
    if len(contract.steps) > 1:
        names = ", ".join(step.name for step in contract.steps)
        found.append(f"its steps {names}: each look is one request here")
    batch = contract.steps[0].batch
    if batch is not None:
        # fewer can never carry so many: each charges at most `max` operations
        least = math.ceil(requests.low / batch.most)
        found.append(
            f"its batch of up to {batch.most} operations a request: requests are counted as if each operation asked "
            f"alone; no fewer than {least:,} would leave for as many polls"
        )
    if contract.concurrency is not None:
        found.append(f"its cap of {contract.concurrency} requests in flight: an answer takes no time here")
    if contract.long_poll_timeouts:
        found.append("long polls: an answer takes no time here")
    if contract.observation == "action" or contract.policy.least_mode != "standing":
        found.append("approvals: each is taken as given at once")
    if contract.hints:
        hints = ", ".join(hint.name for hint in contract.hints)
        found.append(f"its hints {hints}: give --guidance to have answers say when to ask again")
    return tuple(found)
