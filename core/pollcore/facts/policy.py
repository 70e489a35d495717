"""What a contract permits in numbers: the part of it that decisions need.

Job: plain values in milliseconds and counts. Must not know: TOML, requests, states.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore.facts.instant import HOUR, MINUTE, SECOND

SESSION_MINUTES: Final = 480
SESSION_CALLS: Final = 200
"""G6: a session's bounds; a contract may set them lower, never higher."""


class ExtendSize(msgspec.Struct, frozen=True):
    """One size of extension that the contract lists (E4)."""

    minutes: int
    checks: int
    transport_failures: int = 1
    rate_limited: int = 1

    @property
    def label(self) -> str:
        """`extend 15 min / 4 checks`, fixed by E4."""
        return f"extend {self.minutes} min / {self.checks} checks"


class Confirm(msgspec.Struct, frozen=True):
    """E5: the time and checks that come with a granted cancel, to see what became of it."""

    minutes: int
    checks: int


class Schedule(msgspec.Struct, frozen=True):
    """When to ask again, all in ms. None for first/min: derived (T2)."""

    base_delay: int = 5 * SECOND
    max_delay: int = 120 * SECOND
    min_delay: int | None = None
    first_delay: int | None = None
    expected_duration: int | None = None
    rate_limit_factor: float = 4.0
    rate_limit_max_delay: int | None = None
    max_hint: int = 24 * HOUR
    max_interval: int | None = None
    """T10: the longest pause after which the job or its result would be lost; guidance still wins."""
    guidance_spread: float = 0.10
    settle_delay: int | None = None
    """X8: a final answer is confirmed by a second one after this delay."""


class Cancel(msgspec.Struct, frozen=True):
    """What the card must say of the documented cancel (E5, E8)."""

    consequences: str
    confirm: Confirm
    irreversible: bool = False
    best_effort: bool = False
    allowed_states: tuple[str, ...] | None = None


class ForceCancel(Cancel, frozen=True):
    """R35: the stronger cancel that may follow one that did not end the job; what its card says, and from when on."""

    after: int | None = None
    """ms after the ordinary cancel was sent before it may be offered."""
    names_time: bool = False
    """The provider's answers name the time from which on it may be sent; without that time it is not offered."""
    needs_accepted: bool = False
    """An ordinary cancel whose outcome is unknown does not do."""


class Limits(msgspec.Struct, frozen=True):
    """One set of limits; None: not stated. *deadline* is a span in ms from `started_at`."""

    deadline: int | None = None
    max_status_requests: int | None = None
    max_transport_failures: int | None = None
    max_rate_limited: int | None = None


class RateScope(msgspec.Struct, frozen=True):
    """R38: at most *requests* status requests in *per_ms*, counted in the store for each value of *scope*: `provider`,
    `account`, `credential` (of this provider), or `route` (one step of the contract; *step* names it, None: each)."""

    scope: str
    requests: int
    per_ms: int
    step: str | None = None


class Policy(msgspec.Struct, frozen=True):
    """Everything that decisions, choices and grants read of a contract."""

    schedule: Schedule = Schedule()
    default: Limits = Limits()
    ceiling: Limits = Limits()
    retention: int | None = None
    """ms that the provider keeps the job's record, from `started_at`."""
    extend: tuple[ExtendSize, ...] = ()
    max_extensions: int = 3
    hold: int = 30 * MINUTE
    max_holds: int = 3
    cancel: Cancel | None = None
    force_cancel: ForceCancel | None = None
    """None as well where `cancel` is: it follows a cancel, and nothing else."""
    can_resubmit: bool = False
    observation_read_only: bool = True
    least_mode: str = "standing"
    session_minutes: int = SESSION_MINUTES
    session_calls: int = SESSION_CALLS
    """G6: what one session of a `per_session` credential lets out."""


MAX_SPAN: Final = 366 * 24 * HOUR
"""B1: a deadline further away than this is absurd."""
MAX_REQUESTS: Final = 100_000
MAX_FAILURES: Final = 1_000
MAX_EXTEND_SIZES: Final = 4
