"""When what is to be told goes out, and what becomes of a message that did not arrive.

Job: grouping window, quiet hours, messages an hour, retries. Must not know: the store, zones of time (the minute of the
local day comes in), how anything is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from pollcore.facts import HOUR, MINUTE, SECOND, Escalation, Instant, Operation
from pollcore.notices.model import Delivery, Item, Ledger, NoticeKind, Outcome, Rules

RETRY_AFTER_MS: Final = (10 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE)
"""After the first failure, the second ...; then the message is given up for this address, and that is recorded."""
LIMIT_TRIES: Final = len(RETRY_AFTER_MS) + 1
MAX_DELIVERIES: Final = 20
"""Messages that are still under way; while there are so many, nothing new is composed."""
_CARDS: Final = frozenset({NoticeKind.NEW_CARD, NoticeKind.EXPIRING_CARD})


def is_quiet(rules: Rules, minute: int) -> bool:
    """Whether *minute* of the local day (0-1439) lies in the quiet hours; the end is outside."""
    if rules.quiet is None:
        return False
    start, end = rules.quiet
    return start <= minute < end if start < end else minute >= start or minute < end


def settled(ledger: Ledger, questions: Sequence[Escalation], live: Mapping[str, Operation]) -> Ledger:
    """Without what needs no telling any more: cards that are decided, deadlines of what has ended; counts as of now."""
    by_cause: dict[str, list[str]] = {}
    for question in questions:
        by_cause.setdefault(question.cause, []).append(question.operation_id)
    items = []
    for item in ledger.items:
        if item.kind in _CARDS:
            ids = by_cause.get(item.key)
            if ids is not None:
                kept = tuple(one for one in item.ids if one in ids)
                shown = kept or tuple(one for one in ids[:1] if one)
                items.append(msgspec.structs.replace(item, count=len(ids), ids=shown))
        elif item.kind is not NoticeKind.DEADLINE_NEAR or any(one in live for one in item.ids):
            items.append(item)
    return msgspec.structs.replace(ledger, items=tuple(items))


def is_due(ledger: Ledger, rules: Rules, now: Instant, minute: int) -> bool:
    """Whether a message is to be composed now: the window of the oldest is over, or a card expires; not in quiet hours,
    not beyond the limit of an hour.
    """
    if not ledger.items or is_quiet(rules, minute) or len(ledger.deliveries) >= MAX_DELIVERIES:
        return False
    if sum(0 <= now - at < HOUR for at in ledger.sent) >= rules.per_hour:
        return False
    return any(_waited(item, rules, now) for item in ledger.items)


def _waited(item: Item, rules: Rules, now: Instant) -> bool:
    # a clock that was put back makes nothing wait for its old time
    return item.kind is NoticeKind.EXPIRING_CARD or not 0 <= now - item.at < rules.group_ms


def composed(ledger: Ledger, now: Instant, title: str, body: str, names: Sequence[str]) -> Ledger:
    """What waited is one message to *names*, and counts for the hour."""
    sent = (*(at for at in ledger.sent if 0 <= now - at < HOUR), now)
    more: tuple[Delivery, ...] = ()
    if names:
        more = (Delivery(title=title, body=body, at=now, next_at=now, to=dict.fromkeys(names, 0)),)
    return msgspec.structs.replace(ledger, items=(), more=0, sent=sent, deliveries=(*ledger.deliveries, *more))


def due_deliveries(ledger: Ledger, rules: Rules, now: Instant, minute: int) -> tuple[Delivery, ...]:
    """Messages to try now."""
    if is_quiet(rules, minute):
        return ()
    longest = RETRY_AFTER_MS[-1]
    return tuple(one for one in ledger.deliveries if one.next_at <= now or one.next_at - now > longest)


def tried(ledger: Ledger, delivery: Delivery, now: Instant, failed: Mapping[str, str | None]) -> Ledger:
    """After a try. *failed*: address -> why, None: it arrived; an address that is absent is gone and is dropped."""
    left: dict[str, int] = {}
    outcomes = dict(ledger.outcomes)
    for name, why in failed.items():
        before = outcomes.get(name, Outcome())
        if why is None:
            outcomes[name] = msgspec.structs.replace(before, sent_at=now)
            continue
        tries = delivery.to.get(name, 0) + 1
        given_up = tries >= LIMIT_TRIES
        if not given_up:
            left[name] = tries
        outcomes[name] = msgspec.structs.replace(before, failed_at=now, why=why, gave_up=before.gave_up + given_up)
    rest = tuple(one for one in ledger.deliveries if one != delivery)
    if left:
        after = RETRY_AFTER_MS[min(max(left.values()), len(RETRY_AFTER_MS)) - 1]
        rest = (*rest, msgspec.structs.replace(delivery, to=left, next_at=Instant(now + after)))
    return msgspec.structs.replace(ledger, deliveries=rest, outcomes=outcomes)
