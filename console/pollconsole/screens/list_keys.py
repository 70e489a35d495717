"""Keys of the table that look for, mark, pin, copy and export rows.

Job: one action each over the table and the shared state. Must not know: how rows are drawn, decisions, the store.
None of these changes an operation.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from textual.binding import BindingType

from pollconsole.beats import is_polled
from pollconsole.board import View
from pollconsole.carry import Format
from pollconsole.draw import join
from pollconsole.row_facts import finder
from pollconsole.screens.base import ConsoleScreen, bound
from pollconsole.screens.operation_table import OperationTable

_OF_A_ROW: Final = frozenset({"detail", "mark", "pin", "copy_id", "copy_detail"})


class ListKeys(ConsoleScreen):
    """What the first screen can do with rows beside opening them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("mark", "mark"),
        bound("unmark", "unmark"),
        bound("pin", "pin"),
        bound("next_match", "match(1)"),
        bound("previous_match", "match(-1)"),
        bound("copy_id", "copy_id"),
        bound("copy_detail", "copy_detail"),
        bound("export", "export('jsonl')"),
        bound("export_csv", "export('csv')"),
    ]

    @property
    def table(self) -> OperationTable:
        return self.query_one(OperationTable)

    def _redraw(self) -> None:
        raise NotImplementedError

    def why_not(self, action: str) -> str | None:
        name, board, state = action.partition("(")[0], self.state.board, self.state
        if name == "question":
            return self.why_no_question(self.table.cursor_id)
        if (name in _OF_A_ROW and self.table.cursor_id is None) or (name == "export" and not self.table.ids):
            return "no row here"
        if name == "unmark" and not board.marked:
            return "nothing is marked"
        if name == "match" and not (state.needle or state.last_needle):
            return "nothing was looked for yet"
        return None

    def action_mark(self) -> None:
        """Mark the row under the cursor, or take its mark away, and go on to the next."""
        marked, chosen = self.state.board.marked, self.table.cursor_id
        if chosen is None:
            return
        marked.symmetric_difference_update({chosen})
        if self.state.view is not View.MARKED:
            self.table.move(1)
        self.state.say(
            f"{len(marked)} marked; {self.key_of('view_marked')} shows them, {self.key_of('unmark')} unmarks all",
            "muted",
        )
        self._redraw()

    def action_unmark(self) -> None:
        count = len(self.state.board.marked)
        self.state.board.marked.clear()
        self.state.say(
            f"{count} unmarked" if count else f"nothing is marked; {self.key_of('mark')} marks a row", "muted"
        )
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
            state.say(f"nothing was looked for yet; {self.key_of('filter')} filters", "muted")
            self._redraw()
            return
        fits, board = finder(needle), state.board
        rows = board.operations
        found = [n for n, each in enumerate(table.ids) if each in rows and fits(board.facts(rows[each]))]
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
        from pollconsole.screens.detail_lines import fact_lines

        operation = self.state.board.operations.get(self.table.cursor_id or "")
        if operation is not None:
            board, now = self.state.board, self.state.now()
            did = self.state.done.get(operation.operation_id)
            polled = is_polled(board.latest, now)
            lines = fact_lines(operation, now, board.asked(operation), did, polled=polled)
            self._app.copy(f"{operation.operation_id}\n{join(lines)}", f"the detail of {operation.operation_id}")

    def action_export(self, form: str) -> None:
        """Every row of the view, as filtered and ordered now, as JSON lines or CSV."""
        self._app.export(tuple(self.table.ids), Format(form))

    @property
    def _app(self) -> Any:
        return self.app
