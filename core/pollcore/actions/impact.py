"""`provider impact`: what a changed contract would make of the answers that are stored.

Job: every stored answer of a contract's operations, read and decided again under the contract in force then and under
the changed one; the decisions that differ. Must not know: files, output. It sends nothing and writes nothing.
Source: spec S8; contract-author tools of docs/contracts.md. Memory: one page of operations, one page of answers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from pollcore.actions.trying import as_a_wait
from pollcore.contract import Contract, instance
from pollcore.contract.instances import SETTINGS
from pollcore.controller.contracts import Contracts
from pollcore.facts import ContractError, FaultKind, Instant, Operation, StopDetail
from pollcore.outcome.replay import Replay, Replayed
from pollcore.ports import Store, Stored

PAGE: Final = 100
"""Operations, and answers of one of them, that are held at once."""
MAX_CHANGED: Final = 64
"""Instances of the changed contract that are kept ready."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One answer that would be decided otherwise. *was*, *would_be*: `wait`, `succeed`, or the reason of a stop."""

    operation_id: str
    provider: str
    n: int
    at: Instant
    was: str
    was_state: str | None
    would_be: str
    would_be_detail: str | None
    state: str | None
    rule: str
    whole: bool
    """False: of a large answer only a part was kept; a rule may look at what is not there."""
    not_asked: int = 0
    """Later answers that would never have been asked for, because the wait would have ended here."""


class Counts(msgspec.Struct):
    """What was looked at; filled while the differences are taken."""

    operations: int = 0
    answers: int = 0
    faults: int = 0
    """Requests without an answer: they are counted as then, a contract says little of them."""
    unreadable: int = 0
    """Answers whose envelope is missing or was cut, or whose step the changed contract does not have."""
    skipped: int = 0
    """Operations whose own contract can no longer be read."""
    differences: int = 0
    operations_that_differ: int = 0


async def differences(
    store: Store, snapshots: Contracts, changed: Contract, since: Instant, counts: Counts
) -> AsyncIterator[Difference]:
    """Decisions about answers at or after *since* that would differ, operation by operation, in the order stored.

    Raises SealedUnreadable: the reading key is not at hand. Refused: the changed contract does not fit the settings of
    an instance that an operation ran under. StoreUnusable.
    """
    made: dict[str, Contract] = {}
    after: str | None = None
    while page := await store.answered_under(changed.name, since, after=after, limit=PAGE):
        after = page[-1].operation_id
        for operation in page:
            try:
                before = await snapshots.of(operation.contract_digest)
            except ContractError:
                counts.skipped += 1
                continue
            if len(made) >= MAX_CHANGED:
                made.clear()
            if operation.contract_digest not in made:
                made[operation.contract_digest] = _as_instance(changed, before.settings)
            counts.operations += 1
            pair = (before, made[operation.contract_digest])
            found = [one async for one in _of_one(store, operation, pair, since, counts)]
            counts.differences += len(found)
            counts.operations_that_differ += bool(found)
            for one in found:
                yield one


async def _of_one(
    store: Store, operation: Operation, pair: tuple[Contract, Contract], since: Instant, counts: Counts
) -> AsyncIterator[Difference]:
    """Both replays side by side, from the first answer on, because what came before is part of what is read."""
    replays: tuple[Replay, Replay] | None = None
    if operation.stop_detail is StopDetail.PROVIDER_TRY:
        operation = as_a_wait(operation, pair[0])  # its answer was judged so
    last, held = 0, None
    while page := await store.answers(operation.operation_id, after=last, limit=PAGE):
        last = page[-1].n
        if replays is None:
            replays = (Replay(pair[0], operation, page[0].n), Replay(pair[1], operation, page[0].n))
        for stored in page:
            if held is not None:
                held = msgspec.structs.replace(held, not_asked=held.not_asked + 1)
                counts.answers += stored.fault is None and stored.answered_at >= since
                continue
            found = _compared(operation, stored, replays, counts, since)
            if found is None:
                continue
            if found.would_be == "wait":
                yield found
            else:
                held = found  # the wait would have ended here
    if held is not None:
        yield held


def _compared(
    operation: Operation, stored: Stored, replays: tuple[Replay, Replay], counts: Counts, since: Instant
) -> Difference | None:
    counted = stored.answered_at >= since
    if stored.fault is not None:
        counts.faults += counted
        for replay in replays:
            replay.fault(FaultKind(stored.fault), stored.n, stored.answered_at, stored.draw, stored.decision == "wait")
        return None
    found = [
        replay.answer(stored.envelope, stored.n, stored.answered_at, stored.draw) if stored.envelope else None
        for replay in replays
    ]
    if not counted:
        return None
    counts.answers += 1
    before, after = found
    if before is None or after is None:
        counts.unreadable += 1
        return None
    if not _differs(before, after) or (after.decision == stored.decision and before.decision != stored.decision):
        return None
    return Difference(
        operation_id=operation.operation_id,
        provider=operation.submitted.provider,
        n=stored.n,
        at=stored.answered_at,
        was=stored.decision,
        was_state=stored.state,
        would_be=after.decision,
        would_be_detail=after.detail or (", ".join(after.qualifiers) or None),
        state=after.state,
        rule=after.rule,
        whole=after.whole,
    )


def _differs(before: Replayed, after: Replayed) -> bool:
    return (before.decision, before.detail, before.qualifiers) != (after.decision, after.detail, after.qualifiers)


def _as_instance(changed: Contract, settings: dict[str, Any]) -> Contract:
    """The changed contract under the settings that the operation's own had."""
    kept = {key: value for key, value in settings.items() if key in SETTINGS}
    return instance(changed, **kept) if kept else changed
