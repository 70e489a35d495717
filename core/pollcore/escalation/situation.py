"""The one view of record, question, contract and facts that all builders of choices work on, and what they share.

Job: effects, warnings, time that a choice needs. Must not know: which reason permits which choice.
Source: spec E3 (what each choice shows), E4, E7, B5.
"""

from __future__ import annotations

import msgspec

from pollcore.escalation.circumstances import Circumstances
from pollcore.escalation.room import (
    Added,
    can_check,
    end_of_wait,
    first_check_at,
    last_possible_check,
    raise_limits,
)
from pollcore.facts import (
    DAY,
    HOUR,
    LAST_CHECK,
    MINUTE,
    SECOND,
    Effect,
    Escalation,
    ExtendSize,
    Instant,
    Moment,
    Operation,
    Policy,
    StopReason,
    clock_time,
    iso,
)

_UNITS = ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (SECOND, "second"))


def span_words(ms: int) -> str:
    """`40 minutes`, `1 hour 5 minutes`: the two largest units, cut; under a second `0 seconds`."""
    left, words = max(0, ms), list[str]()
    for size, name in _UNITS:
        count, left = divmod(left, size)
        if count:
            words.append(f"{count} {name}{'s' if count != 1 else ''}")
        if len(words) == 2 or (words and not count):
            break
    return " ".join(words) or "0 seconds"


def when(at: Instant, now: Instant) -> str:
    """`10:22:31 UTC`, with the date where the day is another than that of *now*."""
    text = clock_time(at)
    return f"{text} UTC" if at // DAY == now // DAY else f"{iso(at)[:10]} {text} UTC"


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a builder may read."""

    operation: Operation
    question: Escalation | None
    reason: StopReason
    policy: Policy
    now: Moment
    facts: Circumstances
    raised: dict[Added, Operation] = {}
    """The record after each addition that was asked for: several sentences of one choice speak of it."""
    lasts: dict[Added, Instant | None] = {}

    def after(self, added: Added) -> Operation:
        """The record with *added* on its limits."""
        if added not in self.raised:
            self.raised[added] = raise_limits(self.operation, added, self.now)
        return self.raised[added]

    def last_check(self, added: Added) -> Instant | None:
        """When the last check could go out under the limits with *added*; None: none could."""
        if added not in self.lasts:
            after, plan = self.after(added), self.policy.schedule
            self.lasts[added] = last_possible_check(after, self.now, plan, self.facts.cooldown_until)
        return self.lasts[added]

    @property
    def extensions_left(self) -> int:
        return max(0, self.policy.max_extensions - self.operation.extensions_used)

    @property
    def passed(self) -> bool:
        """Deadline or usefulness is over (E7)."""
        return end_of_wait(self.operation, self.now) <= self.now.wall

    def can_check(self, operation: Operation) -> bool:
        return can_check(operation, self.now, self.policy.schedule, self.facts.cooldown_until)

    def added(self, size: ExtendSize) -> Added:
        """What *size* adds here: a failure or rate budget gets its number only when it is spent (E4)."""
        op = self.operation
        failures_spent = 0 < op.max_transport_failures <= op.transport_failures_used
        rate_spent = 0 < op.max_rate_limited <= op.rate_limited_used
        return Added(
            size.minutes,
            size.checks,
            size.transport_failures if failures_spent else 0,
            size.rate_limited if rate_spent else 0,
        )

    def time_for_a_check(self) -> Added | None:
        """E7: what a choice that needs a check carries: nothing, the smallest size that makes room; None: vanish."""
        if self.can_check(self.operation):
            return Added()
        if not self.extensions_left:
            return None
        for size in sorted(self.policy.extend, key=lambda size: (size.minutes, size.checks)):
            added = self.added(size)
            if self.can_check(self.after(added)):
                return added
        return None

    def effects(self, added: Added) -> tuple[Effect, ...]:
        """Every limit that *added* moves, before and after, and when the last check could go out then."""
        before = self.operation
        after = self.after(added)
        rows = [
            ("deadline", before.deadline_at, after.deadline_at),
            ("status_requests", before.max_status_requests, after.max_status_requests),
            ("transport_failures", before.max_transport_failures, after.max_transport_failures),
            ("rate_limited", before.max_rate_limited, after.max_rate_limited),
            ("useful_until", before.useful_until, after.useful_until),
        ]
        found = [Effect(what=what, before=old, after=new) for what, old, new in rows if old != new]
        before_last, after_last = self.last_check(Added()), self.last_check(added)
        found.append(Effect(what=LAST_CHECK, before=before_last, after=after_last))
        return tuple(found)

    def time_warnings(self, added: Added) -> tuple[str, ...]:
        """B5, E3: which other times the new deadline passes."""
        op, now = self.operation, self.now.wall
        deadline = self.after(added).deadline_at
        found = []
        if added.minutes and op.useful_until is not None and deadline > op.useful_until:
            found.append(f"passes useful_until {when(op.useful_until, now)} and moves it to {when(deadline, now)}")
        if op.provider_expires_at is not None and deadline > op.provider_expires_at:
            found.append(f"passes the provider's own expiry at {when(op.provider_expires_at, now)}")
        if self.policy.retention is not None and deadline > op.started_at + self.policy.retention:
            kept = Instant(op.started_at + self.policy.retention)
            found.append(f"passes the provider's retention: the job's record is kept until {when(kept, now)}")
        longest = self.policy.schedule.max_interval
        if longest is not None and op.guidance_until is not None and op.guidance_until - now > longest:
            found.append(f"the job must be asked every {span_words(longest)}, open guidance is longer")
        return tuple(found)

    def age_sentence(self, added: Added) -> str:
        """E3: how old the result would be."""
        age = self.after(added).deadline_at - self.operation.started_at
        return f"a result could be up to {span_words(age)} old, counted from the job's start"

    def first_check_sentence(self) -> str:
        """Told by guidance or cool-down that time is firm, else it is counted anew from the grant."""
        op = self.operation
        at = first_check_at(op, self.now, self.policy.schedule, self.facts.cooldown_until)
        firm = at in (op.guidance_until, self.facts.cooldown_until)
        return f"the first check goes out at {'' if firm else 'about '}{when(at, self.now.wall)}"

    def no_room(self, after: Operation) -> str | None:
        """E4: why no check could go out under the limits of *after*; None: one can."""
        if self.can_check(after):
            return None
        if after.requests_left <= 0:
            used = f"{after.status_requests_used} of {after.max_status_requests}"
            return f"no check could go out: {used} requests are used"
        first = first_check_at(after, self.now, self.policy.schedule, self.facts.cooldown_until)
        end, wall = end_of_wait(after, self.now), self.now.wall
        held_back = max(after.guidance_until or 0, self.facts.cooldown_until or 0) >= first
        why = "the provider's guidance or cool-down ends" if held_back else "the first check would be due"
        return f"no check could go out: {why} at {when(first, wall)}, not before the new end {when(end, wall)}"
