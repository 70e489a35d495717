"""The card of all operations that one cause stopped.

Job: read what is asked in bulk, draw the card from the very list that will be executed, freeze that list. Must not
know: keys, screens, how an answer is carried out (that is `one_answer`).
Source: spec E10, G4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

import msgspec

from pollcore.actions.circumstances import Gathered, gather
from pollcore.actions.desk import Desk
from pollcore.card import Asked, GroupCard, Member, group, join, member
from pollcore.facts import Escalation, Operation, Refused

MAX_MEMBERS: Final = 10_000
"""Operations of one group card, those asked first; the others of the cause make the next card."""
BATCH: Final = 200
"""Operations of one transaction, and of one turn of this process's loop."""
MAX_AGED: Final = 1_000
"""Operations of one group card that are looked at again while it stands on a screen."""
T = TypeVar("T")
Pair = tuple[Operation, Escalation]


class ShownGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One group card with the frozen list that an answer is carried out on."""

    cause: str
    """Raw, as the questions have it; a provider may have had a hand in it."""
    card: GroupCard
    left_out: tuple[tuple[str, str], ...] = ()
    """Operation, why it is not in the list (the contract in force cannot be read)."""
    basis: tuple[Asked, ...] = ()
    """What the cards of the first `MAX_AGED` of the list were drawn from, those asked first."""

    @property
    def digest(self) -> str:
        return self.card.digest

    @property
    def operation_ids(self) -> tuple[str, ...]:
        return self.card.operation_ids

    @property
    def escalation_ids(self) -> tuple[str, ...]:
        return self.card.escalation_ids

    @property
    def versions(self) -> tuple[int, ...]:
        """Of the operations, in the order of the list."""
        return tuple(each.version for each in self.card.members)


async def groups(desk: Desk) -> tuple[GroupCard, ...]:
    """All open questions, one card a cause, those ending soonest first."""
    pairs = await desk.store.asked()
    now = desk.clock.now()
    facts = await gather(desk, (op for op, _ in pairs), now)
    return group((asked_of(pair, facts) for pair in pairs if readable(pair, facts)), now=now)


async def shown(desk: Desk, cause: str) -> ShownGroup:
    """The card of one cause, fresh. Raises Refused: nothing is asked for this cause, or no contract can be read."""
    pairs = await desk.store.asked(cause)
    if not pairs:
        raise Refused("nothing is asked any more for this cause", code="no_question")
    listed = pairs[:MAX_MEMBERS]
    now = desk.clock.now()
    facts = await gather(desk, (op for op, _ in listed), now)
    left_out = tuple(
        (op.operation_id, facts.unreadable[op.contract_digest])
        for op, question in listed
        if not readable((op, question), facts)
    )
    members: list[Member] = []
    basis: list[Asked] = []
    for batch in batches([pair for pair in listed if readable(pair, facts)]):
        asked = [asked_of(pair, facts) for pair in batch]
        members += [member(each, now) for each in asked]
        basis += asked[: MAX_AGED - len(basis)]
        await asyncio.sleep(0)  # polls go on
    if not members:
        raise Refused(f"the contract in force cannot be read: {left_out[0][1]}", code="contract")
    return ShownGroup(
        cause=cause, card=join(cause, members, now, asked=len(pairs)), left_out=left_out, basis=tuple(basis)
    )


async def aged(desk: Desk, drawn: ShownGroup) -> int:
    """For how many of the list time alone has changed what *drawn* offers; of a long one, the first `MAX_AGED` are
    looked at. As `gate.has_aged`, nothing but the clock is read."""
    now = desk.clock.now()
    digests = {each.operation_id: each.digest for each in drawn.card.members}
    found = 0
    for batch in batches(drawn.basis):
        found += sum(member(each, now).digest != digests[each.operation.operation_id] for each in batch)
        await asyncio.sleep(0)  # polls go on
    return found


def asked_of(pair: Pair, facts: Gathered) -> Asked:
    """What the card of one operation is drawn from. Raises KeyError: it is not `readable`."""
    operation, question = pair
    return Asked(operation, question, facts.contracts[operation.contract_digest].policy, facts.of(operation, question))


def readable(pair: Pair, facts: Gathered) -> bool:
    """Whether the contract in force can be read: without it there are no choices."""
    return pair[0].contract_digest in facts.contracts


def batches(found: Sequence[T]) -> Iterator[Sequence[T]]:
    """BATCH at a time."""
    rest = iter(found)
    while batch := tuple(islice(rest, BATCH)):
        yield batch
