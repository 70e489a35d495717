"""Those that waited for an origin that was down, let go one request after the other once it has answered.

Job: give each its time, keep it until it has come. Must not know: whether the origin is up, what is sent, stores.
Source: spec T11; contract need R39. One worker's knowledge: after a restart whoever still waits gets a time anew.
"""

from __future__ import annotations

from typing import Final

from pollcore.facts import MINUTE, BootMs, Moment
from pollcore.schedule import RELEASE_GAP

MAX_LET_GO: Final = 100_000
"""Operations whose time is remembered per origin and account; beyond it they are not held back any more."""
KEPT_MS: Final = 1 * MINUTE
"""So long after the last time that was given a release is over: whoever comes later has a time of a new one."""


class Release:
    """The times of one origin and account, on the boot clock."""

    def __init__(self) -> None:
        self._times: dict[str, BootMs] = {}
        self._last: BootMs | None = None
        self._room = 0
        """How many more the request at the last time can ask for."""

    def left(self, name: str, now: Moment, room_ms: int, draw: float, together: int) -> int:
        """ms until the operation *name* may go; 0: now.

        Args:
            room_ms: What is left until its deadline or `useful_until`: one that is nearer to it than its place in the
                queue goes before, at a time drawn from the first half of that.
            together: Operations that one request can ask for: so many have one place.
        """
        known = self._times.get(name)
        if known is not None:
            return max(0, known - now.boot)
        if self._last is not None and now.boot > self._last + KEPT_MS:
            self._times.clear()
            self._last = None
        if len(self._times) >= MAX_LET_GO:
            return 0
        at = self._next(now, together)
        if at - now.boot > room_ms // 2:
            at = BootMs(now.boot + int(room_ms // 2 * draw))
        elif at == self._last:
            self._room -= 1
        else:
            self._last, self._room = at, together - 1
        self._times[name] = at
        return at - now.boot

    def _next(self, now: Moment, together: int) -> BootMs:
        """The time of the next in the queue."""
        if self._last is None:
            return now.boot
        if self._room > 0 and together > 1 and self._last >= now.boot:
            return self._last
        return BootMs(max(now.boot, self._last + RELEASE_GAP))
