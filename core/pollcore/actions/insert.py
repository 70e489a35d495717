"""A new record goes into the store, with everything that is already known of its job.

Job: one insertion: the end that the submission's answer already told, the question that stands at the beginning, the
events that say so. Must not know: how the record was made, flags, polling.
Source: spec B2, H1, S9, X7.
"""

from __future__ import annotations

import contextlib

import msgspec

from pollcore import decide, outcome
from pollcore.actions import first_use
from pollcore.actions.desk import Desk
from pollcore.contract import Contract
from pollcore.controller.questions import question_for
from pollcore.facts import (
    Decision,
    Escalate,
    Escalation,
    Moment,
    Observation,
    Operation,
    Status,
    StopReason,
    StoreUnusable,
    Succeed,
)
from pollcore.grants import open_question
from pollcore.ports import Write


async def insert(
    desk: Desk,
    contract: Contract,
    operation: Operation,
    warnings: tuple[str, ...],
    observed: Observation | None,
    now: Moment,
    resubmit: Write | None = None,
) -> Operation:
    """Store the record; one whose submission answer is already final is stored with its end (H1)."""
    decision: Decision | None = None
    if observed is not None and observed.verdict.is_final and operation.status is Status.WAITING:
        decision = decide.decide(
            operation, observed, policy=contract.policy, now=now, draw=desk.chance.draw(), counted=False
        )
    asked = operation.requests_left
    if operation.status is Status.ESCALATED:
        # B2: the requests asked for are new authority: the grant adds them, and its card shows them before -> after
        operation = msgspec.structs.replace(operation, max_status_requests=operation.status_requests_used)
    question = _question(desk, operation, asked, now)
    events = outcome.submitted_events(operation, now=now, warnings=warnings)
    if observed is not None and isinstance(decision, Succeed | Escalate):
        after = outcome.after_reading(
            operation,
            observed,
            operation.memory,
            decision,
            policy=contract.policy,
            now=now,
            counted=False,
        )
        events += outcome.reading_events(operation, after, observed, decision, now=now)
        operation = after
        if isinstance(decision, Escalate) and decision.asks:
            question = question_for(after, decision, now, desk.chance)
    first = await first_use.ask(desk, contract, operation, now) if operation.status is Status.WAITING else None
    if first is not None:
        operation, question, events = first.operation, first.question, (*events, *first.events)
    stored = await desk.store.submit(now, operation, contract.snapshot, events, question=question, resubmit=resubmit)
    if first is not None:
        # it is stored: a question that cannot be settled now stays asked
        with contextlib.suppress(StoreUnusable):
            if await first_use.settle(desk, contract.digest):
                # it was answered between the look and the insert
                return await desk.operation(stored.operation_id)
    return stored


def _question(desk: Desk, operation: Operation, checks: int, now: Moment) -> Escalation | None:
    """B2: a later operation for a job that was waited for before is new authority: it asks first."""
    if operation.status is not Status.ESCALATED:
        return None
    return open_question(
        operation,
        new_id=f"esc-{desk.chance.token(6)}",
        reason=StopReason.EXTENSION_REQUESTED,
        detail=operation.stop_detail.value if operation.stop_detail is not None else None,
        now=now,
        asked_by=operation.submitted.caller,
        checks=checks,
    )
