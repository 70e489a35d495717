"""The frame of every card's screen: its lines from top to bottom, the words that have no card, scrolling.

Job: compose, scroll, say where a line stands, show a refusal's reason over the guard's lines. Must not know: the guard,
what is asked, notes, how a choice is carried out. Nothing here takes the focus; its keys only move.

Source: spec G3, G4.
"""

from __future__ import annotations

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from pollconsole.draw import Line, text
from pollconsole.screens.base import ConsoleScreen
from pollconsole.state import State
from pollconsole.widgets import LinesView, OneLine

SCROLLBAR: Final = 1
MARGIN: Final = 2
"""Cells left and right of the card's text."""
INDENT: Final = 4
MAX_REASON: Final = 600
"""Characters of a refusal's reason: eight lines at 80 cells, so that the card keeps room."""


class CardFrame(ConsoleScreen):
    """A card's text, and under it the lines that tell how it stands."""

    CSS = """
    #card { height: 1fr; padding: 0 0 0 2; }
    #why { height: auto; padding: 0 0 0 1; display: none; }
    #note { height: auto; padding: 0 0 0 2; display: none; }
    #clock { display: none; }
    #confirm { height: auto; max-height: 17; padding: 0 0 0 2; display: none;
        border-top: solid $warning; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        # fixed: no file gives a card other keys
        Binding("down,j", "scroll(1)", "down"),
        Binding("up,k", "scroll(-1)", "up"),
        Binding("pagedown", "page(1)", "page down"),
        Binding("pageup", "page(-1)", "page up"),
        Binding("home,g", "ends(0)", "first"),
        Binding("end,G", "ends(1)", "last"),
    ]

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._reason: Line = ()

    @property
    def text_width(self) -> int:
        """Cells of a line of the card."""
        return self.app.size.width - MARGIN - SCROLLBAR

    def compose(self) -> ComposeResult:
        yield OneLine(self.state, ground="footer", id="head")
        yield LinesView(self.state, id="card", indent=INDENT)
        yield LinesView(self.state, id="why", indent=0)
        yield LinesView(self.state, id="confirm", indent=INDENT)
        yield LinesView(self.state, id="note", indent=INDENT)
        yield OneLine(self.state, id="clock")
        yield OneLine(self.state, ground="attention", id="guard")
        yield OneLine(self.state, ground="attention", id="prompt")
        yield OneLine(self.state, id="said")
        yield OneLine(self.state, ground="footer", id="foot")

    def say_beside(self, words: str) -> None:
        """One line under the card."""
        self.query_one("#said", OneLine).show(((f" {words}", "text"),))

    def show_nothing(self, why: Line) -> None:
        """There is no card: say why."""
        self.query_one("#card", LinesView).show((why,))
        self.query_one("#prompt", OneLine).show(((" nothing to decide here", "muted"),))
        self.query_one("#guard", OneLine).show(((" Esc goes back", "muted"),))

    def refused(self, why: str) -> None:
        """Show the first sentence of *why* whole over the guard's lines, until the next key."""
        self._show_reason((text(_first_sentence(why), "attention", MAX_REASON),))

    def _show_reason(self, reason: Line) -> None:
        self._reason = reason
        view = self.query_one("#why", LinesView)
        view.display = bool(reason)
        if reason:
            view.wrap_for(self.text_width)
            view.show((reason,))
            view.styles.height = len(view.lines)

    def _place(self, line: str) -> int:
        """Whether *line* of the card is above (-1) or below (1) its visible part, or neither (0)."""
        body = next(iter(self.query("#card").results(LinesView)), None)
        if body is None:  # a frame was cut short while the card was being taken down
            return 0
        at = next((n for n, each in enumerate(body.lines) if " ".join(each.split()) == line), None)
        top = body.scroll_offset.y
        if at is None or top <= at < top + body.size.height:
            return 0
        return -1 if at < top else 1

    def action_scroll(self, by: int) -> None:
        self.query_one("#card", LinesView).scroll_relative(y=by, animate=False)

    def action_page(self, by: int) -> None:
        view = self.query_one("#card", LinesView)
        view.scroll_relative(y=by * max(1, view.size.height - 1), animate=False)

    def action_ends(self, last: int) -> None:
        view = self.query_one("#card", LinesView)
        if last:
            view.scroll_end(animate=False)
        else:
            view.scroll_home(animate=False)


def _first_sentence(said: str) -> str:
    end = said.find(". ")
    return said if end < 0 else said[: end + 1]
