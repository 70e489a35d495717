"""Wires the guard's machine and the driver to a Textual app.

One job: hand the machine every event that it must see, before any key binding is looked at, and do what it asks for. It
knows no operation and no meaning of a choice; it never decides. How a screen uses it:

    class Console(GuardedApp[int]): ...            # its driver and its output filter come with it

    class CardScreen(Screen[None]):                # nothing focusable on it, no Button, no Footer
        def on_mount(self) -> None:
            self.app.guard_open(
                GuardedCard(card_digest=..., lines=..., choices=(Choice("1", "extend 15 min / 4 checks"),)),
                screen=self, on_guard_change=self.draw_guard, on_evidence=self.decide_with, on_inspect=...)
        def draw_guard(self, view: GuardView) -> None:
            self.query_one("#guard", Static).update(Content("\\n".join(guard_lines(view))))   # at once, no await
        def on_unmount(self) -> None:
            self.app.guard_close()

`lines` are the very texts that the card draws (made harmless by `safe`, each unbroken or wrapped between words): the
card arms only after the driver wrote every one of them, and `view.marker` and `view.prompt`, to the terminal. In step 2
`confirm_lines[digit]` are demanded as well. When the card's content changes, call `guard_open` again; repainting
clocks and counters that are no part of `lines` needs nothing. Keys in `navigation` reach the screen's bindings in
step 1, all others are used up here while a card is open; so are paste and mouse. The outcome comes to `on_evidence`
once; the screen closes the card then. Leaving it decides nothing.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec
from textual import events
from textual.driver import Driver
from textual.filter import LineFilter
from textual.geometry import Size
from textual.screen import Screen
from textual.timer import Timer

from pollconsole.driver import GuardDriver
from pollconsole.frugal_app import FrugalApp
from pollconsole.guard import Guard
from pollconsole.guard_card import GuardedCard
from pollconsole.guard_events import tell
from pollconsole.guard_facts import (
    MIN_COLUMNS,
    MIN_ROWS,
    Evidence,
    GuardTimes,
    GuardView,
    Inspect,
    OpenCard,
    text_digest,
)
from pollconsole.stamping import Stamp, StampingDriver, TerminalGone, stamp_of
from pollconsole.terminal_output import HarmlessLines

ReturnType = TypeVar("ReturnType")

TICKS_PER_SECOND: Final = 30
MAX_HELD_NOTICES: Final = 20
"""Notices kept while a card is open; older ones are dropped."""


class _Opened(msgspec.Struct):
    card: GuardedCard
    screen: Screen[Any]
    size: Size
    starts: int
    on_guard_change: Callable[[GuardView], None]
    on_evidence: Callable[[Evidence], object]
    on_inspect: Callable[[Inspect], object] | None
    timer: Timer
    view: GuardView | None = None


class GuardedApp(FrugalApp[ReturnType], Generic[ReturnType]):
    """An app whose cards are guarded. See the module's text for how a screen uses it."""

    guard_times: GuardTimes = GuardTimes()
    guard_clock: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._guard = Guard(chance=random.SystemRandom().randrange, times=self.guard_times)
        self._guard_driver: StampingDriver | None = None
        self._guard_opened: _Opened | None = None
        self._guard_delivered = 0
        self._guard_filter: LineFilter = HarmlessLines()
        self._held_notices: list[tuple[str, dict[str, Any]]] = []
        super().__init__(*args, **kwargs)

    # -- for screens -----------------------------------------------------------------------------------------------

    def guard_open(
        self,
        card: GuardedCard,
        *,
        screen: Screen[Any],
        on_guard_change: Callable[[GuardView], None],
        on_evidence: Callable[[Evidence], object],
        on_inspect: Callable[[Inspect], object] | None = None,
    ) -> None:
        """Guard *card*, drawn on *screen*; again, when its content changed. Starts locked.

        Args:
            on_guard_change: paints the view, at once; called at every change of it, first before this returns.
            on_evidence: called once, with the proof that `decide` demands; may be async. Close the card in it.
            on_inspect: called for a choice that decides nothing.
        """
        self._guard_end()
        self.clear_notifications()
        driver = self._guard_driver
        timer = self.set_interval(1 / TICKS_PER_SECOND, self._guard_tick)
        self._guard_opened = _Opened(
            card=card,
            screen=screen,
            size=self.size,
            starts=driver.starts if driver is not None else 0,
            on_guard_change=on_guard_change,
            on_evidence=on_evidence,
            on_inspect=on_inspect,
            timer=timer,
        )
        if driver is not None:
            driver.card_open = True
        seen_by_machine = OpenCard(card.card_digest, text_digest(card.lines), card.choices, card.navigation)
        terminal = driver.terminal_kind if driver is not None else ""
        self._guard.card_opened(seen_by_machine, self.guard_clock(), terminal=terminal)
        self._guard_follow()

    def guard_close(self) -> None:
        """No card is open any more. Decides nothing. Harmless when none is."""
        self._guard_end()
        notices, self._held_notices = self._held_notices, []
        for message, options in notices:
            self.notify(message, **options)

    @property
    def guard_painted(self) -> bool:
        """Whether the open card, or the part of it that fits, was written to the terminal."""
        driver = self._guard_driver
        watch = driver.watch if driver is not None and self._guard_opened is not None else None
        return watch is not None and (watch.complete or watch.missing is not None)

    def guard_terminal_gone(self) -> None:
        """The terminal hung up. Ends the app; override to hand over first."""
        self.exit(return_code=1)

    # -- what the app and the driver call --------------------------------------------------------------------------

    def get_driver_class(self) -> type[Driver]:
        """Always ours: no environment variable names another."""
        return GuardDriver

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), self._guard_filter]

    def notify(self, message: str, **options: Any) -> None:
        """As Textual's, but held back while a card is open: a toast would cover it."""
        if self._guard_opened is None:
            super().notify(message, **options)
        else:
            self._held_notices = [*self._held_notices, (message, options)][-MAX_HELD_NOTICES:]

    def guard_driver_ready(self, driver: StampingDriver) -> None:
        """The driver names itself. Only its events are genuine."""
        self._guard_driver = driver

    def guard_frame_written(self) -> None:
        """The driver wrote a whole frame while a card waits to be seen."""
        driver = self._guard_driver
        if driver is None or self._guard_opened is None:
            return
        self._guard_check_surroundings()
        if driver.watch.complete:
            self._guard.marker_written(driver.watch.marker, self.guard_clock())
        elif driver.watch.missing is not None:
            missing, place = driver.watch.missing, self._guard_opened.card.place
            self._guard.partly_written(missing, None if place is None else place(missing))
        self._guard_follow()

    async def on_event(self, event: events.Event) -> None:
        """Every event of the app comes by here first; bindings, focus and forwarding come after."""
        if isinstance(event, TerminalGone):
            self.guard_terminal_gone()
            return
        stamp = stamp_of(event, self._guard_driver)
        if stamp is not None:
            self._guard_delivered = max(self._guard_delivered, stamp.sequence)
        if self._guard_opened is not None:
            used_up = self._guard_event(event, stamp, self._guard_opened)
            self._guard_follow()
            if used_up:
                event.stop()
                return
        await super().on_event(event)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _guard_end(self) -> None:
        opened, self._guard_opened = self._guard_opened, None
        self._guard.close()
        if self._guard_driver is not None:
            self._guard_driver.card_open = False
            self._guard_driver.watch.begin("", ())
        if opened is not None:
            opened.timer.stop()

    def _guard_event(self, event: events.Event, stamp: Stamp | None, opened: _Opened) -> bool:
        """Tell the machine of *event*; whether nothing else may see it."""
        at = self.guard_clock() if stamp is None else stamp.at
        if not isinstance(event, events.Resize):
            return tell(self._guard, event, stamp, at, opened.card.navigation)
        if event.size != opened.size:
            opened.size = event.size
            self._guard_watch_again(opened)
            self._guard.changed("the window changed size", at)
        return False

    def _guard_tick(self) -> None:
        opened, driver = self._guard_opened, self._guard_driver
        if opened is None or not self.is_running:
            return
        self._guard_check_surroundings()
        idle = driver is not None and driver.input_idle(self._guard_delivered)
        self._guard.tick(self.guard_clock(), idle=idle)
        self._guard_follow()

    def _guard_check_surroundings(self) -> None:
        opened, driver = self._guard_opened, self._guard_driver
        if opened is None:
            return
        now = self.guard_clock()
        why: str | None = None
        if self.is_web:
            why = "a browser cannot approve; use a terminal"
        elif driver is None:
            why = "this screen has no guarded keyboard"
        elif opened.size.width < MIN_COLUMNS or opened.size.height < MIN_ROWS:
            why = f"enlarge to {MIN_COLUMNS}x{MIN_ROWS}"
        elif self.screen is not opened.screen:
            why = "another window is on top"
        elif self.focused is not None:
            why = "an input field has the keyboard"
        self._guard.obstacle(why, now)
        if driver is not None and driver.starts != opened.starts:
            opened.starts = driver.starts
            self._guard.resumed(now)

    def _guard_watch_again(self, opened: _Opened) -> None:
        """All of the card must be on the screen once more."""
        if self._guard_driver is not None:
            self._guard_driver.watch.begin("", ())
        opened.view = None

    def _guard_follow(self) -> None:
        """Do what the machine asks for: repaint, look for the text, ask the fence question, hand out the outcome."""
        opened, driver, guard = self._guard_opened, self._guard_driver, self._guard
        if opened is None:
            return
        now = self.guard_clock()
        view = guard.view(now)
        if view != opened.view:
            again = opened.view is not None
            opened.view = view
            if driver is not None and view.marker != driver.watch.marker:
                lines = [*opened.card.lines, view.prompt]
                if view.choice is not None:
                    lines += opened.card.confirm_lines.get(view.choice.digit, ())
                driver.watch.begin(view.marker, lines, again=again)
                opened.on_guard_change(view)
                opened.screen.refresh()
            else:
                opened.on_guard_change(view)
        if guard.fence_wanted and driver is not None:
            row, column = driver.write_fence(opened.size.width, opened.size.height)
            guard.fence_sent(row, column, self.guard_clock())
        outcome = guard.take_outcome()
        if isinstance(outcome, Evidence):
            self.call_next(opened.on_evidence, outcome)
        elif isinstance(outcome, Inspect) and opened.on_inspect is not None:
            self.call_next(opened.on_inspect, outcome)
