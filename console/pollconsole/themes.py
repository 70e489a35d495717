"""Themes: one TOML file each, read whole and checked before a screen sees any of it.

Job: file -> checked table of colours by role -> Textual theme and rich styles. Must not know: widgets, operations.
A bad colour ends the app at its next style update, so every field is parsed here, and an unknown name is refused.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from rich.style import Style
from textual.color import Color, ColorParseError
from textual.theme import Theme

from pollcore.facts import Refused

COLOURS: Final = ("background", "surface", "panel", "foreground", "primary", "accent", "warning", "error", "success")
"""Textual's own, all needed."""
ROLES: Final[dict[str, tuple[str, ...]]] = {
    "text": (),
    "muted": (),
    "faint": (),
    "title": ("bold",),
    "calm": (),
    "held": (),
    "attention": ("bold",),
    "danger": ("bold",),
    "good": (),
    "failed": (),
    "key": ("bold",),
    "bar-full": (),
    "bar-empty": (),
    "attention-text": ("bold",),
}
"""What colours mean here, and the weight that goes with each; a state never stands in colour alone."""
GROUNDS: Final = ("cursor", "attention", "footer")
"""Backgrounds: the row under the cursor, the strip that says what waits, the first and last line."""
SHIPPED: Final = ("dark", "light")
DEFAULT: Final = "dark"
PREFIX: Final = "pollconsole-"


class Palette:
    """Rich styles by role and by ground, for lines that are drawn without CSS."""

    def __init__(self, roles: dict[str, str], grounds: dict[str, str]) -> None:
        self.roles = {
            role: Style(color=Color.parse(roles[role]).rich_color, bold=True if "bold" in weights else None)
            for role, weights in ROLES.items()
        }
        self.grounds = {name: Style(bgcolor=Color.parse(colour).rich_color) for name, colour in grounds.items()}


class Loaded:
    """One checked theme file."""

    def __init__(self, name: str, dark: bool, colours: dict[str, str], palette: Palette) -> None:
        self.name = name
        self.dark = dark
        self.palette = palette
        self.theme = Theme(
            name=PREFIX + name,
            dark=dark,
            primary=colours["primary"],
            secondary=colours["primary"],
            accent=colours["accent"],
            warning=colours["warning"],
            error=colours["error"],
            success=colours["success"],
            foreground=colours["foreground"],
            background=colours["background"],
            surface=colours["surface"],
            panel=colours["panel"],
        )


def folder() -> Traversable:
    """Where shipped themes are: in the package (a wheel), else beside it (a checkout).

    An editable install may hold a stale copy in the package, so the checkout's own folder wins where there is one.
    """
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "pyproject.toml").is_file() and (checkout / "themes").is_dir():
        return checkout / "themes"
    return resources.files("pollconsole") / "themes"


def shipped() -> list[Loaded]:
    """The themes that come with the program."""
    return [read(name, folder().joinpath(f"{name}.toml").read_text("utf-8")) for name in SHIPPED]


def read(name: str, source: str) -> Loaded:
    """Check one theme file.

    Raises:
        Refused: names file, key and what is wrong with it.
    """
    try:
        table = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        raise Refused(f"{name}.toml: {error}", code="theme") from error
    unknown = sorted(set(table) - {"dark", "colours", "roles", "grounds"})
    if unknown:
        raise Refused(f"{name}.toml: {unknown[0]}: not a key of a theme", code="theme")
    if not isinstance(table.get("dark"), bool):
        raise Refused(f"{name}.toml: dark: must be true or false", code="theme")
    colours = _table(name, table, "colours", COLOURS)
    palette = Palette(_table(name, table, "roles", tuple(ROLES)), _table(name, table, "grounds", GROUNDS))
    return Loaded(name, table["dark"], colours, palette)


def _table(name: str, whole: dict[str, Any], key: str, wanted: tuple[str, ...]) -> dict[str, str]:
    table = whole.get(key)
    if not isinstance(table, dict):
        raise Refused(f"{name}.toml: [{key}]: missing", code="theme")
    if wrong := sorted(set(table) - set(wanted)):
        raise Refused(f"{name}.toml: {key}.{wrong[0]}: unknown; known are {', '.join(wanted)}", code="theme")
    if missing := [each for each in wanted if each not in table]:
        raise Refused(f"{name}.toml: {key}.{missing[0]}: missing", code="theme")
    for each, colour in table.items():
        try:
            parsed = Color.parse(colour) if isinstance(colour, str) else None
        except ColorParseError:
            parsed = None
        if parsed is None or parsed.ansi is not None or parsed.a != 1:
            raise Refused(f"{name}.toml: {key}.{each}: {colour!r} is no opaque colour like '#1b2027'", code="theme")
    return dict(table)
