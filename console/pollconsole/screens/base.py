"""What every screen of the console has: the shared state, a tick, one footer line with keys.

Job: the frame. Must not know: any single screen. Textual's own footer leaks a widget per key, so the keys are one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType
from textual.geometry import Size
from textual.screen import Screen

from pollconsole import words
from pollconsole.draw import Line
from pollconsole.state import State
from pollconsole.widgets import OneLine
from pollcore.facts import Moment

GAP = ("  ", "text")


class ConsoleScreen(Screen[None]):
    """A screen over the shared state. `tick` is called four times a second while it is on top."""

    AUTO_FOCUS: ClassVar[str | None] = None
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state
        self.ready = False
        """Composed: before it, there is nothing to draw on."""

    def on_mount(self) -> None:
        self.ready = True

    def _screen_resized(self, size: Size) -> None:  # noqa: ARG002
        """Always for the size that the terminal has now.

        Textual hands every layout's size to the screen once more: of two sizes under way at once (two quick resizes, a
        first guess and the truth) the older may come last, or both take turns for ever, at a full repaint each.
        """
        super()._screen_resized(self.app.size)

    def show_head(self, title: Line, now: Moment) -> None:
        """Draw the first line anew."""
        self.query_one("#head", OneLine).show(title, waiting_line(self.state, now))

    def tick(self, now: Moment, changed: bool) -> None:
        """Time passed; *changed*: rows or questions are new."""

    def keys(self, *pairs: tuple[str, str], right: Line = ()) -> None:
        """Draw the footer: key and what it does."""
        self.query_one("#foot", OneLine).show(key_line(pairs), right)


def key_line(pairs: Sequence[tuple[str, str]]) -> Line:
    """`Enter detail  / filter`."""
    line: Line = ((" ", "text"),)
    for number, (key, does) in enumerate(pairs):
        line = (*line, *((GAP,) if number else ()), (key, "key"), (f" {does}", "muted"))
    return line


def waiting_line(state: State, now: Moment) -> Line:
    """`3 wait, oldest 4 min 10 s ` for the corner of every screen, or nothing."""
    waiting = state.board.waiting(now)
    if not waiting.total:
        return (("nothing waits for you ", "muted"),)
    return ((f"! {waiting.total:,} waiting, oldest {words.span(waiting.oldest_ms)} ", "attention-text"),)


def strip_line(state: State, now: Moment) -> Line:
    """The queue strip: what waits, how long, and which key opens it."""
    waiting = state.board.waiting(now)
    if not waiting.total:
        return ((" nothing waits for you", "muted"),)
    parts = []
    if waiting.approvals:
        parts.append(f"{waiting.approvals} approval{'s' * (waiting.approvals > 1)}")
    if waiting.escalations:
        cards = (
            f" on {waiting.causes:,} card{'s' * (waiting.causes > 1)}" if waiting.causes < waiting.escalations else ""
        )
        parts.append(f"{waiting.escalations:,} decision{'s' * (waiting.escalations > 1)}{cards}")
    said = f" ! {' and '.join(parts)} waiting, oldest {words.span(waiting.oldest_ms)}"
    line: Line = ((said, "attention-text"), (" - ", "attention-text"))
    keys = [key for key, count in (("E", waiting.escalations), ("A", waiting.approvals)) if count]
    return (*line, (" or ".join(keys), "key"), (" opens" if len(keys) == 1 else " open", "attention-text"))
