"""Settings in force: value and where it comes from, and what is wrong with the files behind them.

Job: ask once, draw, read anew on `r`. Must not know: how settings are read. Nothing here changes anything; no secret is
a setting.

Source: design, "places"; spec K1, B1.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from pollconsole import bridge
from pollconsole.draw import ELLIPSIS, Line, text
from pollconsole.screens.aside import ReadScreen
from pollconsole.state import State
from pollconsole.theme_choice import Colours
from pollconsole.themes import PREFIX

NAME: Final = 22
MAX_VALUE: Final = 300
LONG: Final = 50
"""Characters of a value beside its name at 80 cells."""
_COLOURS: Final = {
    Colours.NONE: "none (NO_COLOR, or a terminal without)",
    Colours.SIXTEEN: "sixteen, the terminal's own",
    Colours.FULL: "full",
}


class SettingsScreen(ReadScreen):
    """Everything that was chosen, by whom."""

    title_words = "settings in force"
    searched = "the settings"
    indent = NAME + 3
    more_keys: ClassVar[tuple[tuple[str, str], ...]] = (("read_anew", "read anew"),)

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._whole: list[Line] = []
        """The lines with every path whole, for a copy."""

    async def lines(self) -> list[Line]:
        app: Any = self.app
        exact = self.state.exact

        async def body(core: Any) -> bridge.Settings:
            return await bridge.settings(core, app.home_named_by, exact=exact)

        found = await self.state.link.ask(body)
        screen = [
            bridge.Setting("screen", "theme", app.theme.removeprefix(PREFIX), app.theme_from),
            bridge.Setting("screen", "colours", _COLOURS[app.colours], "the environment"),
            bridge.Setting("screen", "mouse", "off: rows are copied by the terminal's own selection", "fixed"),
            bridge.Setting("screen", "started to look", "yes" if self.state.read_only else "no", "--read-only"),
        ]
        problems = (*found.problems, *app.theme_complaints, *self.state.keymap.complaints)
        self._whole = setting_lines((*found.settings, *screen), problems)
        return setting_lines((*found.settings, *screen), problems, brief=True)

    def whole(self) -> list[Line]:
        return self._whole or super().whole()


def setting_lines(found: tuple[bridge.Setting, ...], problems: tuple[str, ...], *, brief: bool = False) -> list[Line]:
    """Problems first, then the settings by group; the source stands behind each. *brief*: of a path in the home, which
    stands there whole once, the end alone where it is long."""
    home = next((each.value for each in found if (each.group, each.name) == ("home", "home")), "")
    lines: list[Line] = [((f"{len(problems)} to look at" if problems else "nothing is wrong with them", "title"),)]
    lines += [(("  ! ", "attention"), text(problem, "attention", MAX_VALUE)) for problem in problems]
    group = ""
    for each in found:
        if each.group != group:
            group = each.group
            lines += [(), ((group, "title"),)]
        inside = each.value.removeprefix(f"{home}/") if brief and home and len(each.value) > LONG else each.value
        shown = each.value if inside == each.value else f"{ELLIPSIS}/{inside}"
        value = text(shown, "text", MAX_VALUE)
        lines.append(
            ((f"  {each.name:<{NAME}} ", "muted"), value, ("  ", "text"), text(each.source, "faint", MAX_VALUE))
        )
    return lines
