"""Opening questions: by an agent, by an operator, at the end of a hold, by a stop.

Job: questions with their bounds, and who may ask when. Must not know: what an answer does.
Source: spec E7, G5, design.md (`request-extension`); nobody here gives anything.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore import schedule
from pollcore.escalation import deadline_passed
from pollcore.escalation.approvals import FETCH
from pollcore.facts import (
    AuditEvent,
    Escalation,
    EventName,
    Instant,
    Moment,
    Operation,
    Operator,
    Policy,
    Refused,
    Stale,
    Status,
    StopReason,
    stop_in_force,
)
from pollcore.grants.applied import Applied, asked_event

_PLAN: Final = frozenset({"status", "next_poll_at", "hold_until"})
"""Whoever changes limits (a grant) sets a plan as well, and the operation has the new limits already."""
MAX_TEXT: Final = 1_000
"""Characters of a reason text that is kept."""


def open_question(
    operation: Operation,
    *,
    new_id: str,
    reason: StopReason,
    detail: str | None,
    now: Moment,
    cause: str | None = None,
    asked_by: str | None = None,
    because: str | None = None,
    minutes: int = 0,
    checks: int = 0,
) -> Escalation:
    """The question that *operation* (as it will be stored, version raised) raises; with a cause of its own if none."""
    return Escalation(
        escalation_id=new_id,
        operation_id=operation.operation_id,
        reason=reason,
        detail=detail,
        cause=cause or f"{reason.value}:{operation.operation_id}",
        asked_at=now.wall,
        version=operation.version,
        asked_by=asked_by,
        because=because[:MAX_TEXT] if because else because,
        minutes=minutes,
        checks=checks,
    )


def supersede(question: Escalation, now: Moment) -> Escalation:
    """E7: a real stop takes the open question over; it is settled without a decision of a human."""
    return msgspec.structs.replace(question, decided_at=now.wall, decision="superseded")


def raised(operation: Operation, now: Moment, **changes: object) -> Operation:
    """*operation* with *changes*, version raised, and what is due next set anew where status or plan changed."""
    # nothing reads the clocks of an end; they stay as they were when it ended
    before = operation if operation.status.is_end else schedule.reanchor(operation, now)
    after = msgspec.structs.replace(before, **changes, version=operation.version + 1)
    if before.due_boot is not None and not changes.keys() & _PLAN:
        # T9: what was planned stays as it lies on the boot clock; a step of the wall clock since must not move it
        return after
    return msgspec.structs.replace(after, due_boot=schedule.due_boot(after, now))


def request_extension(
    operation: Operation,
    question: Escalation | None,
    *,
    minutes: int,
    checks: int,
    because: str,
    by: str,
    policy: Policy,
    now: Moment,
    new_id: str,
) -> Applied:
    """An agent asks for one of the contract's sizes; only a question comes of it (G5).

    Raises:
        Refused: not a size of the contract (names them), `max_extensions` used, an end, a stop or a question is open.
    """
    if operation.status.is_end:
        raise Refused(f"{operation.operation_id} has ended ({operation.status.value}): nothing can be extended")
    if question is not None and question.decided_at is None:
        raise Refused(
            f"{operation.operation_id}: the question {question.reason.value} is open; an operator decides it first"
        )
    if operation.status not in (Status.WAITING, Status.HELD):
        raise Refused(
            f"{operation.operation_id} is {operation.status.value}: an operator decides its open question first"
        )
    if deadline_passed(operation, now):
        raise Refused(f"{operation.operation_id}: the deadline has passed, the stop's own question offers the sizes")
    if not any((size.minutes, size.checks) == (minutes, checks) for size in policy.extend):
        sizes = ", ".join(f"{size.minutes} min / {size.checks} checks" for size in policy.extend) or "none"
        raise Refused(f"{minutes} min / {checks} checks is no size of the contract (limits.extend); it lists: {sizes}")
    if operation.extensions_used >= policy.max_extensions:
        raise Refused(f"{operation.operation_id}: all {policy.max_extensions} extensions are used (max_extensions)")
    after = raised(operation, now)
    opened = open_question(
        after,
        new_id=new_id,
        reason=StopReason.EXTENSION_REQUESTED,
        detail=None,
        now=now,
        asked_by=by,
        because=because,
        minutes=minutes,
        checks=checks,
    )
    return Applied(
        operation=after, opened=opened, events=(asked_event(after, opened, now, EventName.EXTENSION_REQUESTED),)
    )


def ask_for_fetch(operation: Operation, question: Escalation | None, *, by: str, now: Moment, new_id: str) -> Applied:
    """G7: a command wants to fetch the result with a credential that is asked for each call.

    Raises:
        Refused: a question is open already (that one is answered first), or there is nothing to fetch.
    """
    if operation.status is not Status.SUCCEEDED:
        raise Refused(f"{operation.operation_id} is {operation.status.value}: only a success has a result")
    if question is not None and question.decided_at is None:
        raise Refused(f"{operation.operation_id}: the question {question.reason.value} is open; answer that one")
    after = raised(operation, now)
    opened = open_question(after, new_id=new_id, reason=StopReason.CALL_APPROVAL, detail=FETCH, now=now, asked_by=by)
    return Applied(operation=after, opened=opened, events=(asked_event(after, opened, now, EventName.QUESTION_OPENED),))


def open_operator_question(
    operation: Operation, question: Escalation | None, *, operator: Operator | str, now: Moment, new_id: str
) -> Applied:
    """E7: an operator opens the question on a running operation; the wait goes on.

    Raises:
        Refused: the operation does not wait, or a question is already open (that one is answered instead).
    """
    if question is not None and question.decided_at is None:
        raise Refused(f"{operation.operation_id}: the question {question.reason.value} is open; answer that one")
    if operation.status not in (Status.WAITING, Status.HELD):
        status = operation.status.value
        raise Refused(f"{operation.operation_id} is {status}: only a running wait has an operator's question")
    after = raised(operation, now)
    opened = open_question(
        after, new_id=new_id, reason=StopReason.OPERATOR_REQUEST, detail=None, now=now, asked_by=str(operator)
    )
    return Applied(operation=after, opened=opened, events=(asked_event(after, opened, now, EventName.QUESTION_OPENED),))


def end_of_hold(
    operation: Operation,
    question: Escalation | None,
    *,
    now: Moment,
    new_id: str,
    by: str | None = None,
    because: str | None = None,
    decision: str = "superseded",
) -> Applied:
    """A hold is over: a held stop asks its question anew, a held wait goes on inside its limits.

    The question that was open while it was held is settled with it. Called by the loop when `hold_until` has come, and
    for the choice end_hold.

    Raises:
        Stale: the operation is not held.
    """
    if operation.status is not Status.HELD:
        raise Stale(f"{operation.operation_id} is not held any more; nothing was done")
    closed = None
    if question is not None and question.decided_at is None:
        closed = msgspec.structs.replace(
            question, decided_at=now.wall, decision=decision, operator=by, decision_text=because
        )
    stopped = stop_in_force(operation)
    ended = AuditEvent(
        at=now.wall,
        event=EventName.HOLD_ENDED,
        operation_id=operation.operation_id,
        state=operation.last_known_state,
        next_poll_at=None if stopped else operation.next_poll_at,
        delay_source=None if stopped else operation.delay_source,
        requests_used=operation.status_requests_used,
        max_requests=operation.max_status_requests,
        deadline_at=operation.deadline_at,
        decision=decision if by else None,
        reason=stopped.value if stopped else None,
        operator=by,
        text=because,
    )
    if stopped is None:
        after = raised(operation, now, status=Status.WAITING, hold_until=None, **_due(operation, now))
        return Applied(operation=after, closed=closed, events=(ended,), settled=closed is not None)
    after = raised(operation, now, status=Status.ESCALATED, hold_until=None, next_poll_at=None, delay_source=None)
    # the hold's question carried the stop's cause, so that held stops join one card again (E10)
    own = f"{StopReason.OPERATOR_REQUEST.value}:"
    cause = question.cause if question is not None and not question.cause.startswith(own) else None
    opened = open_question(
        after,
        new_id=new_id,
        reason=stopped,
        detail=operation.stop_detail.value if operation.stop_detail else None,
        now=now,
        cause=cause,
    )
    return Applied(
        operation=after,
        closed=closed,
        opened=opened,
        events=(ended, asked_event(after, opened, now, EventName.ESCALATED)),
    )


def _due(operation: Operation, now: Moment) -> dict[str, Instant | None]:
    """A missed time is not made up for (T6): one request, at its time, after open guidance, now at the earliest."""
    planned = max(operation.next_poll_at or 0, operation.guidance_until or 0)
    return {"next_poll_at": Instant(max(planned, now.wall))}
