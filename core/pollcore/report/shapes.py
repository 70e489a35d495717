"""What a report holds: figures, times to decision, parts by provider, reason and time.

Job: the shapes, with units. Must not know: how they are computed or printed. Source: spec A5.
"""

from __future__ import annotations

import msgspec

from pollcore.facts import Instant
from pollcore.report.contradictions import Contradiction


class Extension(msgspec.Struct, frozen=True):
    """Who extended what."""

    operation_id: str
    at: Instant
    operator: str
    what: str


class Times(msgspec.Struct, frozen=True):
    """Times to decision, ms; None: nothing was decided."""

    decisions: int
    median: int | None
    p95: int | None
    longest: int | None


class ByProvider(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one provider."""

    provider: str
    operations: int
    share_ended_or_escalated: float | None
    share_guidance_obeyed: float | None
    requests: int
    requests_sent: int
    requests_permitted: int
    fixed_interval_requests: int
    contradictions: int
    times: Times


class ByReason(msgspec.Struct, frozen=True, kw_only=True):
    """Questions of one reason."""

    reason: str
    questions: int
    open: int
    times: Times


class Bucket(msgspec.Struct, frozen=True):
    """One hour or day, from *at* on."""

    at: Instant
    submitted: int
    requests: int
    questions: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Figures; counts of operations and requests, times in ms, shares 0-1 or None where there is nothing to share."""

    operations: int
    ended: int
    escalated: int
    """Bounded escalations: stopped, a question is open."""
    within_limits: int
    """Still waiting, held or awaiting approval, inside their deadline."""
    overdue: int
    """Neither ended nor escalated although the deadline has passed."""
    share_ended_or_escalated: float | None
    """Of the operations that are not within their limits any more."""
    guidance_given: int
    guidance_obeyed: int
    guidance_unprovable: int
    """Given besides, and nobody can say whether it was obeyed: the clock was stepped between."""
    share_guidance_obeyed: float | None
    requests: int
    """Counted: a request that several operations share is counted for each of them (B2, R39)."""
    requests_sent: int
    """What went out: each request once, however many operations it was counted for."""
    requests_permitted: int
    """Of those counted: sent inside budget and deadline, under no stop and no hold."""
    fixed_interval_requests: int
    """What a loop with a fixed interval would have sent in the same time, to be held against *requests_sent*."""
    decisions: int
    open_questions: int
    median_time_to_decision: int | None
    p95_time_to_decision: int | None
    longest_time_to_decision: int | None
    oldest_open_question: int | None
    by_provider: tuple[ByProvider, ...]
    by_reason: tuple[ByReason, ...]
    bucket: int
    """Length of one of *by_time*, ms."""
    by_time: tuple[Bucket, ...]
    extensions: tuple[Extension, ...]
    contradictions: tuple[Contradiction, ...]
    """MAX_LISTED at most of each."""
    contradiction_count: int
