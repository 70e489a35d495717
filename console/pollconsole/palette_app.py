"""An app with a palette and with keys of the operator's own.

Job: read HOME/keys.toml at the start, open the palette, say why an action of the app cannot be used over a screen. Must
not know: what the actions do. A card has no palette.

Source: spec G3, G5.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from pollconsole import keys_file
from pollconsole.beside_app import BesideApp
from pollconsole.screens.base import ConsoleScreen, bound


class PaletteApp(BesideApp):
    """Whoever builds on it calls `take_keys` once `state` is there."""

    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("palette", "command_palette"),
        Binding("ctrl+p", "command_palette", "palette", priority=True),
    ]

    def take_keys(self) -> None:
        """The operator's own keys; what is wrong with their file is told, the rest holds."""
        self.state.keymap = keys_file.read(self.home)
        for complaint in self.state.keymap.complaints:
            self.state.say(complaint, "attention")
        self._keymap = self.state.keymap.bindings()  # `set_keymap` wants a running app

    def action_command_palette(self) -> None:
        """Over a screen of ours, but no card: its keys are its own."""
        from pollconsole.palette import Palette
        from pollconsole.screens.deciding import DecidingScreen

        if isinstance(self.screen, ConsoleScreen) and not isinstance(self.screen, DecidingScreen):
            self.push_screen(Palette(id="--command-palette"))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The palette: looking and going. Nothing here takes a screenshot or reaches a decision."""
        from pollconsole.palette import commands

        return commands(self, screen)

    def why_not(self, action: str, screen: Screen[Any]) -> str | None:
        """Why *action* of the app cannot be used over *screen*; None: it can."""
        name = action.partition("(")[0]
        if name == "beside":
            return self.why_not_beside(screen)
        return self.why_no_queue(screen) if name == "queue" else None

    def why_no_queue(self, screen: Screen[Any]) -> str | None:
        """Why no queue is opened over *screen* (V4: from every view but a card, which is left first); None: it is."""
        from pollconsole.screens.deciding import DecidingScreen
        from pollconsole.screens.detail import DetailScreen

        over = isinstance(screen, DetailScreen) or self.why_not_beside(screen) is None
        if not over or any(isinstance(each, DecidingScreen) for each in self.screen_stack):
            return "go back to the table first"
        return None
