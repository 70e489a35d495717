"""What all screens share: the link to the core, the board, colours, and what was said.

Job: one object handed to every screen. Must not know: any screen, any widget.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import msgspec

from pollconsole import bridge
from pollconsole.board import Board, Sort, View
from pollconsole.core_thread import CoreThread
from pollconsole.keys_file import KeyMap
from pollconsole.safe import safe
from pollconsole.themes import Palette
from pollcore.facts import BootMs, Instant, Moment, Operator, StopReason

MAX_MESSAGES: Final = 200
YOUNG_S: Final = 15.0
"""How long a message stands on the message line."""
GLIMPSE_S: Final = 1.5
"""A message that is younger was hardly seen: opening another screen does not end it."""
MAX_STORY: Final = 5_000
"""Lines of one story on a screen; `audit show` prints all."""
MAX_DONE: Final = 500
MAX_NOTES: Final = 200
NEVER: Final = Moment(Instant(0), BootMs(0), "")


def _nobody(reads: bool) -> None:
    """Nobody wants to know."""


class Stays(StrEnum):
    """How long a message stands on the message line; the list of messages keeps it in any case."""

    A_WHILE = "a_while"
    UNTIL_A_KEY = "until_a_key"
    """A while, and gone with the next key."""
    UNTIL_SEEN = "until_seen"
    """Until a key is pressed where it stands, and a while at least; another screen does not end it unseen."""


class Message(msgspec.Struct, frozen=True):
    """One thing that was said: when by the core's clock, what, in which role."""

    at: Instant
    text: str
    role: str
    said_s: float
    """The screen's own clock: how long a message stands is for eyes, which no demo compresses."""
    stays: Stays = Stays.A_WHILE
    keyed: bool = False
    """A key was pressed that ends its staying."""
    left: bool = False
    """Another screen was opened since: it belongs to what was done before."""

    @property
    def young(self) -> bool:
        """Whether it still stands on the message line."""
        if self.left and (self.keyed or self.stays is not Stays.UNTIL_SEEN):
            return False
        if self.stays is Stays.UNTIL_A_KEY and self.keyed:
            return False
        return time.monotonic() - self.said_s < YOUNG_S or (self.stays is Stays.UNTIL_SEEN and not self.keyed)


class State:
    """Shared by the screens; touched on the screen's loop alone."""

    def __init__(self, link: CoreThread, palette: Palette, *, title: str, read_only: bool) -> None:
        self.link = link
        self.board = Board()
        self.palette = palette
        self.title = safe(title, 20)
        self.read_only = read_only
        self.messages: deque[Message] = deque(maxlen=MAX_MESSAGES)
        self.notes: dict[str, str] = {}
        """Notes that were written and not recorded yet, by the question of their card."""
        self.done: dict[str, str] = {}
        """What a decision of this console did, by operation id: shown on the row."""
        self.view = View.OPEN
        self.needle = ""
        self.last_needle = ""
        """What `n` and `N` look for once the filter is cleared."""
        self.cursor_at_start: str | None = None
        """Where the cursor was when the console ended last."""
        self.sort = Sort.ATTENTION
        self.reverse = False
        self.paused = False
        self.exact = False
        """Times and sizes are written out in full, UTC and local; `i` turns it."""
        self.operator: Operator | None = None
        self.keymap = KeyMap()
        """The keys in force, by the names of actions."""
        self.clock_name = ""
        """Whose the core's clock is where it is not the world's (the demo): every time on the screen is of that one."""
        self.home_lasts = True
        """Whether what is written into the home is still there when the console has ended."""
        self.reading: Callable[[bool], None] = _nobody
        """Told when somebody begins and ends to look at what counts down: the demo's time is compressed."""
        self.guide: dict[StopReason, str] = {}
        """Said once each, when the first question of a kind comes (the demo)."""

    def now(self) -> Moment:
        """The core's clock; before it is open, the beginning of time (nothing is drawn then)."""
        return self.link.now() or NEVER

    def say(self, words: str, role: str = "text", stays: Stays = Stays.A_WHILE) -> None:
        """Put a message on the message line and in the list of messages; made harmless here."""
        self.messages.append(Message(self.now().wall, safe(words, 400), role, time.monotonic(), stays))

    def written(self, said: str, briefly: str, path: Path, role: str = "good") -> None:
        """A file was written into the home: *said*; where the home does not last, *briefly*, the warning, its path."""
        if self.home_lasts:
            self.say(said, role)
        else:
            self.say(f"{briefly}; copy it now, it is deleted when this ends: {path}", "attention", Stays.UNTIL_SEEN)

    @property
    def message(self) -> Message | None:
        """What stands on the message line: the newest message that still does."""
        return next((each for each in reversed(self.messages) if each.young), None)

    def key_pressed(self, *, line_shown: bool) -> None:
        """Somebody is there. *line_shown*: the message line was before his eyes."""
        for at, each in enumerate(self.messages):
            ends = each.stays is Stays.UNTIL_A_KEY or (each.stays is Stays.UNTIL_SEEN and line_shown)
            if ends and not each.keyed:
                self.messages[at] = msgspec.structs.replace(each, keyed=True)

    def screen_opened(self) -> None:
        """Another screen comes over the one where the messages stood: what was said before it was opened ends."""
        now_s = time.monotonic()
        for at, each in enumerate(self.messages):
            if not each.left and now_s - each.said_s >= GLIMPSE_S:
                self.messages[at] = msgspec.structs.replace(each, left=True)

    def keep_note(self, question: str, note: str) -> None:
        """Keep the *note* of a card that may be left; an empty one forgets it."""
        self.notes.pop(question, None)
        if note:
            self.notes[question] = note
        while len(self.notes) > MAX_NOTES:
            del self.notes[next(iter(self.notes))]

    def did(self, operation_id: str, words: str) -> None:
        """Remember what a decision did, for its row."""
        self.done.pop(operation_id, None)
        self.done[operation_id] = safe(words, 200)
        while len(self.done) > MAX_DONE:
            del self.done[next(iter(self.done))]

    @property
    def gate_is_advisory(self) -> bool:
        """G5: something was handed over by the very OS user that sits here, who could also press keys."""
        return self.operator is not None and self.operator.user in self.board.figures(self.now()).handed_over_by

    async def story(self, operation_id: str) -> tuple[Sequence[dict[str, Any]], Sequence[str]]:
        """The story of one operation, told on the core's thread: its newest events as documents, its newest lines."""

        async def body(core: Any) -> tuple[Sequence[dict[str, Any]], Sequence[str]]:
            events, lines = await bridge.story(core, operation_id)
            return events[-MAX_STORY:], lines[-MAX_STORY:]

        return await self.link.ask(body)
