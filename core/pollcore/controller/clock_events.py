"""What the clocks did while the loop slept: a step of the wall clock, a suspend, a stall.

Job: tell such a sleep from an ordinary one, keep what is to be recorded. Must not know: stores, what is due.
Source: spec T9.
"""

from __future__ import annotations

from typing import Final

from pollcore.facts import AuditEvent, EventName, Moment
from pollcore.ports import Store

MAX_EVENTS: Final = 100
"""Clock events kept for the next commit."""
STEP_MS: Final = 2_000
"""A smaller difference between wall and boot clock is drift."""
SUSPEND_MS: Final = 5_000
"""A sleep that took so much longer than asked was a suspend or a stall, and is recorded."""


class ClockEvents:
    """What is not recorded yet."""

    def __init__(self) -> None:
        self.kept: list[AuditEvent] = []

    async def record(self, store: Store, now: Moment) -> None:
        """Store what is kept. Raises StoreUnusable: it is kept on."""
        if self.kept:
            await store.record(now, self.kept)
            self.kept = []

    def notice(self, before: Moment, after: Moment, asked_ms: int) -> bool:
        """Whether something happened between the two: then everything is to be looked at anew."""
        boot = after.boot - before.boot
        step = (after.wall - before.wall) - boot
        slept = boot - asked_ms
        if abs(step) > STEP_MS:
            text = f"wall clock moved by {step / 1000:+.1f} s"
        elif slept > SUSPEND_MS:
            text = f"suspended or stalled for {slept / 1000:.1f} s"
        else:
            return False
        if len(self.kept) < MAX_EVENTS:
            self.kept.append(AuditEvent(at=after.wall, event=EventName.CLOCK_STEP, text=text))
        return True
