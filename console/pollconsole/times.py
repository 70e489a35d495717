"""Points in time for people: about how long ago, or exactly, with UTC and the local clock told apart.

Job: pure: instant and present -> words. Must not know: widgets, who asks. Every time that is written out names its
clock; `i` on any screen turns all of them from about to exact.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Final

from pollconsole import words
from pollcore.facts import SECOND, Instant, Moment, clock_time

JUST_NOW_MS: Final = 2 * SECOND
"""Nearer than this it is 'now'."""


def together(now: Moment) -> Moment:
    """The whole second that *now* is in: what counts down on a screen is counted from it, so that two places that tell
    of one end say the same and go on in the same frame."""
    return now.after(-(now.wall % SECOND))


def when(at: Instant | None, now: Instant, *, exact: bool, never: str = "never", zone: tzinfo | None = None) -> str:
    """`3 minutes ago`, `in 2 hours`; *exact*: as `exactly`. *zone*: the local one; None: this machine's."""
    if at is None:
        return never
    if exact:
        return exactly(at, zone)
    if abs(at - now) < JUST_NOW_MS:
        return "now"
    return f"{words.ago(now - at)} ago" if at < now else f"in {words.ago(at - now)}"


def exactly(at: Instant, zone: tzinfo | None = None) -> str:
    """`2026-03-02 09:15:30.250 UTC (10:15:30 +0100 local)`; where the local clock is UTC it is not said twice."""
    moment = datetime.fromtimestamp(at // 1000, UTC).replace(microsecond=at % 1000 * 1000)
    said = f"{moment:%Y-%m-%d %H:%M:%S}.{at % 1000:03d} UTC"
    local = moment.astimezone(zone)
    if not local.utcoffset():
        return said
    day = f"{local:%Y-%m-%d} " if local.date() != moment.date() else ""
    return f"{said} ({day}{local:%H:%M:%S %z} local)"


def clock(at: Instant | None, now: Instant, *, exact: bool = False, zone: tzinfo | None = None) -> str:
    """`10:15:30 UTC`, the date too where it is more than half a day away; *exact*: as `exactly`."""
    if at is None:
        return words.NOTHING
    if exact:
        return exactly(at, zone)
    said = words.clock(at, now)
    return f"{said} UTC" if said == clock_time(at) else said


def short(at: Instant, now: Instant) -> str:
    """`10:15:30Z`, where there is no room for more; the date too where it is more than half a day away."""
    said = words.clock(at, now)
    return f"{said}Z" if said == clock_time(at) else said


def both(at: Instant, zone: tzinfo | None = None) -> str:
    """`10:15:30 UTC 11:15:30 +0100`: the present on both clocks, for the corner of a screen."""
    local = datetime.fromtimestamp(at // 1000, UTC).astimezone(zone)
    said = f"{clock_time(at)} UTC"
    return f"{said} {local:%H:%M:%S %z}" if local.utcoffset() else said
