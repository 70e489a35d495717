"""The real clock, ten days after the lives that the tests of archiving lay out."""

from __future__ import annotations

import msgspec

from pollcore.adapters.system import SystemClock
from pollcore.facts import DAY, Instant, Moment, parse_instant

LATER = Instant(parse_instant("2026-03-02T10:00:00Z") + 11 * DAY)


class LateClock(SystemClock):
    """Stands at LATER when the process begins."""

    def __init__(self) -> None:
        super().__init__()
        self._offset = LATER - super().now().wall

    def now(self) -> Moment:
        found = super().now()
        return msgspec.structs.replace(found, wall=Instant(found.wall + self._offset))
