"""Themes: one TOML file each, read whole and checked before a screen sees any of it.

Job: text of a file -> checked table of inks by role -> Textual theme and rich styles. Must not know: widgets,
operations, where users keep files of their own (`theme_files`).
A bad colour ends the app at its next style update, so every field is parsed here, and an unknown name is refused.

An ink is `COLOUR [on COLOUR] [WEIGHT ...]`: `"#f5b95f"`, `"#000000 on #ffd866 bold"`. Colours are `#rgb`, `#rrggbb`
or a CSS name; a theme with `terminal = true` may also name the terminal's own (`ansi_default`, `ansi_red`, ...).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from rich.style import Style
from textual.color import Color, ColorParseError
from textual.theme import BUILTIN_THEMES, Theme

from pollconsole.safe import safe
from pollcore.facts import Refused

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

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
"""What colours mean here, and the weight that goes with each unless a theme names others; a state never stands in
colour alone."""
GROUNDS: Final = ("cursor", "attention", "footer")
"""Backgrounds: the row under the cursor, the strip that says what waits, the first and last line."""
WEIGHTS: Final = ("bold", "italic", "underline", "reverse", "dim", "plain")
"""What may follow a colour; `plain`: none at all."""
SHIPPED: Final = ("dark", "light", "high-contrast", "colour-blind", "monochrome", "terminal")
"""In the order of the list."""
DEFAULT: Final = "dark"
PREFIX: Final = "pollconsole-"
EXAMPLE: Final = "#1b2027"
MAX_ABOUT: Final = 48
_TOP: Final = ("about", "dark", "terminal", "extends", "colours", "roles", "grounds")
_COLOUR: Final = re.compile(r"#[0-9a-fA-F]{3}(?:[0-9a-fA-F]{3})?|ansi_[a-z_]+|[a-z]+")
_SECTION: Final = re.compile(r"\s*\[\s*([A-Za-z-]+)\s*\]")
_KEY: Final = re.compile(r"""\s*["']?([A-Za-z0-9_-]+)["']?\s*[=.]""")


class Ink:
    """One colour with an own ground, if it has one, and weights."""

    def __init__(self, colour: Color, on: Color | None, weights: tuple[str, ...]) -> None:
        self.colour = colour
        self.on = on
        self.weights = weights

    def style(self) -> Style:
        """As a rich style; a weight that is not named is not touched."""
        return Style(
            color=self.colour.rich_color,
            bgcolor=None if self.on is None else self.on.rich_color,
            **dict.fromkeys(self.weights, True),  # type: ignore[arg-type]
        )

    def ground(self) -> Style:
        """As a background: the colour behind whatever is drawn on it."""
        return Style(bgcolor=self.colour.rich_color, **dict.fromkeys(self.weights, True))  # type: ignore[arg-type]


class Palette:
    """Rich styles by role and by ground, for lines that are drawn without CSS."""

    def __init__(self, roles: Mapping[str, Ink], grounds: Mapping[str, Ink]) -> None:
        self.roles = {role: ink.style() for role, ink in roles.items()}
        self.grounds = {name: ink.ground() for name, ink in grounds.items()}


class Loaded:
    """One checked theme file."""

    def __init__(
        self, name: str, table: Mapping[str, Any], inks: Mapping[str, Mapping[str, Ink]], *, mark: str
    ) -> None:
        """*table*: the whole file, what it extends included. *mark*: told apart from an earlier text of this name."""
        self.name = name
        self.table = table
        self.dark: bool = table["dark"]
        self.terminal: bool = table.get("terminal", False)
        self.about = safe(table.get("about", ""), MAX_ABOUT) if table.get("about") else ""
        self.background = inks["colours"]["background"].colour
        self.roles = inks["roles"]
        self.grounds = inks["grounds"]
        self.palette = Palette(self.roles, self.grounds)
        colours = {
            key: ink.colour.css if ink.colour.ansi is not None else ink.colour.hex
            for key, ink in inks["colours"].items()
        }
        self.theme = Theme(
            name=PREFIX + name + mark,
            primary=colours["primary"],
            secondary=colours["primary"],
            warning=colours["warning"],
            error=colours["error"],
            success=colours["success"],
            accent=colours["accent"],
            foreground=colours["foreground"],
            background=colours["background"],
            surface=colours["surface"],
            panel=colours["panel"],
            boost="ansi_default" if self.terminal else None,
            dark=self.dark,
            ansi=self.terminal,
            variables=_variables(self.dark) if self.terminal else {},
        )


def _variables(dark: bool) -> dict[str, str]:
    """What Textual's own widgets want of a theme of the terminal's colours; without them it ends the app."""
    return dict(BUILTIN_THEMES["ansi-dark" if dark else "ansi-light"].variables)


def folder() -> Traversable:
    """Where shipped themes are: in the package (a wheel), else beside it (a checkout).

    An editable install may hold a stale copy in the package, so the checkout's own folder wins where there is one.
    """
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "pyproject.toml").is_file() and (checkout / "themes").is_dir():
        return checkout / "themes"
    from importlib import resources  # some ms that a checkout's start is spared

    return resources.files("pollconsole") / "themes"


def shipped() -> list[Loaded]:
    """The themes that come with the program, in the order of the list."""
    return [shipped_as(name) for name in SHIPPED]


def shipped_as(name: str) -> Loaded:
    """The theme that comes with the program under *name*, one of `SHIPPED`."""
    return read(name, folder().joinpath(f"{name}.toml").read_text("utf-8"))


def read(name: str, source: str, *, bases: Mapping[str, Loaded] | None = None, mark: str = "") -> Loaded:
    """Check one theme file.

    Args:
        bases: what `extends` may name.
        mark: ends the name that Textual knows it by: a name that was registered before is not read again.

    Raises:
        Refused: names file, line, key, what is wrong with it and the way out.
    """
    try:
        table = tomllib.loads(source)
    except (ValueError, RecursionError) as error:  # also: numbers and nesting without end
        why = "nested too deep" if isinstance(error, RecursionError) else safe(str(error), 120)
        raise Refused(f"{name}.toml: {why}; mend the file or take it away", code="theme") from None
    check = _Check(name, source)
    if unknown := sorted(set(table) - set(_TOP)):
        check.refuse("", unknown[0], f"not a key of a theme; known are {', '.join(_TOP)}")
    if "extends" in table:
        table = _extended(check, table, bases or {})
    if not isinstance(table.get("dark"), bool):
        check.refuse("", "dark", "must be true or false")
    if not isinstance(table.get("terminal", False), bool):
        check.refuse("", "terminal", "must be true or false")
    if not isinstance(table.get("about", ""), str):
        check.refuse("", "about", "must be a text")
    own = bool(table.get("terminal", False))
    inks = {
        "colours": check.inks(table, "colours", dict.fromkeys(COLOURS, ()), own=own, bare=True),
        "roles": check.inks(table, "roles", ROLES, own=own),
        "grounds": check.inks(table, "grounds", dict.fromkeys(GROUNDS, ()), own=own),
    }
    return Loaded(name, table, inks, mark=mark)


def _extended(check: _Check, table: dict[str, Any], bases: Mapping[str, Loaded]) -> dict[str, Any]:
    """*table* over the shipped theme that it names."""
    base = bases.get(table["extends"]) if isinstance(table["extends"], str) else None
    if base is None:
        check.refuse("", "extends", f"must be one of {', '.join(bases) or 'no theme here'}")
    whole: dict[str, Any] = {**base.table, "about": "", **table}
    for part in ("colours", "roles", "grounds"):
        if isinstance(table.get(part, {}), dict):
            whole[part] = {**base.table[part], **table.get(part, {})}
    return whole


class _Check:
    """Checks of one file's fields; what it refuses, it names by file, line and key."""

    def __init__(self, name: str, source: str) -> None:
        self._name = name
        self._source = source

    def refuse(self, part: str, key: str, why: str) -> NoReturn:
        line = line_of(self._source, part, key)
        where = f"{self._name}.toml:{line}" if line else f"{self._name}.toml"
        whole = f"{part}.{key}" if part and key else part or key
        raise Refused(f"{where}: {safe(whole, 60)}: {why}", code="theme")

    def inks(
        self,
        whole: Mapping[str, Any],
        part: str,
        wanted: Mapping[str, tuple[str, ...]],
        *,
        own: bool,
        bare: bool = False,
    ) -> dict[str, Ink]:
        """One table of the file. *wanted*: keys with the weights that hold unless others are named."""
        table = whole.get(part)
        if not isinstance(table, dict):
            self.refuse(part, "", f"missing; write the table, or extends = '{DEFAULT}'")
        if wrong := sorted(set(table) - set(wanted)):
            self.refuse(part, wrong[0], f"unknown; known are {', '.join(wanted)}")
        if missing := [each for each in wanted if each not in table]:
            self.refuse(part, missing[0], f"missing; write it, or extends = '{DEFAULT}' to take the rest from there")
        return {key: self._ink(part, key, table[key], wanted[key], own=own, bare=bare) for key in wanted}

    def _ink(self, part: str, key: str, value: Any, weights: tuple[str, ...], *, own: bool, bare: bool) -> Ink:
        words = value.split() if isinstance(value, str) else []
        named = tuple(word for word in words if word in WEIGHTS)
        rest = [word for word in words if word not in WEIGHTS]
        if (bare and len(words) != 1) or rest[1:2] not in ([], ["on"]) or len(rest) not in (1, 3):
            self.refuse(part, key, f"{safe(repr(value), 40)} is no colour; write one like '{EXAMPLE}'")
        colours = [self._colour(part, key, word, own=own) for word in rest if word != "on"]
        if "dim" in named and not own:
            self.refuse(part, key, "dim is for the terminal's own colours; write the dimmer colour itself")
        if named:
            weights = tuple(weight for weight in named if weight != "plain")
        return Ink(colours[0], colours[1] if len(colours) > 1 else None, weights)

    def _colour(self, part: str, key: str, word: str, *, own: bool) -> Color:
        try:
            parsed = Color.parse(word) if _COLOUR.fullmatch(word) else None
        except ColorParseError:
            parsed = None
        if parsed is None or parsed.auto or (parsed.ansi is None and parsed.a != 1):
            self.refuse(part, key, f"{safe(repr(word), 40)} is no opaque colour; write one like '{EXAMPLE}'")
        if parsed.ansi is not None and not own:
            self.refuse(part, key, f"{word} is the terminal's own colour; it needs terminal = true above the tables")
        return parsed


def line_of(source: str, part: str, key: str) -> int | None:
    """The line, from 1, at which *key* of table *part* stands, else the table's, else None. Empty part: the top."""
    at, header = "", None
    for number, line in enumerate(source.splitlines(), 1):
        if section := _SECTION.match(line):
            at = section[1]
            if at == part:
                header = number
        elif at == part and (found := _KEY.match(line)) and found[1] == key:
            return number
    return header
