"""A real xterm on an X server without a screen, and fingers for it: keys, held keys, the mouse, the clipboard.

Job: start, press, end exactly what was started. Must not know: what runs inside.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.trust import recorder

ROOT: Final = Path(__file__).parents[2]
LIMIT_S: Final = 60.0
COLUMNS, ROWS = 120, 40
CELL: Final = (6, 13)
"""Width and height of a character of the font `fixed` that is asked for."""
BORDER: Final = 2
#: What a user may have switched on, so that more questions are answered.
TALKATIVE: Final = ("-xrm", "*allowWindowOps: true", "-xrm", "*allowColorOps: true", "-xrm", "*allowTcapOps: true",
                    "-xrm", "*allowTitleOps: true")  # fmt: skip


class Display:
    """One Xvfb on a free display, reachable by nobody else."""

    def __enter__(self) -> Self:
        reading, writing = os.pipe()
        self._server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1024x768x24", "-nolisten", "tcp", "-noreset"],
            pass_fds=[writing], stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(writing)
        with os.fdopen(reading) as told:
            number = told.readline().strip()
        assert number.isdecimal(), "Xvfb did not start"
        paths = os.pathsep.join(str(ROOT / each) for each in ("", "core", "console"))
        self.env = {**os.environ, "DISPLAY": f":{number}", "PYTHONPATH": paths}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _end(self._server)


class Xterm:
    """One xterm with *program* inside; `sent` is every byte that it sent to it."""

    def __init__(self, display: Display, program: Sequence[str], folder: Path) -> None:
        self._env = display.env
        self._keys = folder / "keys"
        self._keys.touch()
        inside = [sys.executable, recorder.__file__, str(self._keys), *program]
        argv = ["xterm", "-u8", "-fn", "fixed", "-b", str(BORDER), "-geometry", f"{COLUMNS}x{ROWS}+0+0", *TALKATIVE]
        self._process = subprocess.Popen([*argv, "-e", *inside], env=self._env, stderr=subprocess.DEVNULL)
        self._window = ""

    def __enter__(self) -> Self:
        def focused() -> bool:
            wanted = ("--onlyvisible", "--pid", str(self._process.pid), "--class", "xterm")
            self._window = self._tool("search", *wanted, check=False).strip().rpartition("\n")[2]
            if self._window:
                self._tool("windowfocus", self._window, check=False)
            return bool(self._window) and self._tool("getwindowfocus", check=False).strip() == self._window

        self.until(focused, "the window")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _end(self._process)

    @property
    def sent(self) -> bytes:
        return self._keys.read_bytes()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for *condition*, with a limit."""
        end = time.monotonic() + LIMIT_S
        while not condition():
            assert time.monotonic() < end, f"{what} not within {LIMIT_S} s; sent so far: {self.sent[-300:]!r}"
            assert self._process.poll() is None, f"the terminal ended while waiting for {what}"
            time.sleep(0.02)

    # genuine events of the X server's keyboard and mouse (XTEST), never events that are sent to a window

    def key(self, *names: str) -> None:
        self._tool("key", "--clearmodifiers", *names)

    def hold(self, name: str, seconds: float) -> None:
        """Down, and the server repeats it until it goes up."""
        self._tool("keydown", name)
        time.sleep(seconds)
        self._tool("keyup", name)

    def click(self, column: int, row: int, button: int = 1, times: int = 1, shift: bool = False) -> None:
        """On a cell, counted from 0; with shift xterm keeps it to itself: button 1 selects, button 2 pastes."""
        x, y = BORDER + CELL[0] * column + CELL[0] // 2, BORDER + CELL[1] * row + CELL[1] // 2
        self._tool("mousemove", "--window", self._window, str(x), str(y))
        down, up = (["keydown", "shift"], ["keyup", "shift"]) if shift else ([], [])
        self._tool(*down, "click", "--repeat", str(times), "--delay", "60", str(button), *up)

    def _tool(self, *words: str, check: bool = True) -> str:
        done = subprocess.run(
            ["xdotool", *words], env=self._env, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)
