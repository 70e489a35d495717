"""The first screen: every live operation, what needs a person first.

Job: table, views, and the lines around them. Must not know: how cards are decided, the store, SQL.

Source: spec V1, V2, V4; layout and keys: 80x24 first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal

from pollconsole import rows
from pollconsole.board import SORT_KEYS, Sort, View
from pollconsole.draw import Line, text
from pollconsole.screens.base import bound, strip_line
from pollconsole.screens.greeting import greeting_lines
from pollconsole.screens.narrowing import Narrowing
from pollconsole.screens.operation_table import OperationTable, column_line, view_lines
from pollconsole.screens.status_line import head_lines
from pollconsole.screens.story import StoryView
from pollconsole.state import State
from pollconsole.widgets import LinesView, OneLine, SaidLine
from pollcore.facts import SECOND, Moment

SIDE_WIDTH: Final = 52
SIDE_FROM: Final = 130
"""From this width on, the story of the row under the cursor stands beside the table."""
SORT_WHOLE_FROM: Final = 100
SORT_SHORT: Final = {
    Sort.ATTENTION: "needs",
    Sort.DEADLINE: "left",
    Sort.OPERATION: "id",
    Sort.PROVIDER: "prov",
    Sort.REQUESTS: "reqs",
}
"""The orders as their columns are named, on narrower screens."""
RESORT_TICKS: Final = 4
"""Rows are ordered anew at most once a second."""


class LiveScreen(Narrowing):
    """The table and the lines around it."""

    DEFAULT_CSS = f"""
    #middle {{ height: 1fr; }}
    #rows {{ height: 100%; width: 1fr; }}
    #greeting {{ height: 100%; width: 1fr; padding: 1 2; display: none; }}
    #side {{ width: {SIDE_WIDTH}; height: 100%; border-left: solid $panel; padding-left: 1; }}
    """
    below = says = True
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("down", "move(1)"),
        bound("up", "move(-1)"),
        bound("page_down", "page(1)"),
        bound("page_up", "page(-1)"),
        bound("first", "end(0)"),
        bound("last", "end(1)"),
        bound("detail", "detail"),
        bound("question", "question"),
        bound("pause", "pause"),
        *(bound(f"view_{view.value.replace(' ', '_')}", f"view({number})") for number, view in enumerate(View, 1)),
    ]

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._ticks = 0
        self._dirty = True
        self._seen_rows = False
        self._counted_down = 0
        """The second of the core's clock that the countdowns show: all of them go on together, in one frame."""

    def compose(self) -> ComposeResult:
        yield OneLine(self.state, ground="footer", id="head")
        yield OneLine(self.state, id="views")
        yield OneLine(self.state, id="columns")
        with Horizontal(id="middle"):
            yield OperationTable(self.state, id="rows")
            yield LinesView(self.state, id="greeting")
            yield StoryView(self.state, id="side")
        yield OneLine(self.state, id="strip")
        yield SaidLine(self.state, id="said")
        yield OneLine(self.state, ground="footer", id="foot")

    def on_mount(self) -> None:
        self._lay_out(self.app.size.width)
        self.tick(self.state.now(), True)

    def on_resize(self, event: events.Resize) -> None:
        self._lay_out(event.size.width)
        self.call_after_refresh(self._draw_columns)

    def on_screen_resume(self) -> None:
        self._dirty = True
        self._ticks = 0
        if self.ready:
            self.tick(self.state.now(), True)

    def _lay_out(self, width: int) -> None:
        self.query_one("#side").display = width >= SIDE_FROM

    # --- drawing ------------------------------------------------------------------------------------------------------

    def tick(self, now: Moment, changed: bool) -> None:
        self._dirty = self._dirty or changed
        loaded = self.state.board.latest.loaded
        if loaded and not self.state.paused and (not self._seen_rows or self._ticks % RESORT_TICKS == 0):
            self._order(now)
        elif not self.state.paused and (changed or now.wall // SECOND != self._counted_down):
            self.table.refresh_changed()
        self._counted_down = now.wall // SECOND
        self._ticks += 1
        self._greet(loaded and not self.state.board.operations)
        self._draw_head(now)
        self._draw_columns()
        self._draw_views(now)
        waiting = self.state.board.waiting(now).total
        strip = strip_line(self.state, now, self.app.size.width)
        self.query_one("#strip", OneLine).show(strip, ground="attention" if waiting else "")
        self._draw_said(now)
        self._draw_keys()
        self._follow_cursor()
        if loaded and not self._seen_rows:
            self._seen_rows = True
            self.call_after_refresh(self.state.link.first_rows_painted)

    def _greet(self, empty: bool) -> None:
        """Where nothing was ever handed over, say what this is and how to go on."""
        greeting = self.query_one("#greeting", LinesView)
        if empty:
            state, key_of = self.state, self.key_of
            demo, keys = state.title.startswith("demo"), {"providers": key_of("providers"), "keys": key_of("help")}
            greeting.show(greeting_lines(demo=demo, read_only=state.read_only, **keys))
        if greeting.display is not empty:
            greeting.display = empty
            self.table.display = not empty

    def _order(self, now: Moment) -> None:
        state = self.state
        if self._dirty or self._ticks % (RESORT_TICKS * 5) == 0:
            self._dirty = False
            ids = state.board.ordered(state.view, state.needle, state.sort, state.reverse, now)
            if state.cursor_at_start in ids:  # where the operator was when the console ended last
                self.table.cursor_id, self.table.placed = state.cursor_at_start, True
            if ids:
                state.cursor_at_start = None
            self.table.show_ids(ids)
        elif now.wall // SECOND != self._counted_down:
            self.table.refresh_changed()

    def _draw_head(self, now: Moment) -> None:
        self.query_one("#head", OneLine).show(*head_lines(self.state, now, self.app.size.width))

    def _draw_columns(self) -> None:
        shape = self.table.shape if self.table.display else ()
        self.query_one("#columns", OneLine).show(column_line(shape, self.state.sort, reverse=self.state.reverse))

    def _draw_views(self, now: Moment) -> None:
        width = self.app.size.width
        lines = view_lines(self.state, now, width, typing=self.mode == "filter", found=len(self.table.ids))
        self.query_one("#views", OneLine).show(*lines)

    def _draw_said(self, now: Moment) -> None:
        """The newest message while it is young, else what the row under the cursor says."""
        line = self.query_one("#said", SaidLine)
        message = self.state.message
        if message is not None:
            line.say(
                ((" ", "text"), (message.text, message.role)),
                ((f"{self.key_of('messages')} messages ", "faint"),),
            )
            return
        operation = self.state.board.operations.get(self.table.cursor_id or "")
        if operation is None:
            empty = "no rows match; Esc clears the filter" if self.state.needle else "no operation here"
            line.show(((f" {empty if self.state.board.latest.loaded else 'opening the store ...'}", "muted"),))
            return
        asked = self.state.board.asked(operation)
        said: Line = ((" ", "text"), text(operation.submitted.label or operation.submitted.job_id, "text", 40))
        note = rows.note_spans(operation, now, asked, self.state.done.get(operation.operation_id))
        line.show(
            (*said, ("  ", "text"), *note, ("  HTTP ", "faint"), (rows.http_words(operation, now), "muted")),
        )

    def _draw_keys(self) -> None:
        if self.mode == "filter":
            fields = ("", "words, or status:"), ("", "state: provider: account: reason:")
            self.keys(("Enter", "keep"), ("Esc", "clear"), *fields, last=0)
        elif self.mode == "sort":
            short = self.app.size.width < SORT_WHOLE_FROM
            told = ((key, SORT_SHORT.get(sort, sort.value) if short else sort.value) for key, sort in SORT_KEYS.items())
            self.keys(*told, ("Esc", "as it was"), last=0)
        else:
            self.keys(
                *((self.key_of("detail"), "detail"), (self.key_of("question"), "ask")),
                *(
                    (self.key_of("decisions"), "decide"),
                    (self.key_of("filter"), "filter"),
                    (self.key_of("sort"), "sort"),
                ),
                *((f"{self.key_of('view_open')}-{self.key_of('view_marked')}", "view"), (self.key_of("help"), "help")),
                (self.key_of("quit"), "quit"),
                last=2,
            )

    def _follow_cursor(self) -> None:
        side = self.query_one(StoryView)
        if side.display:
            operation = self.state.board.operations.get(self.table.cursor_id or "")
            side.follow_operation(operation)

    # --- keys ---------------------------------------------------------------------------------------------------------

    def _draw_mode(self) -> None:
        self._draw_views(self.state.now())
        self._draw_keys()

    def _redraw(self) -> None:
        self.ordered_now()
        self._dirty = True
        self._ticks = 0
        self.tick(self.state.now(), True)

    def action_move(self, by: int) -> None:
        self.table.move(by)
        self._cursor_moved()

    def action_page(self, by: int) -> None:
        self.table.move(by * max(1, self.table.size.height - 1))
        self._cursor_moved()

    def action_end(self, last: int) -> None:
        self.table.move_to(len(self.table.ids) - 1 if last else 0)
        self._cursor_moved()

    def _cursor_moved(self) -> None:
        self._draw_said(self.state.now())
        self._follow_cursor()

    def action_view(self, number: int) -> None:
        self.state.view = list(View)[number - 1]
        self._redraw()

    def action_pause(self) -> None:
        self.state.paused = not self.state.paused
        self.state.say("the screen is paused; the core goes on" if self.state.paused else "the screen goes on")
        self._redraw()

    def action_detail(self) -> None:
        if self.table.cursor_id is not None:
            self._opens("detail", self.table.cursor_id)

    def action_question(self) -> None:
        if self.table.cursor_id is not None:
            self._opens("question", self.table.cursor_id)

    def _opens(self, what: str, operation_id: str) -> None:
        opener: Callable[[str, str], Any] = self.app.opens  # type: ignore[attr-defined]
        opener(what, operation_id)
