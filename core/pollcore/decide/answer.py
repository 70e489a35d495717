"""The one total table: (operation, reading, now, draw) -> decision.

Job: the order of reasons after an answer (O7), and the wait if none holds.
Must not know: storage, requests, contracts beyond their numbers, what a human can choose.
Source: spec S2-S5, S9, T1-T7, B4, B5, X1-X8, H3, H5, O7.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore import schedule
from pollcore.decide.cause import stop
from pollcore.decide.charge import INTEGRATION_FAULTS, RATE_VERDICTS, Charge, charge_of
from pollcore.decide.guidance import answered, valid_guidance
from pollcore.decide.limits import spent_budget, stop_of_limits
from pollcore.decide.remarks import remarks
from pollcore.decide.settle import contradicts, final_key, is_first
from pollcore.facts import (
    Decision,
    DelaySource,
    Escalate,
    Fault,
    Guidance,
    Instant,
    Moment,
    Observation,
    Operation,
    Policy,
    ResultPointer,
    StopDetail,
    StopReason,
    Succeed,
    Verdict,
    Wait,
    deadline_left,
    useful_left,
)

_NO_ROW_OF_429: Final = 0
QUALIFIED: Final = {
    "partial": "partial results may exist",
    "empty": "it has no results",
    "did_not_run": "it did not run",
}
"""What a qualifier says of a job that did not succeed."""


def decide(
    operation: Operation,
    reading: Observation | Fault,
    *,
    policy: Policy,
    now: Moment,
    draw: float,
    counted: bool = True,
    origin: str | None = None,
) -> Decision:
    """Choose what happens to *operation* after one *reading*.

    Pure: reads no clock, draws no chance, does no I/O, so a stored reading replays to the same decision.

    Args:
        operation: The record as claimed: this request is in `status_requests_used`, its answer in no counter yet.
        now: Not before the reading was complete.
        draw: From [0.0, 1.0), made and stored by the caller.
        counted: False for a submission's response and for a stored answer that is read again (adopt_contract): they
            spend nothing, and guidance that is still open stays open.
        origin: `scheme://host:port` of the request, for the cause of a stop (E10).

    Raises:
        ValueError: *draw* is out of range; nothing a provider sends can cause it.

    Source: spec O7, T1-T5, X1-X8; RFC 9110 section 10.2.3.
    """
    if not 0.0 <= draw < 1.0:
        raise ValueError(f"draw must be in [0, 1), not {draw!r}")
    charge = charge_of(operation, reading, counted=counted)
    notes: tuple[str, ...] = ()
    if isinstance(reading, Fault):
        guidance = None
        said: Decision | None = _fault_says(operation, reading, origin)
    else:
        guidance, notes = valid_guidance(operation, reading, policy, now)
        said = _answer_says(operation, reading, policy, origin)
    if isinstance(said, Escalate) and isinstance(reading, Observation):
        said = _qualified(said, reading)
    if said is None:
        said = _limit_says(operation, reading, charge, now, origin)
    if said is None:
        said = _wait(operation, reading, charge, guidance, policy, now, draw, counted, origin)
    notes = remarks(operation, reading, now, notes) + said.notes
    return msgspec.structs.replace(said, notes=tuple(dict.fromkeys(notes))) if notes else said


# --- 1. what the answer itself says -----------------------------------------------------------------------------------


def _fault_says(operation: Operation, fault: Fault, origin: str | None) -> Escalate | None:
    detail = INTEGRATION_FAULTS.get(fault.kind)
    if detail is None or fault.apart:
        return None
    text = f"{fault.kind.value}: {fault.text}" if fault.text else fault.kind.value
    return stop(operation, StopReason.INTEGRATION_FAILURE, detail, explanation=text, origin=origin)


def _answer_says(operation: Operation, reading: Observation, policy: Policy, origin: str | None) -> Decision | None:
    """Final, unknown, denied, integration: stops that no limit and no budget comes before."""
    text: str | None
    if reading.apart:
        return None
    if contradicts(operation, reading):
        now_says = final_key(reading)
        text = f"first {operation.memory.settling}, after the settling delay {now_says}"
        return _integration(operation, reading, StopDetail.TERMINAL_CONTRADICTION, text)
    if is_first(operation, reading, policy):
        return None
    match reading.verdict:
        case Verdict.SUCCEEDED:
            return _succeeded(operation, reading)
        case Verdict.FAILED:
            text = reading.provider_error or reading.explanation
            return stop(operation, StopReason.JOB_FAILED, reading.detail, explanation=text)
        case Verdict.CANCELLED:
            asks = not operation.cancel_granted
            return stop(operation, StopReason.JOB_CANCELLED, reading.detail, explanation=reading.explanation, asks=asks)
        case Verdict.EXPIRED:
            return stop(operation, StopReason.JOB_EXPIRED, reading.detail, explanation=reading.explanation)
        case Verdict.NEEDS_HUMAN | Verdict.UNKNOWN:
            human = reading.verdict is Verdict.NEEDS_HUMAN
            reason = StopReason.NEEDS_HUMAN if human else StopReason.UNKNOWN_STATE
            return stop(operation, reason, reading.detail, explanation=reading.explanation, state=reading.state)
        case Verdict.DENIED:
            text = reading.explanation or reading.provider_error
            return stop(operation, StopReason.AUTHORIZATION_DENIED, reading.detail, explanation=text, origin=origin)
        case Verdict.INTEGRATION:
            return _integration(operation, reading, reading.detail or StopDetail.UNREADABLE, reading.explanation)
        case Verdict.QUOTA_EXHAUSTED:
            detail = StopDetail.QUOTA_EXHAUSTED
            text = reading.explanation or reading.provider_error
            return stop(operation, StopReason.RATE_LIMITED, detail, explanation=text)
        case Verdict.WAITING:
            return _past_provider_expiry(operation, reading)
        case Verdict.TRANSPORT_FAILURE | Verdict.RATE_LIMITED:
            return None


def _qualified(said: Escalate, reading: Observation) -> Escalate:
    """S4: what a contract says of an end besides its state is told with the stop: there is no result to carry it."""
    if not reading.qualifiers or not reading.verdict.is_final or reading.verdict is Verdict.SUCCEEDED:
        return said
    words = (f"{QUALIFIED[name]} ({name})" if name in QUALIFIED else name for name in reading.qualifiers)
    told = "; ".join(part for part in (said.explanation, *words) if part)
    return msgspec.structs.replace(said, explanation=told)


def _succeeded(operation: Operation, reading: Observation) -> Decision:
    """S4: a success without everything that the next action needs is none; what came is kept for a human."""
    if reading.result is not None and reading.result.validated:
        return Succeed(result=reading.result)
    detail = reading.detail or StopDetail.SUCCEEDED_WITHOUT_RESULT
    return _integration(operation, reading, detail, reading.explanation)


def _past_provider_expiry(operation: Operation, reading: Observation) -> Escalate | None:
    """S5: still waiting after the expiry that the provider itself reported."""
    expiry = reading.provider_expires_at or operation.provider_expires_at
    if reading.continues or expiry is None or reading.http.answered_at <= expiry:
        return None
    return _integration(operation, reading, StopDetail.WAITING_PAST_PROVIDER_EXPIRY, reading.explanation)


def _integration(operation: Operation, reading: Observation, detail: StopDetail, text: str | None) -> Escalate:
    """An `integration_failure` that carries an unvalidated result for a human to accept, if there is one."""
    result: ResultPointer | None = None
    if reading.result is not None:
        result = msgspec.structs.replace(reading.result, validated=False)
    reason = StopReason.INTEGRATION_FAILURE
    return stop(operation, reason, detail, explanation=text, state=reading.state, result=result)


# --- 2. budgets and times ---------------------------------------------------------------------------------------------


def _limit_says(
    operation: Operation,
    reading: Observation | Fault,
    charge: Charge,
    now: Moment,
    origin: str | None,
) -> Escalate | None:
    """O7: failure or rate budget spent; the stop again after a check that brought nothing; times; request budget."""
    spent = spent_budget(operation, charge, reading, origin=origin)
    if spent is not None:
        return spent
    known = isinstance(reading, Observation) and (reading.verdict is Verdict.WAITING or reading.verdict.is_final)
    if operation.check_once and not known:
        return _the_stop_again(operation, reading, origin)
    unconfirmed = None
    if isinstance(reading, Observation) and reading.verdict.is_final:
        unconfirmed = f"the job's end, {final_key(reading)}, was not confirmed by a second answer"
    return stop_of_limits(operation, now, explanation=unconfirmed, origin=origin)


def _the_stop_again(operation: Operation, reading: Observation | Fault, origin: str | None) -> Escalate:
    """A granted check beyond a stop goes on only if the answer is known: the record still names that stop."""
    reason, detail, text = operation.stop_reason, operation.stop_detail, operation.stop_explanation
    if reason is None:
        limited = isinstance(reading, Observation) and reading.verdict in RATE_VERDICTS
        reason = StopReason.RATE_LIMITED if limited else StopReason.PROVIDER_FAILURE
    try:
        return stop(
            operation,
            reason,
            detail,
            explanation=text,
            state=operation.last_known_state,
            origin=origin,
            notes=("check_once brought no answer about the job",),
        )
    except KeyError:
        return stop(operation, StopReason.PROVIDER_FAILURE, explanation=text, origin=origin)


# --- 3. the wait ------------------------------------------------------------------------------------------------------


def _wait(
    operation: Operation,
    reading: Observation | Fault,
    charge: Charge,
    guidance: Guidance | None,
    policy: Policy,
    now: Moment,
    draw: float,
    counted: bool,
    origin: str | None,
) -> Wait | Escalate:
    plan = policy.schedule
    until: Instant | None = None
    if isinstance(reading, Observation) and guidance is not None:
        since = answered(reading, now)
        until = Instant(since + guidance.delay_ms)
        room = schedule.room(operation, now) + now.wall - since
        delay = schedule.guided_delay(plan, guidance.delay_ms, draw, room_ms=room)
        delay = max(0, since + delay - now.wall)
        source = DelaySource.PROVIDER_RETRY_AFTER if guidance.is_retry_after else DelaySource.PROVIDER_POLL_HINT
    elif isinstance(reading, Observation) and reading.continues:
        delay, source = 0, DelaySource.LOCAL_BACKOFF
    else:
        limited = isinstance(reading, Observation) and reading.verdict in RATE_VERDICTS
        row = charge.rate_limited_in_a_row if limited else _NO_ROW_OF_429
        delay = schedule.local_delay(plan, charge.completed_polls, row, draw)
        source = DelaySource.LOCAL_BACKOFF
    if not counted and operation.guidance_until is not None and operation.guidance_until > max(now.wall, until or 0):
        until = operation.guidance_until
        delay, source = max(delay, until - now.wall), DelaySource.PROVIDER_RETRY_AFTER
    beyond = _guidance_beyond(operation, until, now, origin)
    if beyond is not None:
        return beyond
    notes: tuple[str, ...] = ()
    if isinstance(reading, Observation) and is_first(operation, reading, policy):
        delay = max(delay if until is not None else 0, plan.settle_delay or 0)
        notes = (f"settling: {final_key(reading)} is to be confirmed",)
    return _bounded(operation, delay, source, until, policy, now, notes)


def _guidance_beyond(operation: Operation, until: Instant | None, now: Moment, origin: str | None) -> Escalate | None:
    """T4: no request can go out between open guidance and the limit: stop now, do not sleep into it."""
    if until is None:
        return None
    left, useful = deadline_left(operation, now), useful_left(operation, now)
    asked = until - now.wall
    if asked >= left:
        return stop(operation, StopReason.GUIDANCE_BEYOND_DEADLINE, origin=origin)
    if useful is not None and asked >= useful:
        return stop(operation, StopReason.USEFULNESS_ENDED, explanation="guidance beyond useful_until", origin=origin)
    return None


def _bounded(
    operation: Operation,
    delay: int,
    source: DelaySource,
    until: Instant | None,
    policy: Policy,
    now: Moment,
    notes: tuple[str, ...],
) -> Wait:
    """T4: every wait ends at its time or at the nearer limit; it is never shortened to squeeze in a request."""
    room = schedule.room(operation, now)
    if delay > room:
        delay = room
        nearer = "deadline" if room == deadline_left(operation, now) else "useful_until"
        notes = (*notes, f"no further request fits before the {nearer}")
    interval = policy.schedule.max_interval
    if interval is not None and delay > interval:
        notes = (*notes, f"max_interval {interval / 1000:g} s is exceeded: the job or its result may be lost")
    at = Instant(now.wall + delay)
    return Wait(next_poll_at=at, delay_ms=delay, source=source, guidance_until=until, notes=notes)
