"""Screens of plain lines: help, and what was said.

Job: show lines, scroll, leave. Must not know: where they come from.
"""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from pollconsole.draw import Line
from pollconsole.screens.base import ConsoleScreen
from pollconsole.state import State
from pollconsole.widgets import LinesView, OneLine
from pollcore.facts import Moment, clock_time

_KEYS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Everywhere",
        (
            ("E / A", "open the queue of decisions / of approvals"),
            ("K / P", "credentials (never a value) / providers and their contracts"),
            ("M", "messages"),
            ("?", "this help"),
            ("T", "themes: see each, keep one"),
            ("ctrl+p", "the palette of commands"),
            ("ctrl+l", "draw the screen anew"),
            ("q then Q", "quit; says what goes on"),
            ("Esc", "back; decides nothing"),
        ),
    ),
    (
        "Table",
        (
            ("j k, arrows", "move; g G PgUp PgDn ctrl+u ctrl+d likewise"),
            ("Enter or t", "detail: budgets, both facts, story"),
            ("o", "open the question of this operation; asks for one if it runs"),
            ("/", "filter: words, or status: state: provider: account: job: label: reason: op:"),
            ("s, then a letter", "sort; S reverses"),
            ("1 - 7", "views: all, needs you, unknown, low, failed, done, marked"),
            ("n / N", "next, previous row that the last filter finds"),
            ("space / U", "mark a row / unmark all"),
            ("*", "pin a row on top, or not any more"),
            ("c / C", "send id / detail to the terminal's clipboard"),
            ("x", "export this view, as filtered, to HOME/exports (JSON lines)"),
            ("p", "hold the display still; the core goes on"),
        ),
    ),
    (
        "Detail",
        (
            ("j k, arrows", "scroll the story; g G PgUp PgDn ctrl+u ctrl+d likewise"),
            ("/ then n / N", "search the story; the next, the previous place"),
            ("c / C", "send id / detail and story to the terminal's clipboard"),
            ("o", "open the question, or ask for one"),
        ),
    ),
    (
        "Card",
        (
            ("1 - 9", "choose, once the card says ARMED"),
            ("the shown letter", "confirms; any other key goes back a step"),
            ("arrows, PgUp PgDn", "scroll; a long card must be seen to its end before it arms"),
            ("[ ]", "previous, next card of the queue"),
            ("l / r", "on the card of many: its frozen list / draw it anew"),
            ("Esc", "leave it waiting"),
        ),
    ),
)
_SIGNS = (
    "Signs: ~ waiting   = held   ! needs you   + succeeded   x failed, cancelled, expired   . closed",
    "# marked   * pinned   > the cursor",
    "A figure with ! has under a tenth left. LEFT counts to the deadline or the end of usefulness, the nearer of both.",
    "No key but a card's digit and letter gives new authority. Agents and the command line can only ask.",
)


class LinesScreen(ConsoleScreen):
    """Lines under a title."""

    CSS = "#lines { height: 1fr; padding: 0 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,left", "leave", "back"),
        Binding("down,j", "scroll(1)", "down"),
        Binding("up,k", "scroll(-1)", "up"),
        Binding("pagedown,ctrl+d", "scroll(15)", "page down"),
        Binding("pageup,ctrl+u", "scroll(-15)", "page up"),
    ]
    title_words = ""
    more_keys: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Keys of a subclass, for the last line."""

    def compose(self) -> ComposeResult:
        yield OneLine(self.state, ground="footer", id="head")
        yield LinesView(self.state, id="lines", indent=21)
        yield OneLine(self.state, ground="footer", id="foot")

    def on_mount(self) -> None:
        self.tick(self.state.now(), True)

    def tick(self, now: Moment, changed: bool) -> None:  # noqa: ARG002
        self.show_head(((f" {self.title_words}", "title"),), now)
        self.query_one(LinesView).show(self.content())
        self.keys(("up down PgUp PgDn", "scroll"), *self.more_keys, ("Esc", "back"))

    def content(self) -> list[Line]:
        """The lines now."""
        return []

    def action_leave(self) -> None:
        self.app.pop_screen()

    def action_scroll(self, by: int) -> None:
        self.query_one(LinesView).scroll_relative(y=by, animate=False)


class HelpScreen(LinesScreen):
    """Every key that does something."""

    title_words = "keys"

    def content(self) -> list[Line]:
        lines: list[Line] = []
        for heading, pairs in _KEYS:
            lines.append(((heading, "title"),))
            lines += [((f"  {key:<18} ", "key"), (does, "text")) for key, does in pairs]
            lines.append(())
        lines += [((sign, "muted"),) for sign in _SIGNS]
        return lines


class MessagesScreen(LinesScreen):
    """What was said, the newest first."""

    title_words = "messages"

    def __init__(self, state: State) -> None:
        super().__init__(state)

    def content(self) -> list[Line]:
        said = [((f"{clock_time(each.at)} ", "muted"), (each.text, each.role)) for each in self.state.messages]
        return list(reversed(said)) or [(("nothing was said yet", "muted"),)]
