"""What does not add up in one operation: a stop, a request, a limit or a record that its events do not bear out.

Job: record and events -> sentences. Must not know: storage, how they are printed. What cannot be told is not told.
Source: spec A5, X1-X6, B2, B4, B5, T4, T9, I3, I9.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from pollcore.facts import (
    BY_ELAPSED_TIME,
    AuditEvent,
    ChoiceKind,
    EventName,
    Instant,
    Intent,
    Operation,
    Status,
    StopDetail,
    StopReason,
    Verdict,
    iso,
)
from pollcore.report.requests import STOPS, given_until, requests_of

States = Mapping[str, Verdict]
"""State text -> what the contract says of it."""


class Contradiction(msgspec.Struct, frozen=True):
    """One thing that the last state, the counters, the deadline or the order of events do not bear out."""

    operation_id: str
    at: Instant
    text: str


_NO_FATE: Final = frozenset(
    {
        StopReason.DEADLINE_EXCEEDED,
        StopReason.GUIDANCE_BEYOND_DEADLINE,
        StopReason.REQUEST_BUDGET_EXHAUSTED,
        StopReason.RATE_LIMITED,
        StopReason.UNKNOWN_STATE,
        StopReason.PROVIDER_FAILURE,
        StopReason.DELIVERY_AMBIGUOUS,
        StopReason.USEFULNESS_ENDED,
        StopReason.JOB_FAILED,
        StopReason.JOB_CANCELLED,
        StopReason.JOB_EXPIRED,
    }
)
"""Reasons that a parsed success does not bear out (an integration failure may: its result can be missing)."""
_SAYS: Final[dict[str, Verdict]] = {
    StopReason.JOB_FAILED: Verdict.FAILED,
    StopReason.JOB_CANCELLED: Verdict.CANCELLED,
    StopReason.JOB_EXPIRED: Verdict.EXPIRED,
    StopReason.NEEDS_HUMAN: Verdict.NEEDS_HUMAN,
}
"""What an answer with a state must have said for these."""
_FATES: Final = {
    Status.FAILED: StopReason.JOB_FAILED,
    Status.CANCELLED: StopReason.JOB_CANCELLED,
    Status.EXPIRED: StopReason.JOB_EXPIRED,
}


_CHECKS: Final = frozenset(
    {ChoiceKind.CHECK_ONCE, ChoiceKind.CHECK_ONCE_WITH_ROTATED_CREDENTIAL, ChoiceKind.ADOPT_CONTRACT}
)
"""Decisions that permit one request beyond a stop."""


def is_live(op: Operation) -> bool:
    """Still on its way, nobody asked about a stop."""
    return not op.status.is_end and op.status is not Status.ESCALATED


def contradictions(
    op: Operation,
    found: Sequence[AuditEvent],
    now: Instant,
    states: States | None = None,
    charges: Sequence[Intent] = (),
) -> Iterator[Contradiction]:
    """All of one operation; *states*: what its contract says of each state, None: not known. *charges*: its requests
    with their boot times."""
    name = op.operation_id
    if is_live(op) and now >= op.deadline_at:
        yield Contradiction(name, op.deadline_at, f"still {op.status.value} after its deadline {iso(op.deadline_at)}")
    for fact in requests_of(found, charges):
        for why in fact.wrong:
            yield Contradiction(name, fact.sent_at, why)
        if fact.obeyed is False and fact.guided_until is not None:
            text = f"a request was sent at {iso(fact.sent_at)}, the provider had asked to wait until"
            yield Contradiction(name, fact.sent_at, f"{text} {iso(fact.guided_until)}")
    yield from _limits(name, found)
    adopted = any(event.decision == "adopt_contract" for event in found)  # another contract held before
    yield from _stops(op, found, {} if states is None or adopted else states)
    yield from _record(op, found)


def _limits(name: str, found: Sequence[AuditEvent]) -> Iterator[Contradiction]:
    """I3, B2: limits rise by a grant alone, counters never fall; a grant names who gave it."""
    before: AuditEvent | None = None
    for event in found:
        if event.event is EventName.GRANTED and not event.operator:
            yield Contradiction(name, event.at, f"{event.detail or event.decision} was granted, and nobody is named")
        if event.deadline_at is None and event.max_requests is None:
            continue
        if before is not None and event.event is not EventName.GRANTED:
            yield from _raised(name, before, event)
        if before is not None and _fell(before.requests_used, event.requests_used):
            text = f"the requests used went from {before.requests_used} to {event.requests_used}"
            yield Contradiction(name, event.at, text)
        before = event


def _raised(name: str, before: AuditEvent, event: AuditEvent) -> Iterator[Contradiction]:
    old, new = before.deadline_at, event.deadline_at
    if old is not None and new is not None and new > old:
        yield Contradiction(name, event.at, f"the deadline went from {iso(old)} to {iso(new)}, and nobody granted it")
    if _fell(event.max_requests, before.max_requests):
        text = f"the requests allowed went from {before.max_requests} to {event.max_requests}, and nobody granted it"
        yield Contradiction(name, event.at, text)


def _fell(before: int | None, after: int | None) -> bool:
    return before is not None and after is not None and after < before


def _stops(op: Operation, found: Sequence[AuditEvent], states: States) -> Iterator[Contradiction]:
    stepped = False
    state: str | None = None
    ended: AuditEvent | None = None
    reason: str | None = None
    checks: str | None = None
    for event in found:
        stepped = stepped or event.event is EventName.CLOCK_STEP
        if event.event is EventName.GRANTED:
            checks = reason if event.decision in _CHECKS else None
        state = event.state if event.event is EventName.POLLED and event.state is not None else state
        if event.event not in STOPS:
            continue
        if ended is not None and event.decision in ("succeed", "stop"):
            text = f"it ended at {iso(ended.at)}, and again at {iso(event.at)}"
            yield Contradiction(op.operation_id, event.at, text)
        if event.decision in ("succeed", "stop"):
            ended = event
        # a check beyond a stop that brought no answer about the job leaves that stop as it was
        again = checks is not None and event.reason == checks and event.event is not EventName.STOPPED
        why = _unborne(event, stepped) if event.reason and not again else None
        reason, checks = event.reason or reason, None
        why = why or _unlike(event, state, states)
        if why is not None:
            yield Contradiction(op.operation_id, event.at, why)


def _unlike(event: AuditEvent, state: str | None, states: States) -> str | None:
    """Why the last parsed state does not bear the decision out, by what the contract lists; None: it does."""
    said = states.get(state) if state is not None else None
    if said is None:
        return None
    told = f"the last parsed state was {state}, which the contract lists as {said.value}"
    if event.reason in _NO_FATE and said is Verdict.SUCCEEDED:
        return f"stopped with {event.reason}, but {told}"
    if event.event is not EventName.POLLED or event.state is None:
        return None
    if event.decision == "succeed" and said is not Verdict.SUCCEEDED:
        return f"succeeded, but {told}"
    wanted = _SAYS.get(event.reason or "")
    if wanted is not None and said is not wanted:
        return f"stopped with {event.reason}, but {told}"
    return f"stopped with {event.reason}, but {told}" if event.reason == StopReason.UNKNOWN_STATE else None


def _unborne(event: AuditEvent, stepped: bool) -> str | None:
    """Why the event itself does not bear its stop reason out; None: it does, or it cannot be told."""
    reason, told = event.reason, f"stopped with {event.reason}"
    # the boot clock may have ended the wait before the wall clock did (T9): then the stop, or a step, says so
    stepped = stepped or BY_ELAPSED_TIME in event.notes
    match reason:
        case StopReason.DEADLINE_EXCEEDED if event.deadline_at is not None and not stepped:
            if event.at < event.deadline_at:
                return f"{told} at {iso(event.at)}, before the deadline {iso(event.deadline_at)}"
        case StopReason.REQUEST_BUDGET_EXHAUSTED if event.requests_used is not None and event.max_requests is not None:
            if event.requests_used < event.max_requests:
                used = f"{event.requests_used} of {event.max_requests}"
                return f"{told}, but only {used} requests were used"
        case StopReason.GUIDANCE_BEYOND_DEADLINE if event.deadline_at is not None and not stepped:
            until = given_until(event)
            if until is not None and until < event.deadline_at:
                return f"{told}, but the guidance ended {iso(until)}, before the deadline {iso(event.deadline_at)}"
        case StopReason.JOB_FAILED | StopReason.JOB_CANCELLED | StopReason.JOB_EXPIRED:
            if event.event is not EventName.POLLED:
                return f"{told}, but no answer said so"
        case StopReason.UNKNOWN_STATE | StopReason.NEEDS_HUMAN:
            if event.event is not EventName.POLLED:
                return f"{told}, but no answer was read"
        case StopReason.PROVIDER_FAILURE | StopReason.DELIVERY_AMBIGUOUS:
            if event.event is EventName.POLLED and event.http is not None and event.http < 400 and event.state:
                return f"{told}, but the answer was HTTP {event.http} with state {event.state}"
        case StopReason.RATE_LIMITED:
            if event.http is not None and event.http < 400:
                return f"{told}, but the answer was HTTP {event.http}"
        case StopReason.AUTHORIZATION_DENIED if event.event is EventName.POLLED and event.http is not None:
            if event.http < 400:
                return f"{told}, but the answer was HTTP {event.http}"
    return None


_PASSING: Final = frozenset(
    {
        EventName.ACTION_LOST,
        EventName.CANCEL_ANSWERED,
        EventName.CLOCK_STEP,
        EventName.FORCE_CANCEL_ANSWERED,
        EventName.GRANT_REFUSED,
        EventName.LATE_RESULT,
        EventName.RESULT_REVEALED,
        EventName.SENT,
    }
)
"""Events that leave the status of a stopped operation as it is."""


_STOPPED: Final = STOPS | {EventName.ESCALATED}


def of_record(op: Operation, found: Sequence[AuditEvent]) -> Iterator[Contradiction]:
    """What the record says beside its events alone: a foreign hand on a row, whatever the requests did."""
    yield from _record(op, found)


def _standing(op: Operation, found: Sequence[AuditEvent], at: Instant) -> Iterator[Contradiction]:
    """It goes on, and the last thing that is told of it is a stop."""
    last = next((event for event in reversed(found) if event.event not in _PASSING), None)
    if last is None or last.event not in _STOPPED or last.decision not in ("escalate", "stop", "succeed"):
        return
    if op.status in (Status.WAITING, Status.HELD):
        text = f"the record says {op.status.value}, its last event stopped it ({last.reason or last.decision})"
        yield Contradiction(op.operation_id, at, text)


def _record(op: Operation, found: Sequence[AuditEvent]) -> Iterator[Contradiction]:
    """The record beside its events and its own counters."""
    name = op.operation_id
    at = found[-1].at if found else op.submitted_at
    sends = sum(event.event is EventName.SENT for event in found)
    if found and found[0].event is EventName.SUBMITTED and sends > op.status_requests_used:
        yield Contradiction(name, at, f"{sends} requests were sent, {op.status_requests_used} are counted")
    limits = next((event for event in reversed(found) if event.deadline_at is not None), None)
    if limits is not None:
        if limits.deadline_at != op.deadline_at:
            text = (
                f"the record's deadline is {iso(op.deadline_at)}, its last event says {iso(limits.deadline_at or at)}"
            )
            yield Contradiction(name, limits.at, text)
        if limits.max_requests is not None and limits.max_requests != op.max_status_requests:
            text = f"the record allows {op.max_status_requests} requests, its last event says {limits.max_requests}"
            yield Contradiction(name, limits.at, text)
    yield from _spent(op, at)
    yield from _fate(op, found, at)
    yield from _standing(op, found, at)


def _spent(op: Operation, at: Instant) -> Iterator[Contradiction]:
    """The counters behind a stop that stands now."""
    if op.status is not Status.ESCALATED:
        return
    failures, most = op.transport_failures_used, op.max_transport_failures
    match op.stop_reason:
        case StopReason.PROVIDER_FAILURE | StopReason.DELIVERY_AMBIGUOUS if failures < most:
            text = f"stopped with {op.stop_reason.value}, but only {failures} of {most} failures were used"
            yield Contradiction(op.operation_id, at, text)
        case StopReason.RATE_LIMITED if (
            op.rate_limited_used < op.max_rate_limited and op.stop_detail is not StopDetail.QUOTA_EXHAUSTED
        ):
            used = f"{op.rate_limited_used} of {op.max_rate_limited}"
            yield Contradiction(
                op.operation_id, at, f"stopped with rate_limited, but only {used} rate-limit answers were used"
            )


def _fate(op: Operation, found: Sequence[AuditEvent], at: Instant) -> Iterator[Contradiction]:
    """An end that no event tells."""
    if not found or found[0].event is not EventName.SUBMITTED:
        return  # the beginning, perhaps all of it, is in an archive
    told = [event for event in found if event.event in STOPS or event.event in _OTHER_ENDS]
    if op.status is Status.SUCCEEDED and not any(
        event.decision in ("succeed", "accept_unvalidated_result", "adopt_contract") for event in told
    ):
        yield Contradiction(op.operation_id, at, "the record says succeeded, and no event does")
    reason = _FATES.get(op.status)
    if reason is not None and not any(event.reason == reason or event.decision == "adopt_contract" for event in told):
        yield Contradiction(op.operation_id, at, f"the record says {op.status.value}, and no event does")
    if op.status is Status.CLOSED and not any(event.event in _CLOSINGS for event in found):
        yield Contradiction(op.operation_id, at, "the record says closed, and no event does")


_OTHER_ENDS: Final = frozenset(
    {EventName.SUBMITTED, EventName.GRANTED, EventName.CANCEL_ANSWERED, EventName.FORCE_CANCEL_ANSWERED}
)
_CLOSINGS: Final = frozenset(
    {EventName.CLOSED, EventName.TRIED, EventName.REJECTED, EventName.GRANTED, EventName.RESUBMITTED}
)
