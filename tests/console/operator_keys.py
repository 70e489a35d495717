"""An operator at a guarded card: presses what it asks for, and again where a key did not count.

A card locks itself when its program stood still, or when a key came together with something else; on a loaded machine
that happens to honest keys too. Job: fingers. Must not know: what is decided.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final

AGAIN_S: Final = 5.0
"""A card that still stands ready so long after a key has not seen it."""
LETTER: Final = re.compile(r"press (\w) to confirm")


class Operator:
    """*text*: what the card shows; *press*: one key; *confirms*: whether the letter is pressed, too."""

    def __init__(
        self, text: Callable[[], str], press: Callable[[str], None], digit: str = "1", *, confirms: bool = True
    ) -> None:
        self._text = text
        self._press = press
        self._digit = digit
        self._confirms = confirms
        self._pressed_s: float | None = None
        """When the last key was pressed; None: the card was not ready since."""

    def look(self) -> None:
        """Once, as a part of waiting for what the keys are to bring about."""
        text = self._text()
        if "ARMED" not in text:
            self._pressed_s = None
            return
        letter = LETTER.search(text)
        asks = self._confirms if letter is not None else "press one of" in text
        if asks and (self._pressed_s is None or time.monotonic() - self._pressed_s > AGAIN_S):
            self._pressed_s = time.monotonic()
            self._press(self._digit if letter is None else letter[1])
