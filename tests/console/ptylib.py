"""A terminal for tests: runs a program on a real pty, answers its questions as a terminal does, shows its screen.

Waiting is always on a condition with a limit. `Terminal` is one thread and no dependency but pyte (which draws the
screen and answers ``CSI 6n`` from its own cursor, as xterm would).
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self

import pyte

DEFAULT_WAIT: Final = 60.0
STEP: Final = 0.01
_FOREIGN = re.compile(r"\x1b\[[<>=][0-9;]*[a-zA-Z]|\x1b\[\?[0-9;]*\$p")
_ASK_SYNC = "\x1b[?2026$p"


class _Screen(pyte.Screen):
    """pyte's screen, whose answers go to the program."""

    def __init__(self, columns: int, rows: int, answer: Callable[[str], None]) -> None:
        super().__init__(columns, rows)
        self._answer = answer

    def write_process_input(self, data: str) -> None:
        self._answer(data)


class Terminal:
    """One program on one pty.

    Args:
        argv: the program and its arguments; its whole path.
        reply_delay: seconds until an answer to ``CSI 6n`` is sent (a slow line); None: never answered.
        sync: whether to say that synchronized output is understood.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        columns: int = 120,
        rows: int = 40,
        reply_delay: float | None = 0.0,
        sync: bool = True,
    ) -> None:
        self.reply_delay = reply_delay
        self.sync = sync
        self.raw = bytearray()
        """Everything that the program wrote."""
        self.asked = 0
        """How many cursor reports it asked for."""
        self.late = 0.0
        """Seconds by which a pause of the script was longer than meant, at most: this machine stood still then."""
        self._replies: list[tuple[float, bytes]] = []
        self._screen = _Screen(columns, rows, self._cursor_report)
        self._stream = pyte.Stream(self._screen)
        self._rest = ""
        self.exit_code: int | None = None
        # A test runner may export the size of its own terminal; a terminal exports none.
        inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        variables = {**inherited, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})}
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            try:
                os.execve(argv[0], list(argv), variables)
            finally:
                os._exit(127)
        self.resize(columns, rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    # -- looking ---------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display)

    def until(self, condition: Callable[[], bool], limit: float = DEFAULT_WAIT, what: str = "condition") -> float:
        """Pump until *condition* holds; return the seconds it took.

        Raises:
            AssertionError: it did not within *limit* seconds; the screen is in the message.
        """
        began = time.monotonic()
        while not condition():
            if time.monotonic() - began > limit:
                raise AssertionError(f"{what} not within {limit} s; exit {self.exit_code}; screen:\n{self.text}")
            self.pump(STEP)
        return time.monotonic() - began

    def until_text(self, wanted: str, limit: float = DEFAULT_WAIT) -> float:
        return self.until(lambda: wanted in self.text, limit, f"text {wanted!r}")

    def run_for(self, seconds: float) -> None:
        """Let time pass, as a script of key presses needs it."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.pump(min(left, STEP))
        self.late = max(self.late, time.monotonic() - end)

    # -- typing ----------------------------------------------------------------------------------------------------

    def send(self, data: bytes | str) -> None:
        """Write to the keyboard side, in one write."""
        os.write(self._fd, data.encode() if isinstance(data, str) else data)

    def type_every(self, keys: Sequence[str], seconds: float) -> None:
        """One write per key, *seconds* apart."""
        for key in keys:
            self.send(key)
            self.run_for(seconds)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._screen.resize(rows, columns)

    # -- inside ----------------------------------------------------------------------------------------------------

    def pump(self, wait: float) -> None:
        """Read what there is, draw it, send the answers that are due."""
        if self.exit_code is not None:
            time.sleep(wait)
            return
        if select.select([self._fd], [], [], wait)[0]:
            try:
                data = os.read(self._fd, 65536)
            except OSError:
                data = b""
            if not data:
                self._reap()
                return
            self.raw += data
            self._draw(data)
        now = time.monotonic()
        due = [reply for at, reply in self._replies if at <= now]
        self._replies = [(at, reply) for at, reply in self._replies if at > now]
        for reply in due:
            self.send(reply)

    def _draw(self, data: bytes) -> None:
        text = self._rest + data.decode("utf-8", "replace")
        cut = text.rfind("\x1b")
        # A sequence may be cut by the read; keep its beginning for the next one.
        if cut >= 0 and len(text) - cut < 16 and not re.match(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[^\[])", text[cut:]):
            text, self._rest = text[:cut], text[cut:]
        else:
            self._rest = ""
        if _ASK_SYNC in text and self.sync:
            self._replies.append((time.monotonic(), b"\x1b[?2026;2$y"))
        self._stream.feed(_FOREIGN.sub("", text))

    def _cursor_report(self, data: str) -> None:
        self.asked += 1
        if self.reply_delay is not None:
            self._replies.append((time.monotonic() + self.reply_delay, data.encode()))

    def _reap(self) -> None:
        _, status = os.waitpid(self.pid, 0)
        self.exit_code = os.waitstatus_to_exitcode(status)

    def hang_up(self) -> None:
        """The line is cut: the master side closes."""
        os.close(self._fd)
        self._fd = -1

    def close(self) -> None:
        """End the program that this terminal started, and no other."""
        if self.exit_code is None:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self._reap()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
