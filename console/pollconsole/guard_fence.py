"""The fence: questions to the terminal whose answer proves that it had read the frame before them.

One job: which questions of the present version are open, and what an answer or a silence means. Part of the pure
machine in `guard`: no clock, no terminal; it knows nothing of keys and choices.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

MAX_QUESTIONS: Final = 8
"""Open questions per painted version; after that a terminal that used to answer is waited for no longer."""


class Silence(Enum):
    """What a terminal that has not answered yet means."""

    WAIT = auto()
    UNANSWERED = auto()
    """It never answered anything: go on without, with the longer quiet."""
    ASK_AGAIN = auto()
    """It used to answer, so the line is slow or stopped: ask once more."""
    GAVE_UP = auto()
    """It used to answer and does not any more: nothing arms until the card is opened again."""


class Fence:
    """Open questions of one version. ``wanted`` says that one should be written now."""

    def __init__(self) -> None:
        self.wanted = False
        self.answered_in: float | None = None
        """Seconds from question to answer for this version, None without an answer."""
        self._terminal_answers = False
        self._open: dict[tuple[int, int], float] = {}
        self._asked_at = 0.0

    def new_version(self) -> None:
        """Another frame must be painted: answers to older questions prove nothing about it."""
        self.wanted = False
        self.answered_in = None
        self._open.clear()

    def new_terminal(self) -> None:
        """Forget that a terminal ever answered."""
        self._terminal_answers = False

    def sent(self, row: int, column: int, at: float) -> None:
        self._open[(row, column)] = at
        self._asked_at = at
        self.wanted = False

    def reply(self, row: int, column: int, at: float) -> bool:
        """Whether this report is the first answer to a question of this version."""
        asked = self._open.get((row, column))
        if asked is None or at < asked or self.answered_in is not None:
            return False
        self._terminal_answers = True
        self.answered_in = at - asked
        return True

    def silence(self, at: float, limit: float) -> Silence:
        """What it means that *at* there is no answer; *limit* is the time for one question, in seconds."""
        if self.wanted or at - self._asked_at <= limit:
            return Silence.WAIT
        if not self._terminal_answers:
            return Silence.GAVE_UP if len(self._open) >= MAX_QUESTIONS else Silence.UNANSWERED
        if len(self._open) < MAX_QUESTIONS:
            self.wanted = True
            return Silence.ASK_AGAIN
        self._terminal_answers = False
        return Silence.GAVE_UP
