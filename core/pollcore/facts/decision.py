"""What the controller makes of one reading: wait until T, succeed, stop and ask.

Job: the three decisions. Must not know: how they are chosen or stored.
"""

from __future__ import annotations

import msgspec

from pollcore.facts.instant import Instant
from pollcore.facts.names import DelaySource, Status, StopDetail, StopReason
from pollcore.facts.provider import ResultPointer


class Wait(msgspec.Struct, frozen=True, kw_only=True, tag="wait"):
    """Ask again at *next_poll_at* (never past the deadline: a wake-up there stops instead, T4)."""

    next_poll_at: Instant
    delay_ms: int
    source: DelaySource
    guidance_until: Instant | None = None
    """Set when valid guidance holds: nothing is sent before it."""
    notes: tuple[str, ...] = ()


class Succeed(msgspec.Struct, frozen=True, kw_only=True, tag="succeed"):
    """The job succeeded and everything the next action needs is there."""

    result: ResultPointer
    notes: tuple[str, ...] = ()


class Escalate(msgspec.Struct, frozen=True, kw_only=True, tag="escalate"):
    """Stop. *status* names the job's fate where it is known, else `escalated` (spec, end of group E).

    *asks*: an escalation is raised; False only for a cancelled job whose cancel an operator granted.
    """

    status: Status
    reason: StopReason
    detail: StopDetail | None = None
    explanation: str | None = None
    cause: str | None = None
    """E10: what joins this stop with others into one card: `unknown_state:acme:compiling`."""
    asks: bool = True
    result: ResultPointer | None = None
    """An unvalidated result that a human may accept."""
    notes: tuple[str, ...] = ()


Decision = Wait | Succeed | Escalate
