"""Themes on a running console: the list, what is kept, what a bad file does, no colour where none is wanted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import console, lives_on, open_card, screen_text, until, written
from tests.console.seed import seeded
from textual.color import Color
from textual.command import CommandPalette

from pollconsole import theme_choice, themes
from pollconsole.console import ConsoleApp
from pollconsole.screens.live import LiveScreen
from pollconsole.screens.text import MessagesScreen
from pollconsole.theme_screen import ThemeScreen, samples
from pollconsole.themes import SHIPPED

COLOUR = re.compile(r"(?:^|;)(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;|$)")
SGR = re.compile(r"\x1b\[([0-9;]*)m")
MINE = 'extends = "light"\nabout = "my own"\n[roles]\nattention = "#7a1f5c"\n'


@pytest.fixture
def fake() -> FakeCore:
    return FakeCore(seeded())


@pytest.fixture(autouse=True)
def _colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLORTERM", "truecolor")


def ground(app: ConsoleApp) -> Color:
    return app.screen.styles.background


def coloured(app: ConsoleApp) -> list[str]:
    """The colour commands among all that was written."""
    return [found[1] for found in SGR.finditer(written(app)) if COLOUR.search(found[1])]


def shown_messages(app: ConsoleApp) -> list[str]:
    return [message.text for message in app.state.messages]


async def test_the_list_wears_what_the_cursor_is_on_and_enter_keeps_it_for_the_next_start(
    fake: FakeCore, tmp_path: Path
) -> None:
    async with console(fake.runner, home=tmp_path) as (app, pilot):
        assert app.worn.name == "dark"
        await pilot.press("T")
        assert isinstance(app.screen, ThemeScreen)
        await pilot.press("down")
        light = themes.shipped()[1]
        await until(pilot, lambda: ground(app) == light.background, "light is worn")
        assert app.state.palette is app.worn.palette
        await pilot.press("enter")
        assert isinstance(app.screen, LiveScreen)
        await until(pilot, lambda: ground(app) == light.background, "the table wears it, too")
    assert theme_choice.remembered(tmp_path) == "light"
    async with console(fake.runner, home=tmp_path) as (app, _):
        assert app.worn.name == "light"
        assert ground(app) == light.background


async def test_leaving_the_list_takes_the_old_theme_back_and_remembers_nothing(fake: FakeCore, tmp_path: Path) -> None:
    async with console(fake.runner, home=tmp_path) as (app, pilot):
        await pilot.press("T", "end")
        assert app.worn.name == SHIPPED[-1]
        await pilot.press("escape")
        assert app.worn.name == "dark"
        assert app.theme == app.worn.theme.name
        dark = themes.shipped()[0]
        await until(pilot, lambda: ground(app) == dark.background, "dark is worn again")
    assert theme_choice.remembered(tmp_path) is None


@pytest.mark.parametrize("size", [(80, 24), (140, 40), (60, 20)])
async def test_the_list_shows_every_theme_and_a_sample_of_every_role(fake: FakeCore, size: tuple[int, int]) -> None:
    async with console(fake.runner, size=size) as (app, pilot):
        await pilot.press("T")
        await until(pilot, lambda: "Enter keep it" in screen_text(app), "the list is drawn")
        await until(pilot, lambda: all(name in screen_text(app) for name in SHIPPED), "every theme")
        text = screen_text(app)
        assert all(name in text for name in SHIPPED)
        for word in ("~ waiting", "= held", "! escalated", "+ succeeded", "x failed", "ARMED", "Enter keep it", "Esc"):
            assert word in text
    drawn = {role for line, _ in samples() for _, role in line}
    assert drawn >= set(themes.ROLES) - {"title"}, "the cursor's name is drawn in it"
    assert {ground for _, ground in samples()} == {"", *themes.GROUNDS}


@pytest.mark.parametrize("name", SHIPPED)
async def test_every_theme_can_be_worn_on_every_kind_of_screen_and_under_the_palette(fake: FakeCore, name: str) -> None:
    async with console(fake.runner) as (app, pilot):
        app.wear(next(each for each in app.loaded_themes if each.name == name))
        await open_card(app, pilot, "op-0000000a")
        assert "ARMED" in screen_text(app)
        await pilot.press("escape", "question_mark", "escape", "E", "escape")
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, CommandPalette), "the palette is open")
        await until(pilot, lambda: "Approvals" in screen_text(app), "it lists what there is")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen), "the table is back")
        assert app.crashed is None
        assert "! escalated" in screen_text(app)


@pytest.mark.rule("G3")
async def test_the_list_does_not_open_over_a_card(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        card = await open_card(app, pilot, "op-0000000a")
        await pilot.press("T")
        app.action_themes()
        await lives_on(app, pilot)
        assert app.screen is card


async def test_a_bad_file_is_told_among_the_messages_and_the_console_runs_without_it(
    fake: FakeCore, tmp_path: Path
) -> None:
    (tmp_path / "themes").mkdir()
    (tmp_path / "themes" / "mine.toml").write_text(MINE)
    (tmp_path / "themes" / "bad.toml").write_text(MINE.replace("#7a1f5c", "#nope"))
    async with console(fake.runner, home=tmp_path) as (app, pilot):
        assert [each.name for each in app.loaded_themes] == [*SHIPPED, "mine"]
        said = next(each for each in shown_messages(app) if "bad.toml" in each)
        assert said.startswith("themes/bad.toml:4: roles.attention: ")
        await pilot.press("M")
        assert isinstance(app.screen, MessagesScreen)
        await pilot.press("escape", "T")
        (tmp_path / "themes" / "bad.toml").write_text(MINE.replace("my own", "mended"))
        await pilot.press("escape", "T", "end")
        assert app.worn.name == "mine"
        assert [each.name for each in app.loaded_themes][-2:] == ["bad", "mine"]
        assert app.crashed is None


async def test_a_file_that_is_edited_while_the_console_runs_is_worn_as_it_is_now(
    fake: FakeCore, tmp_path: Path
) -> None:
    path = tmp_path / "themes" / "mine.toml"
    path.parent.mkdir()
    path.write_text(MINE)
    async with console(fake.runner, home=tmp_path) as (app, pilot):
        await pilot.press("T", "end", "enter")
        assert ground(app) == Color.parse("#f7f6f2")
        path.write_text(MINE + '[colours]\nbackground = "#ffffff"\n')
        await pilot.press("T", "home", "end", "enter")
        await until(pilot, lambda: ground(app) == Color.parse("#ffffff"), "the new ground is there")


async def test_a_remembered_theme_that_is_gone_is_told_and_another_one_worn(fake: FakeCore, tmp_path: Path) -> None:
    theme_choice.remember(tmp_path, "gone")
    async with console(fake.runner, home=tmp_path) as (app, _):
        assert app.worn.name == "dark"
        assert any("'gone' is not there any more" in each for each in shown_messages(app))


@pytest.mark.rule("V1")
async def test_with_no_color_nothing_that_is_written_has_a_colour_and_every_state_is_still_told(
    fake: FakeCore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theme_choice.remember(tmp_path, "dark")
    monkeypatch.setenv("NO_COLOR", "1")
    async with console(fake.runner, home=tmp_path, colours=None) as (app, pilot):
        assert app.worn.name == "monochrome"
        text = screen_text(app)
        for word in ("~ waiting", "= held", "! escalated", "! failed", "waiting, first ends in"):
            assert word in text
        await open_card(app, pilot, "op-0000000a")
        assert "ARMED" in screen_text(app)
        await pilot.press("escape", "T")
        await until(pilot, lambda: "colours are off" in screen_text(app), "it is said")
        await pilot.press("escape")
        codes = {code for found in SGR.finditer(written(app)) for code in found[1].split(";")}
        assert coloured(app) == []
        assert {"1", "7"} <= codes, "weight and reverse are still there"


async def test_without_no_color_colours_are_written(fake: FakeCore) -> None:
    async with console(fake.runner, colours=None) as (app, pilot):
        assert app.worn.name == "dark"
        await until(pilot, lambda: coloured(app), "colours")
