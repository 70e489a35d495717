"""Every screen and every kind of card through every small size: none hangs, none breaks, none grows without end."""

from __future__ import annotations

import asyncio
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.console.screens.approval_seeds import CALL, FIRST_USE, MODE, SESSIONS, asking
from tests.console.screens.conftest import RealCore
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import console, until
from tests.console.seed import stopped
from textual.pilot import Pilot

from pollconsole import draw
from pollconsole.console import ConsoleApp
from pollconsole.screens.deciding import DecidingScreen
from pollconsole.screens.members import MembersScreen
from pollconsole.screens.providers import ContractScreen
from pollcore.facts import StopReason

WIDTHS = range(1, 41)
HEIGHTS = range(1, 13)
ONE_LIMIT_S = 30
"""How long one size may take; a hang takes for ever. No measure of speed."""
MAX_GROWTH = 300 * 1024
"""KiB that the process may grow by; a picture that repeats itself takes gigabytes."""
ASKS = (StopReason.CALL_APPROVAL, StopReason.SESSION_APPROVAL, StopReason.FIRST_USE, StopReason.MODE_CHANGE)
STOPS = [each for each in StopReason if each not in ASKS]
KEYS = ("E", "A", "K", "P", "V", "T", "question_mark", "M", "L", "comma", "colon", "t", "s", "slash")


@contextmanager
def no_hang(what: str) -> Iterator[None]:
    """Fail where the loop itself does not come back, which no timeout of the loop's can see."""

    def ring(*_: object) -> None:
        raise AssertionError(f"{what} did not come back within {ONE_LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(ONE_LIMIT_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


async def through_all_sizes(app: ConsoleApp, pilot: Pilot[Any], what: str) -> None:
    """Each width once and each height several times, the screen that stands there still the same at the end."""
    screen = app.screen
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for width in WIDTHS:
        height = HEIGHTS[(width * 5) % len(HEIGHTS)]
        with no_hang(f"{what} at {width}x{height}"):
            await pilot.resize_terminal(width, height)
    await pilot.resize_terminal(80, 24)
    assert app.screen is screen, what
    assert app._exception is None, what
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MAX_GROWTH, what


@pytest.mark.slow
@pytest.mark.rule("V1")
@pytest.mark.parametrize("key", ["", *KEYS])
async def test_every_screen_lives_through_every_small_size(real: RealCore, key: str) -> None:
    await asyncio.to_thread(real.fill)
    async with console(real.runner, home=real.home) as (app, pilot):
        if key:
            await pilot.press(key)
        await until(pilot, lambda: key in ("", "s", "slash") or app.screen is not app._live, f"{key} opens")
        await through_all_sizes(app, pilot, key or "the table")
        if key == "P":
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, ContractScreen), "a contract")
            await through_all_sizes(app, pilot, "a contract")


@pytest.mark.slow
@pytest.mark.rule("V1", "G4")
async def test_every_kind_of_card_lives_through_every_small_size() -> None:
    alone = [stopped(n, each, cause=f"cause {n}") for n, each in enumerate(STOPS, 1)]
    many = [stopped(n, StopReason.UNKNOWN_STATE, cause="odd") for n in range(100, 104)]
    core = asking(FakeCore([*alone, *many]))
    opened = [("card", each.operation.operation_id) for each in alone]
    opened += [("card", CALL), ("card", SESSIONS[0]), ("card", FIRST_USE), ("asked", MODE), ("group", "odd")]
    async with console(core.runner) as (app, pilot):
        for kind, which in opened:
            app.opens(kind, which)
            await until(pilot, lambda: isinstance(app.screen, DecidingScreen) and app.screen.shown, f"{kind} {which}")
            await through_all_sizes(app, pilot, f"{kind} {which}")
            if kind == "group":
                await pilot.press("l")
                await until(pilot, lambda: isinstance(app.screen, MembersScreen), "the list")
                await through_all_sizes(app, pilot, "the list")
            while (here := app.screen) is not app._live:
                await pilot.press("escape")
                await until(pilot, lambda here=here: app.screen is not here, "it closes")  # type: ignore[misc]
    assert core.actions.decided == []


@pytest.mark.parametrize("indent", [0, 1, 2, 4, 9, 21])
def test_wrapping_ends_at_every_width(indent: int) -> None:
    line = (
        ("Stopped because: ", "muted"),
        ("request_budget_exhausted, обработка 中文字 " * 3, "attention"),
        ("x" * 90, "text"),
    )
    for width in range(60):
        with no_hang(f"{width} cells, indented by {indent}"):
            assert draw.wrap(line, width, indent=indent)
