"""The palette of commands: every action by name, and nothing that decides.

Job: names -> actions of the screen on top. Must not know: what the actions do. A card has no commands but leaving it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from textual.app import SystemCommand
from textual.command import CommandPalette
from textual.geometry import Size
from textual.screen import Screen

from pollconsole.board import View
from pollconsole.screens.detail import DetailScreen
from pollconsole.screens.live import LiveScreen

EVERYWHERE: Final = (
    ("Decisions", "Open the queue of decisions that wait", "queue(False)"),
    ("Approvals", "Open the queue of approvals that wait", "queue(True)"),
    ("Credentials", "Names, modes, origins, last use; never a value", "credentials"),
    ("Providers", "Contracts: where from, digest, what hides what", "providers"),
    ("Messages", "What was said", "messages"),
    ("Help", "Every key", "help"),
    ("Themes", "See every theme, keep one", "themes"),
    ("Draw anew", "The whole screen", "redraw"),
    ("Quit", "Say what goes on; Q quits then", "ask_quit"),
)
"""Title, what it does, action of the app."""
TABLE: Final = (
    *((f"View: {view.value}", "Show these rows", f"view({n})") for n, view in enumerate(View, 1)),
    ("Detail", "Budgets, both facts and story of the row under the cursor", "detail"),
    ("Filter", "Narrow the rows", "filter"),
    ("Sort", "Then a letter", "sort"),
    ("Reverse the order", "Last first", "reverse"),
    ("Hold the display", "Stand still, or go on; the core goes on", "pause"),
    ("Mark", "The row under the cursor, or not any more", "mark"),
    ("Unmark all", "No row is marked then", "unmark"),
    ("Pin", "The row under the cursor on top, or not any more", "pin"),
    ("Next match", "Of the last filter", "match(1)"),
    ("Previous match", "Of the last filter", "match(-1)"),
    ("Copy id", "Send it to the terminal's clipboard", "copy_id"),
    ("Copy detail", "Send it to the terminal's clipboard", "copy_detail"),
    ("Export", "The rows of this view as JSON lines into HOME/exports", "export"),
)
"""The same, actions of the table."""
DETAIL: Final = (
    ("Search the story", "Then n and N", "search"),
    ("Copy id", "Send it to the terminal's clipboard", "copy_id"),
    ("Copy detail", "Send it and the story to the terminal's clipboard", "copy_detail"),
    ("Back", "To the screen below", "leave"),
)


class Palette(CommandPalette):
    """The list of commands, over whatever screen is on top; laid out as steadily as our own screens."""

    def _screen_resized(self, size: Size) -> None:  # noqa: ARG002
        super()._screen_resized(self.app.size)


def commands(app: Any, screen: Screen[Any]) -> Iterable[SystemCommand]:
    """What can be done on *screen*."""
    own = TABLE if isinstance(screen, LiveScreen) else DETAIL if isinstance(screen, DetailScreen) else ()
    for title, does, action in own:
        yield _command(app, title, does, action, screen)
    for title, does, action in EVERYWHERE:
        yield _command(app, title, does, action, app)


def _command(app: Any, title: str, does: str, action: str, on: Any) -> SystemCommand:
    async def run() -> None:
        await app.run_action(action, on)

    return SystemCommand(title, does, run)
