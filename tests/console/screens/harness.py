"""A console in a Pilot test: quick guard times, a driver that keeps what was written, waits on conditions.

After a key the Pilot waits until this process takes little of the processor: on a loaded machine that is so in the
middle of the work, too. Here it waits until no message waits anywhere and all is laid out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from textual.app import App
from textual.pilot import Pilot

from pollconsole.console import ConsoleApp
from pollconsole.core_thread import CoreRunner, CoreThread
from pollconsole.driver import HeadlessGuardDriver, headless_guard_driver
from pollconsole.guard_facts import GuardTimes, State
from pollconsole.screens.card import CardScreen
from pollconsole.screens.group import GroupScreen
from pollconsole.theme_choice import Colours
from pollconsole.widgets import LinesView

LIMIT_S = 60.0
"""How long a condition may take before the test fails."""
REST_TURNS = 3
"""Turns of the loop, one after the other, in which nothing waits: what one of them began is seen in the next."""
LOOK_S = 0.002
PAGES = 40
TURN_S = 0.05

AnyCard = CardScreen | GroupScreen


class QuickApp(ConsoleApp):
    """The console with a guard that waits less; its rules are the same."""

    guard_times = GuardTimes(quiet=0.12, alone=0.05, quiet_again=0.08, stall=30.0)


class RecordingDriver(HeadlessGuardDriver):
    """Keeps all that the screens wrote, as it was before the driver's own wall."""

    frames: list[str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.frames = []
        super().__init__(*args, **kwargs)

    def write(self, data: str) -> None:
        self.frames.append(data)
        super().write(data)


async def until(pilot: Pilot[Any], condition: Callable[[], Any], what: str = "") -> None:
    """Let the app run until *condition* holds; fails after `LIMIT_S`."""
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end, f"did not happen within {LIMIT_S} s: {what or condition}"
        await pilot.pause(0.02)
    await settled(pilot.app)


async def settled(app: App[Any]) -> None:
    """Until every message is handled, and what it led to, and all is laid out. What a core answers may come later."""
    end, turns = time.monotonic() + LIMIT_S, 0
    while turns < REST_TURNS and app.is_running and app.screen_stack:
        assert time.monotonic() < end, f"the screen did not come to rest within {LIMIT_S} s"
        await Pilot(app)._wait_for_screen(LIMIT_S)
        turns = turns + 1 if _rests(app) else 0
        await asyncio.sleep(LOOK_S if turns == 0 else 0)


def _rests(app: App[Any]) -> bool:
    pumps = [app, *(pump for screen in app.screen_stack for pump in screen.walk_children(with_self=True))]
    if any(pump.message_queue_size or pump._pending_message or pump._next_callbacks for pump in pumps):
        return False
    return not app.screen_stack or not (app.screen._layout_required or app.screen._callbacks)


async def lives_on(app: ConsoleApp, pilot: Pilot[Any], seconds: float = 0.3) -> None:
    """The app's own timers go on for *seconds*: for what must not happen. Turns are counted, not the time of this
    machine: a loaded one takes longer, and the app has as many chances to do what it must not."""
    turns: list[None] = []
    timer = app.set_interval(TURN_S, lambda: turns.append(None))
    await until(pilot, lambda: len(turns) * TURN_S >= seconds, "the app lives on")
    timer.stop()


@contextmanager
def settling(app: App[Any]) -> Iterator[None]:
    """Whatever the Pilot does, it waits until *app* has settled."""

    async def wait(*_: float) -> None:
        await settled(app)

    with patch("textual.app.wait_for_idle", wait), patch("textual.pilot.wait_for_idle", wait):
        yield


@asynccontextmanager
async def console(
    runner: CoreRunner,
    *,
    size: tuple[int, int] = (80, 24),
    read_only: bool = False,
    home: Path | None = None,
    app_class: type[ConsoleApp] = QuickApp,
    colours: Colours | None = Colours.FULL,
) -> AsyncIterator[tuple[ConsoleApp, Pilot[Any]]]:
    """A running console whose first rows are on the screen. *colours*: None: as the environment says."""
    link = CoreThread(runner, read_only=read_only)
    link.start()
    app = app_class(link, title="prod", home=home, colours=colours)
    try:
        with headless_guard_driver(RecordingDriver), settling(app):
            async with app.run_test(size=size) as pilot:
                await until(pilot, lambda: app.state.board.latest.loaded and app.state.operator, "rows are loaded")
                await until(pilot, lambda: app._live is not None and app._live._seen_rows, "rows are painted")
                yield app, pilot
    finally:
        assert await asyncio.to_thread(link.stop), "the core did not end"


def screen_text(app: ConsoleApp) -> str:
    """The screen as lines of text."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips) + "\n"


def last_message(app: ConsoleApp) -> str:
    """The text of the newest message; empty: there is none."""
    return app.state.messages[-1].text if app.state.messages else ""


def written(app: ConsoleApp) -> str:
    """All that went to the terminal so far."""
    driver = app._guard_driver
    assert isinstance(driver, RecordingDriver)
    return "".join(driver.frames)


async def open_card(app: ConsoleApp, pilot: Pilot[Any], operation_id: str) -> CardScreen:
    """Open a card and read it to its end, as an operator must."""
    app.opens("card", operation_id)
    await until(pilot, lambda: isinstance(app.screen, CardScreen) and app.screen.shown, "the card is there")
    card = app.screen
    assert isinstance(card, CardScreen)
    await read_to_the_end(app, pilot, card)
    return card


async def read_to_the_end(app: ConsoleApp, pilot: Pilot[Any], card: AnyCard) -> None:
    """Page down until the guard has seen every line; again, if the card was drawn anew meanwhile."""
    body = card.query_one("#card", LinesView)

    def armed() -> bool:
        return card._view is not None and card._view.state is State.ARMED

    for _ in range(PAGES):
        await page_down(app, pilot, card)
        await until(pilot, lambda: armed() or not body.at_end, "the card is armed")
        if armed():
            return
    raise AssertionError(f"the card was drawn anew {PAGES} times")


async def page_down(app: ConsoleApp, pilot: Pilot[Any], card: AnyCard) -> None:
    """To the end of a card, each page written to the terminal before the next key."""
    body = card.query_one("#card", LinesView)
    await until(pilot, lambda: body.lines and body.size.height, "it is laid out")
    for _ in range(PAGES):
        if body.at_end:
            break
        top, pages = body.scroll_offset.y, len(written(app))
        await pilot.press("pagedown")
        await until(pilot, lambda top=top: body.scroll_offset.y > top, "it scrolled")  # type: ignore[misc]
        await until(pilot, lambda pages=pages: len(written(app)) > pages, "it is written")  # type: ignore[misc]
        await pilot.pause()


def digit_of(card: AnyCard, kind: str, label: str = "") -> str:
    """The digit of a choice."""
    assert card.shown is not None
    return next(c.key for c in card.shown.card.choices if c.kind.value == kind and c.label.startswith(label))


async def choose(app: ConsoleApp, pilot: Pilot[Any], card: AnyCard, kind: str, label: str = "") -> None:
    """The first key: a digit on an armed card, until the letter is asked for."""
    await pilot.press(digit_of(card, kind, label))
    await until(
        pilot,
        lambda: card._view is not None and card._view.step == 2 and card._view.state is State.ARMED,
        "the second step is armed",
    )


async def confirm(app: ConsoleApp, pilot: Pilot[Any], card: AnyCard) -> None:
    """The second key: the letter that the card shows, until the card is gone."""
    assert card._view is not None
    assert card._view.letter is not None
    await pilot.press(card._view.letter)
    await until(pilot, lambda: app.screen is not card, "the decision was carried out")
