"""Three plain widgets that draw lines: one line, many lines, the table of operations.

Job: put ready lines on the screen, scroll them, refresh only what changed. Must not know: the core, keys, what a line
says. None takes the focus; screens own the keys. None parses markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from rich.style import Style
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from pollconsole import draw
from pollconsole.draw import Line
from pollconsole.state import State

MAX_LINES: Final = 20_000
"""Physical lines of one view; the newest are kept."""

MAX_SAID: Final = 6
"""Physical lines of one message: 400 characters at 80 cells."""
SAID_INDENT: Final = 1


class OneLine(Widget, can_focus=False):
    """One line with a left and a right part."""

    DEFAULT_CSS = "OneLine { height: 1; width: 100%; }"

    def __init__(self, state: State, *, ground: str = "", id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes, markup=False)
        self.state = state
        self._ground = ground
        self._left: Line = ()
        self._right: Line = ()

    def show(self, left: Line, right: Line = (), ground: str | None = None) -> None:
        """Draw this from now on; nothing is written when it is what stands there already."""
        ground = self._ground if ground is None else ground
        if (left, right, ground) != (self._left, self._right, self._ground):
            self._left, self._right, self._ground = left, right, ground
            self.refresh()

    @property
    def words(self) -> str:
        """What stands there, for tests and screen readers."""
        return draw.plain(draw.beside(self._left, self._right, self.size.width)) if self.size.width else ""

    def render_line(self, y: int) -> Strip:  # noqa: ARG002
        width = self.size.width
        palette = self.state.palette
        base = self.rich_style + palette.grounds.get(self._ground, Style.null())
        return draw.strip(draw.beside(self._left, self._right, width), width, palette.roles, base)


class SaidLine(OneLine):
    """One line; what was said takes as many as it needs, so that a path stands there whole."""

    DEFAULT_CSS = "SaidLine { height: 1; width: 100%; }"

    def __init__(self, state: State, *, id: str | None = None) -> None:
        super().__init__(state, id=id)
        self._pieces: list[Line] = []
        """The physical lines of what was said; none: one line is drawn, cut where it is too long."""

    def say(self, left: Line, right: Line = ()) -> None:
        """Draw *left* whole, on at most `MAX_SAID` lines; *right* at the end of the last that has room."""
        width = self.app.size.width
        lines = draw.wrap(left, width, indent=SAID_INDENT)
        if len(lines) > MAX_SAID:
            lines = [*lines[: MAX_SAID - 1], draw.clip((*lines[MAX_SAID - 1], (draw.ELLIPSIS, "muted")), width)]
        roomy = [n for n, line in enumerate(lines) if draw.width_of(line) + draw.width_of(right) < width]
        if right and roomy:
            lines[roomy[-1]] = draw.beside(lines[roomy[-1]], right, width)
        self._stand(lines)
        super().show(left, right)

    def show(self, left: Line, right: Line = (), ground: str | None = None) -> None:
        self._stand([])
        super().show(left, right, ground)

    def _stand(self, lines: list[Line]) -> None:
        if lines != self._pieces:
            self._pieces = lines
            self.styles.height = max(1, len(lines))
            self.refresh()

    @property
    def words(self) -> str:
        return draw.join(self._pieces) if self._pieces else super().words

    def render_line(self, y: int) -> Strip:
        if y >= len(self._pieces):
            return super().render_line(y)
        return draw.strip(self._pieces[y], self.size.width, self.state.palette.roles, self.rich_style)


class LinesView(ScrollView, can_focus=False):
    """Many lines, wrapped to the width, scrolled as a whole."""

    DEFAULT_CSS = """
    LinesView { overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1;
        scrollbar-background: $background; scrollbar-color: $panel; scrollbar-gutter: stable; }
    """

    def __init__(self, state: State, *, id: str | None = None, follow: bool = False, indent: int = 2) -> None:
        super().__init__(id=id)
        self.state = state
        self.follow = follow
        """Stay at the end when lines come in while the end is in sight."""
        self.indent = indent
        self.found: int | None = None
        """A physical line that stands out: what a search came to."""
        self._logical: tuple[Line, ...] = ()
        self._physical: list[Line] = []
        self._wrapped_at = 0
        self._painted: tuple[Line, ...] | None = None
        """The lines that were drawn last."""
        self._base = Style.null()

    def show(self, lines: Sequence[Line]) -> None:
        """Draw these lines from now on."""
        logical = tuple(lines)
        if logical == self._logical:
            return
        self._logical = logical
        self._wrap()

    @property
    def lines(self) -> tuple[str, ...]:
        """The physical lines as drawn."""
        return tuple(draw.plain(line) for line in self._physical)

    def search(self, needle: str, by: int) -> tuple[int, int]:
        """Go to the next (*by* 1) or previous (-1) line that holds *needle*, whatever its case; after the last one from
        the other end. (which, of how many); (0, 0): none."""
        wanted = needle.lower()
        hits = [n for n, line in enumerate(self.lines) if wanted and wanted in line.lower()]
        if not hits:
            self.found = None
            self.refresh()
            return 0, 0
        here = self.found
        if here is None:  # of a story the newest first: what happened last is what is looked for
            at = hits[-1] if self.follow else hits[0]
        else:
            later = [n for n in hits if n > here] if by > 0 else [n for n in reversed(hits) if n < here]
            at = later[0] if later else hits[0] if by > 0 else hits[-1]
        self.found = at
        self.scroll_to(y=max(0, at - self.size.height // 2), animate=False)
        self.refresh()
        return hits.index(at) + 1, len(hits)

    @property
    def at_end(self) -> bool:
        return self.scroll_offset.y >= self.max_scroll_y

    @property
    def shows_end(self) -> bool:
        """Whether the last line is among those that are drawn; not before the lines have a place."""
        height = self.scrollable_content_region.height
        drawn = self._painted is self._logical and height > 0
        return drawn and len(self._physical) - self.scroll_offset.y <= height

    def wrap_for(self, width: int) -> None:
        """Wrap to *width* before the first layout, so that the lines are known."""
        if width > 0 and width != self._wrapped_at:
            self._wrapped_at = width
            self._wrap()

    def _wrap(self) -> None:
        width = self._wrapped_at or self.size.width
        if width <= 0:
            return
        at_end = self.at_end
        self._physical = [
            piece for line in self._logical for piece in (draw.wrap(line, width, indent=self.indent) or [()])
        ][-MAX_LINES:]
        self.virtual_size = Size(width, len(self._physical))
        if self.follow and at_end:
            self.scroll_end(animate=False)
        self.refresh()

    def on_resize(self) -> None:
        width = self.scrollable_content_region.width
        if width > 0 and width != self._wrapped_at:
            self._wrapped_at = width
            self._wrap()

    def render_lines(self, crop: Region) -> list[Strip]:
        self._base = self.rich_style  # as in the table
        self._painted = self._logical
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        index = y + self.scroll_offset.y
        line: Line = self._physical[index] if 0 <= index < len(self._physical) else ()
        palette = self.state.palette
        ground = palette.grounds["cursor"] if index == self.found else Style.null()
        return draw.strip(line, width, palette.roles, self._base + ground)


class Table(ScrollView, can_focus=False):
    """A virtual list of rows by id, with a cursor that stays on its id wherever the row goes."""

    DEFAULT_CSS = """
    Table { overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1;
        scrollbar-background: $background; scrollbar-color: $panel; }
    """

    def __init__(self, state: State, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.state = state
        self.ids: list[str] = []
        self.cursor_id: str | None = None
        self.placed = False
        """The operator put the cursor somewhere; before that, and on the first row, it stays at the top."""
        self._index: dict[str, int] = {}
        self._base = Style.null()
        self._painted: dict[int, tuple[str | None, Line]] = {}
        """By visible line: the id and the line that were drawn last."""

    def line_of(self, operation_id: str) -> Line:
        """The row's cells as one line; overridden by the screen's table."""
        raise NotImplementedError

    @property
    def columns(self) -> int:
        """Cells of a row: the width without the scrollbar."""
        return self.scrollable_content_region.width

    # --- rows ---------------------------------------------------------------------------------------------------------

    @property
    def cursor(self) -> int:
        """Row number of the cursor, 0 where there is none."""
        return self._index.get(self.cursor_id or "", 0)

    def show_ids(self, ids: list[str]) -> None:
        """New rows or a new order. The cursor stays on its id, and its row at its line of the screen if it can."""
        if ids == self.ids:
            self.refresh_changed()
            return
        before = self.cursor - self.scroll_offset.y
        old = self.cursor
        self.ids = ids
        self._index = {each: number for number, each in enumerate(ids)}
        self.virtual_size = Size(self.columns, len(ids))
        if not ids:
            self.cursor_id = None
        elif not self.placed:
            # who has chosen nothing is shown what comes first, not what was first a minute ago
            self.cursor_id = ids[0]
            self.scroll_to(y=0, animate=False)
        elif self.cursor_id not in self._index:
            self.cursor_id = ids[min(old, len(ids) - 1)]
        elif self.scroll_offset.y > 0 or self.cursor >= self.scrollable_content_region.height:
            self.scroll_to(y=max(0, self.cursor - before), animate=False)
        self._painted.clear()
        self.refresh()

    def move(self, by: int) -> None:
        """Move the cursor by rows."""
        self.move_to(self.cursor + by)

    def move_to(self, row: int) -> None:
        """Put the cursor on a row number, inside the list, and keep it in sight."""
        if not self.ids:
            return
        old = self.cursor
        row = max(0, min(len(self.ids) - 1, row))
        self.cursor_id = self.ids[row]
        self.placed = row > 0
        top, height = self.scroll_offset.y, max(1, self.size.height)
        if row < top:
            self.scroll_to(y=row, animate=False)
        elif row >= top + height:
            self.scroll_to(y=row - height + 1, animate=False)
        self.refresh_lines(old)
        self.refresh_lines(row)

    # --- drawing ------------------------------------------------------------------------------------------------------

    def refresh_changed(self) -> None:
        """Redraw the cells in sight that differ from what stands there (a countdown each second, no more)."""
        for y, (painted_id, painted) in list(self._painted.items()):
            index = y + self.scroll_offset.y
            if index >= len(self.ids):
                continue
            each = self.ids[index]
            line = self.line_of(each)
            if each != painted_id or len(line) != len(painted):
                self.refresh(Region(0, y, self.columns, 1))
                continue
            at = 0
            for new, old in zip(line, painted, strict=True):
                cells = cell_len(new[0])
                if new != old:
                    self.refresh(Region(at, y, max(cells, cell_len(old[0])), 1))
                at += cells

    def render_lines(self, crop: Region) -> list[Strip]:
        self._base = self.rich_style  # found once for all lines: it asks every widget above this one
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        width = self.columns
        index = y + self.scroll_offset.y
        if index >= len(self.ids):
            self._painted[y] = (None, ())
            return Strip.blank(width, self._base)
        each = self.ids[index]
        line = self.line_of(each)
        self._painted[y] = (each, line)
        palette = self.state.palette
        base = self._base + (palette.grounds["cursor"] if each == self.cursor_id else Style.null())
        return draw.strip(line, width, palette.roles, base)

    def on_resize(self) -> None:
        self._painted.clear()
        self.virtual_size = Size(self.columns, len(self.ids))
        self.refresh()
