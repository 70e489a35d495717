"""An app that writes to its terminal only what changed, and no faster than the terminal reads.

Job: every frame passes here: as a difference, whole while a card waits to be seen, or not at all while the terminal is
behind; then the newest picture is drawn once it has caught up. Must not know: what is drawn, what a card decides.

So no stale frames pile up, a terminal that stops reading does not stop this loop (the writer's queue would fill and
block it), and keys typed meanwhile are handled.

Read by source, Textual 8.2.8: `App._display`, through which each frame goes; `Widget._styles_cache`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Generic, TypeVar

from textual import events
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.geometry import Size

from pollconsole.flow import STALL_S, Flow
from pollconsole.frame_diff import Least, Picture, Whole, is_frame
from pollconsole.stamping import StampingDriver

ReturnType = TypeVar("ReturnType")

LOOK_AGAIN_S: Final = 0.02
"""Between two looks whether the terminal has taken what was written."""


class FrugalApp(App[ReturnType], Generic[ReturnType]):
    """The screen's output. A subclass names the driver."""

    asks_terminal: ClassVar[bool] = False
    """Whether the terminal is asked how far it has read (`flow`)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._picture = Picture()
        self._shown_for: tuple[Size, int] | None = None
        self._late_since: float | None = None
        """A frame was left out then."""
        self._flow = Flow()
        super().__init__(*args, **kwargs)

    def terminal_stalled(self, seconds: float) -> None:
        """The terminal reads again after so long. Override to say so."""

    def draw_all_anew(self) -> None:
        """Write the whole picture: something else may have written to the terminal."""
        self._picture.forget()
        self.refresh(layout=True)
        for widget in self.screen.query("*"):
            widget.refresh()

    def _display(self, screen: Any, renderable: Any) -> None:
        driver = self._driver
        if not isinstance(driver, StampingDriver) or not is_frame(renderable):
            super()._display(screen, renderable)
            return
        if self._late_since is not None or self._is_behind(driver):
            self._too_early()
            return
        shown_for = self.size, driver.starts
        if shown_for != self._shown_for:
            self._picture.forget()
            self._shown_for = shown_for
        # the guard arms on what was written: its words must be in the bytes
        whole = driver.watch.marker and not driver.watch.complete
        drawn: Any = (Whole if whole else Least)(self._picture, renderable)
        super()._display(screen, drawn)
        now = driver.clock()
        if self.asks_terminal and not driver.card_open and self._flow.wants_to_ask(now):
            self._flow.asked(driver.ask_progress(self.size.width, self.size.height), now)

    def _is_behind(self, driver: StampingDriver) -> bool:
        now = driver.clock()
        if driver.progressed:
            driver.progressed = False
            stood = self._flow.answered(driver.progressed_at)
            if stood:
                self.call_later(self.terminal_stalled, stood)
        return driver.unread or self._flow.is_behind(now)

    def _too_early(self) -> None:
        if self._late_since is None:
            self._late_since = self._driver.clock() if isinstance(self._driver, StampingDriver) else 0.0
            self.set_timer(LOOK_AGAIN_S, self._look_again)

    def _look_again(self) -> None:
        driver, since = self._driver, self._late_since
        if since is None or not isinstance(driver, StampingDriver):
            return
        if self._is_behind(driver):
            self.set_timer(LOOK_AGAIN_S, self._look_again)
            return
        self._late_since = None
        self.screen.refresh()
        stood = driver.clock() - since
        if stood > STALL_S and not self.asks_terminal:
            self.terminal_stalled(stood)

    def pop_screen(self) -> AwaitComplete:
        """As Textual's, whose caches by method keep what every widget of the last thousand screens had drawn."""
        for widget in (self.screen, *self.screen.query("*")):
            widget._styles_cache.clear()
        return super().pop_screen()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Resize):
            self._picture.forget()  # a terminal reflows or cuts what it shows
        await super().on_event(event)
