"""What anyone may do: ask for more, or lower authority.

Job: close, hold, reject, deny, end a hold, pause a provider, request an extension, open a question. Nothing here gives.
Must not know: keys, screens. Source: spec G5, E7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pollcore import grants
from pollcore.actions.desk import Desk
from pollcore.actions.retrying import until_taken
from pollcore.facts import (
    LOWERS_AUTHORITY,
    AuditEvent,
    ChoiceKind,
    Escalation,
    EventName,
    Instant,
    Operation,
    Operator,
    Policy,
    Refused,
)
from pollcore.grants import Applied
from pollcore.ports import Pause, Write

TRIES: Final = 8
"""A running operation moves with each poll: how often a change is tried on the fresh record."""

_Change = Callable[[Operation, Escalation | None, Policy], Applied]


async def change(desk: Desk, operation_id: str, make: _Change) -> Applied:
    """Apply *make* to the fresh record until it is committed. Raises what *make* raises; Stale after TRIES."""

    async def changed() -> tuple[Write, Applied]:
        operation = await desk.operation(operation_id)
        question = await desk.question(operation_id)
        contract = await desk.contract(operation)
        applied = make(operation, question, contract.policy)
        write = Write(
            after=applied.operation or operation,
            fence_change=operation.change,
            release_lease=False,
            events=applied.events,
            open_question=applied.opened,
            close_question=applied.closed,
        )
        return write, applied

    return await until_taken(desk, TRIES, changed)


async def lower(desk: Desk, operation_id: str, kind: ChoiceKind, because: str, by: str) -> Operation:
    """Close, hold, reject, deny or end a hold. Raises Refused where it makes no sense on this operation."""
    if kind not in LOWERS_AUTHORITY | {ChoiceKind.END_HOLD}:
        raise Refused(f"{kind.value} raises authority: the console grants it", code="raises_authority")
    await change(
        desk,
        operation_id,
        lambda operation, question, policy: grants.lower(
            operation,
            question,
            kind,
            policy=policy,
            now=desk.clock.now(),
            by=by,
            because=because,
            new_id=f"esc-{desk.chance.token(6)}",
        ),
    )
    return await desk.operation(operation_id)


async def request_extension(
    desk: Desk, operation_id: str, minutes: int, checks: int, because: str, by: str
) -> Escalation:
    """An agent asks; only a card comes of it (G5). Raises Refused: not one of the contract's sizes, or not now."""
    applied = await change(
        desk,
        operation_id,
        lambda operation, question, policy: grants.request_extension(
            operation,
            question,
            minutes=minutes,
            checks=checks,
            because=because,
            by=by,
            policy=policy,
            now=desk.clock.now(),
            new_id=f"esc-{desk.chance.token(6)}",
        ),
    )
    assert applied.opened is not None
    return applied.opened


async def open_question(desk: Desk, operation_id: str, operator: Operator) -> Escalation:
    """An operator opens the question on a running operation; the wait goes on (E7)."""
    applied = await change(
        desk,
        operation_id,
        lambda operation, question, _policy: grants.open_operator_question(
            operation,
            question,
            operator=operator,
            now=desk.clock.now(),
            new_id=f"esc-{desk.chance.token(6)}",
        ),
    )
    assert applied.opened is not None
    return applied.opened


async def pause(desk: Desk, provider: str, account: str | None, until: Instant, by: str) -> None:
    """Nothing goes to *provider* before *until*; deadlines run on. Raises Refused: *until* has passed."""
    now = desk.clock.now()
    if until <= now.wall:
        raise Refused("--until lies in the past", code="until_past")
    event = AuditEvent(
        at=now.wall,
        event=EventName.PAUSED,
        next_poll_at=until,
        caller=by,
        text=f"{provider} {account}" if account else provider,
    )
    await desk.store.pause(now, Pause(provider, account, until), event)
