"""What an app wears: the theme at the start, the list under `T`, no colour at all where none is wanted.

Job: load, wear, remember, say what is wrong with a file. Must not know: operations, the core, what a file holds.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual.filter import LineFilter, Monochrome, NoColor

from pollconsole import theme_choice, theme_files, themes
from pollconsole.guarded import GuardedApp
from pollconsole.screens.base import ConsoleScreen
from pollconsole.state import State
from pollconsole.theme_choice import Colours
from pollconsole.themes import DEFAULT, SHIPPED, Loaded


class ThemedApp(GuardedApp[int]):
    """An app with themes. Whoever builds on it makes `state` from the palette of `worn`."""

    state: State

    def __init__(self, *, home: Path | None, colours: Colours | None, **options: Any) -> None:
        """*home*: where the user's own themes are, and what is remembered. *colours*: None: by the environment."""
        self.colours = theme_choice.colours_of(os.environ) if colours is None else colours
        self._no_colour = NoColor()
        super().__init__(**options)
        self.home = home
        self._themes: list[Loaded] = []
        self._has_all = False
        self.theme_complaints: list[str] = []
        chosen = None if self.colours is Colours.NONE else theme_choice.remembered(self.home)
        self._load_themes(only=chosen or theme_choice.fallback(self.colours))
        self.worn = self._theme_at_start(chosen)
        self._begin_in(self.worn)

    def _load_themes(self, only: str | None = None) -> None:
        """All of them; or *only* this one, where it is a shipped one and there is none of the user's own to check."""
        if only in SHIPPED and not theme_files.has_own(self.home):
            self._themes, self.theme_complaints = [themes.shipped_as(only)], []
        else:
            self._themes, self.theme_complaints = theme_files.available(self.home)
            self._has_all = True
        for loaded in self._themes:
            self.register_theme(loaded.theme)

    @property
    def loaded_themes(self) -> list[Loaded]:
        """All that can be worn; those that a start left out are read when somebody asks."""
        if not self._has_all:
            self._load_themes()
        return self._themes

    def _begin_in(self, loaded: Loaded) -> None:
        """Wear *loaded* from the first frame on. Assigned to `theme`, it would have the stylesheet parsed twice and the
        first frame laid out twice; what else is done then is done here.

        Read by source, Textual 8.2.8: `App._watch_theme`.
        """
        self.set_reactive(ThemedApp.theme, loaded.theme.name)
        self.stylesheet.set_variables(self.get_css_variables())
        self._refresh_truecolor_filter(self.ansi_theme)
        self.add_class(f"-theme-{loaded.theme.name}", update=False)
        self.set_class(loaded.dark, "-dark-mode", update=False)
        self.set_class(not loaded.dark, "-light-mode", update=False)

    def _theme_at_start(self, chosen: str | None) -> Loaded:
        """What was chosen last; without colours the one that needs none; else what this terminal shows well."""
        by_name = {each.name: each for each in self._themes}
        if chosen is not None and chosen in by_name:
            return by_name[chosen]
        fallback = by_name.get(theme_choice.fallback(self.colours)) or by_name[DEFAULT]
        if chosen is not None:
            gone = f"theme {chosen!r} is not there any more: {fallback.name} is worn, T shows all"
            self.theme_complaints.append(gone)
        return fallback

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
            notice = "colours are off (NO_COLOR, or this terminal): only a theme's weight is seen"
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
