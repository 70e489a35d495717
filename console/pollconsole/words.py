"""Words that the command line and the screens share: one status has one glyph and one word everywhere.

Job: turn facts into short texts and rows into aligned lines. Must not know: colours, widgets, the core, where it goes.
Provider texts come in raw and go out harmless.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from pollconsole.safe import safe
from pollcore.facts import DAY, HOUR, MINUTE, SECOND, Instant, Status, clock_time, iso

NOTHING: Final = "-"
"""Where a value could stand and none is known."""

STATUS: Final[dict[Status, tuple[str, str]]] = {
    Status.WAITING: ("~", "waiting"),
    Status.HELD: ("=", "held"),
    Status.AWAITING_APPROVAL: ("!", "awaiting approval"),
    Status.ESCALATED: ("!", "escalated"),
    Status.SUCCEEDED: ("+", "succeeded"),
    Status.FAILED: ("x", "failed"),
    Status.CANCELLED: ("x", "cancelled"),
    Status.EXPIRED: ("x", "expired"),
    Status.CLOSED: (".", "closed"),
}
"""Glyph and word; the glyph is ASCII, so that it survives every terminal, font and log."""

_RULE_IDS: Final = re.compile(r" \([A-Z][0-9]{1,2}(?:, [A-Z][0-9]{1,2})*\)", re.ASCII)

NEEDS_A_HUMAN: Final = frozenset({Status.ESCALATED, Status.AWAITING_APPROVAL})


def status_text(status: Status) -> str:
    """`! escalated`: glyph and word, never colour alone."""
    glyph, word = STATUS[status]
    return f"{glyph} {word}"


def span(ms: int | None) -> str:
    """A span in its two largest units: `1 h 4 min`, `12 s`; minus in front when it is over; `-` for None."""
    if ms is None:
        return NOTHING
    sign, left = ("-", -ms) if ms < 0 else ("", ms)
    left = left // SECOND * SECOND
    parts: list[str] = []
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s")):
        if left >= unit and len(parts) < 2:
            parts.append(f"{left // unit} {name}")
            left %= unit
        elif parts:
            break
    return sign + " ".join(parts) if parts else "0 s"


def ago(ms: int) -> str:
    """`3 minutes`: a rough span for sentences."""
    import datetime

    import humanize

    return humanize.naturaldelta(datetime.timedelta(milliseconds=abs(ms)))


def size(count: int) -> str:
    """`1.2 MB`: bytes for people."""
    import humanize

    return humanize.naturalsize(count)


def instant(at: Instant | None) -> str:
    """Full UTC time, or `-`."""
    return NOTHING if at is None else iso(at)


def clock(at: Instant | None, now: Instant) -> str:
    """Only the time of day when *at* is within 12 hours of *now*, else the full time; UTC."""
    if at is None:
        return NOTHING
    return clock_time(at) if abs(at - now) < 12 * HOUR else iso(at)


def counted(number: int, name: str) -> str:
    """`1 request`, `1,204 requests`."""
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def of(used: int, allowed: int) -> str:
    """`3/12`."""
    return f"{used}/{allowed}"


def sentence(text: str) -> str:
    """*text* of the core in one line, for people: no rule ids of the specification, no line that points with `^`."""
    lines = [line.strip() for line in text.split("\n")]
    return _RULE_IDS.sub("", " ".join(line for line in lines if line.strip("^ ")))


def cells(text: str) -> int:
    """How many terminal cells *text* takes (wide characters two, combining marks none)."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, limits: Sequence[int] = ()) -> str:
    """Aligned lines, the head first; no rows: the head alone. Cells are made harmless.

    Args:
        limits: most characters per column; 0 or missing: 60.
    """
    caps = [*limits, *([0] * (len(head) - len(limits)))]
    made = [[safe(str(cell), cap or 60) for cell, cap in zip(row, caps, strict=True)] for row in [head, *rows]]
    widths = [max(cells(row[column]) for row in made) for column in range(len(head))]
    lines = []
    for row in made:
        padded = [cell + " " * (width - cells(cell)) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def fields(pairs: Sequence[tuple[str, str]]) -> str:
    """`name:   value`, one a line, values aligned and harmless."""
    width = max((len(name) for name, _ in pairs), default=0) + 1
    return "\n".join(f"{name + ':':<{width}}  {safe(value, 1_000)}" for name, value in pairs)
