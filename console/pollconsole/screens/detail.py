"""One operation whole: every budget, both facts, contract, account, and its story, live.

Job: the screen: facts above, story below, and its keys. Must not know: what the facts say, decisions; it offers none.

Source: spec V1, V2, S1, E9.
"""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from pollconsole import rows
from pollconsole.beats import is_polled
from pollconsole.chart import chart_lines, instant_of
from pollconsole.draw import Line, join, text
from pollconsole.screens.base import bound
from pollconsole.screens.detail_lines import NAME, fact_lines
from pollconsole.screens.searching import SearchingScreen
from pollconsole.screens.story import StoryView
from pollconsole.state import State
from pollconsole.widgets import LinesView, OneLine, SaidLine
from pollcore.facts import Instant, Moment, Operation


class DetailScreen(SearchingScreen):
    """Budgets above, the story below."""

    CSS = """
    #facts { height: auto; max-height: 60%; padding: 0 1; }
    #story { height: 1fr; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back"),
        bound("back", "leave"),
        bound("down", "scroll(1)"),
        bound("up", "scroll(-1)"),
        bound("page_down", "scroll(10)"),
        bound("page_up", "scroll(-10)"),
        bound("first", "ends(0)"),
        bound("last", "ends(1)"),
        bound("question", "question"),
        bound("copy_id", "copy_id"),
        bound("copy_detail", "copy_detail"),
    ]

    searched = "the story"

    def __init__(self, state: State, operation_id: str, *, over_card: bool = False) -> None:
        super().__init__(state)
        self.operation_id = operation_id
        self._over_card = over_card
        self.below = not over_card

    def compose(self) -> ComposeResult:
        yield OneLine(self.state, ground="footer", id="head")
        yield LinesView(self.state, id="facts", indent=NAME + 1)
        yield SaidLine(self.state, id="rule")
        yield StoryView(self.state, id="story")
        yield OneLine(self.state, ground="footer", id="foot")

    def on_mount(self) -> None:
        self.tick(self.state.now(), True)

    def tick(self, now: Moment, changed: bool) -> None:  # noqa: ARG002
        operation = self.state.board.operations.get(self.operation_id)
        if operation is None:
            self.show_head(((" not in sight any more ", "muted"),), now)
            return
        asked = self.state.board.asked(operation)
        status = rows.status_span(operation, asked)
        title: Line = ((" ", "text"), text(operation.operation_id, "title", 60), ("  ", "text"), status)
        self.show_head(title, now)
        facts = self.query_one("#facts", LinesView)
        facts.wrap_for(self.app.size.width - 3)
        story = self.query_one(StoryView)
        facts.show([*self._facts(operation, now, asked), *chart_lines(story.events, NAME)])
        facts.styles.height = len(facts.lines)
        self._draw_rule()
        story.follow_operation(operation)
        self._draw_keys(asked, operation.status.is_end)

    def _facts(self, operation: Operation, now: Moment, asked: bool) -> list[Line]:
        events_seen = self.query_one(StoryView).events
        at = instant_of(events_seen[-1].get("at")) if events_seen else None
        last = None if at is None else Instant(at)
        did = self.state.done.get(self.operation_id)
        polled = is_polled(self.state.board.latest, now)
        return fact_lines(operation, now, asked, did, last, exact=self.state.exact, polled=polled)

    def _draw_rule(self) -> None:
        """What is looked for and where it stands, or what was just said, else a rule."""
        rule = ((" story, UTC ", "faint"), ("-" * max(0, self.app.size.width - 14), "bar-empty"))
        self.draw_said(self.query_one("#rule", SaidLine), rule)

    def _draw_keys(self, asked: bool, ended: bool) -> None:
        if self.search_keys():
            return
        back = ("Esc", "back to the card" if self._over_card else "back")
        question: tuple[tuple[str, str], ...] = ()
        if not self._over_card and (asked or not ended):  # an open question stays reachable
            question = (("o", "open the question" if asked else "ask for a decision"),)
        self.keys(back, *question, ("j k", "story"), ("/", "search"), ("c C", "copy"), ("?", "help"))

    def go_to(self, needle: str, by: int) -> tuple[int, int]:
        return self.query_one(StoryView).search(needle, by)

    # --- keys ---------------------------------------------------------------------------------------------------------

    def why_not(self, action: str) -> str | None:
        return self.why_no_question(self.operation_id) if action == "question" else super().why_not(action)

    def action_copy_id(self) -> None:
        self._copy(self.operation_id, "the id")

    def action_copy_detail(self) -> None:
        """The record as it stands here, and the story."""
        operation = self.state.board.operations.get(self.operation_id)
        if operation is None:
            return
        facts = self._facts(operation, self.state.now(), self.state.board.asked(operation))
        story = "\n".join(self.query_one(StoryView).lines)
        self._copy(f"{self.operation_id}\n{join(facts)}\n{story}", f"the detail of {self.operation_id}")

    def _copy(self, copied: str, what: str) -> None:
        copier: Any = self.app.copy  # type: ignore[attr-defined]
        copier(copied, what)
        self.tick(self.state.now(), False)

    def action_leave(self) -> None:
        self.app.pop_screen()

    def action_scroll(self, by: int) -> None:
        self.query_one(StoryView).scroll_relative(y=by, animate=False)

    def action_ends(self, last: int) -> None:
        story = self.query_one(StoryView)
        if last:
            story.scroll_end(animate=False)
        else:
            story.scroll_home(animate=False)

    def action_question(self) -> None:
        if not self._over_card:
            opener: Any = self.app.opens  # type: ignore[attr-defined]
            opener("question", self.operation_id)
