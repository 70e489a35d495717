"""Figures over many operations, one at a time, so that a report of any length takes the memory of one.

Job: sums, shares, medians; by provider, by reason, by hour or day. Must not know: storage, how figures are printed.
Source: spec A5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pollcore.facts import (
    DAY,
    HOUR,
    SECOND,
    AuditEvent,
    Escalation,
    EventName,
    Instant,
    Intent,
    Operation,
    Status,
)
from pollcore.report.contradictions import Contradiction, States, contradictions, is_live
from pollcore.report.requests import STOPS, requests_of
from pollcore.report.shapes import Bucket, ByProvider, ByReason, Extension, Report, Times

FIXED_INTERVAL: Final = 10 * SECOND
"""The loop that pollconsole replaces: a request every ten seconds until the end."""
MAX_LISTED: Final = 1_000
"""Extensions and contradictions that are listed; all are counted."""
FEW_HOURS: Final = 2 * DAY
"""A report over so long counts by the hour, a longer one by the day."""
SUPERSEDED: Final = "superseded"
_RUN: Final = 512
"""Numbers of requests that share one entry of what was seen."""


class _Distinct:
    """Which requests were met: a bit for each, because a report may hold millions and they are numbered in a row."""

    def __init__(self) -> None:
        self._runs: dict[int, int] = {}

    def add(self, requests: Iterable[int]) -> int:
        """How many of *requests* were not met before."""
        new = 0
        for run, place in (divmod(request, _RUN) for request in requests):
            known, bit = self._runs.get(run, 0), 1 << place
            if not known & bit:
                self._runs[run] = known | bit
                new += 1
        return new


class _Sums:
    """What adds up over operations."""

    def __init__(self) -> None:
        self.operations = self.ended = self.escalated = self.overdue = 0
        self.given = self.obeyed = self.requests = self.sent = self.permitted = 0
        self.fixed = self.wrong = self.unprovable = 0
        self.waits: list[int] = []

    @property
    def settled(self) -> int:
        return self.ended + self.escalated + self.overdue

    def share_settled(self) -> float | None:
        return _share(self.ended + self.escalated, self.settled)


class Tally:
    """Add operations, then `report`."""

    def __init__(self, *, now: Instant, since: Instant | None = None, interval: int = FIXED_INTERVAL) -> None:
        """*since*: the beginning of the report, None: the first operation's. *interval*: of the fixed loop, ms."""
        self._now = now
        self._since = since
        self._interval = interval
        self._all = _Sums()
        self._providers: dict[str, _Sums] = {}
        self._reasons: dict[str, list[Escalation]] = {}
        self._extensions: list[Extension] = []
        self._wrong: list[Contradiction] = []
        self._hours: dict[str, Counter[int]] = {"submitted": Counter(), "requests": Counter(), "questions": Counter()}
        self._open: list[int] = []
        self._sent = _Distinct()

    def add(
        self,
        op: Operation,
        questions: Iterable[Escalation],
        found: Sequence[AuditEvent],
        states: States | None = None,
        charges: Iterable[Intent] = (),
    ) -> None:
        """One operation with its questions and its events in the order written.

        *states*: what its contract says of each state; None: what the events say is compared alone. *charges*: its
        counted requests with the numbers of those that went out (R39: several operations may share one) and their boot
        times; none: each counted one is taken for a request of its own, as where an archive took the charges away.
        """
        charged = tuple(charges)
        wrong = list(contradictions(op, found, self._now, states, charged))
        self._wrong += wrong[: max(0, MAX_LISTED - len(self._wrong))]
        asked = list(questions)
        facts = list(requests_of(found, charged))
        numbers = tuple(one.request for one in charged)
        new = self._sent.add(numbers) if numbers else len(facts)
        self._hours["submitted"][op.submitted_at // HOUR] += 1
        self._hours["requests"].update(fact.sent_at // HOUR for fact in facts)
        for sums in (self._all, self._providers.setdefault(op.submitted.provider, _Sums())):
            sums.operations += 1
            sums.ended += op.status.is_end
            sums.escalated += op.status is Status.ESCALATED
            sums.overdue += is_live(op) and self._now >= op.deadline_at
            sums.given += sum(fact.obeyed is not None for fact in facts)
            sums.unprovable += sum(fact.unprovable for fact in facts)
            sums.obeyed += sum(fact.obeyed is True for fact in facts)
            sums.requests += len(facts)
            sums.sent += new
            sums.permitted += sum(fact.permitted for fact in facts)
            sums.fixed += _fixed(op, found, self._now, self._interval)
            sums.wrong += len(wrong)
            sums.waits += _waits(asked)
        for question in asked:
            self._reasons.setdefault(question.reason.value, []).append(question)
            self._hours["questions"][question.asked_at // HOUR] += 1
        self._open += [self._now - question.asked_at for question in asked if question.decided_at is None]
        for event in found:
            if event.event is EventName.GRANTED and event.decision == "extend" and len(self._extensions) < MAX_LISTED:
                told = Extension(op.operation_id, event.at, event.operator or "unknown", event.detail or "extend")
                self._extensions.append(told)

    def report(self) -> Report:
        """All figures."""
        sums, times = self._all, _times(self._all.waits)
        bucket, buckets = self._buckets()
        return Report(
            operations=sums.operations,
            ended=sums.ended,
            escalated=sums.escalated,
            within_limits=sums.operations - sums.settled,
            overdue=sums.overdue,
            share_ended_or_escalated=sums.share_settled(),
            guidance_given=sums.given,
            guidance_obeyed=sums.obeyed,
            guidance_unprovable=sums.unprovable,
            share_guidance_obeyed=_share(sums.obeyed, sums.given),
            requests=sums.requests,
            requests_sent=sums.sent,
            requests_permitted=sums.permitted,
            fixed_interval_requests=sums.fixed,
            decisions=times.decisions,
            open_questions=len(self._open),
            median_time_to_decision=times.median,
            p95_time_to_decision=times.p95,
            longest_time_to_decision=times.longest,
            oldest_open_question=max(self._open, default=None),
            by_provider=tuple(_by_provider(name, sums) for name, sums in sorted(self._providers.items())),
            by_reason=tuple(_by_reason(name, asked) for name, asked in sorted(self._reasons.items())),
            bucket=bucket,
            by_time=buckets,
            extensions=tuple(self._extensions),
            contradictions=tuple(self._wrong),
            contradiction_count=sums.wrong,
        )

    def _buckets(self) -> tuple[int, tuple[Bucket, ...]]:
        seen = {hour for counted in self._hours.values() for hour in counted}
        first = min(seen, default=self._now // HOUR) if self._since is None else self._since // HOUR
        span = self._now - first * HOUR
        size = HOUR if span <= FEW_HOURS else DAY
        sums: dict[str, Counter[int]] = {name: Counter() for name in self._hours}
        for name, counted in self._hours.items():
            for hour, count in counted.items():
                sums[name][hour * HOUR // size] += count
        used = [at for counted in sums.values() for at in counted]
        if not used:
            return size, ()
        return size, tuple(
            Bucket(Instant(at * size), sums["submitted"][at], sums["requests"][at], sums["questions"][at])
            for at in range(max(min(used), first * HOUR // size), max(used) + 1)
        )


def report(
    operations: Sequence[Operation],
    questions: Iterable[Escalation],
    events: Mapping[str, Sequence[AuditEvent]],
    *,
    now: Instant,
    states: Mapping[str, States] | None = None,
    interval: int = FIXED_INTERVAL,
) -> Report:
    """Compute A5's figures over what is at hand.

    Args:
        events: By operation id, in the order written.
        states: By contract digest: what the contract says of each state; without them only what the events
            themselves say is compared.
        interval: Of the fixed-interval loop, ms.
    """
    tally = Tally(now=now, interval=interval)
    asked: dict[str, list[Escalation]] = {}
    for question in questions:
        asked.setdefault(question.operation_id, []).append(question)
    for op in operations:
        known = (states or {}).get(op.contract_digest)
        tally.add(op, asked.get(op.operation_id, ()), tuple(events.get(op.operation_id, ())), known)
    return tally.report()


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _waits(asked: Iterable[Escalation]) -> list[int]:
    # a clock that was set back between makes no time less than none
    return [max(0, q.decided_at - q.asked_at) for q in asked if q.decided_at is not None and q.decision != SUPERSEDED]


def _times(waits: Sequence[int]) -> Times:
    """Median and 95th percentile by the nearest rank."""
    found = sorted(waits)
    if not found:
        return Times(0, None, None, None)
    return Times(len(found), found[(len(found) - 1) // 2], found[-(-95 * len(found) // 100) - 1], found[-1])


def _by_provider(name: str, sums: _Sums) -> ByProvider:
    return ByProvider(
        provider=name,
        operations=sums.operations,
        share_ended_or_escalated=sums.share_settled(),
        share_guidance_obeyed=_share(sums.obeyed, sums.given),
        requests=sums.requests,
        requests_sent=sums.sent,
        requests_permitted=sums.permitted,
        fixed_interval_requests=sums.fixed,
        contradictions=sums.wrong,
        times=_times(sums.waits),
    )


def _by_reason(name: str, asked: Sequence[Escalation]) -> ByReason:
    waiting = sum(question.decided_at is None for question in asked)
    return ByReason(reason=name, questions=len(asked), open=waiting, times=_times(_waits(asked)))


def _fixed(op: Operation, found: Sequence[AuditEvent], now: Instant, interval: int) -> int:
    """A loop from the submission to the end: the last answer or stop; for a live wait until now."""
    last = now if is_live(op) else max((event.at for event in found if event.event in STOPS), default=op.submitted_at)
    return -(-max(0, min(last, op.deadline_at) - op.submitted_at) // interval)
