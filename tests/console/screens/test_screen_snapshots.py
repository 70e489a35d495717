"""How the screens look, as text, at 80x24 and 140x40. `POLLCONSOLE_SNAPSHOTS=write` writes the pictures anew."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import choose, console, open_card, screen_text, until

from pollconsole.screens.card import CardScreen
from pollconsole.screens.story import StoryView

PICTURES = Path(__file__).parent / "pictures"
MARKER = re.compile(r"card \d{4}\.\d+")
LETTER = re.compile(r"press [a-z] to confirm")


def check(name: str, text: str) -> None:
    """Compare with the stored picture; the guard's chance is taken out."""
    text = LETTER.sub("press L to confirm", MARKER.sub("card 0000.0", text))
    path = PICTURES / f"{name}.txt"
    if os.environ.get("POLLCONSOLE_SNAPSHOTS") == "write":
        PICTURES.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


@pytest.mark.rule("V1", "V4")
@pytest.mark.parametrize("size", [(80, 24), (140, 40), (60, 20)])
async def test_the_table_looks_as_drawn(fake: FakeCore, size: tuple[int, int]) -> None:
    async with console(fake.runner, size=size) as (app, pilot):
        await until(pilot, lambda: "core 0s" in screen_text(app), "the core beats")
        side = app.screen.query_one(StoryView)
        await until(pilot, lambda: not side.display or len(side.lines) > 3, "the story is there")
        await pilot.pause(0.3)
        check(f"table-{size[0]}x{size[1]}", screen_text(app))


@pytest.mark.rule("V1", "V2")
@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
async def test_the_detail_looks_as_drawn(fake: FakeCore, size: tuple[int, int]) -> None:
    async with console(fake.runner, size=size) as (app, pilot):
        app.opens("detail", "op-0000000a")
        await until(pilot, lambda: "request budget exhausted" in screen_text(app), "the story is there")
        await until(pilot, lambda: " waits " in screen_text(app), "the chart is there")
        await pilot.pause(0.3)
        check(f"detail-{size[0]}x{size[1]}", screen_text(app))


@pytest.mark.rule("E3", "G3")
@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
async def test_the_card_looks_as_drawn_before_and_between_the_keys(fake: FakeCore, size: tuple[int, int]) -> None:
    async with console(fake.runner, size=size) as (app, pilot):
        card = await open_card(app, pilot, "op-0000000a")
        card.action_ends(0)
        await pilot.pause(0.2)
        assert isinstance(app.screen, CardScreen)
        check(f"card-{size[0]}x{size[1]}", screen_text(app))
        await choose(app, pilot, card, "extend", "extend 15")
        check(f"confirm-{size[0]}x{size[1]}", screen_text(app))
