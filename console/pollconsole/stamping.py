"""What every driver of the console has in common: it knows which input came from the keyboard, and when.

One job: stamp what the input thread reads with that thread's monotonic time (nothing else in the process can make a
stamped event), watch what is written for a card's text, ask the fence question, keep the mouse away from an open card.
It decides nothing: the guard's machine does. Knows no terminal: `driver` has the two drivers that use it.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from textual import events
from textual.driver import Driver
from textual.message import Message

from pollconsole.safe import safe
from pollconsole.terminal_input import FenceReply, Parsed, Reader, Stray
from pollconsole.terminal_output import FrameWatch, wall

LATE_S: Final = 0.02
"""A frame's way through the writer's thread takes less."""
KEEP_TITLE: Final = "\x1b[22;2t"
RESTORE_TITLE: Final = "\x1b[23;2t"
"""A stack of titles in the terminal (xterm, and most since); others ignore both."""
_STAMP: Final = "_pollconsole_stamp"
_CHANCE: Final = random.SystemRandom()
"""The system's, as `secrets` uses it; that module imports four others, and rows would wait for them."""


class Pointer(events.Event, bubble=False):
    """A mouse button or wheel was used while a card was open; the mouse event itself was dropped."""


class TerminalGone(events.Event, bubble=False):
    """The terminal hung up or its input ended. Sent once."""


class Stamp(msgspec.Struct, frozen=True, eq=False):
    """Proof of where an event came from. ``at``: monotonic seconds of the input thread when its bytes were read."""

    driver: StampingDriver
    sequence: int
    at: float
    isolated: bool


def stamp_of(event: Message, driver: StampingDriver | None) -> Stamp | None:
    """The stamp that *driver*'s input thread put on *event*, or None for every other event."""
    stamp = getattr(event, _STAMP, None)
    return stamp if driver is not None and isinstance(stamp, Stamp) and stamp.driver is driver else None


class GuardSink(Protocol):
    """The app, as the driver knows it."""

    def guard_driver_ready(self, driver: StampingDriver) -> None: ...

    def guard_frame_written(self) -> None:
        """A frame went out, whole, while a watch is on. Called on the app's thread."""


if TYPE_CHECKING:
    _Base = Driver
else:
    _Base = object


class StampingDriver(_Base):
    """The part that both drivers share; comes before the stock driver in the order of bases."""

    clock: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(
        self, app: Any, *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self.card_open = False
        """While True, mouse events are dropped."""
        self.watch = FrameWatch()
        self.starts = 0
        """How often the terminal was taken over: a change means that the program was stopped in between."""
        self._progress: tuple[int, int] | None = None
        self.progressed = False
        """The terminal answered `ask_progress`; whoever asked takes note and resets it."""
        self.progressed_at = 0.0
        """When that answer came, by `clock`: nobody may take note of it for long where nothing is drawn."""
        self.title: str | None = None
        """What the terminal's title is by us; None: it is not ours."""
        self.written = 0
        """Characters handed to the terminal's file since the start."""
        self._behind_since = 0.0
        self._sink: GuardSink | None = app if hasattr(app, "guard_driver_ready") else None
        self._reader = Reader()
        self._reading: tuple[int, float, bool] | None = None
        self._busy = False
        self._last_sequence = 0
        if self._sink is not None:
            self._sink.guard_driver_ready(self)

    # -- input -----------------------------------------------------------------------------------------------------

    @property
    def dropped_sequences(self) -> int:
        """Input sequences thrown away because they are no key, or harmful."""
        return self._reader.dropped

    @property
    def terminal_kind(self) -> str:
        """What the environment says of the terminal, made harmless: ``xterm-256color Ghostty ssh``."""
        names = (os.environ.get("TERM", ""), os.environ.get("TERM_PROGRAM", ""))
        extra = [word for name, word in (("TMUX", "tmux"), ("SSH_TTY", "ssh")) if os.environ.get(name)]
        return safe(" ".join(word for word in (*names, *extra) if word), 80)

    def input_idle(self, delivered: int) -> bool:
        """Whether no input is unread, half read, or stamped with a later number than *delivered*.

        The order of the three looks matters: bytes leave the kernel only after the input thread called itself busy.
        """
        at_rest = not self._input_waits() and not self._busy and not self._reader.partial
        return at_rest and self._last_sequence <= delivered

    def _input_waits(self) -> bool:
        return False

    def process_input(self, data: bytes, at: float) -> None:
        """What one read of the terminal returned at *at*. Runs in the input thread; never raises on bytes."""
        self._deliver(self._reader.feed(data), at)

    def flush_input(self, at: float) -> None:
        """No byte followed a half sequence for long enough."""
        self._deliver(self._reader.flush(), at)

    def _deliver(self, parsed: list[Parsed], at: float) -> None:
        try:
            for item in parsed:
                self._reading = (threading.get_ident(), at, item.isolated)
                self.process_message(item.message)
        finally:
            self._reading = None

    def process_message(self, message: Message) -> None:
        """Stamp what the input thread has just read, and pass it on. Anything that comes otherwise has no stamp."""
        reading = self._reading
        if reading is None or reading[0] != threading.get_ident():
            super().process_message(message)
            return
        if self.card_open and isinstance(message, events.MouseEvent):
            if isinstance(message, events.MouseMove):
                return
            message = Pointer()
        if isinstance(message, FenceReply) and (message.row, message.column) == self._progress:
            self._progress, self.progressed_at, self.progressed = None, reading[1], True
            return
        stamped = (events.Key, events.Paste, events.MouseEvent, events.AppFocus, events.AppBlur)
        if isinstance(message, (*stamped, Pointer, Stray, FenceReply)):
            self._stamp(message, *reading[1:])
        super().process_message(message)

    def _stamp(self, message: Message, at: float, isolated: bool) -> None:
        # Counted before it is sent: `input_idle` may be wrong in one way only.
        self._last_sequence += 1
        setattr(message, _STAMP, Stamp(self, self._last_sequence, at, isolated))

    def start_application_mode(self) -> None:
        self.starts += 1
        super().start_application_mode()  # type: ignore[safe-super]

    @property
    def taken(self) -> int:
        """Of `written`, what the terminal's device has taken."""
        return self.written

    @property
    def unread(self) -> bool:
        """Whether the terminal has not taken for `LATE_S` what was written."""
        return self.taken < self.written and self.clock() - self._behind_since > LATE_S

    def _count(self, characters: int) -> None:
        if self.taken >= self.written:
            self._behind_since = self.clock()
        self.written += characters

    # -- output ----------------------------------------------------------------------------------------------------

    def write(self, data: str) -> None:
        """Write, after the wall."""
        data = wall(data)
        self._count(len(data))
        super().write(data)  # type: ignore[safe-super]
        self.watch.wrote(data)

    def flush(self) -> None:
        """A frame is whole: the app is told if a card's text is being waited for."""
        super().flush()
        if self._sink is not None and self.watch.marker:
            self._sink.guard_frame_written()

    def set_title(self, text: str) -> None:
        """Show *text*, our own words, as the terminal's title; the title before is kept by the terminal."""
        kept = "" if self.title is not None else KEEP_TITLE
        self.title = text
        # past the watch: what stands in a title is no part of a card
        self._write_aside(kept + wall(f"\x1b]2;{text}\x07"))

    def restore_title(self) -> None:
        """Put back what the title was; a terminal that kept none shows its own default."""
        if self.title is not None:
            self.title = None
            self._write_aside(f"\x1b]2;\x07{RESTORE_TITLE}")

    def write_fence(self, columns: int, rows: int) -> tuple[int, int]:
        """Ask the terminal where its cursor is, after moving it to a random cell; return that cell (row, column).

        The first row is left out: some terminals send ``CSI 1;2R`` for shift+F3. Cursor and attributes are restored.
        """
        row = 2 + _CHANCE.randrange(max(1, rows - 1))
        column = 1 + _CHANCE.randrange(max(1, columns))
        self._write_query(f"\x1b7\x1b[{row};{column}H\x1b[6n\x1b8")
        return row, column

    def ask_progress(self, columns: int, rows: int) -> tuple[int, int]:
        """As `write_fence`, for whoever draws: the answer sets `progressed` and goes no further. No card is open."""
        self._progress = self.write_fence(columns, rows)
        return self._progress

    def _write_query(self, query: str) -> None:
        self._write_aside(query)

    def _write_aside(self, text: str) -> None:
        """Past wall and watch: what is ours alone, and no part of a frame."""
        self._count(len(text))
        super().write(text)  # type: ignore[safe-super]
        super().flush()
