"""What a success permits: the result pointer, and fetching it once.

Job: reveal and fetch, each with a record of its own (O5). Must not know: polling; what is in the result.
Source: spec S4, O5, K4; design.md `result`, `fetch`.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, Final

from pollcore.actions import perform
from pollcore.actions.desk import Desk
from pollcore.contract import requests
from pollcore.facts import (
    ActionKind,
    ActionOutcome,
    ActionRecord,
    Answer,
    AuditEvent,
    CredentialUnavailable,
    EventName,
    Fault,
    FaultKind,
    Operation,
    Refused,
    ResultPointer,
    SealedUnreadable,
    Stale,
    Status,
)
from pollcore.ports import Write

SEALED: Final = "sealed:unreadable"
"""The field that a store puts in place of a result that it cannot open now; it is no value."""
OK: Final = frozenset({200, 203, 206})
TRIES: Final = 5


async def reveal(desk: Desk, operation_id: str, by: str) -> ResultPointer:
    """The result pointer, whole; the reveal is recorded. Raises Refused: no result; SealedUnreadable: see `pointer`."""
    for attempt in range(TRIES):
        operation = await desk.operation(operation_id)
        result = pointer(operation)
        event = AuditEvent(
            at=desk.clock.now().wall,
            event=EventName.RESULT_REVEALED,
            operation_id=operation_id,
            caller=by,
            detail=", ".join(sorted(result.fields)),
        )
        write = Write(after=operation, fence_change=operation.change, release_lease=False, events=(event,))
        try:
            await desk.store.commit(desk.clock.now(), (write,))
        except Stale:
            if attempt == TRIES - 1:
                raise
            continue
        return result
    raise AssertionError("unreachable: the last try returns or raises")


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

    Raises:
        Refused: no success, no result request in the contract, fetched before or outcome unknown, *to* exists.
        SealedUnreadable: the result cannot be opened; nothing is sent.
    """
    operation = await desk.operation(operation_id)
    result = pointer(operation)
    if result.permits != "fetch_result":
        raise Refused(f"{operation_id}: this success permits {result.permits}, not a fetch", code="not_permitted")
    for earlier in await desk.store.actions(operation_id):
        if earlier.kind is ActionKind.FETCH_RESULT and earlier.outcome is not ActionOutcome.REFUSED:
            raise Refused(
                f"{operation_id}: already fetched (outcome {earlier.outcome.value}, {earlier.action_id}); "
                "a fetch is not repeated by itself; `pollconsole result OP --reveal` gives the pointer",
                code="already_fetched",
            )
    if await asyncio.to_thread(to.exists):
        raise Refused(f"{to} exists; name a new file", code="file_exists")
    contract = await desk.contract(operation)
    request = requests.result_request(contract, operation, operation.credential)
    try:
        secret = await perform.secret_for(desk, request)
    except CredentialUnavailable as error:
        raise Refused(str(error), code="credential_unavailable") from None
    # the place is taken before anything is sent: the answer may be given once only
    file = await asyncio.to_thread(open_new, to)
    outcome = ActionOutcome.INTENDED
    try:
        record = perform.intended(desk, operation, ActionKind.FETCH_RESULT, None)
        intent = Write(after=operation, fence_change=operation.change, release_lease=False, action=record)
        await desk.store.commit(desk.clock.now(), (intent,))
        brought = await perform.send(desk, request, secret)
        outcome, detail = await asyncio.to_thread(_kept, file, brought)
    finally:
        os.close(file)
        if outcome is not ActionOutcome.DONE:
            await asyncio.to_thread(to.unlink, missing_ok=True)
    return await perform.settle(desk, operation_id, record, brought, outcome, detail, EventName.RESULT_FETCHED, by)


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
