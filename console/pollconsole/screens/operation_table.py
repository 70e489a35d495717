"""The table of operations, and the lines above it: what each view counts, the names of the columns.

Job: pure drawing from the board at the moment of painting. Must not know: keys, cards, the store.

Source: spec V1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pollconsole import row_columns, rows
from pollconsole.beats import is_polled
from pollconsole.board import Sort, View
from pollconsole.draw import Line, Span, fit, text, width_of
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
        now = state.now()
        if operation is None:
            return (("  ", "text"), text(operation_id, "faint"))
        asked = state.board.asked(operation)
        columns = self.shape
        cells = list(rows.row(operation, now, columns, asked=asked, polled=is_polled(state.board.latest, now)))
        did = state.done.get(operation_id)
        if did is not None and columns[-1].key == "note":
            cells[-1] = (fit(did, columns[-1].width), "good")
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
    order = f"{sign_of(state.reverse)}{state.sort.value} "
    if typing or state.needle:
        typed: Line = ((f" / {state.needle}{'_' if typing else ''}", "attention" if typing else "key"),)
        if not typing:
            typed = (*typed, (f"  in {state.view.value}, Esc clears", "muted"))
        return typed, ((f"{found:,} of {_counts(state, now)[state.view]:,}  {order}", "muted"),)
    counts = _counts(state, now)
    parts: list[Line] = []
    for number, view in enumerate(View, 1):
        here = view is state.view
        if view is View.MARKED and not here and not counts[view]:
            continue
        wanted = view is View.NEEDS and counts[view] > 0
        role = "title" if here else "attention" if wanted else "muted"
        label = f"[{view.value} {counts[view]:,}]" if here else f"{view.value} {counts[view]:,}"
        parts.append(((f"{number} ", "faint"), (label, role)))
    cells = 1 + sum(width_of(part) for part in parts)
    gap = "  " if cells + 2 * (len(parts) - 1) <= width else " "  # a count must not read as the next view's key
    left: Line = ((" ", "text"),)
    for number, part in enumerate(parts):
        left = (*left, *(((gap, "text"),) if number else ()), *part)
    return left, ((order, "faint"),) if width_of(left) + 1 + len(order) <= width else ()
