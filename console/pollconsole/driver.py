"""The terminal drivers of the console: `GuardDriver` on a terminal, `HeadlessGuardDriver` in Pilot tests.

One job: read and write the terminal for Textual so that no input bytes, no hang-up and no stop can end or block it.
What is stamped, watched and asked is in `stamping`; nothing is decided here.

Read by source, Textual 8.2.8. Private parts that are used: the key parser (`terminal_input`), and of the stock driver
`_file`, `_auto_restart`, `_must_signal_resume` and `_get_terminal_size`.
"""

from __future__ import annotations

import asyncio
import os
import select
import selectors
import signal
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, Final

from textual import events
from textual.drivers import headless_driver
from textual.drivers.headless_driver import HeadlessDriver
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from pollconsole.environment import scrub_environment
from pollconsole.stamping import Pointer, Stamp, StampingDriver, TerminalGone, stamp_of

__all__ = [
    "GuardDriver",
    "HeadlessGuardDriver",
    "Pointer",
    "Stamp",
    "StampingDriver",
    "TerminalGone",
    "headless_guard_driver",
    "scrub_environment",
    "stamp_of",
]

READ_SIZE: Final = 4096
POLL_SECONDS: Final = 0.05
"""How often the input thread looks whether it should end, or a lone escape byte is the Esc key."""


class _Output:
    """The terminal's output file, whose writes never fail: a writer thread that dies of a hang-up leaves a queue that
    fills up and blocks the app for ever."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self.gone = False
        self.taken = 0
        """Characters that the terminal's device has taken."""

    def write(self, text: str) -> None:
        self._try(lambda: self._file.write(text))
        self._try(self._file.flush)
        self.taken += len(text)

    def flush(self) -> None:
        self._try(self._file.flush)

    def fileno(self) -> int:
        return self._file.fileno()

    def _try(self, act: Callable[[], object]) -> None:
        if not self.gone:
            try:
                act()
            except (OSError, ValueError):
                self.gone = True


class GuardDriver(StampingDriver, LinuxDriver):
    """The driver for a terminal. Pass it as ``App(driver_class=GuardDriver)``, or use `GuardedApp`, which does."""

    def __init__(
        self, app: Any, *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._file: Any = _Output(self._file)
        self._active = False
        if self._size is None:
            # Else the app guesses its first size by other rules than `_get_terminal_size`, and lays out twice.
            self._size = self._get_terminal_size()
        # A hang-up continues the process, too, and so may anyone. The stock handler starts a second pair of threads
        # then, inside a signal handler; here the loop does it, and only for a terminal that is still there.
        loop = asyncio.get_running_loop()
        signal.signal(signal.SIGCONT, lambda *_: loop.call_soon_threadsafe(self._continued))

    def start_application_mode(self) -> None:
        if not self._active:
            self._active = True
            super().start_application_mode()

    def stop_application_mode(self) -> None:
        self.restore_title()
        super().stop_application_mode()
        self._active = False

    def _get_terminal_size(self) -> tuple[int, int]:
        """The size of the terminal itself. The stock driver believes ``COLUMNS`` and ``LINES``, by which a card that is
        cut off would count as whole. A terminal that knows no size (a serial line, a pty that nobody sized: 0x0) is
        taken for those, else for 80x24, until it says more."""
        try:
            columns, rows = os.get_terminal_size(self.fileno)
        except (OSError, ValueError):
            columns = rows = 0
        return (columns, rows) if columns and rows else super()._get_terminal_size()

    def _continued(self) -> None:
        """The process goes on. The shell may have given the terminal other modes: take it over anew."""
        try:
            termios.tcgetattr(self.fileno)
        except termios.error:
            return
        if not self._auto_restart:
            return
        if self._active:
            self.suspend_application_mode()
            self._must_signal_resume = True
        self.resume_application_mode()
        self._app.refresh(layout=True)

    @property
    def taken(self) -> int:
        return int(self._file.taken) if self._active else self.written

    def _input_waits(self) -> bool:
        try:
            return bool(select.select([self.fileno], [], [], 0)[0])
        except (OSError, ValueError):
            return True

    def run_input_thread(self) -> None:
        """Read until told to end. An end of input or a hang-up is reported once, instead of spinning on it."""
        last_byte = self.clock()
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(POLL_SECONDS):
                    at = self._read_once()
                    if at is None:
                        self.send_message(TerminalGone())
                        return
                    last_byte = at
                elif self._reader.partial and self.clock() - last_byte >= self._reader.wait:
                    self.flush_input(self.clock())

    def _read_once(self) -> float | None:
        """One read, handed on; the instant of it, or None at the end of input."""
        self._busy = True
        try:
            data = os.read(self.fileno, READ_SIZE)
            if not data:
                return None
            at = self.clock()
            self.process_input(data, at)
            return at
        except OSError:
            return None
        finally:
            self._busy = False


class HeadlessGuardDriver(StampingDriver, HeadlessDriver):
    """The driver for Pilot tests: draws to `screen_text`, reads from `type_bytes`, answers the fence like a terminal.

    ``stamp_pilot``: count the keys of ``pilot.press`` as genuine (they come by `send_message`, past the input thread).
    ``answer_fence``: set it to False for a terminal without a cursor report.
    """

    stamp_pilot = True
    answer_fence = True
    fences: int = 0

    @property
    def is_headless(self) -> bool:
        """False, so that the app really writes its frames."""
        return False

    def type_bytes(self, data: bytes, at: float | None = None) -> None:
        """As if one read of the terminal had returned *data*; a half sequence at its end is flushed."""
        when = self.clock() if at is None else at
        self.process_input(data, when)
        if self._reader.partial:
            self.flush_input(when)

    def send_message(self, message: Message) -> None:
        if self.stamp_pilot and self._reading is None and isinstance(message, events.Key):
            self._stamp(message, self.clock(), True)
        super().send_message(message)

    def _write_query(self, query: str) -> None:
        self.fences += 1
        super()._write_query(query)
        if self.answer_fence:
            cell = query[query.index("[") + 1 : query.index("H")]
            self._loop.call_soon(self.type_bytes, f"\x1b[{cell}R".encode())


@contextmanager
def headless_guard_driver(driver: type[HeadlessGuardDriver] = HeadlessGuardDriver) -> Iterator[None]:
    """Inside, ``App.run_test()`` builds *driver*: Textual names its headless driver itself and takes no other."""
    stock = headless_driver.HeadlessDriver
    headless_driver.HeadlessDriver = driver  # type: ignore[misc]
    try:
        yield
    finally:
        headless_driver.HeadlessDriver = stock  # type: ignore[misc]
