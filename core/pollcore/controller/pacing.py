"""When the next turn of the loop is made: the nearest of all times at which something is to be done.

Job: keep the times that the last turn told, and the heartbeat; say how long nothing is to be done. Must not know:
stores, what a turn does, who is due.
Source: spec O8, T6, T9.
"""

from __future__ import annotations

from typing import Final

from pollcore.facts import BootMs, Instant, Moment
from pollcore.ports import TurnOutcome

SLICE_MS: Final = 15_000
"""T9: the longest sleep in one piece."""
BEAT_MS: Final = 10_000
"""O8: heartbeat, and renewal of the leases in flight."""
FRUITLESS_MS: Final = 1_000
"""When everything due turned out not to be (another worker was faster), the next look waits at least so long."""
EXPIRY_PAUSE_MS: Final = 100
"""The shortest sleep towards the time at which a question expires."""


class Pacing:
    """The times of one loop."""

    def __init__(self) -> None:
        self._next_due: BootMs | None = None
        self._next_deadline: Instant | None = None
        self._beat_due = BootMs(0)
        self._looked = BootMs(0)

    def learn(self, outcome: TurnOutcome) -> None:
        """What comes next, as the store has it after a turn."""
        self._next_due, self._next_deadline = outcome.next_due, outcome.next_deadline

    def looked(self, now: Moment) -> None:
        """What is due was loaded."""
        self._looked = now.boot

    def is_spaced(self, now: Moment, spacing: int) -> bool:
        """The last look is *spacing* ms ago."""
        return now.boot - self._looked >= spacing

    def beaten(self, now: Moment) -> None:
        """A heartbeat was written."""
        self._beat_due = BootMs(now.boot + BEAT_MS)

    def wants_beat(self, now: Moment) -> bool:
        """The heartbeat is due."""
        return now.boot >= self._beat_due

    def is_overdue(self, now: Moment) -> bool:
        """An operation became due, or a deadline passed, since the last turn."""
        due, deadline = self._next_due, self._next_deadline
        return (due is not None and due <= now.boot) or (deadline is not None and deadline <= now.wall)

    def pause_ms(
        self,
        now: Moment,
        *,
        has_room: bool,
        fruitless: bool,
        spacing: int,
        together: BootMs | None,
        expires: Instant | None,
        end: int | None,
    ) -> int:
        """How long nothing is to be done.

        Args:
            has_room: a request could go out; else nothing that is due hurries.
            fruitless: everything due turned out not to be.
            spacing: ms that the next look keeps from the last.
            together: boot ms; when a request goes out whose operations wait for company.
            expires: when the first open question expires.
            end: boot ms; when the loop ends by itself.
        """
        ways = [self._beat_due - now.boot, SLICE_MS]
        floor = max(FRUITLESS_MS if fruitless else 0, self._looked + spacing - now.boot)
        if has_room:
            if together is not None:
                ways.append(together - now.boot)
            if self._next_due is not None:
                ways.append(max(floor, self._next_due - now.boot))
            if self._next_deadline is not None:
                ways.append(max(floor, self._next_deadline - now.wall))
        if expires is not None:
            ways.append(max(EXPIRY_PAUSE_MS, expires - now.wall))
        if end is not None:
            ways.append(end - now.boot)
        return max(0, min(ways))
