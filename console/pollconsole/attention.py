"""The terminal's title and bell: how many decisions wait, and that one came.

Job: counts and open questions -> a title of our own words, and whether to ring. Must not know: widgets, the driver,
what a question is about: no text of anybody is in a title, which other programs read.
Source: spec V4, G8 (a card never opens by itself; a bell and a number are no card), G4.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from pollcore.facts import Escalation, StopReason

BELL_EVERY_S: Final = 10.0
"""However many cards come, it rings no oftener."""
NO_TITLE: Final = frozenset({"linux", "dumb", ""})
"""Terminals that have no title."""
NAME: Final = "pollconsole"


def title(waiting: int) -> str:
    """`pollconsole: 3 need you`."""
    if not waiting:
        return NAME
    return f"{NAME}: {waiting} need{'s' * (waiting == 1)} you"


def has_title() -> bool:
    """Whether the terminal shows a title."""
    return os.environ.get("TERM", "") not in NO_TITLE


class Attention:
    """What was rung for so far. One thread."""

    def __init__(self) -> None:
        self.bell = False
        self.title = False
        """Both as the settings say, once they are known."""
        self._known: frozenset[str] | None = None
        self._rang: float | None = None

    def rings(self, asked: Iterable[Escalation], now_s: float) -> bool:
        """Whether to ring now: a question came that was not there at the last look. What an operator opened is no news.

        The first look, whatever it shows, rings for nothing. *now_s*: the screen's own clock.
        """
        before = self._known
        known = frozenset(q.escalation_id for q in asked if q.reason is not StopReason.OPERATOR_REQUEST)
        self._known = known
        if before is None or not known - before or not self.bell:
            return False
        if self._rang is not None and now_s - self._rang < BELL_EVERY_S:
            return False
        self._rang = now_s
        return True
