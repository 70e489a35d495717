"""Actions whose process ended before the answer was recorded: their outcome becomes `unknown`, on record.

Job: find intents that nobody carries out any more, and write that down once. Must not know: how it is proved that a
process ended, how an action is carried out; nothing is sent here, and nothing is repeated (O5).
Source: spec O5, A5.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore.actions.desk import Desk
from pollcore.facts import (
    ActionOutcome,
    ActionRecord,
    AuditEvent,
    EventName,
    Operation,
    Stale,
)
from pollcore.ports import Write

MAX_LOOKED_AT: Final = 1_000
"""Intents that one look reads, the oldest first: those of living processes stay among them."""
MAX_AT_ONCE: Final = 100
"""Intents that one look settles; the next look takes the next ones."""
TRIES: Final = 5
"""How often one is written again when its operation moved meanwhile; the next look tries on."""
DETAIL: Final = "the process that carried it out ended before its answer was recorded"


async def settle_lost(desk: Desk) -> int:
    """Every `intended` action that nobody carries out any more becomes `unknown`, with an event; returns how many.

    An action that a living process carries out is left alone, however long it takes; what became of an unknown one may
    still be recorded by whoever learns it. Raises StoreUnusable.
    """
    settled = 0
    for record in await desk.store.unsettled_actions(MAX_LOOKED_AT):
        if settled < MAX_AT_ONCE and desk.is_gone(record.action_id):
            settled += await _settle(desk, record)
    return settled


async def _settle(desk: Desk, record: ActionRecord) -> bool:
    for _ in range(TRIES):
        # read before the actions are: an answer that is recorded after this moves the record, and makes this stale
        operation = await desk.operation(record.operation_id)
        still = [one for one in await desk.store.actions(record.operation_id) if one.action_id == record.action_id]
        if not still or still[0].outcome is not ActionOutcome.INTENDED:
            return False
        now = desk.clock.now()
        event = AuditEvent(
            at=now.wall,
            event=EventName.ACTION_LOST,
            operation_id=record.operation_id,
            decision=ActionOutcome.UNKNOWN.value,
            detail=record.kind.value,
            text=DETAIL,
        )
        write = Write(
            after=_with_unknown(operation, record.kind.value),
            fence_change=operation.change,
            release_lease=False,
            events=(event,),
            action=msgspec.structs.replace(record, outcome=ActionOutcome.UNKNOWN, detail=DETAIL),
        )
        try:
            await desk.store.commit(now, (write,))
        except Stale:
            continue
        return True
    return False


def _with_unknown(operation: Operation, kind: str) -> Operation:
    known = operation.memory.unknown_actions
    if kind in known:
        return operation
    return msgspec.structs.replace(
        operation, memory=msgspec.structs.replace(operation.memory, unknown_actions=(*known, kind))
    )
