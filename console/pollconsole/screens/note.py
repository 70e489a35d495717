"""A note that goes with a decision, while it is written: one line of text, nothing else.

Job: keys and pasted text -> the text; keep it, or leave it as it was. Must not know: widgets, cards, the guard. While a
note is written the card has no guard that could take a key, so nothing typed here chooses or confirms anything.

Source: spec A1 (reason text if given), G3.
"""

from __future__ import annotations

from typing import Final

from pollconsole.draw import Line, text
from pollconsole.safe import is_drawn, safe

MAX_NOTE: Final = 500
"""Characters of a note."""
CURSOR: Final = "_"


class Note:
    """The note of one card. `text` is what is drawn on the card and what is recorded, to the letter."""

    def __init__(self) -> None:
        self.text = ""
        self.writing = False
        self._typed = ""

    def begin(self) -> None:
        """Write on from what is there."""
        self.writing, self._typed = True, self.text

    def end(self, *, keep: bool) -> None:
        """Not written any more. *keep*: what was typed is the note now, white space runs one space."""
        if self.writing and keep:
            self.text = safe(" ".join(self._typed.split()), MAX_NOTE)
        self.writing, self._typed = False, ""

    def type(self, key: str, character: str | None) -> None:
        """One key, by the name of its event; what types nothing does nothing."""
        if key == "backspace":
            self._typed = self._typed[:-1]
        elif key == "ctrl+u":
            self._typed = ""
        elif key == "ctrl+w":
            self._typed = self._typed.rstrip().rpartition(" ")[0]
        elif character and len(character) == 1 and is_drawn(character):
            self._typed = (self._typed + character)[:MAX_NOTE]

    def paste(self, pasted: str) -> None:
        """Text at once; its line feeds are spaces, what draws nothing is left out."""
        fits = pasted[: MAX_NOTE * 4]
        drawn = "".join(each if is_drawn(each) else " " if each.isspace() else "" for each in fits)
        self._typed = (self._typed + drawn)[:MAX_NOTE]

    @property
    def line(self) -> Line:
        """What stands at the card's foot while it is written."""
        left = f"  {MAX_NOTE - len(self._typed)} left" if len(self._typed) > MAX_NOTE * 0.8 else ""
        return (("note: ", "attention"), text(self._typed + CURSOR, "title", MAX_NOTE + 1), (left, "muted"))

    @property
    def shown(self) -> list[Line]:
        """What stands on the card once it is written."""
        return [(), (("Your note: ", "muted"), text(self.text, "text", MAX_NOTE))] if self.text else []
