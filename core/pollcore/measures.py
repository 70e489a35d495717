"""Figures of a running core for those who watch many: what is counted, and is it well.

Job: records and events -> one frozen snapshot; bounded names. Must not know: the store, HTTP, the format in which it is
told. No operation's id, no job id, no account and no text of a provider is in it; providers are capped.
Source: spec O8, B4, E1, A4; K1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from pollcore.facts import (
    SECOND,
    AuditEvent,
    DelaySource,
    Escalation,
    EventName,
    FaultKind,
    Instant,
    Moment,
    Operation,
    Status,
    StopReason,
)

MAX_PROVIDERS: Final = 50
"""Providers that have lines of their own; the rest are together, as `other`."""
OTHER: Final = "other"
BUCKETS_MS: Final = (100, 500, 1_000, 5_000, 15_000, 60_000, 300_000)
"""Upper bounds of lateness: time at which a request was sent less the time that was planned."""
STALE_MS: Final = 30 * SECOND
"""A heartbeat or a snapshot that is older is no sign of life (a core beats every 10 s)."""
_LOW: Final = (4, 5)
"""A budget of which four fifths are used is low."""
_KINDS: Final = frozenset(kind.value for kind in FaultKind)
_DECISIONS: Final = {"wait": "waiting", "succeed": "succeeded"}


class Budget(msgspec.Struct, frozen=True):
    """One budget over the live operations of a provider."""

    used: int = 0
    allowed: int = 0


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What one provider's live operations have used, and how many have a budget that is low."""

    live: int = 0
    low: int = 0
    requests: Budget = Budget()
    failures: Budget = Budget()
    rate_limited: Budget = Budget()


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """What happened since this process began to count, whichever process did it."""

    answers: Mapping[str, int] = {}
    """Requests by what came of them: `waiting`, `succeeded`, `stopped`, `rate_limited`, `http_5xx` and its like, or a
    fault's kind."""
    late: tuple[int, ...] = (0,) * (len(BUCKETS_MS) + 1)
    """Requests by lateness, one count a bucket; the last is beyond all."""
    late_sum_ms: int = 0


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of one moment."""

    at: Moment
    by_status: Mapping[str, int] = {}
    by_provider: Mapping[str, Figures] = {}
    by_delay: Mapping[str, int] = {}
    """Waiting operations by what moved their next request: cool-downs and origins that are down are among them."""
    questions: Mapping[str, tuple[int, Instant]] = {}
    """Open ones by reason: how many, and when the oldest was asked."""
    counted: Counted = Counted()
    paused: int = 0
    beat_age_ms: int | None = None
    """Since the newest heartbeat of any core; None: none ever."""
    store_fault: str | None = None
    """Why the store cannot be read, or nothing can be sent."""
    anchored: bool = True
    damaged: bool = False
    unanchored_ms: int = 0


def outcome_of(event: AuditEvent) -> str | None:
    """What a request came to; None: the event tells of none."""
    match event.event:
        case EventName.ANSWER_LOST:
            return FaultKind.ANSWER_LOST.value
        case EventName.POLLED | EventName.FAULTED if event.fault in _KINDS:
            return event.fault
        case EventName.FAULTED if event.http == 429:
            return "rate_limited"
        case EventName.FAULTED if event.http is not None:
            return f"http_{min(9, max(1, event.http // 100))}xx"
        case EventName.POLLED | EventName.FAULTED:
            return _DECISIONS.get(event.decision or "", "stopped")
    return None


def count(counted: Counted, events: Iterable[AuditEvent]) -> Counted:
    """With *events*, which were not counted before."""
    answers, late, total = dict(counted.answers), list(counted.late), counted.late_sum_ms
    for event in events:
        outcome = outcome_of(event)
        if outcome is None:
            continue
        answers[outcome] = answers.get(outcome, 0) + 1
        if event.planned_at is not None and event.sent_at is not None:
            ms = max(0, event.sent_at - event.planned_at)
            total += ms
            late[next((i for i, bound in enumerate(BUCKETS_MS) if ms <= bound), len(BUCKETS_MS))] += 1
    return Counted(answers=answers, late=tuple(late), late_sum_ms=total)


def by_provider(live: Iterable[Operation]) -> dict[str, Figures]:
    """The largest providers by name, the rest as `other`."""
    found: dict[str, Figures] = {}
    for operation in live:
        name = operation.submitted.provider
        found[name] = _joined(found.get(name, Figures()), _figures(operation))
    if len(found) <= MAX_PROVIDERS:
        return found
    largest = sorted(found, key=lambda name: (-found[name].live, name))
    kept = {name: found[name] for name in largest[: MAX_PROVIDERS - 1]}
    rest = Figures()
    for name in largest[MAX_PROVIDERS - 1 :]:
        rest = _joined(rest, found[name])
    kept[OTHER] = _joined(kept.get(OTHER, Figures()), rest)
    return kept


def _figures(operation: Operation) -> Figures:
    budgets = (
        Budget(operation.status_requests_used, operation.max_status_requests),
        Budget(operation.transport_failures_used, operation.max_transport_failures),
        Budget(operation.rate_limited_used, operation.max_rate_limited),
    )
    low = any(one.allowed and one.used * _LOW[1] >= one.allowed * _LOW[0] for one in budgets)
    return Figures(live=1, low=int(low), requests=budgets[0], failures=budgets[1], rate_limited=budgets[2])


def _joined(one: Figures, other: Figures) -> Figures:
    def add(a: Budget, b: Budget) -> Budget:
        return Budget(a.used + b.used, a.allowed + b.allowed)

    return Figures(
        live=one.live + other.live,
        low=one.low + other.low,
        requests=add(one.requests, other.requests),
        failures=add(one.failures, other.failures),
        rate_limited=add(one.rate_limited, other.rate_limited),
    )


def by_delay(live: Iterable[Operation]) -> dict[str, int]:
    """Waiting operations by the source of their next request's time."""
    found = {source.value: 0 for source in DelaySource}
    for operation in live:
        if operation.status is Status.WAITING and operation.delay_source is not None:
            found[operation.delay_source.value] += 1
    return found


def by_reason(questions: Sequence[Escalation]) -> dict[str, tuple[int, Instant]]:
    """Open questions: how many of each reason, and when the oldest was asked."""
    found: dict[str, tuple[int, Instant]] = {}
    for question in questions:
        many, oldest = found.get(question.reason.value, (0, question.asked_at))
        found[question.reason.value] = (many + 1, min(oldest, question.asked_at))
    return {reason.value: found[reason.value] for reason in StopReason if reason.value in found}


def unreadable(before: Snapshot, now: Moment, why: str) -> Snapshot:
    """The store could not be read: the last figures, with that, as of *now*."""
    aged = None if before.beat_age_ms is None else before.beat_age_ms + max(0, now.boot - before.at.boot)
    return msgspec.structs.replace(before, at=now, store_fault=why, beat_age_ms=aged)


def why_ill(snapshot: Snapshot | None, now: Moment) -> tuple[str, ...]:
    """What keeps `/healthz` from saying that all is well; empty: all is well. Nothing of ours is quoted but states."""
    if snapshot is None:
        return ("the core has not begun",)
    wrong = []
    if now.boot - snapshot.at.boot > STALE_MS:
        wrong.append("the core's loop does not answer")
    if snapshot.beat_age_ms is None:
        wrong.append("no core has run yet")
    elif snapshot.beat_age_ms + max(0, now.boot - snapshot.at.boot) > STALE_MS:
        wrong.append("the core gives no heartbeat")
    if snapshot.store_fault is not None:
        wrong.append("the store cannot be used")
    if snapshot.damaged:
        wrong.append("the audit is damaged")
    return tuple(wrong)
