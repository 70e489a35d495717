"""Which theme: what the terminal can show, what the operator chose last, and where that is kept.

Job: environment and HOME/ui.json -> the name of a theme. Must not know: what a theme holds, widgets.

Source: no-color.org (a value that is not empty); terminfo, capability `colors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Final

from pollconsole import ui_file
from pollconsole.themes import DEFAULT

FILE: Final = ui_file.FILE
KEY: Final = "theme"
MAX_BYTES: Final = ui_file.MAX_BYTES
FULL_COLOUR: Final = ("truecolor", "24bit")
MANY: Final = 256
FEW: Final = 8


class Colours(Enum):
    """What the terminal shows. `NONE`: weight, underline and reverse alone."""

    NONE = "none"
    SIXTEEN = "sixteen"
    FULL = "full"


def colours_of(environ: Mapping[str, str]) -> Colours:
    """What the terminal of *environ* can show and its operator wants to see."""
    if environ.get("NO_COLOR"):
        return Colours.NONE
    if environ.get("COLORTERM", "").lower() in FULL_COLOUR:
        return Colours.FULL
    term = environ.get("TERM", "")
    count = _terminfo_colours(term)
    if count is None:
        return Colours.FULL if not term or "256color" in term else Colours.SIXTEEN
    return Colours.FULL if count >= MANY else Colours.SIXTEEN if count >= FEW else Colours.NONE


def _terminfo_colours(term: str) -> int | None:
    """How many colours terminfo gives *term*; None: it is not listed, or this machine has no terminfo.

    `curses` takes the first terminal that a process names for all later ones: it is asked of the real one alone.
    """
    if term in ("", "unknown"):
        return None
    try:
        import curses

        curses.setupterm(term, 1)
        return max(0, curses.tigetnum("colors"))
    except Exception:
        return None


def fallback(colours: Colours) -> str:
    """The theme for a terminal whose operator chose none."""
    return {Colours.NONE: "monochrome", Colours.SIXTEEN: "terminal", Colours.FULL: DEFAULT}[colours]


def remembered(home: Path | None) -> str | None:
    """The theme that was chosen last; None when none was, or the file says nothing that can be understood."""
    name = ui_file.read(home).get(KEY)
    return name if isinstance(name, str) else None


def remember(home: Path | None, name: str) -> bool:
    """Keep *name* for the next start, and whatever else the file holds; False where that cannot be written."""
    return ui_file.write(home, {KEY: name})
