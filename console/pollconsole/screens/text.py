"""Screens of plain lines: help, and what was said.

Job: show lines, scroll, search, copy, leave. Must not know: where they come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from pollconsole import short_words, times
from pollconsole.draw import Line, join
from pollconsole.help_keys import Section
from pollconsole.screens.base import bound
from pollconsole.screens.searching import SearchingScreen
from pollconsole.state import MAX_MESSAGES, State
from pollconsole.widgets import LinesView, OneLine, SaidLine
from pollcore.facts import Moment

_SIGNS = (
    "Signs: ~ waiting   = held   ! needs you   + succeeded   x failed, cancelled, expired   . closed",
    "# marked   * pinned   > the cursor",
    "A figure with ! has under a tenth left. LEFT counts to the deadline or the end of usefulness, the nearer of both.",
    "live: operations that have not ended. open: those, and ended ones whose card is open. done: all other ended ones.",
    "open and done are every row once; needs you, unknown and low are among the open, failed are among both.",
    "3 of 20 beside a filter: of the rows of its view.",
    "waiting: questions that want you now; one card answers all that one cause stopped.",
    "card 2 of 9: of the cards of its queue. card 2998.1 beside a bar: the number of the picture, for the guard.",
    "Rows that need you: what ends soonest, then what has passed, then what has ended; equal ones the oldest first.",
    "No key but a card's digit and letter gives new authority. Agents and the command line can only ask.",
)


FEW: Final = 2
"""With more keys of its own than these a screen does not name those that scroll: 80 cells hold no more."""


class LinesScreen(SearchingScreen):
    """Lines under a title, searched and copied."""

    CSS = "#lines { height: 1fr; padding: 0 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back"),
        bound("back", "leave"),
        bound("down", "scroll(1)"),
        bound("up", "scroll(-1)"),
        bound("page_down", "scroll(15)"),
        bound("page_up", "scroll(-15)"),
        bound("first", "ends(0)"),
        bound("last", "ends(1)"),
        bound("copy_all", "copy_all"),
    ]
    title_words = ""
    indent = 21
    """Of what is wrapped."""
    more_keys: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Actions of a subclass, for the last line: name and what it does."""

    def compose(self) -> ComposeResult:
        yield OneLine(self.state, ground="footer", id="head")
        yield LinesView(self.state, id="lines", indent=self.indent)
        yield SaidLine(self.state, id="said")
        yield OneLine(self.state, ground="footer", id="foot")

    def on_mount(self) -> None:
        self.tick(self.state.now(), True)

    def tick(self, now: Moment, changed: bool) -> None:  # noqa: ARG002
        self.show_head(((f" {self.title_words}", "title"),), now)
        self.query_one(LinesView).show(self.content())
        self.draw_said(self.query_one("#said", SaidLine), self.note())
        if not self.search_keys():
            more = [(self.key_of(name), does) for name, does in self.more_keys]
            look = ((self.key_of("search"), "search"), (self.key_of("copy_all"), "copy"))
            scroll = () if len(more) > FEW else ((f"{self.key_of('up')} {self.key_of('down')}", "scroll"),)
            self.keys(*scroll, *more, *look, ("Esc", "back"))

    def content(self) -> list[Line]:
        """The lines now."""
        return []

    def whole(self) -> list[Line]:
        """What a copy takes: the lines, with what the screen has no room for."""
        return self.content()

    def note(self) -> Line:
        """What stands on the line above the keys while nothing else does."""
        return ()

    def go_to(self, needle: str, by: int) -> tuple[int, int]:
        return self.query_one(LinesView).search(needle, by)

    def action_leave(self) -> None:
        self.app.pop_screen()

    def action_scroll(self, by: int) -> None:
        self.query_one(LinesView).scroll_relative(y=by, animate=False)

    def action_ends(self, last: int) -> None:
        lines = self.query_one(LinesView)
        if last:
            lines.scroll_end(animate=False)
        else:
            lines.scroll_home(animate=False)

    def action_copy_all(self) -> None:
        copier: Any = self.app.copy  # type: ignore[attr-defined]
        copier(join(self.whole()), self.title_words)
        self.tick(self.state.now(), False)


class HelpScreen(LinesScreen):
    """Every key that does something: those of the screen below first."""

    title_words = "keys"

    def __init__(self, state: State, sections: Sequence[Section] = ()) -> None:
        super().__init__(state)
        self._sections = sections

    def content(self) -> list[Line]:
        lines: list[Line] = []
        for each in self._sections:
            lines.append(((each.title, "title"),))
            lines += [((f"  {keys:<18} ", "key"), (does, "text")) for keys, does in each.pairs]
            lines.append(())
        lines += [((sign, "muted"),) for sign in _SIGNS]
        lines += [
            (),
            (("Short words in narrow columns, and the names that cards, details and programs have", "title"),),
        ]
        lines += [((f"  {short:<18} ", "key"), (name, "text")) for short, name in short_words.explained()]
        return lines


class MessagesScreen(LinesScreen):
    """What was said since this console began, the newest first."""

    title_words = "messages"
    beside = True
    indent = 14

    def content(self) -> list[Line]:
        now, exact = self.state.now().wall, self.state.exact
        said = [
            ((f"{times.clock(each.at, now, exact=exact)}  ", "muted"), (each.text, each.role))
            for each in self.state.messages
        ]
        return list(reversed(said)) or [(("nothing was said yet", "muted"),)]

    def note(self) -> Line:
        log = self.key_of("log")
        if self.state.clock_name:
            return (
                (f" all times are {self.state.clock_name}, as the table's first line; {log} shows the core", "faint"),
            )
        return ((f" said since this console began, the newest {MAX_MESSAGES}; {log} shows what the core did", "faint"),)
