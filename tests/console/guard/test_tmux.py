"""The guard inside tmux: its server answers the fence, and what it types or pastes for others decides nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.console.operator_keys import Operator

pytestmark = [
    pytest.mark.rule("G3"),
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed: its send-keys set cannot run"),
]

EXAMPLE = Path(__file__).parent.parent / "guard_example.py"
LIMIT = 60.0
HELD_S = 0.12
"""A key that comes again later than this may count as one that was pressed alone (the guard wants 0.15 s)."""
TRIES = 6


class Pane:
    """The example app in a tmux server of its own."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "tmux"
        self.outcome = folder / "outcome"
        program = (sys.executable, str(EXAMPLE), str(self.outcome))
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", *program)
        self.until(lambda: "A opens" in self.text())

    def tmux(self, *arguments: str) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TMUX")}
        command = ["tmux", "-S", str(self.socket), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=environment, check=True)
        return done.stdout

    def text(self) -> str:
        return self.tmux("capture-pane", "-p")

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < end, self.text()
            time.sleep(0.05)

    def armed(self, step: int = 1) -> str:
        prompt = "press one of" if step == 1 else "to confirm"
        self.until(lambda: "ARMED" in (text := self.text()) and prompt in text)
        return self.text()

    def choose(self) -> None:
        """The first of an operator's two keys, until the second is asked for."""
        operator = Operator(self.text, self.keys, confirms=False)
        self.until(lambda: operator.look() or ("ARMED" in (text := self.text()) and "to confirm" in text))

    def decided(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.outcome.read_text().splitlines()] if self.outcome.exists() else []

    def stay(self, seconds: float) -> None:
        """Nothing may be decided for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.decided() == []
            time.sleep(0.05)


@contextmanager
def opened(folder: Path) -> Iterator[Pane]:
    """A pane, and its server ended whatever happened."""
    one = Pane(folder)
    try:
        yield one
    finally:
        subprocess.run(["tmux", "-S", str(one.socket), "kill-server"], capture_output=True, timeout=LIMIT, check=False)


@pytest.fixture
def pane(tmp_path: Path) -> Iterator[Pane]:
    with opened(tmp_path) as one:
        yield one


def test_an_honest_operator_decides_inside_tmux_by_its_own_answer(pane: Pane) -> None:
    pane.keys("A")
    operator = Operator(pane.text, pane.keys)
    pane.until(lambda: operator.look() or bool(pane.decided()))
    record = pane.decided()[0]
    assert all(step["fence_ms"] is not None for step in record["steps"])
    assert "tmux" in record["terminal"]


def test_keys_sent_with_the_one_that_opens_decide_nothing(pane: Pane) -> None:
    pane.keys("A", "2", "2")
    pane.stay(1.5)


def test_a_line_sent_at_once_decides_nothing(pane: Pane) -> None:
    pane.keys("A")
    pane.armed()
    pane.keys("2", "Enter")
    pane.armed()
    pane.keys("-l", "yes please 2")
    pane.stay(1.2)


def test_a_pasted_buffer_decides_nothing_bracketed_or_not(pane: Pane) -> None:
    pane.tmux("set-buffer", "yes please 2")
    pane.keys("A")
    for arguments in (["paste-buffer", "-p"], ["paste-buffer"]):
        pane.armed()
        pane.tmux(*arguments)
        pane.stay(0.6)


def test_a_key_held_for_two_seconds_decides_nothing(tmp_path: Path) -> None:
    for number in range(TRIES):
        folder = tmp_path / str(number)
        folder.mkdir()
        with opened(folder) as pane:
            pane.keys("A")
            pane.armed()
            longest, last = 0.0, time.monotonic()
            for _ in range(50):
                pane.keys("2")
                time.sleep(0.03)
                longest, last = max(longest, time.monotonic() - last), time.monotonic()
            if pane.decided() and longest > HELD_S:
                continue  # this machine let go of the key: it stood alone
            pane.stay(0.6)
            return
    pytest.fail(f"in each of {TRIES} tries this machine let go of the key: nothing is proved")


def test_one_digit_sent_again_and_again_decides_nothing(pane: Pane) -> None:
    pane.keys("A")
    for _ in range(3):
        pane.choose()
        pane.keys("1")
        pane.stay(0.5)
