"""A5: figures from records and events, and what does not add up.

Job: compute, from what was stored alone, whether waits were bounded, permitted, obedient and cheap, and list
contradictions. Must not know: storage, contracts, how figures are printed.
Source: spec A5, B1-B3, T4, T5, T9.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from pollcore.facts import (
    SECOND,
    AuditEvent,
    DelaySource,
    Escalation,
    EventName,
    Instant,
    Operation,
    Status,
    StopReason,
    iso,
)

FIXED_INTERVAL: Final = 10 * SECOND
"""The loop that pollconsole replaces: a request every ten seconds until the end."""

_GUIDED: Final = frozenset({DelaySource.PROVIDER_RETRY_AFTER, DelaySource.PROVIDER_POLL_HINT})
_SECONDS: Final = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*$")
_ANSWERS: Final = frozenset({EventName.POLLED, EventName.FAULTED})
_STOPS: Final = frozenset({EventName.POLLED, EventName.FAULTED, EventName.ANSWER_LOST, EventName.STOPPED})


class Extension(msgspec.Struct, frozen=True):
    """Who extended what."""

    operation_id: str
    at: Instant
    operator: str
    what: str


class Contradiction(msgspec.Struct, frozen=True):
    """A stop reason, or a request, that the last state, the counters or the deadline do not bear out."""

    operation_id: str
    at: Instant
    text: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Figures; counts of operations and requests, times in ms, shares 0-1 or None where there is nothing to share."""

    operations: int
    ended: int
    escalated: int
    """Bounded escalations: stopped, a question is open."""
    within_limits: int
    """Still waiting, held or awaiting approval, inside their deadline."""
    overdue: int
    """Neither ended nor escalated although the deadline has passed."""
    share_ended_or_escalated: float | None
    """Of the operations that are not within their limits any more."""
    guidance_given: int
    guidance_obeyed: int
    share_guidance_obeyed: float | None
    requests: int
    requests_permitted: int
    """Sent inside budget and deadline."""
    fixed_interval_requests: int
    """What a loop with a fixed interval would have sent in the same time."""
    decisions: int
    open_questions: int
    median_time_to_decision: int | None
    longest_time_to_decision: int | None
    oldest_open_question: int | None
    extensions: tuple[Extension, ...]
    contradictions: tuple[Contradiction, ...]


def report(
    operations: Sequence[Operation],
    questions: Iterable[Escalation],
    events: Mapping[str, Sequence[AuditEvent]],
    *,
    now: Instant,
    succeeded_states: Mapping[str, frozenset[str]] | None = None,
    interval: int = FIXED_INTERVAL,
) -> Report:
    """Compute A5's figures.

    Args:
        events: By operation id, in the order written.
        succeeded_states: By contract digest: the states that count as success, as text; without them only what the
            events themselves say is compared.
        interval: Of the fixed-interval loop, ms.
    """
    told = {op.operation_id: tuple(events.get(op.operation_id, ())) for op in operations}
    ended = sum(op.status.is_end for op in operations)
    escalated = sum(op.status is Status.ESCALATED for op in operations)
    overdue = sum(_live(op) and now >= op.deadline_at for op in operations)
    settled = ended + escalated + overdue
    given, obeyed = _guidance(told.values())
    sent = [event for found in told.values() for event in found if event.event is EventName.SENT]
    asked = list(questions)
    waits = sorted(
        question.decided_at - question.asked_at
        for question in asked
        if question.decided_at is not None and question.decision != "superseded"
    )
    still_open = [now - question.asked_at for question in asked if question.decided_at is None]
    return Report(
        operations=len(operations),
        ended=ended,
        escalated=escalated,
        within_limits=len(operations) - settled,
        overdue=overdue,
        share_ended_or_escalated=_share(ended + escalated, settled),
        guidance_given=given,
        guidance_obeyed=obeyed,
        share_guidance_obeyed=_share(obeyed, given),
        requests=len(sent),
        requests_permitted=sum(not _not_permitted(event) for event in sent),
        fixed_interval_requests=sum(_fixed(op, told[op.operation_id], now, interval) for op in operations),
        decisions=len(waits),
        open_questions=len(still_open),
        median_time_to_decision=waits[(len(waits) - 1) // 2] if waits else None,
        longest_time_to_decision=waits[-1] if waits else None,
        oldest_open_question=max(still_open, default=None),
        extensions=tuple(_extensions(told)),
        contradictions=tuple(
            found
            for op in operations
            for found in _contradictions(
                op, told[op.operation_id], now, (succeeded_states or {}).get(op.contract_digest)
            )
        ),
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _live(op: Operation) -> bool:
    return not op.status.is_end and op.status is not Status.ESCALATED


def guided_until(event: AuditEvent) -> Instant | None:
    """When the guidance that *event* obeyed was over; None: it obeyed none.

    From the seconds in `retry_after`; without them from the planned poll, which lies at most 10 % of spread behind it.
    """
    if event.event not in _ANSWERS or event.delay_source not in _GUIDED or event.next_poll_at is None:
        return None
    found = _SECONDS.search(event.retry_after) if event.retry_after else None
    if found:
        return Instant(event.at + round(float(found.group(1)) * SECOND))
    return Instant(event.at + (event.next_poll_at - event.at) * 10 // 11)


def _sent_at(event: AuditEvent) -> Instant:
    return event.sent_at if event.sent_at is not None else event.at


def _guidance(stories: Iterable[Sequence[AuditEvent]]) -> tuple[int, int]:
    """Guidance given that a later request could obey or break, and how often it was obeyed."""
    given = obeyed = 0
    for found in stories:
        until: Instant | None = None
        for event in found:
            if event.event is EventName.SENT and until is not None:
                given += 1
                obeyed += _sent_at(event) >= until
                until = None
            until = guided_until(event) or until
    return given, obeyed


def _not_permitted(event: AuditEvent) -> str | None:
    """Why the request of a `sent` event went beyond what was authorised; None: it was permitted."""
    if event.requests_used is not None and event.max_requests is not None and event.requests_used > event.max_requests:
        return f"request {event.requests_used} was sent, {event.max_requests} were allowed"
    if event.deadline_at is not None and _sent_at(event) >= event.deadline_at:
        return f"a request was sent at {iso(_sent_at(event))}, the deadline was {iso(event.deadline_at)}"
    return None


def _fixed(op: Operation, found: Sequence[AuditEvent], now: Instant, interval: int) -> int:
    """A loop from the submission to the end: the last answer or stop; for a live wait until now."""
    last = now if _live(op) else max((event.at for event in found if event.event in _STOPS), default=op.submitted_at)
    return -(-max(0, min(last, op.deadline_at) - op.submitted_at) // interval)


def _extensions(told: Mapping[str, Sequence[AuditEvent]]) -> Iterable[Extension]:
    for operation_id, found in told.items():
        for event in found:
            if event.event is EventName.GRANTED and event.decision == "extend":
                yield Extension(operation_id, event.at, event.operator or "unknown", event.detail or "extend")


def _contradictions(
    op: Operation, found: Sequence[AuditEvent], now: Instant, succeeded: frozenset[str] | None
) -> Iterable[Contradiction]:
    name = op.operation_id
    if _live(op) and now >= op.deadline_at:
        yield Contradiction(name, op.deadline_at, f"still {op.status.value} after its deadline {iso(op.deadline_at)}")
    sends = [event for event in found if event.event is EventName.SENT]
    for event in sends:
        why = _not_permitted(event)
        if why:
            yield Contradiction(name, _sent_at(event), why)
    if found and found[0].event is EventName.SUBMITTED and len(sends) > op.status_requests_used:
        text = f"{len(sends)} requests were sent, {op.status_requests_used} are counted"
        yield Contradiction(name, sends[-1].at, text)
    stepped = False
    state: str | None = None
    for event in found:
        stepped = stepped or event.event is EventName.CLOCK_STEP
        state = event.state if event.event is EventName.POLLED and event.state is not None else state
        if event.event in _STOPS and event.reason:
            why = _unborne(event, stepped)
            if why is None and succeeded and state in succeeded and event.reason in _NO_FATE:
                why = f"stopped with {event.reason}, but the last parsed state was {state}, a success"
            if why:
                yield Contradiction(name, event.at, why)


def _unborne(event: AuditEvent, stepped: bool) -> str | None:
    """Why the event itself does not bear its stop reason out; None: it does, or it cannot be told."""
    reason = event.reason
    match reason:
        # the boot clock may have ended the wait before the wall clock did (T9): then a step was recorded
        case StopReason.DEADLINE_EXCEEDED if event.deadline_at is not None and not stepped:
            if event.at < event.deadline_at:
                return f"stopped with {reason} at {iso(event.at)}, before the deadline {iso(event.deadline_at)}"
        case StopReason.REQUEST_BUDGET_EXHAUSTED if event.requests_used is not None and event.max_requests is not None:
            if event.requests_used < event.max_requests:
                used = f"{event.requests_used} of {event.max_requests}"
                return f"stopped with {reason}, but only {used} requests were used"
        case StopReason.JOB_FAILED | StopReason.JOB_CANCELLED | StopReason.JOB_EXPIRED:
            if event.event is not EventName.POLLED:
                return f"stopped with {reason}, but no answer said so"
        case StopReason.AUTHORIZATION_DENIED if event.event is EventName.POLLED and event.http is not None:
            if event.http < 400:
                return f"stopped with {reason}, but the answer was HTTP {event.http}"
    return None


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
