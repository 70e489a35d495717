"""The operations behind one answer: the frozen list before it, what became of each after it.

Job: show, scroll, open one record. Must not know: choices, decisions.

Source: spec E10, E9.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from pollconsole import words
from pollconsole.approve import AnyOutcome
from pollconsole.draw import Line, fit, text
from pollconsole.screens.base import ConsoleScreen
from pollconsole.screens.group_lines import Drawable, Listed, outcome_lines
from pollconsole.screens.text import LinesScreen
from pollconsole.state import State
from pollconsole.widgets import OneLine, Table
from pollcore.facts import Moment, clock_time

ID: Final = 20
REASON: Final = 25
STATE: Final = 12
ENDS: Final = 10


class MembersTable(Table):
    """The frozen list, those that end soonest first."""

    def __init__(self, state: State, card: Drawable, *, id: str | None = None) -> None:
        super().__init__(state, id=id)
        self.members: dict[str, Listed] = {each.operation_id: each for each in card.members}
        self.drawn_at = card.drawn_at

    def line_of(self, operation_id: str) -> Line:
        each = self.members[operation_id]
        mark = ("> ", "key") if operation_id == self.cursor_id else ("  ", "text")
        rest = max(0, self.columns - (2 + ID + REASON + STATE + ENDS + 4))
        return (
            mark,
            (fit(text(operation_id)[0], ID), "text"),
            (" ", "text"),
            (fit(text(each.reason)[0], REASON), "attention"),
            (" ", "text"),
            (fit(text(each.state or "none yet")[0], STATE), "text"),
            (" ", "text"),
            (fit(words.clock(each.ends_at, self.drawn_at), ENDS), "muted"),
            (" ", "text"),
            (fit(text(each.differs)[0], rest), "attention"),
        )


class MembersScreen(ConsoleScreen):
    """All operations of a group's card as they were when it was drawn. Nothing is decided here."""

    CSS = "#members { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back to the card"),
        # the card below is still guarded: other keys than these do not reach this screen
        Binding("down,j", "move(1)", "down"),
        Binding("up,k", "move(-1)", "up"),
        Binding("pagedown", "move(15)", "page down"),
        Binding("pageup", "move(-15)", "page up"),
        Binding("home,g", "ends(0)", "first"),
        Binding("end,G", "ends(1)", "last"),
        Binding("enter", "detail", "its record"),
    ]

    def __init__(self, state: State, card: Drawable) -> None:
        super().__init__(state)
        self.card = card

    def compose(self) -> ComposeResult:
        yield OneLine(self.state, ground="footer", id="head")
        yield OneLine(self.state, id="columns")
        yield MembersTable(self.state, self.card, id="members")
        yield OneLine(self.state, id="said")
        yield OneLine(self.state, ground="footer", id="foot")

    @property
    def table(self) -> MembersTable:
        return self.query_one(MembersTable)

    def on_mount(self) -> None:
        members = sorted(self.card.members, key=lambda each: (each.ends_at, each.operation_id))
        self.table.show_ids([each.operation_id for each in members])
        self.tick(self.state.now(), True)

    def tick(self, now: Moment, changed: bool) -> None:  # noqa: ARG002
        at = f" {self.table.cursor + 1:,} of {self.card.count:,}, frozen at {clock_time(self.card.drawn_at)} UTC"
        self.show_head(((" the list", "title"), (at, "muted")), now)
        heads = (("OPERATION", ID), ("WHY", REASON), ("JOB SAYS", STATE), ("ENDS", ENDS))
        line = " ".join(fit(head, width) for head, width in heads)
        self.query_one("#columns", OneLine).show(((f"  {line} DIFFERS IN", "faint"),))
        each = self.table.members.get(self.table.cursor_id or "")
        differs = f" {each.operation_id} differs: {each.differs}" if each is not None and each.differs else ""
        self.query_one("#said", OneLine).show((text(differs, "attention"),))
        self.keys(("Enter", "its record"), ("up down PgUp PgDn Home End", "move"), ("Esc", "back to the card"))

    def action_leave(self) -> None:
        self.app.pop_screen()

    def action_move(self, by: int) -> None:
        self.table.move(by)
        self.tick(self.state.now(), False)

    def action_ends(self, last: int) -> None:
        self.table.move(len(self.table.ids) if last else -len(self.table.ids))
        self.tick(self.state.now(), False)

    def action_detail(self) -> None:
        chosen = self.table.cursor_id
        if chosen is not None:
            opener: Any = self.app.opens  # type: ignore[attr-defined]
            opener("inspect", chosen)


class OutcomeScreen(LinesScreen):
    """What one answer did to each operation."""

    title_words = "what the answer did"

    def __init__(self, state: State, outcome: AnyOutcome) -> None:
        super().__init__(state)
        self._lines = outcome_lines(outcome)

    def content(self) -> list[Line]:
        return self._lines
