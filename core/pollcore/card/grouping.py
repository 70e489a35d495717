"""E10: one cause is one card over many rows.

Job: join open questions by cause; count, name those that end soonest; offer what they have in common; freeze the list.
Must not know: how the one answer is carried out on each operation, how the card is worded (that is `group_lines`).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from pollcore.card import group_lines
from pollcore.card.group_lines import Effects
from pollcore.card.line import CardLine, flat
from pollcore.card.members import Asked, ChoiceName, Member, member
from pollcore.card.outliers import outliers_of
from pollcore.escalation import ALWAYS, MAX_CHOICES
from pollcore.facts import Choice, ChoiceKind, Escalation, Instant, Moment, Operation, Policy
from pollcore.story import Harmless, visible

MAX_SOONEST: Final = 5
MAX_OUTLIERS: Final = 20
"""Named one by one on the card; the number of all is there too, and the list names every one."""
ONE_BY_ONE: Final[dict[ChoiceKind, str]] = {
    ChoiceKind.CANCEL_AT_PROVIDER: "each cancel is a request of its own: decide it on the operation's own card",
    ChoiceKind.RESUBMIT: "each resubmission is a request of its own: decide it on the operation's own card",
}
"""What one answer for many never does: a group's answer sends nothing itself."""


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
    name: ChoiceName
    effects: tuple[Effects, ...] = ()
    details: tuple[str, ...] = ()
    """Costs as ranges, what it leads to, warnings, for whom it cannot be chosen and why: harmless, one line each."""
    unavailable: str | None = None
    """Why nobody can take it here; it stays visible with the reason."""


class Outlier(msgspec.Struct, frozen=True):
    """An operation that differs from most of its group, and in what."""

    operation_id: str
    differs: str


class Frozen(msgspec.Struct, frozen=True):
    """One entry of the frozen list: what the one answer is bound to for this operation."""

    operation_id: str
    escalation_id: str
    version: int
    digest: str
    """Of the operation's own card as it was when the group was drawn."""
    ends_at: Instant
    reason: str
    state: str | None
    differs: str


class GroupCard(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown for one cause."""

    cause: str
    reasons: tuple[tuple[str, int], ...]
    """Reason, operations; the most frequent first."""
    oldest_asked_at: Instant
    members: tuple[Frozen, ...]
    """The frozen list: one answer covers these and no others. By operation id."""
    choices: tuple[GroupChoice, ...]
    soonest: tuple[tuple[str, Instant], ...]
    """Operation, end of its wait: the nearest ones first."""
    outliers: tuple[Outlier, ...]
    outliers_count: int
    title: str
    lines: tuple[CardLine, ...]
    digest: str
    drawn_at: Instant

    @property
    def count(self) -> int:
        return len(self.members)

    @property
    def operation_ids(self) -> tuple[str, ...]:
        return tuple(member.operation_id for member in self.members)

    @property
    def escalation_ids(self) -> tuple[str, ...]:
        return tuple(member.escalation_id for member in self.members)


def group(
    questions: Iterable[Asked | tuple[Operation, Escalation, Policy]],
    *,
    now: Moment,
    harmless: Harmless = visible,
) -> tuple[GroupCard, ...]:
    """Join *questions* by cause; the cause whose first operation ends soonest comes first.

    A tuple is an `Asked` without circumstances. Operations within a group are sorted by id, so that the same
    questions give the same card.
    """
    by_cause: dict[str, list[Member]] = {}
    for question in questions:
        asked = question if isinstance(question, Asked) else Asked(*question)
        by_cause.setdefault(asked.question.cause, []).append(member(asked, now))
    cards = [join(cause, members, now, harmless) for cause, members in by_cause.items()]
    return tuple(sorted(cards, key=lambda found: (found.soonest[0][1], found.cause)))


def join(cause: str, members: Sequence[Member], now: Moment, harmless: Harmless = visible, asked: int = 0) -> GroupCard:
    """The card of one cause. *asked*: how many questions have this cause, when that is more than *members*.

    Raises ValueError: *members* is empty.
    """
    if not members:
        raise ValueError("a group has at least one operation")
    members = sorted(members, key=lambda each: each.operation.operation_id)
    differs = outliers_of(members, harmless)
    ends = {each.operation.operation_id: end_of(each.operation) for each in members}
    soonest = sorted((end, name) for name, end in ends.items())[:MAX_SOONEST]
    whole = hashlib.sha256("\n".join([cause, *(each.digest for each in members)]).encode("utf-8", "backslashreplace"))
    offered = _choices(members, now, harmless)
    outliers = tuple(Outlier(name, differs[name]) for name in sorted(differs))
    digest = whole.hexdigest()
    return GroupCard(
        cause=flat(cause, harmless),
        reasons=tuple(Counter(each.question.reason.value for each in members).most_common()),
        oldest_asked_at=min(each.question.asked_at for each in members),
        members=tuple(_frozen(each, ends, differs) for each in members),
        choices=offered,
        soonest=tuple((name, end) for end, name in soonest),
        outliers=outliers[:MAX_OUTLIERS],
        outliers_count=len(outliers),
        title=group_lines.TITLE,
        lines=group_lines.lines(
            cause,
            [(each.operation, each.question) for each in members],
            ends=ends,
            soonest=[(name, end) for end, name in soonest],
            outliers=[(each.operation_id, each.differs) for each in outliers[:MAX_OUTLIERS]],
            outliers_count=len(outliers),
            diffs=sorted({each.diff for each in members if each.diff is not None}),
            contracts=sorted({each.contract for each in members if each.contract}),
            digest=digest,
            asked=max(asked, len(members)),
            now=now,
            harmless=harmless,
        ),
        digest=digest,
        drawn_at=now.wall,
    )


def _frozen(each: Member, ends: Mapping[str, Instant], differs: Mapping[str, str]) -> Frozen:
    op, question = each.operation, each.question
    return Frozen(
        op.operation_id,
        question.escalation_id,
        op.version,
        each.digest,
        ends[op.operation_id],
        question.reason.value,
        op.last_known_state,
        differs.get(op.operation_id, ""),
    )


def end_of(op: Operation) -> Instant:
    """When the wait for *op* ends by our deadline, its usefulness or the provider's own expiry."""
    times = [op.deadline_at, op.useful_until, op.provider_expires_at]
    return min(time for time in times if time is not None)


def _choices(members: Sequence[Member], now: Moment, harmless: Harmless) -> tuple[GroupChoice, ...]:
    """Choices that are one and the same, in the order of the cards; inspect and close last, as on every card."""
    found: dict[ChoiceName, list[tuple[str, Choice]]] = {}
    for each in members:
        for choice in each.choices:
            found.setdefault(each.named(choice), []).append((each.operation.operation_id, choice))
    able = {name: [pair for pair in pairs if pair[1].unavailable is None] for name, pairs in found.items()}
    order = sorted(found, key=lambda name: ALWAYS.index(name[0]) + 1 if name[0] in ALWAYS else 0)
    # nine digits: what the fewest operations share goes first, their own cards still have it
    while len(order) > MAX_CHOICES:
        order.remove(min((name for name in order if name[0] not in ALWAYS), key=lambda name: len(able[name])))
    made = []
    for digit, name in enumerate(order, 1):
        alone = ONE_BY_ONE.get(name[0])
        pairs = [] if alone else able[name]
        offered = [choice for _, choice in found[name]]
        effects = group_lines.effects([choice for _, choice in able[name]])
        made.append(
            GroupChoice(
                key=str(digit),
                kind=name[0],
                label=flat(name[1], harmless),
                count=len(pairs),
                operation_ids=tuple(operation_id for operation_id, _ in pairs),
                decides=offered[0].decides,
                grants=offered[0].grants,
                name=name,
                effects=effects,
                details=group_lines.details(offered, effects, len(members), alone, now.wall, harmless),
                unavailable=alone or (None if pairs else "no operation of the list can take it now"),
            )
        )
    return tuple(made)
