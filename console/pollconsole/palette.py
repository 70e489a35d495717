"""The palette of commands: every action by name, and nothing that decides.

Job: the bindings in force -> commands with their key; one that cannot be used now stays, with the reason. Must not
know: what the actions do. A card has no palette: its keys are its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from textual.app import SystemCommand
from textual.binding import Binding
from textual.command import CommandPalette
from textual.geometry import Size
from textual.screen import Screen

from pollconsole import help_keys
from pollconsole.key_names import shown
from pollconsole.screens.base import ConsoleScreen
from pollconsole.state import State

NOT_NOW: Final = " (not now)"
"""After the name of a command that cannot be used; what it would do gives way to the reason."""
UNKEYED: Final = (("Clipboard", "clipboard", "copies go to the terminal or to a file: switch"),)
"""Actions of the app that have no key: title, action, what it does."""
_HIDDEN: Final = frozenset({*help_keys.MOVES, "command_palette"})
"""Moving is done by keys; the palette is open already."""


class Palette(CommandPalette):
    """The list of commands, over whatever screen is on top; laid out as steadily as our own screens."""

    # the library breaks words into lines of no cells, and then itself, where a terminal leaves the list no room
    CSS = "Palette CommandList { min-width: 8; }"

    def _screen_resized(self, size: Size) -> None:  # noqa: ARG002
        super()._screen_resized(self.app.size)


def commands(app: Any, screen: Screen[Any]) -> Iterable[SystemCommand]:
    """What can be done on *screen*: its own actions, then those that hold everywhere."""
    if not isinstance(screen, ConsoleScreen):
        return
    state: State = screen.state
    for owner, why_not in ((screen, screen.why_not), (app, lambda action: app.why_not(action, screen))):
        for binding, keys in actions_of(type(owner), state):
            title = (binding.id or binding.description).replace("_", " ").capitalize()
            yield _command(app, title, f"{keys}  {_does(binding)}", binding.action, owner, why_not(binding.action))
    for title, action, does in UNKEYED:
        yield _command(app, title, does, action, app, None)


def actions_of(kind: type[Any], state: State) -> Iterator[tuple[Binding, str]]:
    """Each action of a class of ours once, with its keys in force as a person reads them."""
    by_action: dict[str, list[Binding]] = {}
    for binding in help_keys.bindings(kind):
        if binding.action.partition("(")[0] not in _HIDDEN:
            by_action.setdefault(binding.action, []).append(binding)
    for group in by_action.values():
        named = next((each for each in group if each.id), group[0])
        if named.id and named.id in state.keymap.chosen:
            keys = state.keymap.all_shown(named.id)
        else:
            keys = " or ".join(dict.fromkeys(shown(each.key) for each in group))
        yield named, keys


def _does(binding: Binding) -> str:
    return binding.tooltip or binding.description


def _command(app: Any, title: str, does: str, action: str, on: Any, why_not: str | None) -> SystemCommand:
    async def run() -> None:
        await app.run_action(action, on)

    async def say() -> None:
        app.state.say(f"{title}: {why_not}", "muted")

    if why_not is not None:
        return SystemCommand(f"{title}{NOT_NOW}", why_not, say)
    return SystemCommand(title, does, run)
