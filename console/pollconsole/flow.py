"""How far the terminal is behind: questions that it answers in the order in which it reads.

Job: pure: when to ask, what an answer or a silence means. Must not know: the terminal, frames, the clock (it comes in).
The device takes what a pipe and a network buffer, kilobytes of frames, long before a slow terminal has read them; an
answer proves that it read all that was written before the question.
"""

from __future__ import annotations

from typing import Final

ASK_EVERY_S: Final = 1.0
"""Between two questions, which go out behind frames alone."""
BEHIND_S: Final = 0.5
"""An answer that is out for so long: nothing more is drawn until it comes."""
GIVE_UP_S: Final = 10.0
"""A terminal that answered before and is silent for so long is drawn for all the same: an answer may be lost."""
STALL_S: Final = 5.0
"""A terminal that read nothing for so long is told of."""


class Flow:
    """One terminal. Times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._asked: float | None = None
        """The oldest question without an answer."""
        self._last_asked = float("-inf")
        self._answers = False
        """The terminal answers questions; one that never did is not waited for."""
        self.cell: tuple[int, int] | None = None
        """What the answer to the newest question will name."""

    def wants_to_ask(self, now: float) -> bool:
        """Whether a question is due behind the frame that was just written."""
        if self._asked is not None and now - self._last_asked < GIVE_UP_S:
            return False
        return now - self._last_asked >= ASK_EVERY_S

    def asked(self, cell: tuple[int, int], now: float) -> None:
        """A question went out."""
        self.cell = cell
        self._last_asked = now
        if self._asked is None:
            self._asked = now

    def answered(self, now: float) -> float:
        """The newest question's answer came; how long the terminal had read nothing, 0.0 where that is not worth a
        word."""
        asked, self._asked, self.cell = self._asked, None, None
        self._answers = True
        stood = 0.0 if asked is None else now - asked
        return stood if stood > STALL_S else 0.0

    def is_behind(self, now: float) -> bool:
        """Whether another frame would only wait in a buffer."""
        if self._asked is None or not self._answers:
            return False
        return BEHIND_S < now - self._last_asked < GIVE_UP_S
