"""What an app wears: the theme at the start, the list under `T`, no colour at all where none is wanted.

Job: load, wear, remember, say what is wrong with a file. Must not know: operations, the core, what a file holds.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual.filter import LineFilter, Monochrome, NoColor

from pollconsole import theme_choice, theme_files
from pollconsole.guarded import GuardedApp
from pollconsole.screens.base import ConsoleScreen
from pollconsole.state import State
from pollconsole.theme_choice import Colours
from pollconsole.themes import DEFAULT, Loaded


class ThemedApp(GuardedApp[int]):
    """An app with themes. Whoever builds on it makes `state` from the palette of `worn`."""

    state: State

    def __init__(self, *, home: Path | None, colours: Colours | None, **options: Any) -> None:
        """*home*: where the user's own themes are, and what is remembered. *colours*: None: by the environment."""
        self.colours = theme_choice.colours_of(os.environ) if colours is None else colours
        self._no_colour = NoColor()
        super().__init__(**options)
        self.home = home
        self.loaded_themes: list[Loaded] = []
        self.theme_complaints: list[str] = []
        self._load_themes()
        self.worn = self._theme_at_start()
        self.theme = self.worn.theme.name

    def _load_themes(self) -> None:
        self.loaded_themes, self.theme_complaints = theme_files.available(self.home)
        for loaded in self.loaded_themes:
            self.register_theme(loaded.theme)

    def _theme_at_start(self) -> Loaded:
        """What was chosen last; without colours the one that needs none; else what this terminal shows well."""
        by_name = {each.name: each for each in self.loaded_themes}
        fallback = by_name.get(theme_choice.fallback(self.colours), by_name[DEFAULT])
        name = theme_choice.remembered(self.home)
        if name is None or self.colours is Colours.NONE:
            return fallback
        if name not in by_name:
            self.theme_complaints.append(f"theme {name!r} is not there any more: {fallback.name} is worn, T shows all")
        return by_name.get(name, fallback)

    def say_theme_complaints(self) -> None:
        """Put what is wrong with theme files among the messages."""
        for complaint in self.theme_complaints:
            self.state.say(complaint, "attention")

    @property
    def theme_from(self) -> str:
        """Where the theme in force comes from."""
        if theme_choice.remembered(self.home) == self.worn.name and self.colours is not Colours.NONE:
            return f"chosen, {theme_choice.FILE}"
        return "the environment" if self.worn.name == theme_choice.fallback(self.colours) else "tried on"

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual answers NO_COLOR with greys; here no colour at all is written then."""
        filters = [each for each in super().get_line_filters() if not isinstance(each, Monochrome)]
        return [*filters, self._no_colour] if self.colours is Colours.NONE else filters

    def action_themes(self) -> None:
        """Files of the user's own are read anew, so that whoever writes one sees it at once."""
        from pollconsole.screens.deciding import DecidingScreen
        from pollconsole.theme_screen import ThemeScreen

        if isinstance(self.screen, DecidingScreen | ThemeScreen) or not isinstance(self.screen, ConsoleScreen):
            return
        self._load_themes()
        self.say_theme_complaints()
        notice = self.theme_complaints[0] if self.theme_complaints else ""
        if self.colours is Colours.NONE:
            notice = "colours are off (NO_COLOR, or a terminal without): weight alone is seen of a theme"
        self.push_screen(
            ThemeScreen(self.state, self.loaded_themes, self.worn, wear=self.wear, keep=self._keep_theme, notice=notice)
        )

    def wear(self, loaded: Loaded) -> None:
        """Draw everything in this theme from now on."""
        self.worn = loaded
        self.state.palette = loaded.palette
        self.theme = loaded.theme.name
        for screen in self.screen_stack:
            screen.refresh(layout=True)
            for widget in screen.query("*"):
                widget.refresh()

    def _keep_theme(self, loaded: Loaded) -> None:
        if theme_choice.remember(self.home, loaded.name):
            self.state.say(f"theme {loaded.name}; remembered in {theme_choice.FILE}")
        else:
            self.state.say(f"theme {loaded.name}, until this console ends: it could not be remembered")
