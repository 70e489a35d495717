"""From a checked submission to the record that is stored before the first request.

Job: times, limits, counters carried on, first poll, warnings. Must not know: the store, contracts beyond their numbers,
how the submission was written down.
Source: spec B1, B2, B5, B6, S7, T2, T5, T9.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pollcore import schedule
from pollcore.facts import (
    EARLIEST,
    LATEST,
    MAX_SPAN,
    MINUTE,
    BootMs,
    Guidance,
    Instant,
    Limits,
    Memory,
    Moment,
    Operation,
    Policy,
    Refused,
    Status,
    StopDetail,
    StopReason,
    Submitted,
    deadline_left,
    iso,
)
from pollcore.submission.duplicates import Carried
from pollcore.submission.limits import MAX_SPAN_DAYS, amounts, effective_limits, span_text, whole
from pollcore.submission.pace import pace_warnings

CLOCK_TOLERANCE: Final = 1 * MINUTE
"""A `started_at` of a command that lies no further ahead than this counts as now: two clocks are never one."""
MAX_TEXT: Final = 4_096
"""Characters of a job id or an account: more is no name."""


class Requested(msgspec.Struct, frozen=True, kw_only=True):
    """What a command asks for; None: the contract's default. Numbers are checked here, not before."""

    deadline_in: int | None = None
    """ms from `started_at` (`--deadline 40m`)."""
    deadline_at: Instant | None = None
    max_status_requests: int | None = None
    max_transport_failures: int | None = None
    max_rate_limited: int | None = None
    useful_until: Instant | None = None
    started_at: Instant | None = None


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What contract and configuration say to a submission."""

    policy: Policy
    contract_digest: str
    remote: bool = True
    """Any origin but loopback."""
    ceilings: Limits = Limits()
    """`[ceilings]` of `config.toml`."""


class Bounds(msgspec.Struct, frozen=True):
    """What bounds one wait. *end*: the nearer one of deadline and `useful_until`."""

    limits: Limits
    deadline_at: Instant
    end: Instant


def new_operation(
    submitted: Submitted,
    terms: Terms,
    requested: Requested,
    *,
    operation_id: str,
    now: Moment,
    draw: float,
    credential: str | None = None,
    response_date: Instant | None = None,
    last_known_state: str | None = None,
    provider_expires_at: Instant | None = None,
    guidance: Guidance | None = None,
    memory: Memory | None = None,
    earlier: Carried | None = None,
    granted: bool = False,
) -> tuple[Operation, tuple[str, ...]]:
    """The record of a new wait, and the warnings that its submitter is told.

    Args:
        draw: From [0.0, 1.0), for the first delay.
        response_date: The submission response's `Date` (B6).
        last_known_state, provider_expires_at, guidance, memory: What the submission response said.
        earlier: Counters of earlier operations for the same job, none of which holds a final state (B2): the record
            holds exactly the limits asked for on top of them, is `escalated` and sends nothing until granted.
        granted: The earlier counters come with authority of their own (resubmit E6, after `provider try`).

    Raises:
        Refused: a value is missing, zero, negative, not finite, absurd, past, above a ceiling or beyond retention.
    """
    _check_names(submitted, terms)
    started_at = _started_at(requested, response_date, now)
    bounds = _bounds(requested, terms, started_at, now)
    before = earlier or Carried()
    asks = earlier is not None and not granted
    room = bounds.end - now.wall
    first = schedule.first_poll(
        terms.policy.schedule, started_at=started_at, now=now, draw=draw, room_ms=room, guidance=guidance
    )
    record = Operation(
        operation_id=operation_id,
        submitted=submitted,
        contract_digest=terms.contract_digest,
        credential=credential,
        started_at=started_at,
        submitted_at=now.wall,
        boot_id=now.boot_id,
        deadline_at=bounds.deadline_at,
        deadline_boot=BootMs(now.boot + bounds.deadline_at - now.wall),
        useful_until=requested.useful_until,
        provider_expires_at=provider_expires_at,
        guidance_until=first.guidance_until,
        last_known_state=last_known_state if last_known_state is not None else before.last_known_state,
        memory=memory or before.memory,
        **_budgets(before, bounds.limits),
        **(_second(submitted, before) if asks else _waiting(first)),
    )
    if guidance is not None and not asks:
        record = _beyond(record, guidance, now)
    warnings = _warnings(bounds, requested, terms.policy, provider_expires_at, now)
    return msgspec.structs.replace(record, due_boot=schedule.due_boot(record, now)), warnings


def _waiting(first: schedule.FirstPoll) -> dict[str, Any]:
    """The fields of a record that waits for its first request."""
    return {"status": Status.WAITING, "next_poll_at": first.next_poll_at, "delay_source": first.source}


def _second(submitted: Submitted, before: Carried) -> dict[str, Any]:
    """B2: the fields of a record that sends nothing until it is granted: the job was waited for before."""
    return {
        "status": Status.ESCALATED,
        "stop_reason": StopReason.EXTENSION_REQUESTED,
        "stop_detail": StopDetail.SECOND_SUBMISSION,
        "stop_explanation": (
            f"job {submitted.job_id} was waited for before and {before.status_requests_used} requests were sent; "
            "a further wait is new authority"
        ),
    }


def _budgets(before: Carried, limits: Limits) -> dict[str, Any]:
    """B2: the counters of earlier operations, and the limits asked for on top of them."""
    return {
        "max_status_requests": before.status_requests_used + (limits.max_status_requests or 0),
        "status_requests_used": before.status_requests_used,
        "max_transport_failures": before.transport_failures_used + (limits.max_transport_failures or 0),
        "transport_failures_used": before.transport_failures_used,
        "max_rate_limited": before.rate_limited_used + (limits.max_rate_limited or 0),
        "rate_limited_used": before.rate_limited_used,
        "completed_polls": before.completed_polls,
    }


def _beyond(record: Operation, guidance: Guidance, now: Moment) -> Operation:
    """T4: a `Retry-After` of the submission's response that no request can obey in time stops the wait at once."""
    if not guidance.is_retry_after or guidance.delay_ms < schedule.room(record, now):
        return record
    late = guidance.delay_ms >= deadline_left(record, now)
    reason = StopReason.GUIDANCE_BEYOND_DEADLINE if late else StopReason.USEFULNESS_ENDED
    return msgspec.structs.replace(
        record,
        status=Status.ESCALATED,
        stop_reason=reason,
        stop_explanation=f"{guidance.name} {guidance.delay_ms / 1000:.12g} in the submission's response",
        next_poll_at=None,
        guidance_until=Instant(now.wall + guidance.delay_ms),
    )


# --- parts ------------------------------------------------------------------------------------------------------------


def _check_names(submitted: Submitted, terms: Terms) -> None:
    if not submitted.job_id.strip():
        raise Refused("the provider's job id is missing: give --job-id, or --from-response with the saved answer")
    if terms.remote and not submitted.account.strip():
        raise Refused("the account is empty: a remote provider's job belongs to an account; give --account")
    for name, text in (("job id", submitted.job_id), ("account", submitted.account)):
        if len(text) > MAX_TEXT:
            raise Refused(f"the {name} has {len(text)} characters; at most {MAX_TEXT} are accepted")


def _started_at(requested: Requested, response_date: Instant | None, now: Moment) -> Instant:
    """B6: command, else the response's `Date`, else now. Never ahead of now."""
    given = requested.started_at
    if given is None:
        if response_date is None or not now.wall - MAX_SPAN <= response_date <= now.wall:
            return now.wall
        return response_date
    whole("started_at", given, LATEST, "--started-at")
    if given > now.wall + CLOCK_TOLERANCE:
        raise Refused(f"--started-at {_when(given)} lies ahead of now, {iso(now.wall)}: a job that runs has started")
    if given < now.wall - MAX_SPAN:
        raise Refused(f"--started-at {_when(given)} is more than {MAX_SPAN_DAYS} days ago")
    return min(given, now.wall)


def _asked(requested: Requested, started_at: Instant) -> Limits:
    span = requested.deadline_in
    if requested.deadline_at is not None:
        if span is not None:
            raise Refused("--deadline is given twice, as a span and as a time: give one of them", limit="deadline")
        whole("deadline_at", requested.deadline_at, LATEST, "--deadline")
        # a time before the start is told as a past deadline, not as a negative span
        span = max(1, requested.deadline_at - started_at)
    return Limits(
        deadline=span,
        max_status_requests=requested.max_status_requests,
        max_transport_failures=requested.max_transport_failures,
        max_rate_limited=requested.max_rate_limited,
    )


def _deadline_at(limits: Limits, requested: Requested, policy: Policy, started_at: Instant, now: Moment) -> Instant:
    """B1, B6: relative to `started_at`; not past, not beyond the provider's retention."""
    span = limits.deadline or 0
    at = requested.deadline_at if requested.deadline_at is not None else Instant(started_at + span)
    if at <= now.wall:
        since = "" if started_at == now.wall else f" (the job started at {iso(started_at)})"
        raise Refused(
            f"the deadline {_when(at)}{since} is already past, now is {iso(now.wall)}: give a later --deadline",
            code="limit",
            limit="deadline",
        )
    if policy.retention is not None and at - started_at > policy.retention:
        last = Instant(started_at + policy.retention)
        raise Refused(
            f"the deadline {_when(at)} is beyond the provider's retention of {span_text(policy.retention)} "
            f"(retention in the contract): the job's record is gone after {iso(last)}; ask for {iso(last)} or earlier",
            code="limit",
            limit="retention",
            **amounts("retention", at - started_at, policy.retention),
        )
    return at


def _bounds(requested: Requested, terms: Terms, started_at: Instant, now: Moment) -> Bounds:
    """Limits and times in force. Raises Refused."""
    policy = terms.policy
    limits = effective_limits(
        _asked(requested, started_at), policy.default, policy.ceiling, terms.ceilings, remote=terms.remote
    )
    deadline_at = _deadline_at(limits, requested, policy, started_at, now)
    useful = requested.useful_until
    _check_useful(useful, now)
    return Bounds(limits, deadline_at, deadline_at if useful is None else min(deadline_at, useful))


def _check_useful(useful_until: Instant | None, now: Moment) -> None:
    if useful_until is None:
        return
    whole("useful_until", useful_until, LATEST, "--useful-until")
    if useful_until <= now.wall:
        raise Refused(
            f"--useful-until {_when(useful_until)} is already past, now is {iso(now.wall)}: name a later time, or none",
            code="limit",
            limit="useful_until",
        )
    if useful_until - now.wall > MAX_SPAN:
        raise Refused(f"--useful-until {_when(useful_until)} is more than {MAX_SPAN_DAYS} days away")


def _warnings(
    bounds: Bounds, requested: Requested, policy: Policy, provider_expires_at: Instant | None, now: Moment
) -> tuple[str, ...]:
    warnings = pace_warnings(policy.schedule, bounds.limits.max_status_requests or 0, bounds.end - now.wall)
    useful = requested.useful_until
    if useful is not None and useful < bounds.deadline_at:
        early = span_text((bounds.deadline_at - useful) // 1_000 * 1_000)
        warnings += (f"useful_until {iso(useful)} is {early} before the deadline: the wait stops there",)
    if provider_expires_at is not None and provider_expires_at < bounds.end:
        warnings += (f"the provider reports that the job expires at {iso(provider_expires_at)}, before the deadline",)
    return warnings


def _when(at: int) -> str:
    """A time for a message; numbers that are no time of this century are shown as they are."""
    return iso(Instant(at)) if EARLIEST <= at <= LATEST else f"{at} ms"
