"""What the core's thread says of itself: a bounded ring, written there, read by a screen.

Job: keep the newest lines under one lock. Must not know: widgets, words for them, disk. What happened to operations is
not here: that is the story, which the store keeps for good.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Final

import msgspec

from pollcore.facts import Instant

MAX_LINES: Final = 1_000
"""The newest are kept."""


class LogLine(msgspec.Struct, frozen=True):
    """*at*: by the core's clock; None: it was not open yet. *role*: as in `themes.ROLES`."""

    at: Instant | None
    text: str
    role: str


class CoreLog:
    """Any thread may write and read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: deque[LogLine] = deque(maxlen=MAX_LINES)
        self._last: dict[str, str] = {}

    def add(self, at: Instant | None, text: str, role: str = "text") -> None:
        """Keep one line."""
        with self._lock:
            self._lines.append(LogLine(at, text, role))

    def changed(self, what: str, at: Instant | None, text: str, role: str = "text") -> None:
        """Keep one line unless the last one about *what* said the same."""
        with self._lock:
            if self._last.get(what) != text:
                self._last[what] = text
                self._lines.append(LogLine(at, text, role))

    def lines(self) -> tuple[LogLine, ...]:
        """The oldest first."""
        with self._lock:
            return tuple(self._lines)
