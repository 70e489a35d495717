"""Keys of the table that look for, mark, pin, copy and export rows.

Job: one action each over the table and the shared state. Must not know: how rows are drawn, decisions, the store.
None of these changes an operation.
"""

from __future__ import annotations

from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from pollconsole.board import View, finder
from pollconsole.draw import join
from pollconsole.screens.base import ConsoleScreen
from pollconsole.screens.detail import fact_lines
from pollconsole.screens.operation_table import OperationTable


class ListKeys(ConsoleScreen):
    """What the first screen can do with rows beside opening them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "mark", "mark"),
        Binding("U", "unmark", "unmark all"),
        Binding("asterisk", "pin", "pin on top"),
        Binding("n", "match(1)", "next match"),
        Binding("N", "match(-1)", "previous match"),
        Binding("c", "copy_id", "copy id"),
        Binding("C", "copy_detail", "copy detail"),
        Binding("x", "export", "export the view"),
    ]

    @property
    def table(self) -> OperationTable:
        return self.query_one(OperationTable)

    def _redraw(self) -> None:
        raise NotImplementedError

    def action_mark(self) -> None:
        """Mark the row under the cursor, or take its mark away, and go on to the next."""
        marked, chosen = self.state.board.marked, self.table.cursor_id
        if chosen is None:
            return
        marked.symmetric_difference_update({chosen})
        if self.state.view is not View.MARKED:
            self.table.move(1)
        self.state.say(f"{len(marked)} marked; 7 shows them, U unmarks all", "muted")
        self._redraw()

    def action_unmark(self) -> None:
        count = len(self.state.board.marked)
        self.state.board.marked.clear()
        self.state.say(f"{count} unmarked" if count else "nothing is marked; space marks a row", "muted")
        self._redraw()

    def action_pin(self) -> None:
        """Let the row stand first in every view and order, or not any more."""
        pinned, chosen = self.state.board.pinned, self.table.cursor_id
        if chosen is None:
            return
        if chosen in pinned:
            del pinned[chosen]
            self.state.say(f"{chosen}: not pinned any more", "muted")
        else:
            pinned[chosen] = None
            self.table.placed = True
            self.state.say(f"{chosen}: pinned on top", "muted")
        self._redraw()

    def action_match(self, by: int) -> None:
        """To the next row that the filter of now, else the last one, finds."""
        state, table = self.state, self.table
        needle = state.needle or state.last_needle
        if not needle:
            state.say("nothing was looked for yet; / filters", "muted")
            self._redraw()
            return
        fits, rows = finder(needle), state.board.operations
        found = [n for n, each in enumerate(table.ids) if each in rows and fits(rows[each])]
        later = [n for n in found if n > table.cursor] if by > 0 else [n for n in reversed(found) if n < table.cursor]
        if not found:
            state.say(f"no row here matches {needle}", "attention")
        else:
            table.move_to(later[0] if later else found[0] if by > 0 else found[-1])
            place = found.index(table.cursor) + 1
            state.say(f"{place} of {len(found)} that match {needle}{'' if later else ', from the other end'}", "muted")
        self._redraw()

    def action_copy_id(self) -> None:
        if self.table.cursor_id is not None:
            self._app.copy(self.table.cursor_id, "the id")

    def action_copy_detail(self) -> None:
        operation = self.state.board.operations.get(self.table.cursor_id or "")
        if operation is not None:
            asked = self.state.board.asked(operation)
            lines = fact_lines(operation, self.state.now(), asked, self.state.done.get(operation.operation_id))
            self._app.copy(f"{operation.operation_id}\n{join(lines)}", f"the detail of {operation.operation_id}")

    def action_export(self) -> None:
        """Every row of the view, as filtered and ordered now."""
        self._app.export(tuple(self.table.ids))

    @property
    def _app(self) -> Any:
        return self.app
