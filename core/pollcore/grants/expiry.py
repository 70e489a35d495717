"""Questions about the use of a credential that end without an answer: expired, or not needed any more.

Job: (operation, question) -> what is written of it. Must not know: clocks of consoles, who saw what, storage.
Source: spec G7, E7, E table (`call_approval`: an expiry asks anew until the deadline).
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore.facts import (
    AuditEvent,
    Escalation,
    EventName,
    Instant,
    Moment,
    Operation,
    Status,
)
from pollcore.grants.applied import Applied, asked_event
from pollcore.grants.asking import open_question, raised

EXPIRED: Final = "expired"
"""`Escalation.decision` of a question that nobody answered in its time; no denial."""
REST_MS: Final = 1_000
"""Before a question that was taken back could be asked anew: whatever two workers think of it, they do not race."""
UNSEEN: Final = "unseen"
NOT_ANSWERED: Final = "seen and not answered"


def expire(operation: Operation, question: Escalation, *, now: Moment, new_id: str) -> Applied:
    """G7: its time is over. A wait that still wants the call asks anew; a command that asked (a fetch) asks by itself.

    Nothing is spent, the deadline ran on, the operation keeps its status.
    """
    how = UNSEEN if question.seen_at is None else NOT_ANSWERED
    after = raised(operation, now)
    closed = msgspec.structs.replace(question, decided_at=now.wall, decision=EXPIRED, decision_text=how)
    told = AuditEvent(
        at=now.wall,
        event=EventName.APPROVAL_EXPIRED,
        operation_id=operation.operation_id,
        requests_used=operation.status_requests_used,
        max_requests=operation.max_status_requests,
        deadline_at=operation.deadline_at,
        decision="expire",
        reason=question.reason.value,
        detail=how,
    )
    if operation.status is not Status.AWAITING_APPROVAL:
        return Applied(operation=after, closed=closed, events=(told,), settled=True)
    opened = open_question(
        after,
        new_id=new_id,
        reason=question.reason,
        detail=question.detail,
        now=now,
        cause=question.cause,
        asked_by=question.asked_by,
    )
    events = (told, asked_event(after, opened, now, EventName.QUESTION_OPENED))
    return Applied(operation=after, closed=closed, opened=opened, events=events)


def take_back(operation: Operation, question: Escalation, *, now: Moment, why: str) -> Applied:
    """The question fits no more (another mode, a session that covers it, its run ended): the wait looks again.

    Nothing is given by it: what is due is checked from the beginning, and asks whatever it then needs.
    """
    planned = max(operation.next_poll_at or 0, now.wall + REST_MS)
    after = raised(operation, now, status=Status.WAITING, next_poll_at=Instant(planned))
    closed = msgspec.structs.replace(question, decided_at=now.wall, decision="superseded", decision_text=why)
    told = AuditEvent(
        at=now.wall,
        event=EventName.SCHEDULED,
        operation_id=operation.operation_id,
        state=operation.last_known_state,
        next_poll_at=after.next_poll_at,
        delay_source=after.delay_source,
        requests_used=operation.status_requests_used,
        max_requests=operation.max_status_requests,
        deadline_at=operation.deadline_at,
        decision="wait",
        detail=f"the question {question.reason.value} is taken back: {why}",
    )
    return Applied(operation=after, closed=closed, events=(told,), settled=True)
