"""One answer for a frozen list, carried out on each operation by itself.

Job: own check, own grant, own audit event for every operation, in bounded transactions; what moved since the list was
drawn is refused alone. A crash between two transactions leaves what is done done and the rest asked. Must not know:
keys, screens, how the list was drawn. Nothing here sends a request (`card.grouping.ONE_BY_ONE`).
Source: spec E10, E7, G3, G4, G8, I12.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from pollcore import grants
from pollcore.actions import first_use, uses
from pollcore.actions.circumstances import Gathered, gather
from pollcore.actions.decision import decision_write
from pollcore.actions.desk import Desk
from pollcore.actions.together import Pair, ShownGroup, asked_of, batches, readable
from pollcore.card import Asked, Frozen, GroupChoice, member
from pollcore.escalation import Circumstances
from pollcore.facts import (
    AuditEvent,
    Choice,
    ChoiceKind,
    Escalation,
    EventName,
    Grant,
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


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The one decision, as it is recorded for each operation."""

    shown: ShownGroup
    choice: GroupChoice
    evidence: Mapping[str, str | int | float]
    operator: Operator
    because: str | None

    @property
    def notes(self) -> tuple[str, ...]:
        measured = (f"guard: {name} {value}" for name, value in self.evidence.items())
        return (f"card {self.shown.digest[:16]}", f"one answer for {self.choice.count} operations", *measured)


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
    answer = _Answer(shown=drawn, choice=choice, evidence=evidence, operator=operator, because=because)
    taken = set(choice.operation_ids)
    todo = {each.operation_id: each for each in drawn.card.members if each.operation_id in taken}
    run = _Run(desk, answer)
    for _ in range(TRIES):
        todo = await run.round(todo)
        if not todo:
            break
    for operation_id in todo:
        run.refused[operation_id] = KEPT_MOVING
    await run.tell_refused()
    for digest in sorted(run.decided):
        await first_use.settle(desk, digest)  # those that were asked since the list was drawn
    if not run.done:
        if run.error is not None:
            raise run.error
        why = next(iter(run.refused.values()))
        raise Stale(f"nothing was done: for all {len(run.refused):,} operations of the list, first of all: {why}")
    untouched = tuple(each for each in drawn.operation_ids if each not in taken)
    return GroupOutcome(choice.label, tuple(run.done), tuple(sorted(run.refused.items())), untouched)


class _Run:
    """One answer on its way through the list."""

    def __init__(self, desk: Desk, answer: _Answer) -> None:
        self.done: list[str] = []
        self.refused: dict[str, str] = {}
        self.error: StoreUnusable | None = None
        self.decided: set[str] = set()
        """Contracts whose first use this answer decides (X7)."""
        self._desk = desk
        self._answer = answer
        self._session = f"ses-{desk.chance.token(6)}"
        """One answer makes one session of one credential and run, however many operations it covers."""
        self._seen: dict[str, tuple[Operation, Escalation, Choice]] = {}
        """What a refusal is told of."""

    async def round(self, todo: Mapping[str, Frozen]) -> dict[str, Frozen]:
        """Decide all of *todo*; returns those whose records moved between reading and committing."""
        desk = self._desk
        found = {op.operation_id: (op, question) for op, question in await desk.store.asked(self._answer.shown.cause)}
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
        answer, desk = self._answer, self._desk
        if not readable(pair, facts):
            self.refused[frozen.operation_id] = facts.unreadable[operation.contract_digest]
            return None
        now = desk.clock.now()
        asked = asked_of(pair, facts)
        fresh = member(asked, now)
        choice = next((each for each in fresh.choices if fresh.named(each) == answer.choice.name), None)
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
        operation, question, answer, desk = asked.operation, asked.question, self._answer, self._desk
        changed = asked.circumstances.changed_contract if asked.circumstances is not None else None
        adopted = changed.policy if changed is not None and choice.kind is ChoiceKind.ADOPT_CONTRACT else None
        applied = grants.apply(
            operation,
            question,
            choice,
            policy=adopted or asked.policy,
            now=now,
            operator=answer.operator,
            because=answer.because,
            new_id=f"esc-{desk.chance.token(6)}",
            shown_version=frozen.version,
            observation=changed.reads_as if changed is not None else None,
            memory=changed.memory if changed is not None else None,
            notes=answer.notes,
        )
        if applied.action is not None:
            raise Refused("it sends a request of its own: decide it on the operation's own card", code="one_by_one")
        grant = Grant(
            grant_id=f"grant-{desk.chance.token(8)}",
            operation_id=operation.operation_id,
            escalation_id=question.escalation_id,
            version=frozen.version,
            choice=choice,
            card_digest=answer.shown.digest,
            evidence=dict(answer.evidence),
            operator=answer.operator,
            granted_at=now.wall,
            because=answer.because,
        )
        if applied.use is not None:
            self.decided.add(operation.contract_digest)
        after = applied.operation or operation
        call, session = uses.leaves(asked.circumstances or Circumstances(), choice, grant, after, now, self._session)
        used = grant if choice.grants else None
        return decision_write(applied, operation, frozen.version, used, call, session)

    async def _keep_snapshots(self, facts: Gathered) -> None:
        """A contract that is about to be adopted is stored first (S8)."""
        if self._answer.choice.name[3] is not None:
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
        now, answer = self._desk.clock.now(), self._answer
        if operation_id in self._seen:
            operation, question, choice = self._seen[operation_id]
            told = grants.refused_event(operation, question, choice, now, str(answer.operator), why)
        else:
            told = AuditEvent(
                at=now.wall,
                event=EventName.GRANT_REFUSED,
                operation_id=operation_id,
                operator=str(answer.operator),
                text=why,
            )
        kind = answer.choice.kind.value
        return msgspec.structs.replace(told, decision=kind, detail=answer.choice.label, notes=answer.notes)


def _still_asked(each: Frozen, found: Mapping[str, Pair]) -> bool:
    pair = found.get(each.operation_id)
    return pair is not None and pair[1].escalation_id == each.escalation_id
