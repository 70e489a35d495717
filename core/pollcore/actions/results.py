"""What a success permits: the result pointer, and fetching it once.

Job: reveal and fetch, each with a record of its own (O5). Must not know: polling; what is in the result.
Source: spec S4, O5, K4; design.md `result`, `fetch`.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, Final

import msgspec

from pollcore import grants
from pollcore.actions import page_by_page, perform
from pollcore.actions.desk import Desk
from pollcore.actions.retrying import until_taken
from pollcore.contract import Contract, requests
from pollcore.escalation import Approval, approval_needed, call_digest
from pollcore.escalation.approvals import FETCH, grant_is_usable
from pollcore.facts import (
    ActionKind,
    ActionOutcome,
    ActionRecord,
    Answer,
    AuditEvent,
    CallGrant,
    CredentialUnavailable,
    EventName,
    Fault,
    FaultKind,
    Operation,
    Refused,
    Request,
    ResultPointer,
    SealedUnreadable,
    Secret,
    Stale,
    Status,
    StopReason,
)
from pollcore.ports import Write

SEALED: Final = "sealed:unreadable"
"""The field that a store puts in place of a result that it cannot open now; it is no value."""
OK: Final = frozenset({200, 203, 206})
TRIES: Final = 5
"""How often a reveal, or the question of a fetch, is tried on the fresh record while others write it."""


async def reveal(desk: Desk, operation_id: str, by: str) -> ResultPointer:
    """The result pointer, whole; the reveal is recorded. Raises Refused: no result; SealedUnreadable: see `pointer`."""

    async def revealed() -> tuple[Write, ResultPointer]:
        operation = await desk.operation(operation_id)
        result = pointer(operation)
        event = AuditEvent(
            at=desk.clock.now().wall,
            event=EventName.RESULT_REVEALED,
            operation_id=operation_id,
            caller=by,
            detail=", ".join(sorted(result.fields)),
        )
        return Write(after=operation, fence_change=operation.change, release_lease=False, events=(event,)), result

    return await until_taken(desk, TRIES, revealed)


def pointer(operation: Operation) -> ResultPointer:
    """The result pointer of a success.

    Raises:
        Refused: it is no success; says what it is instead.
        SealedUnreadable: there is a result, and it cannot be opened without the reading key.
    """
    if operation.status is not Status.SUCCEEDED or operation.result is None:
        raise Refused(
            f"{operation.operation_id} is {operation.status.value}: only a success has a result", code="no_result"
        )
    if SEALED in operation.result.fields:
        raise SealedUnreadable(
            f"{operation.operation_id}: its result is sealed, and the reading key that opens it is not at hand: unlock "
            "the keyring, or put the home's reading.key back (`pollconsole doctor` says where); nothing was fetched"
        )
    return operation.result


async def fetch(desk: Desk, operation_id: str, to: Path, by: str) -> ActionRecord:
    """Fetch the result once, to the new file *to* (0600). An unknown outcome is not repeated.

    With a credential that is not standing it needs leave of its own: the first call asks (`call_approval`, detail
    `fetch_result`) and raises `approval_wanted`; given again after an operator approved it, it fetches.

    Raises:
        Refused: no success, no result request in the contract, fetched before or outcome unknown, *to* exists,
            `approval_wanted`.
        SealedUnreadable: the result cannot be opened; nothing is sent.
    """
    for attempt in range(TRIES):
        operation = await _to_fetch(desk, operation_id, to)
        contract = await desk.contract(operation)
        request = requests.result_request(contract, operation, operation.credential)
        try:
            leave = await _leave(desk, contract, operation, request, by)
            call = leave.digest if leave is not None else None
            secret = await perform.secret_for(desk, contract, operation, request, FETCH, call)
            break
        except CredentialUnavailable as error:
            raise Refused(str(error), code="credential_unavailable") from None
        except Stale:  # somebody wrote since the actions were read: perhaps the intent of this very fetch
            if attempt == TRIES - 1:
                raise
    record = perform.intended(desk, operation, ActionKind.FETCH_RESULT, leave.grant_id if leave else None)
    with desk.carrying(record.action_id):
        return await _carried_out(desk, contract, operation, request, secret, leave, record, to, by)


async def _carried_out(
    desk: Desk,
    contract: Contract,
    operation: Operation,
    request: Request,
    secret: Secret | None,
    leave: CallGrant | None,
    record: ActionRecord,
    to: Path,
    by: str,
) -> ActionRecord:
    """The intent *record* stored, its one request (or pages) sent, what came kept in *to*, the outcome recorded."""
    # the place is taken before anything is sent: the answer may be given once only
    file = await asyncio.to_thread(open_new, to)
    outcome = ActionOutcome.INTENDED
    try:
        # I14: the leave is used up in the same transaction as the intent of the one request that it permits
        used = msgspec.structs.replace(leave, used_for=record.action_id) if leave is not None else None
        intent = Write(after=operation, fence_change=operation.change, release_lease=False, action=record, uses=used)
        await desk.store.commit(desk.clock.now(), (intent,))
        brought = await perform.send(desk, request, secret)
        outcome, detail = await asyncio.to_thread(_kept, file, brought)
        if contract.pages is not None and outcome is ActionOutcome.DONE and isinstance(brought, Answer):
            outcome, detail, brought = await page_by_page.fetch_rest(
                desk, contract, operation, request, brought, file, FETCH
            )
    finally:
        os.close(file)
        if outcome is not ActionOutcome.DONE:
            await asyncio.to_thread(to.unlink, missing_ok=True)
    told = EventName.RESULT_FETCHED
    return await perform.settle(desk, operation.operation_id, record, brought, outcome, detail, told, by)


async def _to_fetch(desk: Desk, operation_id: str, to: Path) -> Operation:
    """The record of a success that may be fetched now, read before its actions: a later intent makes it stale.

    Raises Refused, SealedUnreadable as `fetch` does.
    """
    operation = await desk.operation(operation_id)
    result = pointer(operation)
    if result.permits != "fetch_result":
        raise Refused(f"{operation_id}: this success permits {result.permits}, not a fetch", code="not_permitted")
    for earlier in await desk.store.actions(operation_id):
        if earlier.kind is not ActionKind.FETCH_RESULT or earlier.outcome is ActionOutcome.REFUSED:
            continue
        raise Refused(
            f"{operation_id}: already fetched, or a fetch is under way (outcome {earlier.outcome.value}, "
            f"{earlier.action_id}); a fetch is not repeated by itself; "
            "`pollconsole result OP --reveal` gives the pointer",
            code="already_fetched",
        )
    if await asyncio.to_thread(to.exists):
        raise Refused(f"{to} exists; name a new file", code="file_exists")
    return operation


async def _leave(desk: Desk, contract: Contract, operation: Operation, request: Request, by: str) -> CallGrant | None:
    """The leave that this fetch needs, granted and unused; None: it needs none.

    Raises:
        Refused: `approval_wanted`: an operator was asked, or is asked already.
        Stale: the operation moved since *operation* was read; nothing was asked.
    """
    if request.slot is None:
        return None
    info = await desk.credentials().info(request.slot.credential)
    if approval_needed(info.mode, contract.policy.least_mode, None, FETCH) is Approval.NONE:
        return None
    operation_id = operation.operation_id
    if contract.pages is not None:
        raise Refused(
            f"{operation_id}: its result may come in pages, a request each, and credential {info.name} is asked for "
            "each call: `pollconsole result OP --reveal` gives the pointer, fetch it by other means",
            code="approval_needed",
        )
    digest, now = call_digest(operation, request, purpose=FETCH, binding=info.binding), desk.clock.now()
    found = await desk.store.approval(operation_id)
    if found is not None and grant_is_usable(found, digest, now):
        return found
    question = await desk.question(operation_id)
    if question is None:
        asked = grants.ask_for_fetch(operation, None, by=by, now=desk.clock.now(), new_id=f"esc-{desk.chance.token(6)}")
        # fenced by the record that was read before the actions were: a leave that is used up now is used by a fetch,
        # whose intent moved the record, and a question beside that fetch could only be denied
        write = Write(
            after=asked.operation or operation,
            fence_change=operation.change,
            release_lease=False,
            events=asked.events,
            open_question=asked.opened,
        )
        await desk.store.commit(desk.clock.now(), (write,))
    elif (question.reason, question.detail) != (StopReason.CALL_APPROVAL, FETCH):
        raise Refused(
            f"{operation_id}: the question {question.reason.value} is open; an operator decides it first", code="asked"
        )
    raise Refused(
        f"{operation_id}: credential {info.name} is asked for each call; an operator approves this fetch in the "
        "console (key A), then give the command again",
        code="approval_wanted",
    )


def _kept(file: int, brought: Answer | Fault) -> tuple[ActionOutcome, str]:
    """Outcome and detail of the one request, its body written to the open *file*."""
    if isinstance(brought, Answer) and brought.status in OK:
        try:
            with os.fdopen(file, "wb", closefd=False) as out:
                out.write(brought.body)
        except OSError as error:
            return ActionOutcome.UNKNOWN, f"the result came but could not be written: {error.strerror}"
        return ActionOutcome.DONE, f"{len(brought.body)} bytes"
    if isinstance(brought, Answer):
        return ActionOutcome.REFUSED, f"the provider answered {brought.status}"
    lost = brought.may_have_been_sent
    if brought.kind is FaultKind.TOO_LARGE:
        # the transport's limits; a second fetch would meet the same ones
        limits = brought.text or "more than the limits on answers allow"
        return ActionOutcome.UNKNOWN, (
            f"too_large: {limits}; nothing of it is kept: `pollconsole result OP --reveal` gives the link, "
            "fetch it by other means"
        )
    return (ActionOutcome.UNKNOWN if lost else ActionOutcome.REFUSED), brought.kind.value


def open_new(to: Path) -> int:
    """A descriptor of the new file *to*. Raises Refused: it exists now, or cannot be made."""
    try:
        return os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise Refused(f"{to}: {error.strerror}", code="file") from None


def result_view(result: ResultPointer, fields: dict[str, Any]) -> dict[str, Any]:
    """The document of `pollconsole result`."""
    return {
        "permits": result.permits,
        "validated": result.validated,
        "qualifiers": list(result.qualifiers),
        "fields": fields,
    }
