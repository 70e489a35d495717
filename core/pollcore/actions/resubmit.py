"""Resubmit: the original request again, by its idempotency key, as a new linked operation.

Job: store key and intent, send once, store the new operation and settle the old one in the same transaction.
Must not know: who granted it. Source: spec E6, O5, S7.
"""

from __future__ import annotations

import msgspec

from pollcore import grants, reading
from pollcore.actions import perform
from pollcore.actions.desk import Desk
from pollcore.actions.submit import store_resubmitted
from pollcore.contract import Contract, requests
from pollcore.escalation.approvals import RESUBMIT
from pollcore.facts import (
    ActionOutcome,
    ActionRecord,
    Answer,
    CredentialUnavailable,
    Escalation,
    EventName,
    Fault,
    Operation,
    Refused,
    StopDetail,
)
from pollcore.ports import Write


async def carry_out(
    desk: Desk,
    contract: Contract,
    operation: Operation,
    question: Escalation,
    write: Write,
    record: ActionRecord,
    call: str | None,
) -> Operation:
    """Commit the decision of *write* (grant used up, intent durable), send once, hand the new job's wait over.

    The grant is the approval of this one call too, where its card showed the credential's use (*call*).

    The same key goes again while no final answer was seen. After a final one the new key is the action's own id, so
    that it is stored before it is sent, and a job whose answer was lost can be looked for by it (E6).
    Returns the new operation; the old one, with its question asked anew, where none came of it.
    """
    final = operation.status.is_end
    key = record.action_id if final else operation.submitted.idempotency_key
    if key is None:
        raise Refused(f"{operation.operation_id}: the idempotency key of the first request is not known", code="no_key")
    # until a new operation is stored, an escalated one stays what it is, and asks: a crash shows as "outcome unknown"
    stays = msgspec.structs.replace(operation, version=write.after.version)
    meanwhile = None if final else _asked_again(desk, stays, question, StopDetail.OUTCOME_UNKNOWN.value)
    first = msgspec.structs.replace(write, after=stays, open_question=meanwhile)
    (change,) = await desk.store.commit(desk.clock.now(), (first,))
    brought: Answer | Fault | None = None
    try:
        request = requests.submit_request(contract, operation.submitted, key, operation.credential)
        secret = await perform.secret_for(desk, contract, operation, request, RESUBMIT, call)
        brought = await perform.send(desk, request, secret)
    except (Refused, CredentialUnavailable) as error:
        refused = ActionOutcome.REFUSED
        return await _nothing_came(desk, operation, question, meanwhile, record, None, refused, str(error))
    given = msgspec.structs.replace(
        operation.submitted, idempotency_key=key, resubmit_of=operation.operation_id, status_url=None, job_id=""
    )
    outcome, handover, detail = reading.read_submit(contract, given, brought, request.url)
    if handover is None:
        detail = detail or outcome.value
        return await _nothing_came(desk, operation, question, meanwhile, record, brought, outcome, detail)
    closing = None
    if not final:
        ended = msgspec.structs.replace(write.after, version=write.after.version + 1)
        settled = grants.supersede(meanwhile, desk.clock.now()) if meanwhile is not None else None
        closing = Write(after=ended, fence_change=change, release_lease=False, close_question=settled)
    try:
        new = await store_resubmitted(desk, contract, operation, given, handover, closing)
    except Refused as error:
        detail = f"the provider took it as job {handover.job_id}, which cannot be waited for: {error}"
        await _nothing_came(desk, operation, question, meanwhile, record, brought, ActionOutcome.DONE, detail)
        raise
    await perform.settle(
        desk, operation.operation_id, record, brought, ActionOutcome.DONE, new.operation_id, EventName.RESUBMITTED
    )
    return new


def _asked_again(desk: Desk, operation: Operation, question: Escalation, detail: str | None) -> Escalation:
    return grants.open_question(
        operation,
        new_id=f"esc-{desk.chance.token(6)}",
        reason=question.reason,
        detail=detail,
        now=desk.clock.now(),
        cause=question.cause,
    )


async def _nothing_came(
    desk: Desk,
    operation: Operation,
    question: Escalation,
    meanwhile: Escalation | None,
    record: ActionRecord,
    brought: Answer | Fault | None,
    outcome: ActionOutcome,
    detail: str,
) -> Operation:
    """No new operation: the outcome is recorded; an escalated operation asks on, of an outcome that is known anew."""
    again, closes = None, None
    if meanwhile is not None and outcome is not ActionOutcome.UNKNOWN:
        again = _asked_again(desk, operation, question, question.detail)
        closes = grants.supersede(meanwhile, desk.clock.now())
    told = EventName.RESUBMITTED
    await perform.settle(
        desk, operation.operation_id, record, brought, outcome, detail, told, asks=again, closes=closes
    )
    return await desk.operation(operation.operation_id)
