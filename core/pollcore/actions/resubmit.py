"""Resubmit: the original request again, by its idempotency key, as a new linked operation.

Job: store key and intent, send once, store the new operation and settle the old one in the same transaction, whatever
happened to the old one while the request was out. Must not know: who granted it. Source: spec E6, E7, O5, S7.
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
    AuditEvent,
    CredentialUnavailable,
    Escalation,
    EventName,
    Fault,
    Operation,
    Refused,
    Stale,
    Status,
    StopDetail,
    StoreUnusable,
    Submitted,
)
from pollcore.ports import Write


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """A resubmission whose grant is used up and whose intent is stored."""

    contract: Contract
    operation: Operation
    """As it was shown."""
    question: Escalation
    """The one that the grant decided."""
    meanwhile: Escalation | None
    """What an escalated operation asks until something came of it; None: it has ended."""
    record: ActionRecord
    key: str
    call: str | None


async def begin(
    desk: Desk,
    contract: Contract,
    operation: Operation,
    question: Escalation,
    write: Write,
    record: ActionRecord,
    call: str | None,
) -> Begun:
    """Commit the decision of *write*: grant used up, intent durable. Raises Refused, Stale: nothing was done.

    The grant is the approval of this one call too, where its card showed the credential's use (*call*).

    The same key goes again while no final answer was seen. After a final one the new key is the action's own id, so
    that it is stored before it is sent, and a job whose answer was lost can be looked for by it (E6).
    """
    final = operation.status.is_end
    key = record.action_id if final else operation.submitted.idempotency_key
    if key is None:
        raise Refused(f"{operation.operation_id}: the idempotency key of the first request is not known", code="no_key")
    # until a new operation is stored, an escalated one stays what it is, and asks: a crash shows as "outcome unknown"
    stays = msgspec.structs.replace(operation, version=write.after.version)
    meanwhile = None if final else _asked_again(desk, stays, question, StopDetail.OUTCOME_UNKNOWN.value)
    await desk.store.commit(desk.clock.now(), (msgspec.structs.replace(write, after=stays, open_question=meanwhile),))
    return Begun(
        contract=contract,
        operation=stays,
        question=question,
        meanwhile=meanwhile,
        record=record,
        key=key,
        call=call,
    )


async def carry_out(desk: Desk, begun: Begun) -> Operation:
    """Send once, and hand the new job's wait over.

    Returns the new operation; the old one, with its question asked anew, where none came of it.

    Raises:
        Refused: the provider took it as a job that cannot be waited for; says which, and that it was sent.
        StoreUnusable: what came of it cannot be recorded; never Stale.
    """
    contract, operation = begun.contract, begun.operation
    try:
        request = requests.submit_request(contract, operation.submitted, begun.key, operation.credential)
        secret = await perform.secret_for(desk, contract, operation, request, RESUBMIT, begun.call)
    except (Refused, CredentialUnavailable) as error:
        return await _nothing_came(desk, begun, None, ActionOutcome.REFUSED, str(error))
    brought = await perform.send(desk, request, secret)
    given = msgspec.structs.replace(
        operation.submitted, idempotency_key=begun.key, resubmit_of=operation.operation_id, status_url=None, job_id=""
    )
    try:
        outcome, handover, detail = reading.read_submit(contract, given, brought, request.url)
    except Exception as error:
        outcome, detail = perform.unread(error)
        handover = None
    if handover is None:
        return await _nothing_came(desk, begun, brought, outcome, detail or outcome.value)
    return await _handed_over(desk, begun, brought, given, handover)


async def _handed_over(
    desk: Desk, begun: Begun, brought: Answer | Fault, given: Submitted, handover: reading.Handover
) -> Operation:
    """The new operation, in one transaction with the outcome and with what becomes of the old one."""
    new_id, took = f"op-{desk.chance.token(6)}", f"the provider took it as job {handover.job_id}"
    done, told = perform.answered(desk, begun.record, brought, ActionOutcome.DONE, new_id, EventName.RESUBMITTED)
    last: Stale | StoreUnusable = Stale("")
    for _ in range(perform.TRIES):
        try:
            settles = await _settled(desk, begun, done, told)
            return await store_resubmitted(desk, begun.contract, begun.operation, given, handover, new_id, settles)
        except Stale:
            continue  # a limit passed, or somebody decided: the job is there all the same
        except StoreUnusable as error:
            last = error
            break
        except Refused as error:
            detail = f"{took}, which cannot be waited for: {error}"
            await _nothing_came(desk, begun, brought, ActionOutcome.DONE, detail)
            raise Refused(detail, code=error.code, **error.details) from None
    raise perform.unrecorded(begun.record, f"that {took}", last)


async def _settled(desk: Desk, begun: Begun, done: ActionRecord, told: AuditEvent) -> Write:
    """The write on the old operation as it is by now: closed while it still asks what became of this resubmission. What
    somebody decided meanwhile stands, and so does an end (E6)."""
    now_is, closes = await desk.operation(begun.operation.operation_id), None
    after = now_is
    if begun.meanwhile is not None and await _still_asks(desk, begun.meanwhile):
        closes = grants.supersede(begun.meanwhile, desk.clock.now())
        after = msgspec.structs.replace(
            now_is,
            status=Status.CLOSED,
            version=now_is.version + 1,
            check_once=False,
            next_poll_at=None,
            delay_source=None,
            hold_until=None,
            due_boot=None,
        )
    return Write(
        after=perform.without_unknown(after, done.kind),
        fence_change=now_is.change,
        release_lease=False,
        events=(told,),
        action=done,
        close_question=closes,
    )


async def _still_asks(desk: Desk, asked: Escalation) -> bool:
    question = await desk.question(asked.operation_id)
    return question is not None and question.escalation_id == asked.escalation_id


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
    desk: Desk, begun: Begun, brought: Answer | Fault | None, outcome: ActionOutcome, detail: str
) -> Operation:
    """No new operation: the outcome is recorded; an escalated operation asks on, of an outcome that is known anew."""
    operation, question, again, closes = begun.operation, begun.question, None, None
    if begun.meanwhile is not None and outcome is not ActionOutcome.UNKNOWN:
        again = _asked_again(desk, operation, question, question.detail)
        closes = grants.supersede(begun.meanwhile, desk.clock.now())
    told = EventName.RESUBMITTED
    await perform.settle(
        desk, operation.operation_id, begun.record, brought, outcome, detail, told, asks=again, closes=closes
    )
    return await desk.operation(operation.operation_id)
