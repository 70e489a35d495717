"""A console in a Pilot test: quick guard times, a driver that keeps what was written, waits on conditions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from pollconsole.console import ConsoleApp
from pollconsole.core_thread import CoreRunner, CoreThread
from pollconsole.driver import HeadlessGuardDriver, headless_guard_driver
from pollconsole.guard_facts import GuardTimes, State
from pollconsole.screens.card import CardScreen
from pollconsole.screens.group import GroupScreen
from pollconsole.theme_choice import Colours
from pollconsole.widgets import LinesView

LIMIT_S = 20.0
"""How long a condition may take before the test fails."""
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


async def lives_on(app: ConsoleApp, pilot: Pilot[Any], seconds: float = 0.3) -> None:
    """The app's own timers go on for *seconds*: for what must not happen. Turns are counted, not the time of this
    machine: a loaded one takes longer, and the app has as many chances to do what it must not."""
    turns: list[None] = []
    timer = app.set_interval(TURN_S, lambda: turns.append(None))
    await until(pilot, lambda: len(turns) * TURN_S >= seconds, "the app lives on")
    timer.stop()


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
        with headless_guard_driver(RecordingDriver):
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
    """Page down until the guard has seen every line."""
    await page_down(app, pilot, card)
    await until(pilot, lambda: card._view is not None and card._view.state is State.ARMED, "the card is armed")


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
