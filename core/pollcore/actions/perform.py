"""Requests that are no status requests: cancel, fetch, resubmit; each with a record of its own.

Job: intent durable before the effect, one request, outcome recorded; `unknown` where the answer was lost; never
repeated by itself (O5), never told as if nothing had been done. Must not know: who may choose them (that is the gate),
when to poll.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore import reading
from pollcore.actions import uses
from pollcore.actions.desk import Desk
from pollcore.actions.retrying import until_taken
from pollcore.contract import Contract, normalise_origin, requests
from pollcore.escalation import Approval, approval_needed, call_digest
from pollcore.escalation.approvals import stricter
from pollcore.facts import (
    FORCE,
    ActionKind,
    ActionOutcome,
    ActionRecord,
    Answer,
    AuditEvent,
    CredentialUnavailable,
    Escalation,
    EventName,
    Fault,
    FaultKind,
    Instant,
    Operation,
    Refused,
    Request,
    Secret,
    Stale,
    StoreUnusable,
)
from pollcore.ports import Write

TRIES: Final = 25
"""How often an outcome is written again when the operation moved meanwhile (the poller goes on beside an action)."""
CANCELS: Final = frozenset({ActionKind.CANCEL, ActionKind.FORCE_CANCEL})


async def secret_for(
    desk: Desk, contract: Contract, operation: Operation, request: Request, purpose: str, call: str | None
) -> Secret | None:
    """The secret of *request*'s slot, for a pinned origin.

    Args:
        call: What was granted for it (`Choice.call`, or the leave of a fetch): the digest of this very request. None:
            nothing was; then only a standing credential is used (G2, G6).

    Raises CredentialUnavailable, Refused (not pinned, or leave is needed and this is not what it was given for).
    """
    if request.slot is None:
        return None
    credentials = desk.credentials()
    info = await credentials.info(request.slot.credential)
    origin = normalise_origin(request.url)
    if origin not in info.origins:
        raise Refused(f"credential {info.name} is not pinned to {origin}", code="origin_not_pinned")
    needed = approval_needed(info.mode, contract.policy.least_mode, None, purpose)
    if needed is not Approval.NONE:
        shown = uses.request_for(contract, operation, purpose)
        if call is None or call != call_digest(operation, shown, purpose=purpose, binding=info.binding):
            raise Refused(
                f"credential {info.name} is asked for each call ({stricter(info.mode, contract.policy.least_mode)}), "
                "and this request is not the one that was approved; nothing was sent",
                code="approval_needed",
            )
    return (await credentials.read(info.name, info)).secret


async def send(desk: Desk, request: Request, secret: Secret | None) -> Answer | Fault:
    """One request, one bounded answer. A failure of ours is an answer that was lost: the request may have left."""
    try:
        return await desk.transport().send(request, secret)
    except Exception as error:
        why = f"pollconsole could not send this request ({type(error).__name__})"
        return Fault(FaultKind.ANSWER_LOST, True, desk.clock.now().wall, why)


def unread(error: Exception) -> tuple[ActionOutcome, str]:
    """Outcome and detail of an answer that came and that we failed to read."""
    return ActionOutcome.UNKNOWN, f"pollconsole could not read this answer ({type(error).__name__})"


async def cancel(
    desk: Desk, contract: Contract, operation: Operation, record: ActionRecord, call: str | None
) -> ActionRecord:
    """Carry out a granted cancel, or force-cancel (R35), whose intent is stored: *record* says which of them. A cancel
    that was sent is not a cancelled job (E5).

    The grant of the cancel is the approval of this one call too, where its card showed the credential's use (*call*).
    """
    step, event = None, EventName.CANCEL_ANSWERED
    if record.kind is ActionKind.FORCE_CANCEL:
        step, event = FORCE, EventName.FORCE_CANCEL_ANSWERED
    try:
        request = requests.cancel_request(contract, operation, operation.credential, step)
        secret = await secret_for(desk, contract, operation, request, record.kind.value, call)
    except (Refused, CredentialUnavailable) as error:
        return await settle(desk, operation.operation_id, record, None, ActionOutcome.REFUSED, str(error), event)
    brought = await send(desk, request, secret)
    detail: str | None
    try:
        outcome, detail = reading.read_cancel(contract, brought, step)
    except Exception as error:
        outcome, detail = unread(error)
    return await settle(desk, operation.operation_id, record, brought, outcome, detail, event)


def asked_to_cancel(operation: Operation, at: Instant | None) -> Operation:
    """H4: later answers are read as those of a job that we asked to cancel *at*. It is stored with the intent: the
    cancel may take effect before its own answer is recorded, and that answer may never come."""
    known = msgspec.structs.replace(operation.memory, cancel_sent_at=at)
    return msgspec.structs.replace(operation, memory=known)


async def _taken_back(desk: Desk, operation: Operation, refused: ActionRecord) -> Operation:
    """*operation* without the cancel that was refused: what an earlier one asked for stands."""
    left = [
        one.at
        for one in await desk.store.actions(operation.operation_id)
        if one.kind in CANCELS and one.outcome is not ActionOutcome.REFUSED and one.action_id != refused.action_id
    ]
    return asked_to_cancel(operation, max(left, default=None))


def answered(
    desk: Desk,
    record: ActionRecord,
    brought: Answer | Fault | None,
    outcome: ActionOutcome,
    detail: str | None,
    event: EventName,
    by: str | None = None,
) -> tuple[ActionRecord, AuditEvent]:
    """The record of an action with its outcome, and the event that tells it."""
    now = desk.clock.now()
    done = msgspec.structs.replace(
        record,
        outcome=outcome,
        answered_at=now.wall,
        http_code=brought.status if isinstance(brought, Answer) else None,
        detail=detail,
    )
    told = AuditEvent(
        at=now.wall,
        event=event,
        operation_id=record.operation_id,
        http=done.http_code,
        fault=brought.kind.value if isinstance(brought, Fault) else None,
        decision=outcome.value,
        detail=detail,
        caller=by,
    )
    return done, told


async def settle(
    desk: Desk,
    operation_id: str,
    record: ActionRecord,
    brought: Answer | Fault | None,
    outcome: ActionOutcome,
    detail: str | None,
    event: EventName,
    by: str | None = None,
    asks: Escalation | None = None,
    closes: Escalation | None = None,
) -> ActionRecord:
    """Write down how an action ended, beside whatever the poller recorded meanwhile.

    *asks*: a question that opens, in place of *closes*; neither, where that one was decided meanwhile.

    Raises StoreUnusable, never Stale: it cannot be written, the intent stands, and that is an unknown outcome (O5).
    """
    done, told = answered(desk, record, brought, outcome, detail, event, by)

    async def settled() -> tuple[Write, ActionRecord]:
        operation = await desk.operation(operation_id)
        opened, closed = None if asks is None else msgspec.structs.replace(asks, version=operation.version), closes
        if closed is not None:
            current = await desk.question(operation_id)
            if current is None or current.escalation_id != closed.escalation_id:
                opened = closed = None
        after = operation
        if record.kind in CANCELS and outcome is ActionOutcome.REFUSED and not operation.status.is_end:
            after = await _taken_back(desk, operation, record)
        if outcome is not ActionOutcome.UNKNOWN:
            after = without_unknown(after, record.kind)
        write = Write(
            after=after,
            fence_change=operation.change,
            release_lease=False,
            events=(told,),
            action=done,
            open_question=opened,
            close_question=closed,
        )
        return write, done

    try:
        return await until_taken(desk, TRIES, settled)
    except (Stale, StoreUnusable) as error:
        raise unrecorded(record, f"its outcome, {outcome.value}", error) from None


def unrecorded(record: ActionRecord, what: str, why: Stale | StoreUnusable) -> StoreUnusable:
    """What is told of an action that was carried out and that the store does not know the end of."""
    reason = "the record kept moving" if isinstance(why, Stale) else str(why)
    return StoreUnusable(
        f"{record.operation_id}: {record.kind.value} {record.action_id} was carried out; {what}, could not be recorded "
        f"({reason}): it is shown as unknown, and is not repeated by itself: `pollconsole show {record.operation_id}`"
    )


def without_unknown(operation: Operation, kind: ActionKind) -> Operation:
    """*operation* once an action of *kind* has its answer: what an earlier one came to is not what is told now."""
    left = tuple(one for one in operation.memory.unknown_actions if one != kind)
    if left == operation.memory.unknown_actions:
        return operation
    return msgspec.structs.replace(operation, memory=msgspec.structs.replace(operation.memory, unknown_actions=left))


def intended(desk: Desk, operation: Operation, kind: ActionKind, grant_id: str | None) -> ActionRecord:
    """The intent of an action, to be stored before its request may leave."""
    return ActionRecord(
        action_id=f"act-{desk.chance.token(6)}",
        operation_id=operation.operation_id,
        kind=kind,
        outcome=ActionOutcome.INTENDED,
        at=desk.clock.now().wall,
        grant_id=grant_id,
    )
