"""What a simulation tells. Spans in ms, counts of all operations that were asked for.

Job: the shapes. Must not know: how they are computed or printed.
"""

from __future__ import annotations

import msgspec

from pollcore.facts import Limits, Schedule, StopReason
from pollcore.whatif.parameters import JobTime, Parameters


class Estimate(msgspec.Struct, frozen=True):
    """A figure and the interval in which it lies; exact: *low* and *high* are the figure itself."""

    value: float
    low: float
    high: float | None
    """None: no bound is known (the longest of a sample is not the longest of all)."""


class Peak(msgspec.Struct, frozen=True):
    """The busiest second or minute. *at*: ms from the beginning. *window*: ms over which a scaled one was averaged."""

    requests: Estimate
    at: int
    window: int


class Late(msgspec.Struct, frozen=True):
    """ms between a job's end and the answer that showed it; None: no operation saw its end."""

    median: Estimate | None
    p95: Estimate | None
    longest: Estimate | None


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What one way to ask costs, and what it brings."""

    requests: Estimate
    per_operation: Estimate
    """The mean."""
    median_requests: int
    p95_requests: int
    most_requests: int
    """Of a simulated operation."""
    per_second: Peak | None
    per_minute: Peak | None
    seen: Estimate
    """Operations that saw the end of their job."""
    late: Late


class Stopped(msgspec.Struct, frozen=True):
    """Operations that a schedule leads to a question of this reason."""

    reason: StopReason
    operations: Estimate


class Part(msgspec.Struct, frozen=True):
    """Requests of one part of the time, scaled to all operations. *fixed*: of the loop, None: not counted."""

    at: int
    requests: int
    fixed: int | None


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """One simulation of a contract's schedule, and of the loop that it is compared with."""

    provider: str
    digest: str
    asked: Parameters
    job_time: JobTime
    schedule: Schedule
    limits: Limits
    """As they hold for each operation."""
    simulated: int
    confidence: float | None
    """None: every operation was simulated, the figures are exact."""
    shares: bool
    """Operations hold each other up (a limit, an outage): intervals tell what a sample varies, not what this adds."""
    planned: Load
    escalations: tuple[Stopped, ...]
    fixed: Load
    fixed_over_limit: Estimate | None
    """Requests of the loop beyond the provider's limit; None: it has none, or the time is too long to be counted."""
    end: int
    """When the last operation ended or stopped, ms from the beginning."""
    part: int
    """Length of one of *by_time*, ms."""
    by_time: tuple[Part, ...]
    left_out: tuple[str, ...]
    """What the contract says and this simulation does not play."""
