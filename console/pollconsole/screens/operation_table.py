"""The table of operations, and the lines above it: what each view counts, the names of the columns.

Job: pure drawing from the board at the moment of painting. Must not know: keys, cards, the store.

Source: spec V1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pollconsole import row_columns, rows, times
from pollconsole.beats import is_polled
from pollconsole.board import Sort, View
from pollconsole.draw import Line, Span, fit, plain, text, width_of
from pollconsole.state import State
from pollconsole.widgets import Table
from pollcore.facts import Moment

_SORTED: Final[Mapping[Sort, str]] = {
    Sort.DEADLINE: "left",
    Sort.NEXT: "next",
    Sort.OPERATION: "operation",
    Sort.PROVIDER: "provider",
    Sort.STATUS: "status",
    Sort.REQUESTS: "requests",
}
"""The column that an order goes by."""


class OperationTable(Table):
    """Rows of operations, drawn from the board at the moment of painting."""

    def __init__(self, state: State, *, id: str | None = None) -> None:
        super().__init__(state, id=id)
        self._wanted: dict[str, int] = {}
        self._columns: tuple[row_columns.Column, ...] = ()
        self._columns_at = -1

    def show_ids(self, ids: list[str]) -> None:
        """Columns are as wide as these rows need, so they are known before the rows are drawn."""
        if ids != self.ids or not self._wanted:
            board = self.state.board
            operations = board.operations
            wanted = row_columns.wanted_by(board.facts(operations[each]).cells for each in ids if each in operations)
            if wanted != self._wanted:
                self._wanted, self._columns_at = wanted, -1
                self.refresh()
        super().show_ids(ids)

    @property
    def shape(self) -> tuple[row_columns.Column, ...]:
        """The columns as they stand now."""
        if self._columns_at != self.columns:
            self._columns_at = self.columns
            self._columns = row_columns.columns_for(max(0, self.columns), self._wanted or row_columns.WANTED)
        return self._columns

    def line_of(self, operation_id: str) -> Line:
        state = self.state
        operation = state.board.operations.get(operation_id)
        now = times.together(state.now())
        if operation is None:
            return (("  ", "text"), text(operation_id, "faint"))
        asked = state.board.asked(operation)
        columns = self.shape
        cells = list(rows.row(operation, now, columns, asked=asked, polled=is_polled(state.board.latest, now)))
        did = state.done.get(operation_id)
        if did is not None and columns[-1].key == "note":
            note = rows.note_spans(operation, now, asked, did)
            cells[-1] = (fit(plain(note), columns[-1].width), note[0][1])
        line: Line = (self._lead(operation_id, asked),)
        for number, each in enumerate(cells):
            line = (*line, *(((" ", "text"),) if number else ()), each)
        return line

    def _lead(self, operation_id: str, asked: bool) -> Span:
        """Cursor, pin or what needs a person; then the mark."""
        board = self.state.board
        sign, role = (">", "key") if operation_id == self.cursor_id else ("!", "attention") if asked else (" ", "text")
        if sign == " " and operation_id in board.pinned:
            sign, role = "*", "held"
        if operation_id in board.marked:
            return f"{sign}#", "key"
        return (f"{sign}*", role) if operation_id in board.pinned and sign != "*" else (f"{sign} ", role)


def column_line(columns: Sequence[row_columns.Column], sort: Sort = Sort.ATTENTION, *, reverse: bool = False) -> Line:
    """The names of the columns; `^LEFT`, or `v` where it is reversed: what the rows are ordered by. An order that no
    column here tells has its sign before them; the order of a new console has none."""
    sign, key = sign_of(reverse), _SORTED.get(sort)
    aside = not any(column.key == key for column in columns) and (sort is not Sort.ATTENTION or reverse)
    line: Line = ((f"{sign} ", "key") if aside and columns else ("  ", "faint"),)
    for number, column in enumerate(columns):
        gap = ((" ", "faint"),) if number else ()
        if column.key == key:
            head = fit(f"{sign}{column.head}"[: column.width], column.width, right=column.right), "key"
        else:
            head = fit(column.head, column.width, right=column.right), "faint"
        line = (*line, *gap, head)
    return line


def sign_of(reverse: bool) -> str:
    """Of the order of rows."""
    return "v" if reverse else "^"


def _counts(state: State, now: Moment) -> dict[View, int]:
    """Rows of each view. Two of them follow a key or a decision at once, not a second later."""
    board = state.board
    return {**board.figures(now).by_view, View.MARKED: board.marked_here(), View.NEEDS: board.needing()}


def view_lines(state: State, now: Moment, width: int, *, typing: bool, found: int) -> tuple[Line, Line]:
    """The views with what each counts, or the filter; and the order, unless *width* has no room for it."""
    order = f"by {state.sort.value}{', reversed' if state.reverse else ''} "
    if typing or state.needle:
        typed: Line = ((f" / {state.needle}{'_' if typing else ''}", "attention" if typing else "key"),)
        if not typing:
            typed = (*typed, (f"  in {state.view.value}, Esc clears", "muted"))
        return typed, ((f"{found:,} of {_counts(state, now)[state.view]:,}  {order}", "muted"),)
    counts = _counts(state, now)
    views = [view for view in View if view is state.view or view is not View.MARKED or counts[view]]
    for names, gap in ((_whole_name, "  "), (_short_name, "  "), (_whole_name, " "), (_short_name, " ")):
        left = _views(state, counts, views, names, gap)
        if width_of(left) <= width:
            break
    for view in sorted(_LESS, key=lambda each: counts[each] > 0):  # what counts nothing goes first
        if width_of(left) <= width:
            break
        if view in views and view is not state.view:
            views.remove(view)
            wide, left = (_views(state, counts, views, _short_name, gap) for gap in ("  ", " "))
            left = wide if width_of(wide) <= width else left
    return left, ((order, "faint"),) if width_of(left) + 1 + len(order) <= width else ()


_LESS: Final = (View.DONE, View.MARKED, View.FAILED, View.UNKNOWN, View.OPEN, View.LOW)
"""Views that are left out where there is no room, the first one first; their keys hold all the same."""


def _whole_name(view: View) -> str:
    return view.value


def _short_name(view: View) -> str:
    return view.value.partition(" ")[0]


def _views(
    state: State, counts: Mapping[View, int], views: Sequence[View], name: Callable[[View], str], gap: str
) -> Line:
    """Their keys, names and counts. *gap*: a wide one, where there is room: a count must not read as the next key."""
    parts: list[Line] = []
    for view in views:
        here = view is state.view
        wanted = view is View.NEEDS and counts[view] > 0
        role = "title" if here else "attention" if wanted else "muted"
        label = f"[{name(view)} {counts[view]:,}]" if here else f"{name(view)} {counts[view]:,}"
        parts.append(((f"{list(View).index(view) + 1} ", "faint"), (label, role)))
    left: Line = ((" ", "text"),)
    for number, part in enumerate(parts):
        left = (*left, *(((gap, "text"),) if number else ()), *part)
    return left
