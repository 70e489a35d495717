"""E10: one cause is one card over many rows.

Job: join open questions by cause; count, name those that end soonest and those that differ; freeze the list. Must not
know: how the one answer is carried out on each operation.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from pollcore.card.digest import digest
from pollcore.card.drawing import card
from pollcore.escalation import Circumstances, choices
from pollcore.facts import Choice, ChoiceKind, Escalation, Instant, Moment, Operation, Policy
from pollcore.story import Harmless, visible

MAX_SOONEST: Final = 5
MAX_OUTLIERS: Final = 20
"""Named one by one; the number of all is on the card too."""


class Asked(msgspec.Struct, frozen=True):
    """One open question with what its own card is drawn from."""

    operation: Operation
    question: Escalation
    policy: Policy
    circumstances: Circumstances | None = None


class _Member(msgspec.Struct, frozen=True):
    operation: Operation
    question: Escalation
    choices: tuple[Choice, ...]
    digest: str
    """Of the operation's own card: the group's digest is made of these."""


class GroupChoice(msgspec.Struct, frozen=True, kw_only=True):
    """One choice of a group: which operations it can be taken for, out of the frozen list."""

    key: str
    kind: ChoiceKind
    label: str
    count: int
    """Operations for which it can be chosen now."""
    operation_ids: tuple[str, ...]
    decides: bool
    grants: bool


class Outlier(msgspec.Struct, frozen=True):
    """An operation that differs from most of its group, and in what."""

    operation_id: str
    differs: str


class GroupCard(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown for one cause."""

    cause: str
    reasons: tuple[tuple[str, int], ...]
    """Reason, operations; the most frequent first."""
    count: int
    oldest_asked_at: Instant
    operation_ids: tuple[str, ...]
    """The frozen list: one answer covers these and no others."""
    escalation_ids: tuple[str, ...]
    choices: tuple[GroupChoice, ...]
    soonest: tuple[tuple[str, Instant], ...]
    """Operation, end of its wait: the nearest ones first."""
    outliers: tuple[Outlier, ...]
    outliers_count: int
    digest: str


def group(
    questions: Iterable[Asked | tuple[Operation, Escalation, Policy]], *, now: Moment, harmless: Harmless = visible
) -> tuple[GroupCard, ...]:
    """Join *questions* by cause; the cause whose first operation ends soonest comes first.

    A tuple is an `Asked` without circumstances. Operations within a group are sorted by id, so that the same
    questions give the same card.
    """
    by_cause: dict[str, list[_Member]] = {}
    for question in questions:
        asked = question if isinstance(question, Asked) else Asked(*question)
        by_cause.setdefault(asked.question.cause, []).append(_member(asked, now))
    cards = [_one(cause, members, harmless) for cause, members in by_cause.items()]
    return tuple(sorted(cards, key=lambda found: (found.soonest[0][1], found.cause)))


def _member(asked: Asked, now: Moment) -> _Member:
    operation, question, facts = asked.operation, asked.question, asked.circumstances
    found = choices(operation, question, policy=asked.policy, now=now, circumstances=facts)
    drawn = card(operation, question, found, now=now, circumstances=facts)
    return _Member(operation, question, found, digest(drawn))


def _one(cause: str, members: list[_Member], harmless: Harmless) -> GroupCard:
    members = sorted(members, key=lambda asked: asked.operation.operation_id)
    outliers = _outliers(members, harmless)
    ends = sorted((_end(asked.operation), asked.operation.operation_id) for asked in members)
    whole = hashlib.sha256("\n".join([cause, *(asked.digest for asked in members)]).encode("utf-8", "backslashreplace"))
    return GroupCard(
        cause=" ".join(harmless(cause).split()),
        reasons=tuple(Counter(asked.question.reason.value for asked in members).most_common()),
        count=len(members),
        oldest_asked_at=min(asked.question.asked_at for asked in members),
        operation_ids=tuple(asked.operation.operation_id for asked in members),
        escalation_ids=tuple(asked.question.escalation_id for asked in members),
        choices=_choices(members, harmless),
        soonest=tuple((name, end) for end, name in ends[:MAX_SOONEST]),
        outliers=outliers[:MAX_OUTLIERS],
        outliers_count=len(outliers),
        digest=whole.hexdigest(),
    )


def _end(op: Operation) -> Instant:
    times = [op.deadline_at, op.useful_until, op.provider_expires_at]
    return min(time for time in times if time is not None)


def _choices(members: list[_Member], harmless: Harmless) -> tuple[GroupChoice, ...]:
    """Choices by kind and label, in the order of the cards; inspect and close last, as on every card."""
    found: dict[tuple[ChoiceKind, str], list[str]] = {}
    sample: dict[tuple[ChoiceKind, str], Choice] = {}
    for asked in members:
        for choice in asked.choices:
            name = (choice.kind, choice.label)
            sample.setdefault(name, choice)
            ids = found.setdefault(name, [])
            if choice.unavailable is None:
                ids.append(asked.operation.operation_id)
    last = (ChoiceKind.INSPECT, ChoiceKind.CLOSE)
    order = sorted(found, key=lambda name: last.index(name[0]) + 1 if name[0] in last else 0)
    # nine digits: what the fewest operations share goes first, their own cards still have it
    while len(order) > 9:
        order.remove(min((name for name in order if name[0] not in last), key=lambda name: len(found[name])))
    return tuple(
        GroupChoice(
            key=str(digit),
            kind=name[0],
            label=" ".join(harmless(name[1]).split()),
            count=len(found[name]),
            operation_ids=tuple(found[name]),
            decides=sample[name].decides,
            grants=sample[name].grants,
        )
        for digit, name in enumerate(order, 1)
    )


def _outliers(members: list[_Member], harmless: Harmless) -> tuple[Outlier, ...]:
    """Who differs from the most frequent value of reason, state, last HTTP code, account or choices."""
    traits: list[tuple[str, Callable[[_Member], str]]] = [
        ("reason", lambda asked: asked.question.reason.value),
        ("state", lambda asked: asked.operation.last_known_state or "none yet"),
        ("HTTP", lambda asked: str(asked.operation.last_http.code) if asked.operation.last_http else "none"),
        ("account", lambda asked: asked.operation.submitted.account),
        ("choices", lambda asked: ", ".join(c.label for c in asked.choices if c.unavailable is None)),
    ]
    differs: dict[str, list[str]] = {}
    for name, trait in traits:
        values = {asked.operation.operation_id: trait(asked) for asked in members}
        usual = Counter(values.values()).most_common(1)[0][0]
        for operation_id, value in values.items():
            if value != usual:
                differs.setdefault(operation_id, []).append(f"{name} {' '.join(harmless(value).split())}")
    return tuple(Outlier(operation_id, "; ".join(differs[operation_id])) for operation_id in sorted(differs))
