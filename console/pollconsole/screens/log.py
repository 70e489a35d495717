"""The core's log: what its thread said of itself, and what it did with every operation, the newest last.

Job: read new events on the core's thread, put both in the order of time, stay at the end. Must not know: the sentences
of the story, files' contents. Nothing here changes anything.

Source: spec A2, V3.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from pathlib import Path
from typing import Any, ClassVar, Final

from textual.app import ComposeResult

from pollconsole import bridge, crash, times
from pollconsole.core_log import LogLine
from pollconsole.draw import Line, text
from pollconsole.screens.story import story_role
from pollconsole.screens.text import LinesScreen
from pollconsole.state import State
from pollconsole.widgets import LinesView, OneLine, SaidLine
from pollcore.facts import Instant, Moment, PollconsoleError

MAX_EVENTS: Final = 1_500
"""The newest; `pollconsole audit show` prints all."""
READ_EVERY_S: Final = 1.0
MAX_LINE: Final = 600
MAX_CRASHES: Final = 3
"""Crash files that are named, the newest."""


class LogScreen(LinesScreen):
    """What happened lately, over all operations, and around them."""

    title_words = "log of the core"
    beside = True
    searched = "the log"
    indent = 14
    more_keys: ClassVar[tuple[tuple[str, str], ...]] = ()

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._events: deque[tuple[Instant, str]] = deque(maxlen=MAX_EVENTS)
        self._last: int | None = None
        self._read_at = 0.0
        self._reading = False
        self._trouble: str | None = None
        self._crashes: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        yield OneLine(self.state, ground="footer", id="head")
        yield LinesView(self.state, id="lines", indent=self.indent, follow=True)
        yield SaidLine(self.state, id="said")
        yield OneLine(self.state, ground="footer", id="foot")

    def tick(self, now: Moment, changed: bool) -> None:
        if not self._reading and (self._last is None or changed) and time.monotonic() - self._read_at > READ_EVERY_S:
            self._reading = True
            self.run_worker(self._read())
        super().tick(now, changed)

    async def _read(self) -> None:
        after = self._last

        async def body(core: Any) -> tuple[int, list[tuple[Instant, str]]]:
            return await bridge.latest(core, after, MAX_EVENTS)

        home: Path | None = self.app.home  # type: ignore[attr-defined]
        try:
            self._crashes = await asyncio.to_thread(_crash_files, home)
            self._last, found = await self.state.link.ask(body)
            self._events.extend(found)
            self._trouble = None
        except PollconsoleError as error:
            self._trouble = str(error)
        finally:
            self._reading, self._read_at = False, time.monotonic()

    def content(self) -> list[Line]:
        now, exact = self.state.now().wall, self.state.exact
        said = self.state.link.log.lines()
        begun = next((line.at for line in said if line.at is not None), Instant(0))
        merged: list[tuple[Instant, int, Line]] = [
            (line.at or begun, number, _said(line, now, exact)) for number, line in enumerate(said)
        ]
        merged += [
            (at, number, _told(at, line, now, exact)) for number, (at, line) in enumerate(self._events, len(said))
        ]
        merged.sort(key=lambda each: each[:2])
        lines = [line for _, _, line in merged]
        return lines or [(("nothing happened yet", "muted"),)]

    def note(self) -> Line:
        if self._trouble is not None:
            return (text(f" the story cannot be read: {self._trouble}", "danger", MAX_LINE),)
        if self._crashes:
            return (text(f" crash files in the home: {', '.join(self._crashes)}", "attention", MAX_LINE),)
        if self.state.clock_name:
            return ((f" the newest; all times are {self.state.clock_name}, as the table's first line", "faint"),)
        return ((" the newest; all of it: pollconsole audit show", "faint"),)


def _said(line: LogLine, now: Instant, exact: bool) -> Line:
    at = "before" if line.at is None else times.clock(line.at, now, exact=exact)
    return ((f"{at}  ", "muted"), ("core ", "title"), text(line.text, line.role, MAX_LINE))


def _told(at: Instant, line: str, now: Instant, exact: bool) -> Line:
    return ((f"{times.clock(at, now, exact=exact)}  ", "muted"), text(line, story_role(line), MAX_LINE))


def _crash_files(home: Path | None) -> tuple[str, ...]:
    """The newest files that crashes of the screen left in the home; they hold no values."""
    if home is None:
        return ()
    try:
        found = sorted((home / crash.FOLDER).glob("*.txt"), key=lambda path: path.stat().st_mtime)
    except OSError:
        return ()
    return tuple(f"{crash.FOLDER}/{path.name}" for path in found[-MAX_CRASHES:])
