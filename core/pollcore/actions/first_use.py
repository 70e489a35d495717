"""The first use of a contract that does not prove that asking is read-only: asked once, answered once for its digest.

Job: the question of a new operation, and the operations that an answer for the digest sets free besides the one that
was decided. Must not know: what is shown, keys, SQL, what an approval of each call looks like.
Source: spec X7, E10, O7.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore import decide, escalation, grants, outcome
from pollcore.actions.desk import Desk
from pollcore.actions.together import Pair, batches
from pollcore.contract import Contract
from pollcore.escalation.credentials import OBSERVATION
from pollcore.facts import (
    AuditEvent,
    ChoiceKind,
    ContractError,
    ContractUse,
    Escalation,
    Moment,
    Operation,
    Policy,
    Refused,
    Stale,
    StopReason,
)
from pollcore.ports import Write

ROUNDS: Final = 5
"""How often operations that moved meanwhile are looked at again."""


class Asked(msgspec.Struct, frozen=True):
    """A new operation that waits for the answer, with its question."""

    operation: Operation
    question: Escalation
    events: tuple[AuditEvent, ...]


async def ask(desk: Desk, contract: Contract, operation: Operation, now: Moment) -> Asked | None:
    """The question that *operation* begins with; None: what its requests are is known."""
    if await desk.snapshots.use(contract) is not None:
        return None
    stop = decide.stop(operation, StopReason.FIRST_USE)
    after = outcome.after_stop(operation, stop, now=now)
    question = grants.open_question(
        after,
        new_id=f"esc-{desk.chance.token(6)}",
        reason=StopReason.FIRST_USE,
        detail=None,
        now=now,
        cause=stop.cause,
        asked_by=operation.submitted.caller,
    )
    return Asked(after, question, outcome.stop_events(operation, after, stop, now=now))


async def settle(desk: Desk, digest: str) -> int:
    """Answer the questions of all operations under *digest* by what was decided for it; how many were set free.

    Nothing is given here: the grant that decided the digest covers it. A crash before the end leaves the rest asked;
    their card offers that same answer alone.
    """
    known = (await desk.store.contracts_known((digest,)))[digest]
    if known.use is None:
        return 0
    done = 0
    for _ in range(ROUNDS):
        pairs = await desk.store.asked(f"{StopReason.FIRST_USE.value}:{digest}")
        if not pairs:
            break
        for batch in batches(pairs):
            writes = [w for pair in batch if (w := await _write(desk, pair, known.use, known.decided_by or ""))]
            found = await desk.store.commit_each(desk.clock.now(), writes) if writes else ()
            done += sum(why is None for why in found)
    return done


async def _write(desk: Desk, pair: Pair, use: ContractUse, decided_by: str) -> Write | None:
    operation, question = pair
    now = desk.clock.now()
    try:
        policy = (await desk.contract(operation)).policy
    except ContractError:
        policy = Policy()
    offered = escalation.choices(operation, question, policy=policy, now=now)
    choice = next(
        (
            each
            for each in offered
            if each.kind is ChoiceKind.APPROVE
            and any(effect.what == OBSERVATION and effect.after == use.value for effect in each.effects)
        ),
        None,
    )
    if choice is None:
        return None
    try:
        applied = grants.apply(
            operation,
            question,
            choice,
            policy=policy,
            now=now,
            operator=decided_by,
            because=None,
            new_id=f"esc-{desk.chance.token(6)}",
            shown_version=operation.version,
            notes=("decided once for the contract",),
        )
    except (Stale, Refused):
        return None  # a stop took the question over
    return Write(
        after=applied.operation or operation,
        fence_change=operation.change,
        fence_version=operation.version,
        release_lease=False,
        events=applied.events,
        close_question=applied.closed,
    )
