"""What waits for a person, grouped by cause; opening a card is one more key.

Job: list open questions. Must not know: choices, decisions.

Source: spec V4, G8, E10 (counts by cause; one card answers for one operation).
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from pollconsole import words
from pollconsole.board import APPROVALS, by_cause
from pollconsole.draw import Line, fit, text
from pollconsole.screens.base import ConsoleScreen
from pollconsole.state import State
from pollconsole.widgets import OneLine, Table
from pollcore.facts import Escalation, Moment

REASON: Final = 26
ID: Final = 16
WAITS: Final = 12
_GROUP: Final = "group "


class QueueTable(Table):
    """Questions, the oldest cause first; more than one of a cause stand under a line that counts them."""

    def __init__(self, state: State, *, id: str | None = None) -> None:
        super().__init__(state, id=id)
        self.by_id: dict[str, Escalation] = {}
        self.groups: dict[str, tuple[Escalation, ...]] = {}

    def line_of(self, operation_id: str) -> Line:
        mark = ("> ", "key") if operation_id == self.cursor_id else ("  ", "text")
        group = self.groups.get(operation_id)
        if group is not None:
            return (mark, (f"{len(group)} operations, one cause: ", "attention"), text(group[0].cause, "title", 60))
        question = self.by_id.get(operation_id)
        if question is None:
            return (mark, text(operation_id, "faint"))
        now = self.state.now()
        operation = self.state.board.operations.get(operation_id)
        said = ""
        if operation is not None:
            said = operation.submitted.label or operation.submitted.job_id
        return (
            mark,
            (fit(text(operation_id)[0], ID), "text"),
            (" ", "text"),
            (fit(question.reason.value, REASON), "attention"),
            (" ", "text"),
            (fit(words.span(max(0, now.wall - question.asked_at)), WAITS), "muted"),
            (fit(text(said)[0], max(0, self.columns - (ID + REASON + WAITS + 4))), "muted"),
        )


class QueueScreen(ConsoleScreen):
    """Open questions. *approvals*: those that ask for an approval, else all others."""

    CSS = "#queue { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back"),
        Binding("down,j", "move(1)", "down"),
        Binding("up,k", "move(-1)", "up"),
        Binding("pagedown,ctrl+d", "move(15)", "page down"),
        Binding("pageup,ctrl+u", "move(-15)", "page up"),
        Binding("enter", "card", "open the card"),
        Binding("t", "detail", "detail"),
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
        head = f"  {fit('OPERATION', ID)} {fit('WHY', REASON)} {fit('WAITS', WAITS)}FOR"
        self.query_one("#columns", OneLine).show(((head, "faint"),))
        self.keys(("Enter", "open the card"), ("t", "detail"), ("Esc", "back"))
        last = self.state.messages[-1] if self.state.messages else None
        if last is not None:
            self.query_one("#said", OneLine).show(((" ", "text"), (last.text, last.role)))
        if changed:
            self._fill()
        else:
            self.table.refresh_changed()

    def _fill(self) -> None:
        table = self.table
        asked = [q for q in self.state.board.wanted() if q.operation_id and (q.reason in APPROVALS) is self.approvals]
        table.by_id = {q.operation_id: q for q in asked}
        table.groups = {}
        ids: list[str] = []
        for group in by_cause(asked):
            if len(group) > 1:
                head = _GROUP + group[0].cause
                table.groups[head] = group
                ids.append(head)
            ids += [question.operation_id for question in group]
        table.show_ids(ids)
        if not ids:
            self.query_one("#said", OneLine).show(((" nothing waits here; Esc goes back", "muted"),))

    def action_leave(self) -> None:
        self.app.pop_screen()

    def action_move(self, by: int) -> None:
        self.table.move(by)

    def _chosen(self) -> str | None:
        chosen = self.table.cursor_id
        if chosen in self.table.groups:
            chosen = self.table.groups[chosen][0].operation_id
        return chosen

    def action_card(self) -> None:
        chosen = self._chosen()
        if chosen is not None:
            ids = [each for each in self.table.ids if each not in self.table.groups]
            opener: Any = self.app.opens  # type: ignore[attr-defined]
            opener("card", chosen, ids)

    def action_detail(self) -> None:
        chosen = self._chosen()
        if chosen is not None:
            opener: Any = self.app.opens  # type: ignore[attr-defined]
            opener("detail", chosen)
