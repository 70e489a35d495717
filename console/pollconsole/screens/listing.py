"""A list with the whole of the row under the cursor below it: what providers and credentials have in common.

Job: read on the core's thread, draw rows, keep the cursor on its row, search, leave. Must not know: what a row is.
Ten thousand rows cost what a screen full costs: only what is in sight is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import msgspec
from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from pollconsole.draw import Line, Span, fit, join, text
from pollconsole.screens.base import bound
from pollconsole.screens.searching import SearchingScreen
from pollconsole.state import State
from pollconsole.widgets import LinesView, OneLine, SaidLine, Table
from pollcore.facts import Moment, PollconsoleError

LEAD: Final = 2
FREE_LEAST: Final = 8
"""Cells that the column with no most is worth having from."""
NAME: Final = 10
"""Cells of the names in the lower part."""
MAX_VALUE: Final = 300
PANE_FROM: Final = 12
"""Rows of the screen from which the lower part is drawn."""


class Column(msgspec.Struct, frozen=True):
    """*most*: cells that it takes at most; 0: what is left. *right*: figures end together."""

    head: str
    most: int = 0
    right: bool = False


class Row(msgspec.Struct, frozen=True):
    """One row. *cells*: as many as columns, harmless. *whole*: the lines below while the cursor is on it."""

    name: str
    cells: tuple[Span, ...]
    whole: tuple[Line, ...]


class ListingTable(Table):
    """Rows by name."""

    def __init__(self, state: State, columns: Sequence[Column], *, id: str | None = None) -> None:
        super().__init__(state, id=id)
        self._kinds = columns
        self.rows: dict[str, Row] = {}
        self._cells: list[int] = [len(column.head) for column in columns]

    def put(self, rows: Sequence[Row]) -> None:
        """These rows from now on; columns are as wide as their texts need, up to their most."""
        self.rows = {row.name: row for row in rows}
        self._cells = [
            max([len(column.head), *(min(column.most, cell_len(row.cells[n][0])) for row in rows)])
            for n, column in enumerate(self._kinds)
        ]
        self.refresh()
        self.show_ids(list(self.rows))

    @property
    def widths(self) -> list[int]:
        """Cells of every column; the one without a most takes what is left. Where room is short the last ones are left
        out whole (0): the lower part tells them."""
        widths = list(self._cells)
        free = next((n for n, column in enumerate(self._kinds) if not column.most), len(widths) - 1)
        widths[free] = max(len(self._kinds[free].head), FREE_LEAST)
        for last in range(len(widths) - 1, 0, -1):
            if self._used(widths) <= self.columns:
                break
            widths[last] = 0
        if widths[free]:
            widths[free] += max(0, self.columns - self._used(widths))
        return widths

    @staticmethod
    def _used(widths: Sequence[int]) -> int:
        return LEAD + sum(widths) + sum(width > 0 for width in widths[1:])

    def heads(self) -> Line:
        """The names of the columns."""
        named = zip(self._kinds, self.widths, strict=True)
        heads = " ".join(fit(kind.head, width, right=kind.right) for kind, width in named if width)
        return ((f"{' ' * LEAD}{heads}", "faint"),)

    def line_of(self, operation_id: str) -> Line:
        row = self.rows.get(operation_id)
        line: Line = (("> ", "key") if operation_id == self.cursor_id else ("  ", "text"),)
        if row is None:
            return (*line, text(operation_id, "faint"))
        for number, (cell, width) in enumerate(zip(row.cells, self.widths, strict=True)):
            if not width:
                continue
            gap = ((" ", "text"),) if number else ()
            line = (*line, *gap, (fit(cell[0], width, right=self._kinds[number].right), cell[1]))
        return line


class ListingScreen(SearchingScreen):
    """Rows that the core is asked for. Subclasses say which."""

    CSS = """
    #listing { height: 1fr; }
    #pane { height: 50%; padding: 0 1; border-top: solid $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back"),
        bound("back", "leave"),
        bound("down", "move(1)"),
        bound("up", "move(-1)"),
        bound("page_down", "page(1)"),
        bound("page_up", "page(-1)"),
        bound("first", "ends(0)"),
        bound("last", "ends(1)"),
        bound("read_anew", "read"),
        bound("copy_all", "copy_all", "send the row whole to the terminal's clipboard"),
    ]
    title_words = ""
    beside = True
    searched = "this list"
    columns: ClassVar[tuple[Column, ...]] = ()
    more_keys: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Actions of a subclass, for the last line: name and what it does."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._lines: tuple[Line, ...] = ((("reading ...", "faint"),),)
        """What the lower part says where there is no row."""
        self._exact = state.exact
        self._found: list[Any] = []
        self._was_read = False

    def compose(self) -> ComposeResult:
        yield OneLine(self.state, ground="footer", id="head")
        yield OneLine(self.state, id="columns")
        yield ListingTable(self.state, self.columns, id="listing")
        yield LinesView(self.state, id="pane", indent=NAME + 3)
        yield SaidLine(self.state, id="said")
        yield OneLine(self.state, ground="footer", id="foot")

    @property
    def table(self) -> ListingTable:
        return self.query_one(ListingTable)

    @property
    def chosen(self) -> Any:
        """What the row under the cursor stands for, as `find` gave it; None: there is none."""
        ids = self.table.ids
        return self._found[self.table.cursor] if ids and self.table.cursor < len(self._found) else None

    def on_mount(self) -> None:
        self._lay_out(self.app.size.height)
        self.action_read()

    def on_resize(self, event: events.Resize) -> None:
        self._lay_out(event.size.height)
        self.call_after_refresh(self._draw_heads)

    def _lay_out(self, height: int) -> None:
        self.query_one("#pane").display = height >= PANE_FROM

    def on_screen_resume(self) -> None:
        if self.ready:
            self.action_read()

    # --- reading ------------------------------------------------------------------------------------------------------

    async def find(self, core: Any) -> list[Any]:
        """What there is; runs on the core's thread."""
        raise NotImplementedError

    def row(self, each: Any) -> Row:
        """How it is drawn, now."""
        raise NotImplementedError

    def nothing(self) -> tuple[Line, ...]:
        """What is said where there is no row."""
        return ((("nothing here", "muted"),),)

    def action_read(self) -> None:
        self.run_worker(self._read(), exclusive=True, group="read")

    async def _read(self) -> None:
        try:
            self._found = await self.state.link.ask(self.find)
            self._lines = self.nothing()
        except PollconsoleError as error:
            self._found = []
            self._lines = ((text(str(error), "attention", MAX_VALUE),),)
        self._was_read = True
        if self.is_attached:
            self._fill()
            self.tick(self.state.now(), True)

    def _fill(self) -> None:
        self._exact = self.state.exact
        self.table.put([self.row(each) for each in self._found])

    # --- drawing ------------------------------------------------------------------------------------------------------

    def tick(self, now: Moment, changed: bool) -> None:  # noqa: ARG002
        count: Line = ((f"  {len(self._found):,}", "muted"),) if self._was_read else ()
        self.show_head(((f" {self.title_words}", "title"), *count), now)
        if self._exact is not self.state.exact:
            self._fill()
        self._draw_heads()
        row = self.table.rows.get(self.table.cursor_id or "")
        self.query_one("#pane", LinesView).show(row.whole if row is not None else self._lines)
        self.draw_said(self.query_one("#said", SaidLine))
        if not self.search_keys():
            more = [(self.key_of(name), does) for name, does in self.more_keys]
            look = ((self.key_of("search"), "search"), (self.key_of("read_anew"), "anew"))
            self.keys(*more, *look, ("Esc", "back"))

    def _draw_heads(self) -> None:
        self.query_one("#columns", OneLine).show(self.table.heads() if self._found else ())

    # --- keys ---------------------------------------------------------------------------------------------------------

    def why_not(self, action: str) -> str | None:
        return "no row here" if action == "copy_all" and self.chosen is None else super().why_not(action)

    def go_to(self, needle: str, by: int) -> tuple[int, int]:
        wanted, table = needle.lower(), self.table
        hits = [n for n, each in enumerate(table.ids) if wanted and wanted in join([table.line_of(each)]).lower()]
        if not hits:
            return 0, 0
        here = table.cursor
        later = [n for n in hits if n > here] if by > 0 else [n for n in reversed(hits) if n < here]
        at = later[0] if later else hits[0] if by > 0 else hits[-1]
        table.move_to(at)
        return hits.index(at) + 1, len(hits)

    def action_leave(self) -> None:
        self.app.pop_screen()

    def action_move(self, by: int) -> None:
        self.table.move(by)
        self.tick(self.state.now(), False)

    def action_page(self, by: int) -> None:
        self.action_move(by * max(1, self.table.size.height - 1))

    def action_ends(self, last: int) -> None:
        self.action_move(len(self.table.ids) if last else -len(self.table.ids))

    def action_copy_all(self) -> None:
        row = self.table.rows.get(self.table.cursor_id or "")
        if row is not None:
            copier: Any = self.app.copy  # type: ignore[attr-defined]
            copier(f"{row.name}\n{join(row.whole)}", text(row.name, limit=64)[0])
            self.tick(self.state.now(), False)


def pair(name: str, value: str, role: str = "text") -> Line:
    """`  sent to    https://api.acme.example`: one line of the lower part, made harmless."""
    return ((f"  {name:<{NAME}} ", "muted"), text(value, role, MAX_VALUE))
