"""The gate: what a card shows, and the one way in which new authority takes effect.

Job: gather the facts that choices depend on, draw the card from the very objects that will be executed, carry a
decision out in one transaction with the grant that it uses up. Must not know: keys, screens; nothing here makes
Evidence.
Source: spec G1-G8, E2-E10, I12.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from pollcore import escalation, grants
from pollcore.actions import first_use, perform, resubmit, uses
from pollcore.actions.circumstances import circumstances
from pollcore.actions.decision import Pressed, carried_out, decision_write, grant_of
from pollcore.actions.desk import Desk
from pollcore.card import Card, card, digest
from pollcore.escalation import Circumstances, CredentialUse
from pollcore.facts import (
    ActionKind,
    AuditEvent,
    Choice,
    Escalation,
    EventName,
    Operation,
    Operator,
    Refused,
    Stale,
    StoreUnusable,
)
from pollcore.ports import Write

TRIES: Final = 5
"""How often a question on a running operation is decided again when a poll was recorded meanwhile (same version)."""


class Shown(msgspec.Struct, frozen=True):
    """One card with what it was drawn from."""

    card: Card
    question: Escalation
    operation: Operation
    choices: tuple[Choice, ...]
    digest: str
    use: CredentialUse | None = None
    """G7: the request, or the session, that the question is about."""
    facts: Circumstances = Circumstances()


async def shown(desk: Desk, operation_id: str) -> Shown:
    """The card of the open question of an operation, fresh. Raises NotFound, Refused (nothing is asked)."""
    operation = await desk.operation(operation_id)
    question = await desk.question(operation_id)
    if question is None:
        raise Refused(f"{operation_id}: no question is open", code="no_question")
    contract = await desk.contract(operation)
    now = desk.clock.now()
    facts = await circumstances(desk, contract, operation, question, now)
    choices = escalation.choices(operation, question, policy=contract.policy, now=now, circumstances=facts)
    drawn = card(operation, question, choices, now=now, circumstances=facts)
    return Shown(drawn, question, operation, choices, digest(drawn), facts.use, facts)


async def has_aged(desk: Desk, drawn: Shown) -> bool:
    """Whether time alone has changed what *drawn* offers: the clock is read anew, and the record of the same version.

    Nothing else is: no keyring, no file, no request. What changed there is found when the card is drawn or decided.
    """
    fresh = await desk.operation(drawn.operation.operation_id)
    operation = fresh if fresh.version == drawn.operation.version else drawn.operation
    contract, now = await desk.contract(operation), desk.clock.now()
    choices = escalation.choices(operation, drawn.question, policy=contract.policy, now=now, circumstances=drawn.facts)
    return digest(card(operation, drawn.question, choices, now=now, circumstances=drawn.facts)) != drawn.digest


async def decide(
    desk: Desk,
    operation_id: str,
    escalation_id: str,
    choice_key: str,
    shown_digest: str,
    evidence: Mapping[str, str | int | float],
    operator: Operator,
    because: str | None = None,
) -> Operation:
    """Carry out one decision on one question.

    Args:
        shown_digest: Of the card that the operator saw; anything that moved since is refused.
        evidence: What the key guard measured; only the console's guard makes it.

    Raises:
        Stale: the question was decided, or something that the card showed has changed; nothing was done.
        Refused: the choice cannot be chosen.
    """
    for attempt in range(TRIES):
        try:
            fresh = await shown(desk, operation_id)
        except Refused as none_open:
            if none_open.code != "no_question":
                raise
            await _too_late(desk, operation_id, choice_key, operator)
            raise Stale(f"{operation_id}: the question was decided already; nothing was done") from None
        if fresh.question.escalation_id != escalation_id or fresh.digest != shown_digest:
            await _refused(desk, fresh, choice_key, operator, "the card has changed since it was shown")
            raise Stale(f"{operation_id}: the card has changed since it was shown; nothing was done")
        if uses.expired(fresh.question, desk.clock.now()):
            await _refused(desk, fresh, choice_key, operator, "the question had expired")
            raise Stale(f"{operation_id}: the question has expired and is asked anew; nothing was done")
        choice = next((c for c in fresh.choices if c.key == choice_key), None)
        if choice is None or not choice.decides:
            raise Refused(f"{operation_id}: {choice_key} decides nothing here", code="no_choice")
        if choice.unavailable is not None:
            raise Refused(f"{operation_id}: {choice.label}: {choice.unavailable}", code="unavailable")
        with contextlib.ExitStack() as carried:
            try:
                pressed = Pressed(card_digest=fresh.digest, evidence=evidence, operator=operator, because=because)
                carry_out = await _committed(desk, fresh, choice, pressed, carried)
            except Stale:
                # a poll was recorded between reading and committing: the version decides whether the card still holds
                if attempt == TRIES - 1:
                    raise
                continue
            # the grant is used up: from here on nothing is decided again, and nothing that happens means that it
            # was not
            return await carry_out()
    raise Stale(f"{operation_id}: kept moving; nothing was done")


async def _committed(
    desk: Desk, fresh: Shown, choice: Choice, pressed: Pressed, carried: contextlib.ExitStack
) -> Callable[[], Awaitable[Operation]]:
    """The one transaction that uses the grant up; returns what it permits, to be called once, before *carried* ends.

    Raises Stale, Refused, StoreUnusable: nothing was done.
    """
    operation, question = fresh.operation, fresh.question
    contract = await desk.contract(operation)
    now = desk.clock.now()
    if uses.expired(question, now):
        raise Stale(f"{operation.operation_id}: the question has expired meanwhile; nothing was done")
    # bound to what was shown, not to what was found out a moment later
    facts, version = fresh.facts, operation.version
    applied = carried_out(
        desk, operation, question, choice, facts, contract.policy, pressed, now=now, shown_version=version
    )
    after = applied.operation or operation
    grant = grant_of(desk, operation, question, choice, pressed, now=now, shown_version=version)
    record = perform.intended(desk, operation, applied.action, grant.grant_id) if applied.action is not None else None
    call, session = uses.leaves(facts, choice, grant, after, now, f"ses-{desk.chance.token(6)}")
    if record is not None:
        carried.enter_context(desk.carrying(record.action_id))
        if record.kind in perform.CANCELS:
            after = perform.asked_to_cancel(after, record.at)
            applied = msgspec.structs.replace(applied, operation=after)
        call = uses.action_leave(choice, grant, operation, now, record.action_id, record.kind.value)
    write = decision_write(applied, operation, version, grant if choice.grants else None, call, session, record)
    if after.contract_digest != operation.contract_digest:
        today = desk.contracts.find(operation.submitted.provider)
        if today.digest != after.contract_digest:
            raise Stale(f"{operation.operation_id}: the contract file has changed meanwhile; nothing was done")
        await desk.store.keep_snapshot(now, today.snapshot)
    await desk.authorise((write,))  # A4: its record is anchored before anything takes effect
    if applied.action is ActionKind.RESUBMIT and record is not None:
        begun = await resubmit.begin(desk, contract, operation, question, write, record, choice.call)
        return functools.partial(resubmit.carry_out, desk, begun)
    await desk.store.commit(now, (write,))

    async def carry_out() -> Operation:
        if applied.use is not None:
            # X7: answered once for all operations under this digest; those that it does not reach stay asked
            with contextlib.suppress(StoreUnusable):
                await first_use.settle(desk, after.contract_digest)
        if record is not None and record.kind in perform.CANCELS:
            await perform.cancel(desk, contract, after, record, choice.call)
        try:
            return await desk.operation(operation.operation_id)
        except StoreUnusable:
            return after  # what is done is not denied because it cannot be read back now

    return carry_out


async def _too_late(desk: Desk, operation_id: str, key: str, operator: Operator) -> None:
    """E7, G8: a second decision is refused and told, also when no question is open any more."""
    operation = await desk.operation(operation_id)
    event = AuditEvent(
        at=desk.clock.now().wall,
        event=EventName.GRANT_REFUSED,
        operation_id=operation.operation_id,
        detail=f"choice {key}",
        operator=str(operator),
        text="the question was decided already",
    )
    await desk.store.record(desk.clock.now(), (event,))


async def _refused(desk: Desk, fresh: Shown, key: str, operator: Operator, why: str) -> None:
    """G8: a stale grant that was refused is an audit event like an approval; losing it to a race loses nothing."""
    choice = next((c for c in fresh.choices if c.key == key), fresh.choices[0])
    event = grants.refused_event(fresh.operation, fresh.question, choice, desk.clock.now(), str(operator), why)
    assert event.event is EventName.GRANT_REFUSED
    write = Write(after=fresh.operation, fence_change=fresh.operation.change, release_lease=False, events=(event,))
    try:
        await desk.store.commit(desk.clock.now(), (write,))
    except Stale:
        return
