"""The console: the screens over the core's thread, looked after four times a second until two keys quit it.

Job: hand what is new to the screen on top, remember where the operator is, quit in two keys, tell a crash without its
values. Must not know: what a card decides, SQL, HTTP, how the core is opened, how a screen is made. No command of the
palette and no key of the app reaches a decision.

Screens but the first are imported when they are opened, or in a quiet moment after the first rows.

Source: spec V3, V4, G3, G5, K1.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import signal
import sys
import time
from pathlib import Path
from typing import Any, ClassVar, Final

from textual import events
from textual.binding import Binding, BindingType
from textual.screen import Screen

from pollconsole import attention, bridge, collector, memory
from pollconsole.beats import other_core
from pollconsole.core_thread import CoreThread
from pollconsole.mailbox import CoreRole
from pollconsole.news import News
from pollconsole.opening_app import OpeningApp
from pollconsole.screens.base import ConsoleScreen, bound
from pollconsole.screens.live import LiveScreen
from pollconsole.state import State, Stays
from pollconsole.theme_choice import Colours
from pollcore.facts import Operator, PollconsoleError

FIRST_TICK_S: Final = 0.01
"""How often it looks until the first rows are there."""
TICK_S: Final = 0.25
"""How often the screen looks for news and counts down."""
QUIT_S: Final = 3.0
"""Within this time `Q` confirms `q`."""
TITLE: Final = "pollconsole"
LATER: Final = ("screens.detail", "screens.queue", "screens.card", "screens.group", "screens.text", "palette")
"""Of this package: what the next keys will want; imported one by one once the first rows are there."""
LATER_S: Final = 0.5
COLLECT_S: Final = 1.0
"""From the first frame on; then garbage is collected whether there are rows or not."""


class ConsoleApp(OpeningApp):
    """The screens. The core's thread is given, and outlives a crash of the screens."""

    TITLE = TITLE
    asks_terminal = True
    CSS = """
    Screen { background: $background; color: $foreground; layout: vertical; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("themes", "themes"),
        bound("quit", "ask_quit"),
        bound("quit_now", "confirm_quit"),
        bound("redraw", "redraw"),
        Binding("ctrl+q", "ask_quit", "quit", priority=True),
        Binding("ctrl+c", "ask_quit", "quit", priority=True),
    ]

    def __init__(
        self,
        link: CoreThread,
        *,
        title: str = TITLE,
        home: Path | None = None,
        colours: Colours | None = None,
        home_named_by: str = "",
    ) -> None:
        super().__init__(home=home, colours=colours)
        self.home_named_by = home_named_by
        self.state = State(link, self.worn.palette, title=title, read_only=link.read_only)
        memory.restore(self.state, home)
        self._kept = memory.snapshot(self.state, None)
        self.say_theme_complaints()
        self.take_keys()
        self.crashed: BaseException | None = None
        self.terminal_gone = False
        self._quit_asked = 0.0
        self._news = News(self.state, time.monotonic())
        self._who_asked = False
        self._reads = False
        self._live: LiveScreen | None = None
        self._attention = attention.Attention()

    def get_default_screen(self) -> Screen[Any]:
        if self.state.link.mailbox.loaded:  # the first picture has rows
            self.state.board.apply(self.state.link.take())
        self._live = LiveScreen(self.state)
        return self._live

    def on_mount(self) -> None:
        bridge.watch_loop()
        self.set_interval(TICK_S, self._tick)
        self._first = self.set_interval(FIRST_TICK_S, self._first_tick)
        self.set_timer(COLLECT_S, collector.wake)
        for number, act in (
            (signal.SIGHUP, self.guard_terminal_gone),
            (signal.SIGTERM, self._told_to_end),
            (signal.SIGINT, self._told_to_end),
        ):
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                asyncio.get_running_loop().add_signal_handler(number, act)

    def guard_terminal_gone(self) -> None:
        """The terminal hung up: no screen any more; requests in flight are still recorded."""
        self.terminal_gone = True
        self.keep()
        self.exit(return_code=0)

    def _told_to_end(self) -> None:
        """Another process asked this one to end (ctrl-c is a key here): the terminal is given back as it was."""
        self.keep()
        self.exit(0)

    def _first_tick(self) -> None:
        """The first rows are drawn when they are there, not a quarter of a second later."""
        if self.state.link.mailbox.loaded:
            self._first.stop()
            self._tick()
            self.set_timer(LATER_S, self._import_later)

    def _import_later(self, at: int = 0) -> None:
        """One module at a time, so that no key waits for more than one of them."""
        importlib.import_module(f"pollconsole.{LATER[at]}")
        if at + 1 < len(LATER):
            self.set_timer(FIRST_TICK_S, lambda: self._import_later(at + 1))

    def _tick(self) -> None:
        """Look into the mailbox, hand what is new to the screen on top."""
        if not self.is_running:  # ending: widgets are being taken down
            return
        state = self.state
        self._news.look(time.monotonic())
        if not state.paused or not isinstance(self.screen, LiveScreen):
            changed = state.board.apply(state.link.take())
        else:
            changed = False
        if not self._who_asked and state.board.latest.role not in (CoreRole.STARTING, CoreRole.FAILED):
            self._who_asked = True
            self.run_worker(self._who())
        self._news.tell()
        self._notice_reading()
        self._call_for_attention()
        # under the palette the table goes on
        screen = self.screen if isinstance(self.screen, ConsoleScreen) else self._live
        if screen is not None and screen.ready:
            screen.tick(state.now(), changed)
        self._keep_changes()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key):
            self.state.key_pressed(line_shown=isinstance(self.screen, ConsoleScreen) and self.screen.says)
        await super().on_event(event)

    def _call_for_attention(self) -> None:
        """The terminal's title says how many wait, the bell that one came; a terminal that is stalled gets neither."""
        driver, said = self._guard_driver, self._attention
        if driver is None or driver.unread or not self.state.board.latest.loaded:
            return
        if said.rings(self.state.board.wanted(), time.monotonic()):
            self.bell()
        shown = attention.title(self.state.board.waiting(self.state.now()).total)
        if said.title and driver.title != shown:
            driver.set_title(shown)

    def _notice_reading(self) -> None:
        """Whether somebody looks at what counts down."""
        reads = any(isinstance(each, ConsoleScreen) and each.reads for each in self.screen_stack)
        if reads is not self._reads:
            self._reads = reads
            self.state.reading(reads)

    def keep(self) -> None:
        """Remember where the operator is for the next start; the cursor at the end alone."""
        cursor = self._live.table.cursor_id if self._live is not None and self._live.ready else None
        memory.keep(self.state, self.home, cursor)

    def _keep_changes(self) -> None:
        """What was chosen survives a crash, too; a filter that is half typed is not chosen."""
        typing = self._live is not None and bool(self._live.mode)
        now = memory.snapshot(self.state, None)
        if now != self._kept and not typing:
            self._kept = now
            self.keep()

    def terminal_stalled(self, seconds: float) -> None:
        """Whoever looks must know how old what he saw was; once he pressed a key he does."""
        said = f"the terminal was stalled for {seconds:.0f} s; the core went on"
        self.state.say(said, "attention", Stays.UNTIL_A_KEY)

    async def _who(self) -> None:
        """Learn who sits here, and what a newcomer must be told once (a new home's public key)."""

        async def body(core: Any) -> tuple[Operator, tuple[str, ...], Any]:
            return core.actions.operator(), tuple(core.notices), core.config.screen

        try:
            self.state.operator, notices, screen = await self.state.link.ask(body)
        except PollconsoleError:
            self._who_asked = False
            return
        self._attention.bell = screen.bell
        self._attention.title = screen.title and attention.has_title()
        for notice in notices:
            self.state.say(notice, "held")

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_redraw(self) -> None:
        self.draw_all_anew()

    def action_ask_quit(self) -> None:
        self._quit_asked = time.monotonic()
        self.state.say(f"{self.state.keymap.shown('quit_now')} quits: {self.goes_on()}", "attention")
        if isinstance(self.screen, ConsoleScreen) and self.screen.ready:
            self.screen.tick(self.state.now(), False)

    def action_confirm_quit(self) -> None:
        if time.monotonic() - self._quit_asked <= QUIT_S:
            self.keep()
            self.exit(0)

    def why_not(self, action: str, screen: Screen[Any]) -> str | None:
        if action == "confirm_quit" and time.monotonic() - self._quit_asked > QUIT_S:
            return "ask to quit first"
        return super().why_not(action, screen)

    def action_help_quit(self) -> None:
        self.action_ask_quit()

    async def action_quit(self) -> None:
        self.action_ask_quit()

    def goes_on(self) -> str:
        """What stops and what goes on when this console ends (V3)."""
        board = self.state.board
        live = board.figures(self.state.now()).live
        count = f"{live:,} live wait{'s' * (live != 1)}"
        if board.latest.role is CoreRole.OWN:
            other = other_core(board.latest.beats, self.state.now())
            if other is not None:
                return f"its core stops; another core ({other.kind} {other.pid}) polls on with {count}"
            return f"its core stops, {count} stand still; jobs go on"
        if board.latest.role is CoreRole.ATTACHED:
            return f"another process goes on with {count}"
        return "nothing of the core runs here"

    # --- crashes ------------------------------------------------------------------------------------------------------

    def _fatal_error(self) -> None:
        """Instead of Textual's traceback with local variables: class, reference, a file without values."""
        error = self._exception or sys.exc_info()[1] or RuntimeError("unknown")
        self.crashed = error
        self._close_messages_no_wait()

    def panic(self, *renderables: Any) -> None:  # noqa: ARG002
        """Textual draws some errors itself, quoting what they hold: told like any other."""
        self._fatal_error()
