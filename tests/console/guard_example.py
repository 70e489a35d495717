"""The smallest app with a guarded card; tests run it by Pilot and on a real pty (``python guard_example.py OUTCOME``).

``A`` opens the card. Choices: 1 approve (digit and letter), 2 deny (one key), 3 inspect. What the guard lets through
is appended to the file OUTCOME, one JSON line each. ``GUARD_EXAMPLE_BLOCK_MS`` blocks the loop right after the push;
``GUARD_EXAMPLE_LINES`` makes the card that many lines long;
``GUARD_EXAMPLE_IGNORE_HANGUP`` starts it as nohup would.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from pollconsole.environment import scrub_environment

    scrub_environment()

import json
import os
import signal
import time
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from pollconsole.guard_card import GuardedCard, guard_lines
from pollconsole.guard_facts import Choice, Evidence, GuardView, Inspect, Way
from pollconsole.guarded import GuardedApp
from pollconsole.safe import safe

PROVIDER_TEXT = "hostile \x1b]52;c;aGk=\x07 text with [brackets[/] and \x1b[6n"


def card_lines(count: int) -> tuple[str, ...]:
    first = ("External job needs a decision", "Operation: op-004377", "Reason: " + safe(PROVIDER_TEXT))
    return first + tuple(f"further line {number} of the card" for number in range(count - len(first)))


class CardScreen(Screen[None]):
    """A card: its text, and the three lines of the guard. Nothing on it can have the focus."""

    CSS = """
    #text { height: 1fr; }
    #guard { height: 3; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.leave_card", "leave"),
        Binding("down", "scroll_text(1)", "down"),
        Binding("pagedown", "scroll_text(20)", "down"),
        Binding("y", "app.naive_approve", "the naive key, never to be reached"),
    ]

    def __init__(self, lines: tuple[str, ...]) -> None:
        super().__init__()
        self.lines = lines

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="text", can_focus=False):
            yield Static(Content("\n".join(self.lines)), markup=False)
        yield Static("", id="guard", markup=False)

    def on_mount(self) -> None:
        self.open_card()

    def open_card(self) -> None:
        app = self.app
        assert isinstance(app, ExampleApp)
        card = GuardedCard(
            card_digest="d1",
            lines=self.lines,
            choices=(
                Choice("1", "approve once"),
                Choice("2", "deny", Way.ONE_KEY),
                Choice("3", "inspect", Way.INSPECT),
            ),
        )
        app.guard_open(
            card,
            screen=self,
            on_guard_change=self.draw_guard,
            on_evidence=app.decide_with,
            on_inspect=app.inspect_card,
        )

    def draw_guard(self, view: GuardView) -> None:
        app = self.app
        assert isinstance(app, ExampleApp)
        app.views.append(view)
        self.query_one("#guard", Static).update(Content("\n".join(guard_lines(view))))

    def action_scroll_text(self, rows: int) -> None:
        self.query_one("#text").scroll_relative(y=rows, animate=False)

    def on_unmount(self) -> None:
        app = self.app
        assert isinstance(app, ExampleApp)
        app.guard_close()


class ExampleApp(GuardedApp[int]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("A", "open_card", "approvals"),
        Binding("Q", "quit", "quit"),
        Binding("enter,space,y,1,n", "naive_approve", priority=True),
    ]

    def __init__(self, outcome_file: Path | None = None, *, lines: int = 3) -> None:
        super().__init__()
        self.outcome_file = outcome_file
        self.lines = card_lines(lines)
        self.evidence: list[Evidence] = []
        self.inspected: list[Inspect] = []
        self.naive_approvals = 0
        self.views: list[GuardView] = []
        """Every view that was painted, in order: states pass faster than a test looks."""
        self.card: CardScreen | None = None

    def compose(self) -> ComposeResult:
        yield Static("list: A opens the queue", id="list", markup=False)

    def action_open_card(self) -> None:
        self.card = CardScreen(self.lines)
        self.push_screen(self.card)
        if block := int(os.environ.get("GUARD_EXAMPLE_BLOCK_MS", "0")):
            self.call_next(lambda: time.sleep(block / 1000))  # a builtin has no signature for Textual

    def action_leave_card(self) -> None:
        self.pop_screen()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        # On the list itself the naive keys do nothing; on a card they would, if they ever got there.
        return not (action == "naive_approve" and not isinstance(self.screen, CardScreen))

    def action_naive_approve(self) -> None:
        self.naive_approvals += 1
        self.record({"naive": True})

    def decide_with(self, evidence: Evidence) -> None:
        if not isinstance(evidence, Evidence):
            raise TypeError("a decision needs the guard's evidence")
        self.evidence.append(evidence)
        self.record(msgspec.to_builtins(evidence.record))
        self.pop_screen()
        self.query_one("#list", Static).update("list: decided")

    def inspect_card(self, inspect: Inspect) -> None:
        self.inspected.append(inspect)

    def record(self, outcome: dict[str, Any]) -> None:
        if self.outcome_file is not None:
            with self.outcome_file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(outcome) + "\n")


if __name__ == "__main__":
    if os.environ.get("GUARD_EXAMPLE_IGNORE_HANGUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    ExampleApp(Path(sys.argv[1]), lines=int(os.environ.get("GUARD_EXAMPLE_LINES", "3"))).run()
