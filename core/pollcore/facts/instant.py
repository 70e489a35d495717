"""Points in time as integers.

Job: one representation of time for every record. Must not know: any clock (time comes in as an argument),
any zone but UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, NewType

import msgspec

Instant = NewType("Instant", int)
"""Milliseconds since 1970-01-01T00:00:00Z, UTC wall time."""

BootMs = NewType("BootMs", int)
"""Milliseconds of a clock that never steps and runs on during suspend, comparable only under one boot id."""

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

EARLIEST: Final = Instant(946_684_800_000)
"""2000-01-01: anything earlier that a provider or a command names is refused."""
LATEST: Final = Instant(4_102_444_800_000)
"""2100-01-01: anything later is refused."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Moment(msgspec.Struct, frozen=True, gc=False):
    """One reading of all clocks: *wall* (UTC, may step), *boot* (never steps, runs during suspend), and which boot."""

    wall: Instant
    boot: BootMs
    boot_id: str

    def after(self, ms: int) -> Moment:
        """The moment *ms* milliseconds later, both clocks running evenly."""
        return Moment(Instant(self.wall + ms), BootMs(self.boot + ms), self.boot_id)


def from_datetime(value: datetime) -> Instant:
    """Convert an aware datetime.

    Raises:
        ValueError: *value* has no time zone (naive times are read in the local zone), or lies outside 2000-2100.
    """
    if value.tzinfo is None or value.utcoffset() is None:
        raise ValueError("time without a zone")
    ms = (value - _EPOCH) // timedelta(milliseconds=1)
    if not EARLIEST <= ms <= LATEST:
        raise ValueError("time outside 2000-2100")
    return Instant(ms)


def to_datetime(at: Instant) -> datetime:
    """The aware UTC datetime of *at*."""
    return _EPOCH + timedelta(milliseconds=at)


def parse_instant(text: str) -> Instant:
    """Read an ISO 8601 date and time that names its zone.

    Raises:
        ValueError: no zone, no time of day, not ISO 8601, or outside 2000-2100.
    """
    if "T" not in text and " " not in text:
        raise ValueError("date without a time of day")
    return from_datetime(datetime.fromisoformat(text))


def iso(at: Instant) -> str:
    """`2026-03-02T10:00:00Z`, with milliseconds only where they are not zero."""
    text = to_datetime(at).isoformat()[:19]  # a sixth of what strftime takes
    return f"{text}.{at % SECOND:03d}Z" if at % SECOND else f"{text}Z"


def clock_time(at: Instant) -> str:
    """`10:00:00`, UTC, for the lines of a story (seconds cut, as the spec's examples show)."""
    return to_datetime(at).isoformat()[11:19]
