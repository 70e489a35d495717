"""One answer for a frozen list, carried out on each operation by itself.

Job: own check, own grant, own audit event for every operation, in bounded transactions; what moved since the list was
drawn is refused alone. A crash between two transactions leaves what is done done and the rest asked. Must not know:
keys, screens, how the list was drawn. Nothing here sends a request (`card.grouping.ONE_BY_ONE`).
Source: spec E10, E7, G3, G4, G8, I12.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from pollcore import grants
from pollcore.actions import first_use, uses
from pollcore.actions.circumstances import Gathered, gather
from pollcore.actions.decision import Pressed, carried_out, decision_write, grant_of
from pollcore.actions.desk import Desk
from pollcore.actions.together import Pair, ShownGroup, asked_of, batches, readable
from pollcore.card import Asked, Frozen, GroupChoice, member
from pollcore.escalation import Circumstances
from pollcore.facts import (
    AuditEvent,
    Choice,
    Escalation,
    EventName,
    Moment,
    Operation,
    Operator,
    Refused,
    Stale,
    StoreUnusable,
)
from pollcore.ports import Write

TRIES: Final = 5
"""How often operations are read again whose polls were recorded meanwhile (same version)."""
MOVED: Final = "the operation or its limits changed since the list was drawn"
EXPIRED: Final = "its question has expired and is asked anew"
KEPT_MOVING: Final = "it kept moving while it was decided"


class GroupOutcome(msgspec.Struct, frozen=True):
    """What became of one answer for many."""

    label: str
    done: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]
    """Operation, why nothing was done to it."""
    untouched: tuple[str, ...] = ()
    """Operations of the list that the choice was never offered to; they stay asked."""


async def decide(
    desk: Desk,
    drawn: ShownGroup,
    choice_key: str,
    evidence: Mapping[str, str | int | float],
    operator: Operator,
    because: str | None,
) -> GroupOutcome:
    """Carry one answer out on every operation of the list that *drawn* froze for this choice.

    Raises:
        Refused: the choice decides nothing, or nobody could take it when the card was drawn.
        Stale: no operation of the list is as it was shown; nothing was done.
        StoreUnusable: nothing was done. (Once something was, the rest comes back as refused.)
    """
    choice = next((each for each in drawn.card.choices if each.key == choice_key), None)
    if choice is None or not choice.decides:
        raise Refused(f"{choice_key} decides nothing here", code="no_choice")
    if choice.unavailable is not None:
        raise Refused(f"{choice.label}: {choice.unavailable}", code="unavailable")
    pressed = Pressed(
        card_digest=drawn.digest, evidence=evidence, operator=operator, because=because, many=choice.count
    )
    taken = set(choice.operation_ids)
    todo = {each.operation_id: each for each in drawn.card.members if each.operation_id in taken}
    run = _Run(desk, drawn, choice, pressed)
    for _ in range(TRIES):
        try:
            todo = await run.round(todo)
        except StoreUnusable as error:
            run.gives_up(todo, error)
            todo = {}
        if not todo:
            break
    for operation_id in todo:
        run.refused[operation_id] = KEPT_MOVING
    await run.tell_refused()
    for digest in sorted(run.decided):
        # those that were asked since the list was drawn; those that it does not reach stay asked
        with contextlib.suppress(StoreUnusable):
            await first_use.settle(desk, digest)
    if not run.done:
        if run.error is not None:
            raise run.error
        why = next(iter(run.refused.values()))
        raise Stale(f"nothing was done: for all {len(run.refused):,} operations of the list, first of all: {why}")
    untouched = tuple(each for each in drawn.operation_ids if each not in taken)
    return GroupOutcome(choice.label, tuple(run.done), tuple(sorted(run.refused.items())), untouched)


class _Run:
    """One answer on its way through the list."""

    def __init__(self, desk: Desk, drawn: ShownGroup, choice: GroupChoice, pressed: Pressed) -> None:
        self.done: list[str] = []
        self.refused: dict[str, str] = {}
        self.error: StoreUnusable | None = None
        self.decided: set[str] = set()
        """Contracts whose first use this answer decides (X7)."""
        self._desk = desk
        self._drawn = drawn
        self._choice = choice
        self._pressed = pressed
        self._session = f"ses-{desk.chance.token(6)}"
        """One answer makes one session of one credential and run, however many operations it covers."""
        self._seen: dict[str, tuple[Operation, Escalation, Choice]] = {}
        """What a refusal is told of."""

    async def round(self, todo: Mapping[str, Frozen]) -> dict[str, Frozen]:
        """Decide all of *todo*; returns those whose records moved between reading and committing."""
        desk = self._desk
        found = {op.operation_id: (op, question) for op, question in await desk.store.asked(self._drawn.cause)}
        gone = [each for each in todo.values() if not _still_asked(each, found)]
        await self._gone(gone)
        there = [found[name] for name in todo if name not in self.refused]
        facts = await gather(desk, (op for op, _ in there), desk.clock.now())
        await self._keep_snapshots(facts)
        again: dict[str, Frozen] = {}
        for batch in batches(there):
            if self.error is not None:
                self.refused |= {op.operation_id: f"not tried: {self.error}" for op, _ in batch}
                continue
            writes = [write for pair in batch if (write := self._write(pair, todo[pair[0].operation_id], facts))]
            again |= {name: todo[name] for name in await self._commit(writes)}
        return again

    def gives_up(self, todo: Mapping[str, Frozen], error: StoreUnusable) -> None:
        """The store could not be read for *todo*: what was done before stands, and is told."""
        self.error = error
        known = {*self.done, *self.refused}
        self.refused |= {name: f"not tried: {error}" for name in todo if name not in known}

    async def _commit(self, writes: Sequence[Write]) -> list[str]:
        if not writes:
            return []
        try:
            await self._desk.authorise(writes)  # A4: their record is anchored before anything takes effect
            found = await self._desk.store.commit_each(self._desk.clock.now(), writes)
        except (StoreUnusable, Refused) as error:
            self.error = error if isinstance(error, StoreUnusable) else None
            self.refused |= {write.after.operation_id: f"not done: {error}" for write in writes}
            return []
        moved = []
        for write, why in zip(writes, found, strict=True):
            name = write.after.operation_id
            if why is None:
                self.done.append(name)
            elif why.startswith("moved"):
                moved.append(name)
            else:
                self.refused[name] = why
        return moved

    def _write(self, pair: Pair, frozen: Frozen, facts: Gathered) -> Write | None:
        """The whole effect on one operation, or None and a reason."""
        operation, question = pair
        desk = self._desk
        if not readable(pair, facts):
            self.refused[frozen.operation_id] = facts.unreadable[operation.contract_digest]
            return None
        now = desk.clock.now()
        asked = asked_of(pair, facts)
        fresh = member(asked, now)
        choice = next((each for each in fresh.choices if fresh.named(each) == self._choice.name), None)
        self._seen[operation.operation_id] = (operation, question, choice or fresh.choices[0])
        if fresh.digest != frozen.digest or choice is None:
            self.refused[frozen.operation_id] = MOVED
            return None
        if uses.expired(question, now):
            self.refused[frozen.operation_id] = EXPIRED
            return None
        try:
            return self._applied(asked, choice, frozen, now)
        except (Stale, Refused) as error:
            self.refused[frozen.operation_id] = str(error)
            return None

    def _applied(self, asked: Asked, choice: Choice, frozen: Frozen, now: Moment) -> Write:
        operation, question, facts = asked.operation, asked.question, asked.circumstances
        desk, pressed, version = self._desk, self._pressed, frozen.version
        applied = carried_out(
            desk, operation, question, choice, facts, asked.policy, pressed, now=now, shown_version=version
        )
        if applied.action is not None:
            raise Refused("it sends a request of its own: decide it on the operation's own card", code="one_by_one")
        grant = grant_of(desk, operation, question, choice, pressed, now=now, shown_version=version)
        if applied.use is not None:
            self.decided.add(operation.contract_digest)
        after = applied.operation or operation
        call, session = uses.leaves(facts or Circumstances(), choice, grant, after, now, self._session)
        used = grant if choice.grants else None
        return decision_write(applied, operation, version, used, call, session)

    async def _keep_snapshots(self, facts: Gathered) -> None:
        """A contract that is about to be adopted is stored first (S8)."""
        if self._choice.name[3] is not None:
            for change in facts.changes.values():
                await self._desk.store.keep_snapshot(self._desk.clock.now(), change.today.snapshot)

    async def _gone(self, gone: Sequence[Frozen]) -> None:
        """Say who was quicker."""
        if not gone:
            return
        known = await self._desk.store.questions_by_id([each.escalation_id for each in gone])
        for each in gone:
            question = known.get(each.escalation_id)
            said = "its question is not open any more"
            if question is not None and question.decided_at is not None:
                said = f"decided already: {question.decision} by {question.operator or 'a later stop'}"
            self.refused[each.operation_id] = said

    async def tell_refused(self) -> None:
        """G8: each refused grant is an audit event of its own operation, like an approval."""
        if self.error is not None:
            return  # the store takes nothing now
        events = [self._refusal(operation_id, why) for operation_id, why in self.refused.items()]
        for batch in batches(events):
            try:
                await self._desk.store.record(self._desk.clock.now(), batch)
            except StoreUnusable as error:
                self.error = error
                if not self.done:
                    raise
                return

    def _refusal(self, operation_id: str, why: str) -> AuditEvent:
        now, pressed = self._desk.clock.now(), self._pressed
        if operation_id in self._seen:
            operation, question, choice = self._seen[operation_id]
            told = grants.refused_event(operation, question, choice, now, str(pressed.operator), why)
        else:
            told = AuditEvent(
                at=now.wall,
                event=EventName.GRANT_REFUSED,
                operation_id=operation_id,
                operator=str(pressed.operator),
                text=why,
            )
        kind = self._choice.kind.value
        return msgspec.structs.replace(told, decision=kind, detail=self._choice.label, notes=pressed.notes)


def _still_asked(each: Frozen, found: Mapping[str, Pair]) -> bool:
    pair = found.get(each.operation_id)
    return pair is not None and pair[1].escalation_id == each.escalation_id
