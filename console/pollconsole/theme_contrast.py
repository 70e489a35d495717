"""How well a theme can be read: the contrast of every role on every ground that it is drawn on.

Job: pure: a checked theme -> ratios. Must not know: files, screens. The terminal's own colours have no known contrast
and are left out.

Source: WCAG 2.2, 1.4.3 (text: 4.5), 1.4.11 (parts of graphics: 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from textual.color import Color

from pollconsole.themes import ROLES, Ink, Loaded

TEXT: Final = 4.5
GRAPHIC: Final = 3.0
TRACE: Final = 1.25
"""The empty part of a bar and rules: they carry nothing, the figures beside them do."""
LEAST: Final[dict[str, float]] = dict.fromkeys(ROLES, TEXT) | {"bar-full": GRAPHIC, "bar-empty": TRACE}


class Pair(NamedTuple):
    """One role on one ground."""

    role: str
    ground: str
    ratio: float


def luminance(colour: Color) -> float:
    """Relative luminance, 0 to 1."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (channel / 255 for channel in colour.rgb)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def ratio(one: Color, other: Color) -> float:
    """Contrast of two colours, 1 to 21, whichever is in front."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def pairs(theme: Loaded) -> Iterator[Pair]:
    """Every role on the background and on every ground. Any line may hold any role, so all are asked for.

    Reversed inks swap both colours, which leaves the ratio as it is. A role with a ground of its own has that alone.
    """
    grounds = {"background": theme.background, **{name: ink.colour for name, ink in theme.grounds.items()}}
    for role, ink in theme.roles.items():
        for name, colour in grounds.items():
            behind = ink.on or colour
            if not _own(ink, behind):
                yield Pair(role, name, ratio(ink.colour, behind))


def weak(theme: Loaded) -> list[Pair]:
    """Pairs under what their role needs."""
    return [pair for pair in pairs(theme) if pair.ratio < LEAST[pair.role]]


def _own(ink: Ink, behind: Color) -> bool:
    return ink.colour.ansi is not None or behind.ansi is not None
