"""What is new since the last look.

Job: (ledger, rules, records as they are now) -> ledger with the items that are to be told. Must not know: the store,
sending, words. A cause is told once, and while it stays open again only when it grew and an hour has passed.
Source: spec E7, E10, G7, B5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from pollcore.facts import HOUR, Escalation, Instant, Moment, Operation, Status, StopReason, deadline_left
from pollcore.notices.model import MAX_IDS, MAX_ITEMS, MAX_TOLD, Item, Ledger, NoticeKind, Rules

AGAIN_MS: Final = HOUR
"""A cause that grows is told again after this."""
SHARE: Final = 4
"""A deadline is near at the latest in the last quarter of the wait: a wait of five minutes is not near at its start."""
_RUNNING: Final = frozenset({Status.WAITING, Status.HELD, Status.AWAITING_APPROVAL})
_FINISHED: Final = frozenset({Status.SUCCEEDED, Status.FAILED, Status.CANCELLED, Status.EXPIRED})


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The records of one look."""

    change: int
    questions: Sequence[Escalation]
    """All open ones."""
    live: Mapping[str, Operation]
    """All operations that have not ended, by id; of others with an open question, those too."""
    deadlines: Iterable[Operation] = ()
    """Those whose deadline is looked at now."""
    ended: Sequence[Operation] = ()
    """Changed since the last look, and at an end now."""
    was_live: frozenset[str] = frozenset()
    """Of these: seen alive by this process."""


def begin(now: Moment, seen: Seen) -> Ledger:
    """The first start: what there is now is not told."""
    asked = [q for q in seen.questions if _wanted(q)]
    ledger = Ledger(first_at=now.wall, change=seen.change)
    cards = {q.escalation_id: q.cause for q in asked}
    causes = {q.cause: now.wall for q in asked}
    return _bounded(msgspec.structs.replace(ledger, cards=cards, causes=causes), asked)


def looked(ledger: Ledger, rules: Rules, now: Moment, seen: Seen) -> Ledger:
    """The ledger after this look; *items* has what is new."""
    asked = sorted((q for q in seen.questions if _wanted(q)), key=lambda q: (q.asked_at, q.escalation_id))
    ledger = _cards(ledger, rules, now, seen, asked)
    ledger = _expiring(ledger, rules, now, seen, asked)
    ledger = _near(ledger, rules, now, seen)
    ledger = _ends(ledger, rules, now, seen)
    return _bounded(msgspec.structs.replace(ledger, change=seen.change), asked)


def _wanted(question: Escalation) -> bool:
    """Nobody is called for what an operator opened, or put off, at the console."""
    return question.reason is not StopReason.OPERATOR_REQUEST


def _cards(ledger: Ledger, rules: Rules, now: Moment, seen: Seen, asked: Sequence[Escalation]) -> Ledger:
    open_ids, open_causes = {q.escalation_id for q in asked}, {q.cause for q in asked}
    cards = {key: cause for key, cause in ledger.cards.items() if key in open_ids}
    causes = {cause: at for cause, at in ledger.causes.items() if cause in open_causes}
    ledger = msgspec.structs.replace(ledger, cards=cards, causes=causes)
    for question in asked:
        if question.escalation_id in cards or question.asked_at < ledger.floor:
            continue
        cards[question.escalation_id] = question.cause
        last = causes.get(question.cause)
        if NoticeKind.NEW_CARD not in rules.events or (last is not None and 0 <= now.wall - last < AGAIN_MS):
            continue
        causes[question.cause] = now.wall
        ledger = _add(ledger, _card_item(NoticeKind.NEW_CARD, question, seen, now))
    return ledger


def _expiring(ledger: Ledger, rules: Rules, now: Moment, seen: Seen, asked: Sequence[Escalation]) -> Ledger:
    if NoticeKind.EXPIRING_CARD not in rules.events:
        return ledger
    told = [key for key in ledger.expiring if key in {q.escalation_id for q in asked}]
    for question in asked:
        at = question.expires_at
        if at is None or not 0 < at - now.wall <= rules.expiring_lead_ms or question.escalation_id in told:
            continue
        told.append(question.escalation_id)
        item = _card_item(NoticeKind.EXPIRING_CARD, question, seen, now)
        ledger = _add(ledger, msgspec.structs.replace(item, until=at))
    return msgspec.structs.replace(ledger, expiring=tuple(told[-MAX_TOLD:]))


def _card_item(kind: NoticeKind, question: Escalation, seen: Seen, now: Moment) -> Item:
    operation = seen.live.get(question.operation_id)
    whom = operation.submitted.provider if operation is not None else ""
    if not question.operation_id:
        whom = f"credential {question.cause.partition(':')[2]}"
    ids = (question.operation_id,) if question.operation_id else ()
    return Item(kind=kind, key=question.cause, provider=whom, what=question.reason.value, at=now.wall, ids=ids)


def _near(ledger: Ledger, rules: Rules, now: Moment, seen: Seen) -> Ledger:
    if NoticeKind.DEADLINE_NEAR not in rules.events:
        return ledger
    near = {key: at for key, at in ledger.near.items() if key in seen.live}
    for operation in seen.deadlines:
        if operation.status not in _RUNNING or near.get(operation.operation_id) == operation.deadline_at:
            continue
        lead = min(rules.deadline_lead_ms, (operation.deadline_at - operation.submitted_at) // SHARE)
        if not 0 < deadline_left(operation, now) <= lead:
            continue
        near[operation.operation_id] = operation.deadline_at
        item = Item(
            kind=NoticeKind.DEADLINE_NEAR,
            key=operation.submitted.provider,
            provider=operation.submitted.provider,
            what="",
            at=now.wall,
            until=operation.deadline_at,
            ids=(operation.operation_id,),
        )
        ledger = _add(ledger, item)
    return msgspec.structs.replace(ledger, near=dict(list(near.items())[-MAX_TOLD:]))


def _ends(ledger: Ledger, rules: Rules, now: Moment, seen: Seen) -> Ledger:
    if NoticeKind.FINISHED not in rules.events:
        return ledger
    told, known = list(ledger.ended), set(ledger.ended)
    # an end that also asks is told as its card
    asking = {q.operation_id for q in seen.questions} if NoticeKind.NEW_CARD in rules.events else set()
    for operation in seen.ended:
        key = operation.operation_id
        if operation.status not in _FINISHED or key in known or key in asking:
            continue
        if key not in seen.was_live and _last_heard(operation) < ledger.first_at:
            continue
        told.append(key)
        known.add(key)
        provider, status = operation.submitted.provider, operation.status.value
        ledger = _add(
            ledger,
            Item(
                kind=NoticeKind.FINISHED,
                key=f"{provider}:{status}",
                provider=provider,
                what=status,
                at=now.wall,
                ids=(key,),
            ),
        )
    return msgspec.structs.replace(ledger, ended=tuple(told[-MAX_TOLD:]))


def _last_heard(operation: Operation) -> Instant:
    """When the newest answer or fault was recorded; a change after it alone is no end."""
    heard = [operation.submitted_at]
    if operation.last_http is not None:
        heard.append(operation.last_http.answered_at)
    if operation.last_fault_at is not None:
        heard.append(operation.last_fault_at)
    return max(heard)


def _add(ledger: Ledger, item: Item) -> Ledger:
    """One more thing to tell, joined with what has the same key."""
    for at, held in enumerate(ledger.items):
        if (held.kind, held.key) == (item.kind, item.key):
            until = item.until if held.until is None else min(held.until, item.until or held.until)
            ids = held.ids if len(held.ids) >= MAX_IDS else (*held.ids, *item.ids)
            joined = msgspec.structs.replace(held, count=held.count + 1, ids=ids, until=until)
            return msgspec.structs.replace(ledger, items=(*ledger.items[:at], joined, *ledger.items[at + 1 :]))
    if len(ledger.items) >= MAX_ITEMS:
        return msgspec.structs.replace(ledger, more=ledger.more + 1)
    return msgspec.structs.replace(ledger, items=(*ledger.items, item))


def _bounded(ledger: Ledger, asked: Sequence[Escalation]) -> Ledger:
    """Questions beyond what is remembered are told apart by the time at which they were asked."""
    if len(ledger.cards) <= MAX_TOLD:
        return ledger
    kept = dict(list(ledger.cards.items())[-MAX_TOLD:])
    dropped = [q.asked_at for q in asked if q.escalation_id in ledger.cards and q.escalation_id not in kept]
    floor = Instant(max([ledger.floor, *(at + 1 for at in dropped)]))
    causes = {cause: at for cause, at in ledger.causes.items() if cause in set(kept.values())}
    return msgspec.structs.replace(ledger, cards=kept, causes=causes, floor=floor)
