"""Text with roles -> strips: the one way in which this console draws.

Job: spans of harmless text and role names become lines of exact width. Must not know: operations, screens, markup.
There is none here: nothing that a provider wrote can be read as a style or an action. Widths are cells, not characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from pollconsole.safe import safe

Span = tuple[str, str]
"""Text and the name of its role (`themes.ROLES`)."""
Line = tuple[Span, ...]

ELLIPSIS: Final = "…"
_BREAKS: Final = (" ", "/")
"""Where a text is cut: behind one of these."""
_CLOCK: Final = "UTC"
"""Stays with the time before it."""
MAX_TEXT: Final = 2_000
"""Characters of one provider text on a screen; what is cut shows an ellipsis."""
_PLAIN: Final = Style.null()
MAX_WRAPPED: Final = 200
"""Physical lines of one logical line."""


def text(value: str, role: str = "text", limit: int = MAX_TEXT) -> Span:
    """A span of *value*, made harmless."""
    return safe(value, limit), role


def fit(value: str, width: int, *, right: bool = False) -> str:
    """*value* in exactly *width* cells: padded, or cut with an ellipsis, between words where that costs little."""
    cells = cell_len(value)
    if cells > width:
        value = cut(value, width)
        cells = cell_len(value)
    pad = " " * (width - cells)
    return pad + value if right else value + pad


def cut(value: str, width: int) -> str:
    """The beginning of *value* in at most *width* cells, an ellipsis at its end.

    A word, or a part of an address, that would be cut in its middle is left out where that costs at most half the
    width: half a word may be read as another word. One that is longer is cut inside.
    """
    if width <= 0:
        return ""
    head = set_cell_size(value, width - 1)
    inside = value.startswith(head) and value[len(head) : len(head) + 1] not in ("", *_BREAKS)
    if inside and head[-1:] not in _BREAKS:
        kept = head[: max(head.rfind(sign) for sign in _BREAKS) + 1]
        head = kept if cell_len(kept) * 2 >= width else head
    return head.rstrip(" ") + ELLIPSIS


def cut_front(value: str, width: int) -> str:
    """The end of *value* in at most *width* cells, an ellipsis before it: of an address or a path, what tells it from
    others. It begins at a part of it unless that leaves next to nothing: half a host may be read as another host."""
    if cell_len(value) <= width:
        return value
    if width <= 0:
        return ""
    at = len(value)
    left = width - 1
    while at and (left := left - cell_len(value[at - 1])) >= 0:
        at -= 1
    tail = value[at:]
    slash = tail.find("/")
    return ELLIPSIS + (tail[slash:] if slash >= 0 and (len(tail) - slash) * 4 >= len(tail) else tail)


def width_of(line: Line) -> int:
    """Cells of a whole line."""
    return sum(cell_len(piece) for piece, _ in line)


def plain(line: Line) -> str:
    """The words alone."""
    return "".join(piece for piece, _ in line)


def clip(line: Line, width: int) -> Line:
    """The beginning of *line* in at most *width* cells, a cut shown by an ellipsis."""
    if width_of(line) <= width:
        return line
    kept: list[Span] = []
    left = width
    for piece, role in line:
        cells = cell_len(piece)
        if cells < left:
            kept.append((piece, role))
            left -= cells
            continue
        if left > 0:
            kept.append((cut(piece + " ", left), role))
        break
    return tuple(kept)


def flow(items: Sequence[Span], width: int, *, first: Line = (), indent: int = 0, sign: str = " · ") -> list[Line]:
    """*items* one after the other, as many on a line as fit whole; none is broken unless it is longer than a line.

    Args:
        first: what the first line begins with, two spaces before the first item.
        indent: spaces before every other line.
        sign: stands between two items on one line.
    """
    lines: list[Line] = []
    current, fresh = first, bool(first)
    for item in items:
        gap = "  " if fresh else sign
        if current and width_of(current) + cell_len(gap) + cell_len(item[0]) <= width:
            current = (*current, (gap, "muted"), item)
        else:
            if current:
                lines.append(current)
            current = ((" " * indent, "text"), item) if indent else (item,)
        fresh = False
    return [*lines, current] if current else lines


def beside(left: Line, right: Line, width: int) -> Line:
    """*left* and *right* at the two ends of one line; the left one gives way."""
    right = clip(right, width)
    room = width - width_of(right)
    left = clip(left, max(0, room - (1 if right else 0)))
    return (*left, (" " * (room - width_of(left)), "text"), *right)


def wrap(line: Line, width: int, *, indent: int = 0) -> list[Line]:
    """Break *line* between words into lines of at most *width* cells; further lines start with *indent* spaces.

    A word that is longer than a line is broken inside, a path behind one of its parts if it can. At most `MAX_WRAPPED`
    lines; the last then ends in an ellipsis.
    """
    width = max(1, width)
    # where nothing else would fit on a line, it begins at its edge
    indent = indent if indent < width else 0
    done: list[Line] = []
    current: list[Span] = []
    used = 0
    for word, role in _words(line):
        if len(done) > MAX_WRAPPED:
            break
        cells = cell_len(word)
        if used + cell_len(word.rstrip(" ")) > width and used > 0 and current:
            done.append(_without_end_space(current))
            current, used = [(" " * indent, "text")] if indent else [], indent
            word = word.lstrip(" ")
            cells = cell_len(word)
        while word and len(done) <= MAX_WRAPPED and used + cell_len(word.rstrip(" ")) > width:
            head = _head(word, width - used)
            current.append((head, role))
            done.append(tuple(current))
            word = word[len(head) :]
            current, used = [(" " * indent, "text")] if indent else [], indent
            cells = cell_len(word)
        if word:
            current.append((word, role))
            used += cells
    done.append(_without_end_space(current))
    if len(done) > MAX_WRAPPED:
        done = [*done[: MAX_WRAPPED - 1], ((ELLIPSIS, "muted"),)]
    return done


def _words(line: Line) -> Iterable[Span]:
    """Words with the spaces that follow them; a word may come in several spans of different roles.

    `10:58:00 UTC` is one.
    """
    for piece, role in line:
        start = 0
        for at in range(1, len(piece)):
            if piece[at - 1] == " " and piece[at] != " " and not piece.startswith(_CLOCK, at):
                yield piece[start:at], role
                start = at
        if piece[start:]:
            yield piece[start:], role


def _head(word: str, cells: int) -> str:
    """The longest beginning of *word* in at most *cells* cells, at least one character; of a path whole parts, where
    they take half of that."""
    used = 0
    for at, character in enumerate(word):
        used += cell_len(character)
        if used > cells and at > 0:
            parts = word.rfind("/", 0, at) + 1
            return word[:parts] if parts * 2 >= at and word[parts:].rstrip(" ") else word[:at]
    return word


def _without_end_space(spans: list[Span]) -> Line:
    if spans and spans[-1][0].endswith(" "):
        return (*spans[:-1], (spans[-1][0].rstrip(" "), spans[-1][1]))
    return tuple(spans)


def strip(line: Line, width: int, styles: Mapping[str, Style], base: Style) -> Strip:
    """One physical line of exactly *width* cells on *base*.

    One strip is made, not one for each step: a strip costs more than all else that a line needs.
    """
    segments: list[Segment] = []
    last, cells = None, 0
    for piece, role in (*line, (" " * max(0, width - width_of(line)), "")):
        if not piece:
            continue
        style = base + styles.get(role, _PLAIN)
        cells += cell_len(piece)
        if style is last:
            segments[-1] = Segment(segments[-1].text + piece, style)
        else:
            segments.append(Segment(piece, style))
            last = style
    made = Strip(segments, cells)
    return made if cells == width else made.adjust_cell_length(width, base)


def join(lines: Sequence[Line]) -> str:
    """The words of several lines."""
    return "\n".join(plain(line) for line in lines)
