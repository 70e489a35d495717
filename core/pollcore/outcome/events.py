"""Audit events of the rules of waiting: one event a step, with every field of A1.

Job: (record before, record after, what happened) -> events. Must not know: sealing, chaining, how a story is worded.
Source: spec A1, A2, T3, S9.
"""

from __future__ import annotations

from typing import Any

from pollcore.decide import LimitPassed
from pollcore.facts import (
    BY_ELAPSED_TIME,
    AuditEvent,
    Decision,
    DelaySource,
    Escalate,
    EventName,
    Fault,
    FaultKind,
    Guidance,
    Moment,
    Observation,
    Operation,
    Status,
    StopReason,
    Succeed,
    Wait,
)

_GUIDED = frozenset({DelaySource.PROVIDER_RETRY_AFTER, DelaySource.PROVIDER_POLL_HINT})


def reading_events(
    before: Operation, after: Operation, reading: Observation | Fault, decision: Decision, *, now: Moment
) -> tuple[AuditEvent, ...]:
    """A1: one request's answer or fault, and what was decided about it.

    *planned_at* is when this request was planned, *sent_at* when it went out; *next_poll_at* and *delay_source* are
    those of the next one.
    """
    fields = _decided(before, after, decision)
    wanted = None if isinstance(reading, Fault) else reading.guidance
    fields["notes"] += _by_elapsed_time(after, decision, now, 0 if wanted is None else wanted.delay_ms)
    if isinstance(reading, Fault):
        lost = reading.kind is FaultKind.ANSWER_LOST
        fields["event"] = EventName.ANSWER_LOST if lost else EventName.FAULTED
        fields["fault"] = reading.kind.value
        if fields.get("text") is None and reading.text:
            fields["text"] = reading.text
    else:
        fields["event"] = EventName.POLLED
        fields["state"] = reading.state
        fields["http"] = reading.http.code
        fields["request_id"] = reading.http.request_id
        fields["sent_at"] = reading.http.sent_at
        fields["retry_after"] = _obeyed(reading.guidance, decision)
    return (AuditEvent(at=now.wall, planned_at=before.next_poll_at, state_before=before.last_known_state, **fields),)


def stop_events(before: Operation, after: Operation, stop: Escalate, *, now: Moment) -> tuple[AuditEvent, ...]:
    """A stop, or a question, without a request."""
    asked = stop.status is Status.AWAITING_APPROVAL
    fields = _decided(before, after, stop)
    fields["notes"] += _by_elapsed_time(after, stop, now)
    fields["event"] = EventName.QUESTION_OPENED if asked else EventName.STOPPED
    if asked:
        fields["decision"] = "ask"
    return (AuditEvent(at=now.wall, planned_at=before.next_poll_at, state_before=before.last_known_state, **fields),)


def schedule_events(before: Operation, after: Operation, wait: Wait, *, now: Moment) -> tuple[AuditEvent, ...]:
    """The next request was moved without one having been sent."""
    fields = _decided(before, after, wait)
    return (
        AuditEvent(
            at=now.wall,
            event=EventName.SCHEDULED,
            planned_at=before.next_poll_at,
            state_before=before.last_known_state,
            **fields,
        ),
    )


def limit_events(before: Operation, after: Operation, passed: LimitPassed, *, now: Moment) -> tuple[AuditEvent, ...]:
    """E7: a limit passed while a question was open; what can be chosen has changed."""
    what = "useful_until" if passed.reason is StopReason.USEFULNESS_ENDED else "the deadline"
    return (
        AuditEvent(
            at=now.wall,
            event=EventName.ESCALATED,
            state_before=before.last_known_state,
            decision="escalate",
            reason=None if before.stop_reason is None else before.stop_reason.value,
            detail=None if before.stop_detail is None else before.stop_detail.value,
            notes=(f"{what} passed while the question was open",),
            **_limits(after),
        ),
    )


def submitted_events(operation: Operation, *, now: Moment, warnings: tuple[str, ...] = ()) -> tuple[AuditEvent, ...]:
    """A1: a submission, who handed it over (the name it gave itself, OS user), its limits, and what was warned of."""
    given = operation.submitted
    stopped = operation.stop_reason
    decision = "wait" if operation.status is Status.WAITING else "escalate"
    if operation.status.is_end:
        decision = "succeed" if operation.status is Status.SUCCEEDED else "stop"
    return (
        AuditEvent(
            at=now.wall,
            event=EventName.SUBMITTED,
            state=operation.last_known_state,
            next_poll_at=operation.next_poll_at,
            delay_source=operation.delay_source,
            decision=decision,
            reason=None if stopped is None else stopped.value,
            detail=None if operation.stop_detail is None else operation.stop_detail.value,
            caller=f"{given.caller or 'unnamed'} (OS user {given.os_user or 'unknown'})",
            text=given.job_id,
            notes=warnings,
            **_limits(operation),
        ),
    )


# --- parts ------------------------------------------------------------------------------------------------------------


def _limits(operation: Operation) -> dict[str, Any]:
    return {
        "operation_id": operation.operation_id,
        "requests_used": operation.status_requests_used,
        "max_requests": operation.max_status_requests,
        "deadline_at": operation.deadline_at,
    }


def _decided(before: Operation, after: Operation, decision: Decision) -> dict[str, Any]:
    """Decision, plan and limits. `stop`: an end that asks nothing (a cancel that an operator granted)."""
    fields = _limits(after)
    fields["notes"] = decision.notes
    if isinstance(decision, Wait):
        fields["decision"] = "wait"
        fields["next_poll_at"] = decision.next_poll_at
        fields["delay_source"] = decision.source
    elif isinstance(decision, Succeed):
        fields["decision"] = "succeed"
        if decision.result.qualifiers:
            fields["detail"] = ", ".join(decision.result.qualifiers)
    else:
        fields["decision"] = "escalate" if decision.asks else "stop"
        fields["reason"] = decision.reason.value
        fields["detail"] = None if decision.detail is None else decision.detail.value
        fields["text"] = decision.explanation
        fields["delay_source"] = before.delay_source
    return fields


def _by_elapsed_time(after: Operation, decision: Decision, now: Moment, wanted_ms: int = 0) -> tuple[str, ...]:
    """T9: a deadline that came, or comes before guidance of *wanted_ms* ends, by the boot clock, while the wall clock,
    set back, says that it lies ahead."""
    if not isinstance(decision, Escalate):
        return ()
    ahead = {StopReason.DEADLINE_EXCEEDED: 0, StopReason.GUIDANCE_BEYOND_DEADLINE: wanted_ms}.get(decision.reason)
    return (BY_ELAPSED_TIME,) if ahead is not None and now.wall + ahead < after.deadline_at else ()


def _obeyed(guidance: Guidance | None, decision: Decision) -> str | None:
    """`Retry-After 120`: the guidance that the wait obeys, or that no request can obey in time."""
    if guidance is None:
        return None
    if isinstance(decision, Wait) and decision.source not in _GUIDED:
        return None
    if isinstance(decision, Escalate) and decision.reason not in (
        StopReason.GUIDANCE_BEYOND_DEADLINE,
        StopReason.USEFULNESS_ENDED,
        StopReason.RATE_LIMITED,
        StopReason.PROVIDER_FAILURE,
    ):
        return None
    if isinstance(decision, Succeed):
        return None
    return f"{guidance.name} {guidance.delay_ms / 1000:.12g}"
