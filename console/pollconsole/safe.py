"""Make text that others wrote harmless and visible.

One job: turn any string (provider answers, contract text, header values, file names, error texts that quote them) into
characters that a terminal draws and never obeys. Used by the command line and the screens alike, so it knows neither,
and imports nothing but the character database. It decides no layout: cell widths and wrapping are the caller's.
"""

from __future__ import annotations

import unicodedata

DEFAULT_LIMIT = 200
"""Characters of the result, the ellipsis included, where a caller names no limit."""
MAX_MARKS_IN_A_ROW = 2
"""Combining marks kept after one base character; more of them climb over the lines above."""
RAW_PER_SHOWN = 4
"""Raw characters looked at per character of the limit: normalising is quadratic in a run of marks, so it is bounded."""
ELLIPSIS = "…"

_KEPT_CLASSES = frozenset("LNPS")
_TAB_IN_TEXT = "    "

# Letters, marks and symbols by category that draw nothing: a line could hide text or end early in them.
_INVISIBLE = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}
    | set(range(0x180B, 0x1810))
    | set(range(0xFE00, 0xFE10))
    | set(range(0xE0100, 0xE01F0))
)


def safe(text: str, limit: int = DEFAULT_LIMIT, *, multiline: bool = False) -> str:
    """Return *text* so that a terminal can only draw it, at most *limit* characters long.

    Kept: printable ASCII, letters, numbers, punctuation, symbols, and up to two combining marks in a row. A space of
    another kind (no-break, thin, ideographic) becomes a plain one, so that lines break and columns stand. All else
    (control characters, escape, bidirectional overrides, zero-width and private characters, surrogates, invisible
    fillers) is written out as ``<1B>`` or ``<U+202E>``. The text is NFC-normalised. What does not fit is replaced by
    one ``…`` at the end, so a cut is never silent and never splits a written-out character.

    Args:
        text: any string, lone surrogates included.
        limit: characters of the result, at least 1.
        multiline: keep line feeds (``CR LF`` becomes one) and turn tabs into four spaces; else both are written out.

    Raises:
        ValueError: *limit* is below 1.

    Source: spec G4; CWE-150.
    """
    if limit < 1:
        raise ValueError(f"safe(): limit must be at least 1, got {limit}")
    if len(text) <= limit and text.isascii() and text.isprintable():
        return text
    raw = text[: limit * RAW_PER_SHOWN + 1]
    if multiline:
        raw = raw.replace("\r\n", "\n")
    pieces: list[str] = []
    length = 0
    cut = len(text) > limit * RAW_PER_SHOWN + 1
    marks = 0
    for character in unicodedata.normalize("NFC", raw):
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        piece = _shown(character, marks, multiline)
        pieces.append(piece)
        length += len(piece)
        if length > limit:
            cut = True
            break
    if not cut:
        return "".join(pieces)
    while pieces and length > limit - len(ELLIPSIS):
        length -= len(pieces.pop())
    return "".join(pieces) + ELLIPSIS


def is_drawn(character: str) -> bool:
    """Whether one *character* may reach a terminal as it is (combining marks count as drawn)."""
    if " " <= character <= "~":
        return True
    if ord(character) in _INVISIBLE:
        return False
    category = unicodedata.category(character)
    return category[0] in _KEPT_CLASSES or category in ("Zs", "Mn", "Me")


def _shown(character: str, marks: int, multiline: bool) -> str:
    if multiline and character == "\n":
        return character
    if multiline and character == "\t":
        return _TAB_IN_TEXT
    if marks <= MAX_MARKS_IN_A_ROW and is_drawn(character):
        return " " if unicodedata.category(character) == "Zs" else character
    point = ord(character)
    return f"<{point:02X}>" if point < 0x100 else f"<U+{point:04X}>"
