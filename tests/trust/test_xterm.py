"""The guard in a real xterm: fingers approve; what the terminal answers, repeats, pastes or clicks never does."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console.operator_keys import Operator
from tests.trust import xterm_app
from tests.trust.xterm import ROWS, Display, Xterm

pytestmark = [pytest.mark.rule("G3"), pytest.mark.slow, pytest.mark.server("xterm")]

#: Questions that a terminal answers as if somebody typed; each with a piece of xterm's answer.
QUESTIONS: dict[str, tuple[bytes, bytes]] = {
    "a setting (DECRQSS)": (b"\x1bP$qm\x1b\\", b"\x1bP1$r"),
    "the cursor (CSI 6n)": (b"\x1b[6n", b"R"),
    "the status (CSI 5n)": (b"\x1b[5n", b"\x1b[0n"),
    "the terminal (CSI c)": (b"\x1b[c", b"\x1b[?6"),
    "the terminal again (CSI > c)": (b"\x1b[>c", b"\x1b[>41"),
    "its version (CSI > q)": (b"\x1b[>q", b"XTerm"),
    "its title (CSI 21 t)": (b"\x1b]2;1\x1b\\\x1b[21t", b"\x1b]l1"),
    "its icon's title (CSI 20 t)": (b"\x1b]1;1\x1b\\\x1b[20t", b"\x1b]L1"),
    "its size (CSI 18 t)": (b"\x1b[18t", b"\x1b[8;"),
    "the clipboard (OSC 52)": (b"\x1b]52;c;MQ==\x1b\\\x1b]52;c;?\x1b\\", b"\x1b]52;c;"),
    "a colour (OSC 4)": (b"\x1b]4;1;?\x1b\\", b"\x1b]4;1;rgb:"),
    "the text's colour (OSC 10)": (b"\x1b]10;?\x1b\\", b"\x1b]10;rgb:"),
    "the paper's colour (OSC 11)": (b"\x1b]11;?\x1b\\", b"\x1b]11;rgb:"),
    "a capability (XTGETTCAP)": (b"\x1bP+q436f\x1b\\", b"+r"),
    "a checksum (DECRQCRA)": (b"\x1b[1;1;1;1;1;2*y", b"!~"),
}


class Desk:
    """The example app in an xterm."""

    def __init__(self, terminal: Xterm, folder: Path) -> None:
        self.terminal = terminal
        self._outcome, self._views, self._questions = (folder / name for name in ("outcome", "views", "questions"))
        self._up = folder / "up"

    @staticmethod
    def program(folder: Path) -> list[str]:
        return [sys.executable, xterm_app.__file__, *(str(folder / name) for name in ("outcome", "views", "questions"))]

    def decided(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._outcome.read_text().splitlines()] if self._outcome.exists() else []

    def views(self) -> list[dict[str, Any]]:
        if not self._views.exists():
            return []
        return [json.loads(line) for line in self._views.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def open(self) -> None:
        """Press A once the app has drawn itself and the terminal has answered what it asked at its start."""
        self.terminal.until(lambda: b"?2026;" in self.terminal.sent and self._up.exists(), "the app")
        self.terminal.key("A")
        self.terminal.until(lambda: bool(self.views()), "the card")

    def armed(self, *steps: int) -> dict[str, Any]:
        """The view that is armed for one of *steps*, the first one by default."""

        def true() -> bool:
            last = self.views()[-1]
            return last["state"] == "ARMED" and last["step"] in (steps or (1,))

        self.terminal.until(true, f"armed for step {steps or 1}")
        return self.views()[-1]

    def decide(self) -> dict[str, Any]:
        """Two genuine keys, as an operator presses them; the letter alone where the digit still holds."""
        operator = Operator(self.card, self.terminal.key)
        self.terminal.until(lambda: operator.look() or bool(self.decided()), "a decision")
        return self.decided()[0]

    def choose(self) -> None:
        """The digit, as an operator presses it, until the letter is asked for."""
        operator = Operator(self.card, self.terminal.key, confirms=False)

        def asked() -> bool:
            operator.look()
            last = self.views()[-1]
            return (last["state"], last["step"]) == ("ARMED", 2)

        self.terminal.until(asked, "the second step")

    def card(self) -> str:
        """What the card asks for, in its own words."""
        last = self.views()[-1]
        return f"{last['state']} press {'one of' if last['step'] == 1 else str(last['letter']) + ' to confirm'}"

    def ask(self, questions: bytes) -> None:
        """From now on the terminal is asked, until `stop_asking`."""
        made = self._questions.with_suffix(".new")
        made.write_bytes(questions)
        made.rename(self._questions)

    def stop_asking(self) -> None:
        self._questions.unlink()

    def stay(self, seconds: float) -> None:
        """Nothing may be decided for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.decided() == []
            time.sleep(0.05)


@pytest.fixture(scope="module")
def display() -> Iterator[Display]:
    with Display() as made:
        yield made


@pytest.fixture
def desk(display: Display, tmp_path: Path) -> Iterator[Desk]:
    with Xterm(display, Desk.program(tmp_path), tmp_path) as terminal:
        made = Desk(terminal, tmp_path)
        made.open()
        yield made


def test_two_genuine_keys_approve_in_a_real_terminal_that_answers_the_fence(desk: Desk) -> None:
    record = desk.decide()
    assert record["choice"] == "1"
    assert all(step["fence_ms"] is not None for step in record["steps"])


@pytest.mark.parametrize("what", QUESTIONS)
def test_the_answer_to_a_question_in_raw_text_decides_nothing_and_stops_nobody(desk: Desk, what: str) -> None:
    question, answer = QUESTIONS[what]
    desk.armed()
    desk.ask(question)
    # the control: this xterm does answer, as if somebody typed
    desk.terminal.until(lambda: desk.terminal.sent.count(answer) >= 3, f"xterm's answer {answer!r}")
    desk.stay(0.8)
    desk.stop_asking()
    # after the operator's first key: no answer is the letter
    desk.choose()
    desk.ask(question)
    desk.stay(0.8)
    desk.stop_asking()
    desk.decide()


def test_a_title_that_names_each_letter_in_turn_never_confirms(desk: Desk) -> None:
    desk.choose()
    for letter in "abdefhmuvwz":
        desk.ask(f"\x1b]2;{letter}\x1b\\\x1b[21t".encode())
        desk.stay(0.4)
    desk.stop_asking()
    assert b"\x1b]lz" in desk.terminal.sent
    assert desk.decided() == []


@pytest.mark.rule("G4")
def test_of_all_questions_that_reach_the_driver_none_reaches_the_terminal(desk: Desk, tmp_path: Path) -> None:
    desk.armed()
    before = len(desk.terminal.sent)
    (tmp_path / "walled").write_bytes(b" ".join(question for question, _ in QUESTIONS.values()))
    desk.stay(1.5)
    assert desk.terminal.sent[before:] == b""
    (tmp_path / "walled").unlink()
    desk.decide()


@pytest.mark.rule("G4")
def test_a_providers_text_that_was_made_harmless_is_answered_by_nothing(desk: Desk) -> None:
    desk.armed()
    desk.stay(1.0)
    # the card of the example holds an OSC 52 and a CSI 6n; only the fence was answered, once
    before, fences = desk.terminal.sent.partition(b"A")[::2]
    del before
    assert fences.count(b"R") == 1
    assert b"\x1b]52" not in desk.terminal.sent


def test_a_held_digit_and_a_held_letter_never_approve(desk: Desk) -> None:
    for name in ("1", "a", "z", "Return", "space", "y"):
        before = len(desk.terminal.sent)
        desk.terminal.hold(name, 1.6)
        assert len(desk.terminal.sent) > before + 5, "the server repeats a held key"
        desk.stay(0.5)
    desk.terminal.key("Escape")
    desk.stay(0.3)


def test_a_digit_held_until_the_second_step_does_not_confirm_it(desk: Desk) -> None:
    desk.armed()
    desk.terminal.hold("1", 3.0)
    desk.stay(0.6)
    desk.armed(1, 2)
    desk.stay(0.2)


@pytest.mark.parametrize("button", [1, 3])
def test_clicks_on_the_choices_and_everywhere_decide_nothing(desk: Desk, button: int) -> None:
    desk.armed()
    for row in range(0, ROWS, 3):
        desk.terminal.click(3, row, button)
        desk.terminal.click(40, row, button, times=2)
    desk.stay(0.6)
    assert b"\x1b[<" in desk.terminal.sent
    desk.decide()


def test_what_is_pasted_from_the_screen_decides_nothing(desk: Desk) -> None:
    desk.armed()
    pasted = 0
    for row in range(ROWS):
        # a double click with shift selects the word under it, the middle button pastes it
        desk.terminal.click(1, row, times=2, shift=True)
        desk.terminal.click(1, row, button=2, shift=True)
        pasted = desk.terminal.sent.count(b"\x1b[200~")
        assert desk.decided() == []
    assert pasted > 3, "the terminal pasted"
    desk.stay(0.6)
    desk.decide()


def test_one_genuine_key_denies_because_that_lowers_authority(desk: Desk) -> None:
    operator = Operator(desk.card, desk.terminal.key, "2")
    desk.terminal.until(lambda: operator.look() or bool(desk.decided()), "a denial")
    record = desk.decided()[0]
    assert (record["choice"], len(record["steps"])) == ("2", 1)


def test_one_genuine_key_never_approves(desk: Desk) -> None:
    desk.armed()
    for name in ("1", "Escape", "1", "Return", "1", "1"):
        desk.terminal.key(name)
        desk.stay(1.0)
    assert desk.decided() == []
