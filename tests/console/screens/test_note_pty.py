"""The note of a card on a real terminal: every script ends without a decision but the honest one."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.console.operator_keys import Operator
from tests.console.ptylib import Terminal

pytestmark = [pytest.mark.rule("G3"), pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "tests/console/note_example.py"
AFTER = 1.5
"""Seconds after a script, in which a wrongly accepted key would decide: twice the guard's longest quiet."""
LETTERS = "abdefhmuvwz"


class Desk:
    """The console with a card on a terminal, and what was decided there."""

    def __init__(self, outcome: Path) -> None:
        self.outcome = outcome
        path = os.pathsep.join(str(ROOT / part) for part in ("", "core", "console"))
        program = [sys.executable, str(EXAMPLE), str(outcome)]
        self.terminal = Terminal(program, env={"PYTHONPATH": path}, columns=100, rows=50)
        self.terminal.until_text("E opens")
        self.terminal.send("E")
        self.terminal.until_text("Enter open the card")
        self.terminal.send("\r")
        self.terminal.until_text("External job needs a decision")

    def armed(self, step: int = 1) -> None:
        prompt = "press one of" if step == 1 else "to confirm"
        self.terminal.until(lambda: "ARMED" in self.terminal.text and prompt in self.terminal.text, what="armed")

    def note(self) -> None:
        """Press w on an armed card."""
        self.armed()
        self.terminal.send("w")
        self.terminal.until_text("nothing can be chosen while you write")

    def decided(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.outcome.read_text().splitlines()] if self.outcome.exists() else []


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    one = Desk(tmp_path / "outcome")
    yield one
    one.terminal.close()


@pytest.mark.rule("A1")
def test_an_honest_operator_writes_a_note_and_decides(desk: Desk) -> None:
    desk.note()
    desk.terminal.type_every("1 disk full", 0.05)
    desk.terminal.send("\r")
    desk.terminal.until_text("Your note: 1 disk full")
    operator = Operator(lambda: desk.terminal.text, desk.terminal.send)
    desk.terminal.until(lambda: operator.look() or bool(desk.decided()), what="a decision")
    assert [(each["choice"], each["because"]) for each in desk.decided()] == [("1", "1 disk full")]


def a_digit_and_every_letter(desk: Desk) -> None:
    """With pauses as long as the guard would want."""
    desk.note()
    desk.terminal.type_every("1", 1.0)
    desk.terminal.type_every(LETTERS, 0.4)
    desk.terminal.send("\x1b")


def one_burst(desk: Desk) -> None:
    desk.armed()
    desk.terminal.send(f"w1\r1{LETTERS}\r1")


def a_burst_after_the_note(desk: Desk) -> None:
    desk.note()
    desk.terminal.send(f"yes\r1{LETTERS}")


def an_unbracketed_paste(desk: Desk) -> None:
    desk.note()
    desk.terminal.send(f"1\r\n1\r\n{LETTERS}\r\n1")


def a_bracketed_paste_with_an_end_in_it(desk: Desk) -> None:
    desk.note()
    desk.terminal.send(f"\x1b[200~1\x1b[201~\r1{LETTERS}\x1b[201~")


def a_held_key(desk: Desk) -> None:
    desk.armed()
    desk.terminal.type_every("w" * 40, 0.03)
    desk.terminal.send("\r")
    desk.terminal.type_every("w" * 10, 0.4)


def enter_and_a_digit_again_and_again(desk: Desk) -> None:
    desk.note()
    for _ in range(6):
        desk.terminal.type_every("\r1w", 0.2)


@pytest.mark.parametrize(
    "script",
    [
        a_digit_and_every_letter,
        one_burst,
        a_burst_after_the_note,
        an_unbracketed_paste,
        a_bracketed_paste_with_an_end_in_it,
        a_held_key,
        enter_and_a_digit_again_and_again,
    ],
    ids=lambda script: script.__name__,
)
def test_what_is_typed_into_a_note_or_on_its_heels_decides_nothing(desk: Desk, script: Callable[[Desk], None]) -> None:
    script(desk)
    desk.terminal.run_for(AFTER)
    assert desk.decided() == []
    assert desk.terminal.exit_code is None
