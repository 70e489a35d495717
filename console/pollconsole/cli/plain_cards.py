"""Open questions as numbered cards in full text, each when it opens, again when it changed, and when it is gone.

Job: what is open now, compared with what was told -> what to tell. Must not know: the store, output, how a card reads.

Source: spec E3, E7, E10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from pollconsole.causes import in_order
from pollcore.facts import Escalation, Instant, Operation

MAX_OF_ONE_CAUSE: Final = 3
"""Cards of one cause that are told whole at once; for more of them the first one stands."""
MAX_AT_ONCE: Final = 20
"""Cards told whole in one look; the others are counted."""
MAX_NAMES: Final = 20


class Opened(msgspec.Struct, frozen=True):
    """A card to tell whole. *others*: operations of the same cause that it stands for; *again*: it was told before."""

    number: int
    question: Escalation
    others: tuple[str, ...] = ()
    again: bool = False


class Look(msgspec.Struct, frozen=True):
    """What one look found new: cards to tell, numbers of those that are gone, how many are only counted."""

    opened: tuple[Opened, ...] = ()
    gone: tuple[tuple[int, str], ...] = ()
    counted: int = 0


class Cards:
    """Which cards were told. A card keeps its number as long as its question is open."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._told: dict[str, tuple[str, int]] = {}
        """By question: its operation, and the version that was told."""
        self._last = 0

    def look(self, questions: Sequence[Escalation], operations: Mapping[str, Operation], now: Instant) -> Look:
        """Compare with what was told, and take it as told. Of what is new comes first what ends soonest."""
        still = {question.escalation_id for question in questions}
        gone = tuple((self._numbers[each], self._told[each][0]) for each in self._told if each not in still)
        for each in [each for each in self._told if each not in still]:
            del self._told[each], self._numbers[each]
        fresh: dict[str, list[Escalation]] = {}
        again: list[Escalation] = []
        for question in in_order(questions, operations, now):
            version = _version(question, operations)
            told = self._told.get(question.escalation_id)
            if told is None:
                self._last += 1
                self._numbers[question.escalation_id] = self._last
                fresh.setdefault(question.cause, []).append(question)
            elif told[1] != version:
                again.append(question)
            self._told[question.escalation_id] = (question.operation_id, version)
        cards = [*self._fresh(fresh), *(self._card(question, again=True) for question in again)]
        return Look(tuple(cards[:MAX_AT_ONCE]), gone, max(0, len(cards) - MAX_AT_ONCE))

    def _fresh(self, by_cause: Mapping[str, Sequence[Escalation]]) -> list[Opened]:
        cards: list[Opened] = []
        for questions in by_cause.values():
            if len(questions) > MAX_OF_ONE_CAUSE:
                others = tuple(each.operation_id for each in questions[1:])
                cards.append(self._card(questions[0], others=others))
            else:
                cards += [self._card(each) for each in questions]
        return cards

    def _card(self, question: Escalation, *, others: tuple[str, ...] = (), again: bool = False) -> Opened:
        return Opened(self._numbers[question.escalation_id], question, others, again)


def _version(question: Escalation, operations: Mapping[str, Operation]) -> int:
    """What a card is bound to: its operation's version where that is known."""
    operation = operations.get(question.operation_id)
    return question.version if operation is None else operation.version


def head(card: Opened, clock: str) -> str:
    """`Card 3, op-1, asked 10:58:00 UTC`."""
    of = card.question.operation_id or f"credential {card.question.cause.partition(':')[2]}"
    return f"Card {card.number}, {of}, asked {clock} UTC" + (
        ": it changed, this is how it reads now" if card.again else ""
    )


def others_line(card: Opened) -> str:
    """Which operations of the same cause the card stands for; empty: none."""
    if not card.others:
        return ""
    named = ", ".join(card.others[:MAX_NAMES])
    more = f" and {len(card.others) - MAX_NAMES:,} more" if len(card.others) > MAX_NAMES else ""
    return f"The same cause stopped {len(card.others):,} other operations: {named}{more}"
