"""What waits for a person, one row a cause; opening a card is one more key.

Job: list causes with what waits for them. Must not know: choices, decisions.

Source: spec V4, G8, E10 (three thousand operations that one cause stopped are one row and one card).
"""

from __future__ import annotations

import time
from typing import Any, ClassVar, Final

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from pollconsole import bridge, rows, short_words, times, words
from pollconsole.board import Board
from pollconsole.causes import APPROVALS, Cause, by_cause, by_time_left
from pollconsole.draw import Line, fit, text
from pollconsole.due import PASSED
from pollconsole.screens.approvals import ABOUT, ApprovalsTable, what
from pollconsole.screens.base import ConsoleScreen, bound
from pollconsole.screens.cause_words import WHOLE_FROM, row_id, who, why, without_reason
from pollconsole.state import State
from pollconsole.widgets import OneLine, SaidLine, Table
from pollcore.facts import Instant, Moment, PollconsoleError

ID: Final = 24
"""The most; an id that we made takes 15 and is shown whole."""
WAITS: Final = 6
ENDS: Final = 6
WHAT_LEAST: Final = 10
"""With fewer cells what tells a row from others tells nothing."""
COUNTED_FROM: Final = 80
"""From this width on the cards are counted in the first line; under it there is room for what hurries alone."""
RIGHT: Final = frozenset({"WAITS", "ENDS"})
LEAD: Final = 2
READ_AT_ONCE: Final = 10
"""Approvals whose requests are read in one go; those in sight first."""


class QueueTable(Table):
    """Causes, what ends soonest first."""

    def __init__(self, state: State, *, id: str | None = None) -> None:
        super().__init__(state, id=id)
        self.causes: dict[str, Cause] = {}
        """By row: the operation's id where a cause stopped one, else the cause."""
        self._who = 3
        self._why = (3, 3)
        """Cells of the reasons: by their full names, and in short."""

    def line_of(self, operation_id: str) -> Line:
        mark = ("> ", "key") if operation_id == self.cursor_id else ("  ", "text")
        row = self.causes.get(operation_id)
        if row is None:
            return (mark, text(operation_id, "faint"))
        now = times.together(self.state.now())
        many = len(row.questions) > 1
        said, role = (without_reason(row), "title") if many else (self._said(operation_id), "muted")
        ends_at = row.ends_at(now.wall)
        left = None if ends_at is None else ends_at - now.wall
        ends = words.NOTHING if left is None else PASSED if left <= 0 else rows.short_countdown(left)
        told = {
            "WHO": (who(row), "text"),
            "WHY": (why(row, short=self.columns < WHOLE_FROM), "attention"),
            "WHAT": (text(said)[0], role),
            "WAITS": (rows.short_countdown(max(0, now.wall - row.oldest_at)), "muted"),
            "ENDS": (ends, "attention" if ends == PASSED else "muted"),
        }
        line: Line = (mark,)
        for number, (head, width) in enumerate(self.shape.items()):
            cell, its = told[head]
            line = (*line, *(((" ", "text"),) if number else ()), (fit(cell, width, right=head in RIGHT), its))
        return line

    def put(self, causes: list[Cause]) -> None:
        """These rows from now on; who and why are as wide as they need, what is left tells them apart."""
        self.causes = {row_id(cause): cause for cause in causes}
        self._who = max(3, min(ID, max((cell_len(who(row)) for row in causes), default=0)))
        whole, short = (max((cell_len(why(row, short=each)) for row in causes), default=3) for each in (False, True))
        self._why = whole, short
        self.refresh()
        self.show_ids(list(self.causes))

    @property
    def shape(self) -> dict[str, int]:
        """Cells of each column by its head, in their order. Where room is short, how long it waits and what tells it
        from others are left out, one after the other; when it ends is never cut."""
        why_ = max(3, self._why[self.columns < WHOLE_FROM])
        rest = {"WAITS": WAITS, "ENDS": ENDS}
        what_ = self.columns - (LEAD + self._who + why_ + WAITS + ENDS + 4)
        if what_ < WHAT_LEAST:
            del rest["WAITS"]
            what_ += WAITS + 1
        if what_ < WHAT_LEAST:
            return {"WHO": self._who, "WHY": max(0, self.columns - (LEAD + self._who + ENDS + 2)), **rest}
        return {"WHO": self._who, "WHY": why_, "WHAT": what_, **rest}

    def _said(self, operation_id: str) -> str:
        """What tells it from others that stopped for the same reason: the detail, then label or job."""
        operation = self.state.board.operations.get(operation_id)
        if operation is None:
            return ""
        name = operation.submitted.label or operation.submitted.job_id
        detail = operation.stop_detail
        return name if detail is None else f"{short_words.detail(detail)}: {name}"


class QueueScreen(ConsoleScreen):
    """Open questions. *approvals*: those that ask for an approval, else all others."""

    CSS = "#queue { height: 1fr; }"
    below = says = True
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
        self.approvals = self.reads = approvals
        self._reading = False
        self._opened_s = time.monotonic()

    def compose(self) -> ComposeResult:
        yield OneLine(self.state, ground="footer", id="head")
        yield OneLine(self.state, id="columns")
        yield (ApprovalsTable if self.approvals else QueueTable)(self.state, id="queue")
        if self.approvals:
            yield OneLine(self.state, id="about")
        yield SaidLine(self.state, id="said")
        yield OneLine(self.state, ground="footer", id="foot")

    @property
    def table(self) -> QueueTable | ApprovalsTable:
        kind: type[QueueTable | ApprovalsTable] = ApprovalsTable if self.approvals else QueueTable
        return self.query_one("#queue", kind)

    @property
    def chosen(self) -> Cause | None:
        """The row under the cursor."""
        return self.table.causes.get(self.table.cursor_id or "")

    def on_mount(self) -> None:
        self.tick(self.state.now(), True)

    def on_screen_resume(self) -> None:
        if self.ready:
            self.tick(self.state.now(), True)

    def tick(self, now: Moment, changed: bool) -> None:
        what = "approvals that wait" if self.approvals else "decisions that wait"
        count = len(self.table.causes) if self.app.size.width >= COUNTED_FROM else 0
        cards: Line = ((f"  {words.counted(count, 'card')}", "muted"),) if count else ()
        self.show_head(((f" {what}", "title"), *cards), now)
        self.keys((self.key_of("open_card"), "open the card"), (self.key_of("queue_detail"), "detail"), ("Esc", "back"))
        if changed:
            self._fill()
        else:
            self.table.refresh_changed()
        self._draw_columns()
        self._say()
        self._read_requests()

    def _draw_columns(self) -> None:
        if not self.table.causes:
            self.query_one("#columns", OneLine).show(((" nothing waits here; Esc goes back", "muted"),))
            return
        if isinstance(self.table, ApprovalsTable):
            self.query_one("#columns", OneLine).show(((f"  {self.table.heads}", "faint"),))
            return
        heads = " ".join(fit(head, width, right=head in RIGHT) for head, width in self.table.shape.items())
        self.query_one("#columns", OneLine).show(((f"  {heads}", "faint"),))

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw_columns)

    def _say(self) -> None:
        """The whole cause of a row that has no room for it; else what was said last, while it is young."""
        row, table = self.chosen, self.table
        last, said = self.state.message, self.query_one("#said", SaidLine)
        line: Line = ()
        if isinstance(table, ApprovalsTable):
            about = ABOUT.get(row.questions[0].reason, "") if row is not None else ""
            self.query_one("#about", OneLine).show(((f" {about}", "muted"),))
        if last is not None and last.said_s >= self._opened_s:  # what a card of this queue did
            said.say(((" ", "text"), (last.text, last.role)))
            return
        if row is not None and isinstance(table, ApprovalsTable):
            found = table.asked.get(row.questions[0].escalation_id)
            line = ((" ", "text"), text(what(row, found), "title"), *_with(found))
        elif row is not None and len(row.questions) > 1:
            line = ((" cause: ", "muted"), text(row.cause, "title"))
        elif last is not None:
            said.say(((" ", "text"), (last.text, last.role)))
            return
        said.show(line)

    def _fill(self) -> None:
        causes = cards_of(self.state.board, self.state.now().wall, approvals=self.approvals)
        if isinstance(self.table, ApprovalsTable):
            self.table.put({row_id(cause): cause for cause in causes})
        else:
            self.table.put(causes)

    def _read_requests(self) -> None:
        """What the approvals in sight are about: read once for each, beside the drawing."""
        table = self.table
        if isinstance(table, ApprovalsTable) and not self._reading and (unread := table.unread()):
            self._reading = True
            self.run_worker(self._read(table, unread[:READ_AT_ONCE]))

    async def _read(self, table: ApprovalsTable, wanted: list[tuple[str, str]]) -> None:
        async def body(core: Any) -> dict[str, bridge.AskedFor]:
            return await bridge.asked_for(core, wanted)

        try:
            found = await self.state.link.ask(body)
        except PollconsoleError:
            found = {}  # the status line says what is wrong; the next look tries again
        finally:
            self._reading = False
        still = {q.escalation_id for row in table.causes.values() for q in row.questions[:1]}
        table.asked = {key: each for key, each in (table.asked | found).items() if key in still}
        table.refresh_changed()
        self._say()

    def why_not(self, action: str) -> str | None:
        return "no row here" if action in ("card", "detail") and self.chosen is None else super().why_not(action)

    def action_leave(self) -> None:
        self.app.pop_screen()

    def action_move(self, by: int) -> None:
        self.table.move(by)
        self._say()

    def action_ends(self, last: int) -> None:
        self.action_move(len(self.table.ids) if last else -len(self.table.ids))

    def action_card(self) -> None:
        """Many operations of one cause are one card; one operation is its own."""
        row = self.chosen
        if row is None:
            return
        opener: Any = self.app.opens  # type: ignore[attr-defined]
        if len(row.questions) > 1:
            opener("group", row.cause)
        elif not row.questions[0].operation_id:
            opener("asked", row.questions[0].escalation_id)
        else:
            opener("card", row.questions[0].operation_id, list(self.table.causes))

    def action_detail(self) -> None:
        row = self.chosen
        if row is not None and row.questions[0].operation_id:
            opener: Any = self.app.opens  # type: ignore[attr-defined]
            opener("detail", row.questions[0].operation_id)
        elif row is not None:
            self.state.say(f"it belongs to a credential: {self.key_of('credentials')} shows it", "muted")
            self._say()


def cards_of(board: Board, now: Instant, *, approvals: bool) -> list[Cause]:
    """One card each, in the order of its queue: what it lists and what the strip counts.

    What ends soonest first: a question that expires (G7), or a wait.
    """
    asked = [q for q in board.wanted() if (q.reason in APPROVALS) is approvals]
    return by_time_left(by_cause(asked, board.operations), now)


def _with(found: bridge.AskedFor | None) -> Line:
    """With which credential, in which mode."""
    if found is None or not found.mode:
        return ()
    if found.mode.startswith("none"):
        return (("  without a credential", "muted"),)
    return (("  with ", "muted"), text(found.credential, "text", 40), (f", {text(found.mode)[0]}", "muted"))
