"""What waits for a person, one row a cause; opening a card is one more key.

Job: list causes with what waits for them. Must not know: choices, decisions.

Source: spec V4, G8, E10 (three thousand operations that one cause stopped are one row and one card).
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from pollconsole import rows, words
from pollconsole.board import APPROVALS, Board, Cause, by_cause
from pollconsole.draw import Line, fit, text
from pollconsole.screens.base import ConsoleScreen, bound
from pollconsole.state import State
from pollconsole.widgets import OneLine, Table
from pollcore.facts import Moment

ID: Final = 24
"""The most; an id that we made takes 15 and is shown whole."""
REASON: Final = 24
"""The most: the longest reason is shown whole."""
WAITS: Final = 6
ENDS: Final = 6
LEAD: Final = 2
_GROUP: Final = "cause "
"""Before the cause of a row that stands for many; no operation's id holds a space."""


class QueueTable(Table):
    """Causes, the oldest first."""

    def __init__(self, state: State, *, id: str | None = None) -> None:
        super().__init__(state, id=id)
        self.causes: dict[str, Cause] = {}
        """By row: the operation's id where a cause stopped one, else the cause."""
        self._who = 3
        self._why = 3

    def line_of(self, operation_id: str) -> Line:
        mark = ("> ", "key") if operation_id == self.cursor_id else ("  ", "text")
        row = self.causes.get(operation_id)
        if row is None:
            return (mark, text(operation_id, "faint"))
        now = self.state.now()
        many = len(row.questions) > 1
        said, role = (_without(row.cause, row.reason), "title") if many else (self._said(operation_id), "muted")
        left = None if row.ends_at is None else row.ends_at - now.wall
        ends = words.NOTHING if left is None else "passed" if left <= 0 else rows.short_countdown(left)
        who, why, rest = self.shape
        return (
            mark,
            (fit(_who(row), who), "text"),
            (" ", "text"),
            (fit(text(row.reason)[0], why), "attention"),
            (" ", "text"),
            (fit(text(said)[0], rest), role),
            (" ", "text"),
            (fit(rows.short_countdown(max(0, now.wall - row.oldest_at)), WAITS, right=True), "muted"),
            (" ", "text"),
            (fit(ends, ENDS, right=True), "attention" if ends == "passed" else "muted"),
        )

    def put(self, causes: list[Cause]) -> None:
        """These rows from now on; who and why are as wide as they need, what is left tells them apart."""
        self.causes = {row_id(cause): cause for cause in causes}
        self._who = max(3, min(ID, max((cell_len(_who(row)) for row in causes), default=0)))
        self._why = max(3, min(REASON, max((cell_len(row.reason) for row in causes), default=0)))
        self.refresh()
        self.show_ids(list(self.causes))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Cells of who, why and what."""
        used = LEAD + self._who + self._why + WAITS + ENDS + 4
        return self._who, self._why, max(0, self.columns - used)

    def _said(self, operation_id: str) -> str:
        """What tells it from others that stopped for the same reason: the detail, then label or job."""
        operation = self.state.board.operations.get(operation_id)
        if operation is None:
            return ""
        name = operation.submitted.label or operation.submitted.job_id
        detail = operation.stop_detail
        return name if detail is None else f"{detail.value} {name}"


def _who(row: Cause) -> str:
    """The operation, or how many."""
    return text(row.questions[0].operation_id)[0] if len(row.questions) == 1 else f"{len(row.questions):,} operations"


def _without(cause: str, reason: str) -> str:
    """The cause after the reason that stands beside it: `unknown_state:acme:compiling` is `acme:compiling`."""
    return cause.removeprefix(f"{reason}:")


class QueueScreen(ConsoleScreen):
    """Open questions. *approvals*: those that ask for an approval, else all others."""

    CSS = "#queue { height: 1fr; }"
    below = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back"),
        bound("down", "move(1)"),
        bound("up", "move(-1)"),
        bound("page_down", "move(15)"),
        bound("page_up", "move(-15)"),
        bound("first", "ends(0)"),
        bound("last", "ends(1)"),
        bound("open_card", "card"),
        bound("queue_detail", "detail"),
    ]

    def __init__(self, state: State, *, approvals: bool) -> None:
        super().__init__(state)
        self.approvals = approvals

    def compose(self) -> ComposeResult:
        yield OneLine(self.state, ground="footer", id="head")
        yield OneLine(self.state, id="columns")
        yield QueueTable(self.state, id="queue")
        yield OneLine(self.state, id="said")
        yield OneLine(self.state, ground="footer", id="foot")

    @property
    def table(self) -> QueueTable:
        return self.query_one(QueueTable)

    def on_mount(self) -> None:
        self.tick(self.state.now(), True)

    def on_screen_resume(self) -> None:
        if self.ready:
            self.tick(self.state.now(), True)

    def tick(self, now: Moment, changed: bool) -> None:
        what = "approvals that wait" if self.approvals else "decisions that wait"
        self.show_head(((f" {what}", "title"),), now)
        self.keys((self.key_of("open_card"), "open the card"), (self.key_of("queue_detail"), "detail"), ("Esc", "back"))
        if changed:
            self._fill()
        else:
            self.table.refresh_changed()
        self._draw_columns()
        self._say()

    def _draw_columns(self) -> None:
        if not self.table.causes:
            self.query_one("#columns", OneLine).show(((" nothing waits here; Esc goes back", "muted"),))
            return
        heads = zip(("WHO", "WHY", "WHAT"), self.table.shape, strict=True)
        line = " ".join(fit(head, width) for head, width in heads)
        figures = f"{fit('WAITS', WAITS, right=True)} {fit('ENDS', ENDS, right=True)}"
        self.query_one("#columns", OneLine).show(((f"  {line} {figures}", "faint"),))

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw_columns)

    def _say(self) -> None:
        """The whole cause of a row that has no room for it; else what was said last."""
        row = self.table.causes.get(self.table.cursor_id or "")
        last = self.state.messages[-1] if self.state.messages else None
        line: Line = ()
        if row is not None and len(row.questions) > 1:
            line = ((" cause: ", "muted"), text(row.cause, "title"))
        elif last is not None:
            line = ((" ", "text"), (last.text, last.role))
        self.query_one("#said", OneLine).show(line)

    def _fill(self) -> None:
        self.table.put(cards_of(self.state.board, approvals=self.approvals))

    def action_leave(self) -> None:
        self.app.pop_screen()

    def action_move(self, by: int) -> None:
        self.table.move(by)
        self._say()

    def action_ends(self, last: int) -> None:
        self.action_move(len(self.table.ids) if last else -len(self.table.ids))

    def action_card(self) -> None:
        """Many operations of one cause are one card; one operation is its own."""
        row = self.table.causes.get(self.table.cursor_id or "")
        if row is None:
            return
        opener: Any = self.app.opens  # type: ignore[attr-defined]
        if len(row.questions) > 1:
            opener("group", row.cause)
        else:
            opener("card", row.questions[0].operation_id, list(self.table.causes))

    def action_detail(self) -> None:
        row = self.table.causes.get(self.table.cursor_id or "")
        if row is not None:
            opener: Any = self.app.opens  # type: ignore[attr-defined]
            opener("detail", row.questions[0].operation_id)


def cards_of(board: Board, *, approvals: bool) -> list[Cause]:
    """One card each, the oldest first: what the queue lists and what the strip counts."""
    asked = [q for q in board.wanted() if q.operation_id and (q.reason in APPROVALS) is approvals]
    return by_cause(asked, board.operations)


def row_id(cause: Cause) -> str:
    """The operation's id where the card is its own, else the cause, in words that no operation has for an id."""
    return cause.questions[0].operation_id if len(cause.questions) == 1 else _GROUP + cause.cause
