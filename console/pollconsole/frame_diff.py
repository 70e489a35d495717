"""What stands on the terminal, and the least that must be written so that a new frame stands there.

Job: frames of Textual's compositor in, bytes out: only cells that differ, each colour named once. Must not know: what
is drawn, drivers, guards. Textual has no such difference: it writes a changed region from the left edge of its widget
on, 9 KB a second for twenty countdowns; as a difference they are 0.4 KB.

Read by source, Textual 8.2.8: `LayoutUpdate` (whole frames) and `ChopsUpdate` (spans of lines) of `_compositor`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Final

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.strip import Strip

BRIDGED: Final = 6
"""Unchanged cells between two changed ones that are written again: a cursor move takes as many bytes."""
ONE_CELL: Final = frozenset("…·│─┃━▁▂▃▄▅▆▇█▔▏▕╸╺")
"""Characters of ours besides ASCII that every terminal draws in one cell."""

Cell = tuple[str, Style | None]
"""A character and its style; an empty text: the second cell of the character before it."""


class Picture:
    """The cells that a terminal shows. One terminal, one size; `forget` when either may have changed."""

    def __init__(self) -> None:
        self._rows: dict[int, list[Cell | None]] = {}

    def forget(self) -> None:
        """Nothing is known of what stands there."""
        self._rows.clear()

    def take(self, update: LayoutUpdate | ChopsUpdate) -> list[tuple[int, int, int]]:
        """Take in what *update* draws; the spans (y, from, to) that differ from what stood there."""
        changed = []
        for y, x, first, last, strip in _pieces(update):
            cells = cells_of(strip)
            changed += self._put(y, x, cells, max(first - x, 0), min(last - x, len(cells)))
        return changed

    def write(self, update: LayoutUpdate | ChopsUpdate, console: Console) -> str:
        """Take in *update*; what makes the terminal show it."""
        colours: dict[Style | None, list[str]] = {}
        for y, first, last in self.take(update):
            row = self._rows[y]
            for start, end, style in _runs(row, first, last):
                words = _words(row[start:end])
                colours.setdefault(style, []).append(f"\x1b[{y + 1};{start + 1}H{words}")
        system = console._color_system or ColorSystem.TRUECOLOR
        return "".join(_coloured(style, "".join(moves), system) for style, moves in colours.items())

    def _put(self, y: int, x: int, cells: list[Cell], first: int, last: int) -> list[tuple[int, int, int]]:
        row = self._rows.setdefault(y, [])
        if len(row) < x + len(cells):
            row.extend([None] * (x + len(cells) - len(row)))
        if not any(row[x + first : x + last]):  # nothing is known of what stands there: the first frame, a new size
            row[x + first : x + last] = cells[first:last]
            return [(y, x + first, x + last)] if first < last else []
        differs = [at for at in range(first, last) if row[x + at] != cells[at]]
        if not differs:
            return []
        plain = _is_plain(row[x : x + len(cells)]) and _is_plain(cells)
        row[x + first : x + last] = cells[first:last]
        if not plain:  # terminals disagree about the width of some: such a line is never patched
            return [(y, x + first, x + last)]
        spans = [[x + differs[0], x + differs[0] + 1]]
        for at in differs[1:]:
            if x + at - spans[-1][1] <= BRIDGED:
                spans[-1][1] = x + at + 1
            else:
                spans.append([x + at, x + at + 1])
        return [(y, start, end) for start, end in spans]


def cells_of(strip: Strip) -> list[Cell]:
    """The cells of one strip."""
    cells: list[Cell] = []
    for text, style, control in strip:
        if control:
            continue
        if text.isascii():
            cells.extend(zip(text, repeat(style), strict=False))
            continue
        widths = [cell_len(character) for character in text]
        if sum(widths) != cell_len(text) or 0 in widths:  # characters that join: one piece
            cells.append((text, style))
            cells.extend([("", style)] * (cell_len(text) - 1))
            continue
        for character, width in zip(text, widths, strict=True):
            cells.append((character, style))
            cells.extend([("", style)] * (width - 1))
    return cells


def _pieces(update: LayoutUpdate | ChopsUpdate) -> Iterator[tuple[int, int, int, int, Strip]]:
    """(line, column of the strip, first and last column to be drawn, strip)."""
    if isinstance(update, LayoutUpdate):
        for y, line in enumerate(update.strips, update.region.y):
            x = update.region.x
            for strip in line:
                yield y, x, x, x + strip.cell_length, strip
                x += strip.cell_length
        return
    for y, first, last in update.spans:
        for end, (x, piece) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if piece is not None and x < last and end > first:
                yield y, x, first, min(last, end), piece


def _is_plain(cells: list[Cell] | list[Cell | None]) -> bool:
    words = _words(cells)
    if len(words) != sum([cell is not None for cell in cells]):  # wide characters, or characters that join
        return False
    return words.isascii() or all(character.isascii() or character in ONE_CELL for character in set(words))


def _words(cells: list[Cell] | list[Cell | None]) -> str:
    return "".join([cell[0] for cell in cells if cell is not None])


def _runs(row: list[Cell | None], first: int, last: int) -> Iterator[tuple[int, int, Style | None]]:
    """Neighbours of one style."""
    start, style = first, _style(row[first])
    for at in range(first + 1, last):
        other = _style(row[at])
        if other is not style and other != style:  # mostly the same object, and comparing two is slow
            yield start, at, style
            start, style = at, other
    yield start, last, style


def _style(cell: Cell | None) -> Style | None:
    return None if cell is None else cell[1]


def _coloured(style: Style | None, text: str, system: ColorSystem) -> str:
    named = "" if style is None else Strip.render_ansi(style, system)
    return f"\x1b[{named}m{text}\x1b[0m" if named else text


def is_frame(update: object) -> bool:
    """Whether a picture can take it in."""
    return isinstance(update, LayoutUpdate | ChopsUpdate)


class Least(CompositorUpdate):
    """A frame that is written as a difference. Nothing is taken in before it is really written."""

    def __init__(self, picture: Picture, update: LayoutUpdate | ChopsUpdate) -> None:
        self._picture = picture
        self._update = update

    def render_segments(self, console: Console) -> str:
        return self._picture.write(self._update, console)


class Whole(CompositorUpdate):
    """A frame that is written as it is, and known from then on."""

    def __init__(self, picture: Picture, update: LayoutUpdate | ChopsUpdate) -> None:
        self._picture = picture
        self._update = update

    def render_segments(self, console: Console) -> str:
        self._picture.take(self._update)
        return self._update.render_segments(console)
