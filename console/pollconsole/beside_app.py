"""The screens beside the table: audit, settings, log, messages, providers, credentials, help; and exact times.

Job: open each by its key, over what may lie below it. Must not know: what stands on them, decisions. Their modules are
imported when a key wants them.

Source: spec V3; A4, G5, K1 for what they show.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.binding import BindingType

from pollconsole.carry_app import CarryingApp
from pollconsole.screens.base import ConsoleScreen, bound

if TYPE_CHECKING:
    from pollconsole import help_keys

SCREENS: Final[dict[str, tuple[str, str]]] = {
    "audit": ("audit", "AuditScreen"),
    "settings": ("settings", "SettingsScreen"),
    "log": ("log", "LogScreen"),
    "messages": ("text", "MessagesScreen"),
    "providers": ("providers", "ProvidersScreen"),
    "credentials": ("credentials", "CredentialsScreen"),
}
"""By action: module of `screens` and class."""
_HELP: Final = (
    ("Table", "live", "LiveScreen"),
    ("Detail", "detail", "DetailScreen"),
    ("Queue", "queue", "QueueScreen"),
    ("Audit", "audit", "AuditScreen"),
    ("Providers", "providers", "ProvidersScreen"),
    ("Credentials", "credentials", "CredentialsScreen"),
    ("Log, messages, settings, a contract's text, help", "text", "LinesScreen"),
    ("Card", "card", "CardScreen"),
    ("Card of many", "group", "GroupScreen"),
)
_NO_BINDINGS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "Table": (
        ("typed after /", "words, or status: state: provider: account: job: label: reason: op:"),
        ("a letter after s", "a attention, l deadline, n next, o operation, p provider, s status, r requests"),
    ),
    "Everywhere": (("ctrl+p", "every action by its name, as its other key"), ("Esc", "back; decides nothing")),
    "Card": (
        ("1 - 9", "choose, once the card says ARMED"),
        ("the shown letter", "confirms; any other key goes back a step"),
        ("PgUp PgDn", "a long card must be seen to its end before it arms"),
    ),
}
"""What is no binding: keys that are typed, and those that belong to the guard of a card."""


class BesideApp(CarryingApp):
    """An app with screens beside the table. *home_named_by*: who named the home, as `bridge.home_source` says it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(bound(name, f"beside('{name}')") for name in SCREENS),
        bound("help", "help"),
        bound("exact_times", "exact_times"),
    ]
    home_named_by = ""

    def action_beside(self, name: str) -> None:
        """Open one of `SCREENS`, in place of another one."""
        if self.why_not_beside(self.screen) is not None:
            return
        kind = _class(*SCREENS[name])
        if isinstance(self.screen, kind):
            return
        made: ConsoleScreen = kind(self.state)
        if isinstance(self.screen, ConsoleScreen) and self.screen.beside:
            self.pop_screen()
        self.push_screen(made)

    @staticmethod
    def why_not_beside(screen: Any) -> str | None:
        """Why no screen is opened over *screen*; None: one can be."""
        over = isinstance(screen, ConsoleScreen) and (screen.beside or screen.below)
        return None if over else "go back to the table first"

    def action_help(self) -> None:
        """Every key, those of the screen below first."""
        from pollconsole.screens.text import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.state, self._sections()))

    def _sections(self) -> list[help_keys.Section]:
        from pollconsole import help_keys

        keymap = self.state.keymap.bindings()
        here: list[help_keys.Section] = []
        others: list[help_keys.Section] = []
        for title, module, name in _HELP:
            kind = _class(module, name)
            made = help_keys.section(title, kind, keymap, _NO_BINDINGS.get(title, ()))
            (here if type(self.screen) is kind else others).append(made)
        everywhere = help_keys.section("Everywhere", type(self), keymap, _NO_BINDINGS["Everywhere"])
        return [*here, everywhere, *others]

    def action_exact_times(self) -> None:
        """Times and sizes in full, UTC and local, or about, on every screen."""
        state = self.state
        state.exact = not state.exact
        state.say("times exactly, UTC and local" if state.exact else "times about", "muted")
        if isinstance(self.screen, ConsoleScreen) and self.screen.ready:
            self.screen.tick(state.now(), True)


def _class(module: str, name: str) -> type[Any]:
    found: type[Any] = getattr(importlib.import_module(f"pollconsole.screens.{module}"), name)
    return found
