"""Resubmit: the original request again, by its idempotency key, as a new linked operation.

Job: store key and intent, send once, store the new operation and settle the old one in the same transaction.
Must not know: who granted it. Source: spec E6, O5, S7.
"""

from __future__ import annotations

import msgspec

from pollcore import reading
from pollcore.actions import perform
from pollcore.actions.desk import Desk
from pollcore.actions.submit import store_resubmitted
from pollcore.contract import Contract, requests
from pollcore.facts import (
    ActionOutcome,
    ActionRecord,
    Answer,
    CredentialUnavailable,
    EventName,
    Operation,
    Refused,
)
from pollcore.ports import Write


async def carry_out(
    desk: Desk, contract: Contract, operation: Operation, write: Write, record: ActionRecord
) -> Operation:
    """Commit *write* (grant used up, intent durable), send the submission once, hand the new job's wait over.

    The same key goes again while no final answer was seen; after a final one a new key is made first (E6).
    Returns the new operation; the old one where the provider's answer was refused or lost.
    """
    final = operation.status.is_end
    key = f"{operation.operation_id}-{desk.chance.token(8)}" if final else operation.submitted.idempotency_key
    if key is None:
        key = operation.operation_id
    await desk.store.commit(desk.clock.now(), (write,))
    brought = None
    try:
        request = requests.submit_request(contract, operation.submitted, key, operation.credential)
        brought = await perform.send(desk, request, await perform.secret_for(desk, request))
    except (Refused, CredentialUnavailable) as error:
        await perform.settle(
            desk,
            operation.operation_id,
            record,
            None,
            ActionOutcome.REFUSED,
            str(error),
            EventName.RESUBMITTED,
        )
        return await desk.operation(operation.operation_id)
    if not isinstance(brought, Answer):
        outcome = ActionOutcome.UNKNOWN if brought.may_have_been_sent else ActionOutcome.REFUSED
        await perform.settle(
            desk, operation.operation_id, record, brought, outcome, brought.kind.value, EventName.RESUBMITTED
        )
        return await desk.operation(operation.operation_id)
    given = msgspec.structs.replace(
        operation.submitted, idempotency_key=key, resubmit_of=operation.operation_id, status_url=None, job_id=""
    )
    try:
        handover = reading.from_response(contract, given, brought, request.url)
    except Refused as error:
        await perform.settle(
            desk,
            operation.operation_id,
            record,
            brought,
            ActionOutcome.REFUSED,
            str(error),
            EventName.RESUBMITTED,
        )
        return await desk.operation(operation.operation_id)
    new = await store_resubmitted(desk, contract, operation, handover)
    await perform.settle(
        desk,
        operation.operation_id,
        record,
        brought,
        ActionOutcome.DONE,
        new.operation_id,
        EventName.RESUBMITTED,
    )
    return new
