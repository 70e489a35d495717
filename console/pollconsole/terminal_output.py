"""What may reach the terminal, and what did.

One job: two last walls behind `safe` (a filter for the lines that widgets draw, an allow-list for the sequences of what
is written) and the watch that sees when a card's text went out. Text in, text out: knows no driver, no guard, no app.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from pollconsole.safe import is_drawn

MAX_CLIPBOARD: Final = 74_994
"""Base64 characters of one clipboard write (OSC 52): what many terminals still take."""
SCREEN_CHUNK: Final = 512
"""Base64 characters in one string that GNU screen passes on; it cuts longer ones."""
MAX_TITLE: Final = 200
REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
ESCAPE_SHOWN: Final = "\N{SYMBOL FOR ESCAPE}"

_MODES = "7|25|1000|1002|1003|1004|1006|1015|1016|1049|2004|2026|2048"
_OURS = (
    r"\[[0-9;:]*m"  # colours
    r"|\[[0-9;]*[ABCDHJK]"  # cursor, clearing
    rf"|\[\?(?:{_MODES})[hl]"
    r"|\[\?(?:2026|2048)\$p"
    r"|\[(?:>[0-9]*|<)u"  # kitty keyboard on, off
)
_FORBIDDEN = re.compile(rf"\x1b(?!{_OURS})|[\x00-\x09\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]")
_BASE64 = "[A-Za-z0-9+/=]"
_WHOLE_WRITES = re.compile(
    rf"\x07|\x1b\]52;c;{_BASE64}{{0,{MAX_CLIPBOARD}}}\x07"
    rf"|\x1bPtmux;\x1b\x1b\]52;c;{_BASE64}{{0,{MAX_CLIPBOARD}}}\x07\x1b\\"  # the same, through tmux
    rf"|\x1bP\x1b\]52;c;{_BASE64}{{0,{SCREEN_CHUNK}}}"  # the same, through GNU screen
    rf"(?:\x1b\\\x1bP{_BASE64}{{1,{SCREEN_CHUNK}}}){{0,{MAX_CLIPBOARD // SCREEN_CHUNK}}}\x07\x1b\\"
    rf"|\x1b\]2;[^\x00-\x1f\x7f-\x9f]{{0,{MAX_TITLE}}}(?:\x07|\x1b\\)"
    r"|\x1b\]22;[a-z-]{1,32}\x07"  # pointer shape
)
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-_])")
_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")


def wall(data: str) -> str:
    """Return *data* with every sequence that this program never writes taken apart, visibly.

    Let through: printable text, line feed, carriage return, colours, cursor moves, the modes that the driver switches,
    and as a whole write of its own the bell, a title, a capped clipboard copy, a pointer shape. An escape byte that
    begins anything else becomes ``␛``, any other control character ``�``; so queries, links, titles and clipboard
    writes hidden in drawn text arrive as text.

    Source: spec G4; CWE-150.
    """
    if not _FORBIDDEN.search(data) or _WHOLE_WRITES.fullmatch(data):
        return data
    return _FORBIDDEN.sub(lambda match: ESCAPE_SHOWN if match[0] == "\x1b" else REPLACEMENT, data)


@lru_cache(4096)
def _harmless(text: str) -> str:
    shown: list[str] = []
    for character in text:
        if is_drawn(character):
            shown.append(character)
        elif unicodedata.category(character) in ("Cs", "Co", "Cn"):
            shown.append(REPLACEMENT)  # they had cells; the rest has no width, and giving it one would break the line
    return "".join(shown)


class HarmlessLines(LineFilter):
    """Takes what a terminal would obey out of every line that a widget draws, whatever widget drew it.

    Characters without a cell (controls, escape, bidirectional overrides, zero-width) vanish, so that the layout holds;
    `safe` had made them visible before, this is for what got past it.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002
        if all(text.isascii() and text.isprintable() for text, _, control in segments if not control):
            return segments
        return [
            segment
            if segment.control or segment.text == "\n" or (segment.text.isascii() and segment.text.isprintable())
            else Segment(_harmless(segment.text), segment.style)
            for segment in segments
        ]


def plain(frame: str) -> str:
    """The words of a written frame in order: colours removed, each cursor move a space, white space runs one space."""
    return " ".join(_ESCAPES.sub(" ", _COLOURS.sub("", frame)).split())


class FrameWatch:
    """Sees whether a marker and all lines of a card were written since it began to look.

    A line counts when its words stand in one frame in order, so a widget may wrap it between words (not inside a
    border) and a scrolled card is whole once each of its lines was on the screen. A line that is a part of another one
    counts with it, so cards should give their lines names ("Host: ...").
    """

    def __init__(self) -> None:
        self._marker = ""
        self._marker_seen = False
        self._missing: dict[str, None] = {}
        self._seen: set[str] = set()

    @property
    def marker(self) -> str:
        return self._marker

    @property
    def complete(self) -> bool:
        return bool(self._marker) and self._marker_seen and not self._missing

    @property
    def missing(self) -> str | None:
        """The first line that was not on the screen yet, once the marker was."""
        return next(iter(self._missing), None) if self._marker_seen else None

    def begin(self, marker: str, lines: Iterable[str], *, again: bool = False) -> None:
        """Look for *marker* and *lines* from now on; an empty marker ends the watch.

        *again*: the same card at the same size, so lines that were on the screen before need no second look.
        """
        if not again:
            self._seen.clear()
        self._marker = marker
        self._marker_seen = False
        wanted = (" ".join(line.split()) for line in lines)
        self._missing = {words: None for words in wanted if words and words not in self._seen}

    def wrote(self, frame: str) -> None:
        if not self._marker or self.complete:
            return
        words = plain(frame)
        self._marker_seen = self._marker_seen or self._marker in words
        for line in [line for line in self._missing if line in words]:
            del self._missing[line]
            self._seen.add(line)
