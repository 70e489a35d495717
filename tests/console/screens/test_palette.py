"""The palette: every action of the screen below, those that cannot be used with the reason, none that decides."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import console, screen_text, until
from textual.app import SystemCommand
from textual.command import CommandPalette
from textual.screen import Screen

from pollconsole import bridge, help_keys
from pollconsole.console import ConsoleApp
from pollconsole.palette import NOT_NOW, UNKEYED, commands
from pollconsole.screens.card import CardScreen
from pollconsole.screens.detail import DetailScreen
from pollconsole.screens.live import LiveScreen
from pollconsole.screens.queue import QueueScreen

DECIDING = re.compile(r"\b(approve|decide|grant|extend|cancel|deny|reject|hold off|screenshot)\b", re.IGNORECASE)


def offered(app: ConsoleApp) -> dict[str, SystemCommand]:
    return {each.title: each for each in commands(app, app.screen)}


async def run(app: ConsoleApp, pilot: Any, title: str) -> None:
    await pilot.press("ctrl+p")
    await until(pilot, lambda: isinstance(app.screen, CommandPalette), "the palette is open")
    await pilot.press(*title.replace(" ", ""), "enter")
    await until(pilot, lambda: not isinstance(app.screen, CommandPalette), "it is closed")


@pytest.mark.rule("G3", "G5")
async def test_every_action_of_a_screen_is_offered_with_its_key_and_none_decides(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        for screen in (app.screen, DetailScreen(app.state, "op-0000000a"), QueueScreen(app.state, approvals=False)):
            if screen is not app.screen:
                app.push_screen(screen)
                await until(pilot, lambda screen=screen: screen.ready, "it is open")  # type: ignore[misc]
            found = offered(app)
            assert not [title for title in found if DECIDING.search(title)]
            for owner in (screen, app):
                for binding in help_keys.bindings(type(owner)):
                    name = binding.action.partition("(")[0]
                    assert hasattr(owner, f"action_{name}")
                    if name not in (*help_keys.MOVES, "command_palette"):
                        title = (binding.id or binding.description).replace("_", " ").capitalize()
                        assert {title, title + NOT_NOW} & set(found), title
            if screen is not app._live:
                app.pop_screen()
                await until(pilot, lambda: isinstance(app.screen, LiveScreen), "back")
        assert {title for title, _, _ in UNKEYED} <= set(offered(app))


async def test_a_command_runs_on_the_screen_below(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        await run(app, pilot, "Mark")
        await until(pilot, lambda: app.state.board.marked or app.state.view.value == "marked", "it ran")
        app.opens("detail", "op-0000000a")
        await until(pilot, lambda: isinstance(app.screen, DetailScreen) and app.screen.ready, "the detail")
        await run(app, pilot, "Question")
        await until(pilot, lambda: isinstance(app.screen, CardScreen) and app.screen.shown, "its card")


async def test_what_cannot_be_used_now_stays_and_says_why(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        found = offered(app)
        assert found["Unmark" + NOT_NOW].help == "nothing is marked"
        assert found["Next match" + NOT_NOW].help == "nothing was looked for yet"
        assert found["Quit now" + NOT_NOW].help == "ask to quit first"
        await run(app, pilot, "Unmark")
        assert app.state.messages[-1].text == "Unmark: nothing is marked"
        await pilot.press("space")
        assert "Unmark" in offered(app)
        await pilot.press("6", "g")
        live = app.screen
        assert isinstance(live, LiveScreen)
        await pilot.press("slash", *"closed", "enter")
        assert offered(app)["Question" + NOT_NOW].help == "it has ended, there is nothing to decide"
        await pilot.press("slash", *"nothing-like-it", "enter")
        assert offered(app)["Export" + NOT_NOW].help == "no row here"


async def test_a_console_that_only_looks_says_that_it_opens_no_question(fake: FakeCore) -> None:
    async with console(fake.runner, read_only=True) as (app, pilot):
        await pilot.press("slash", *"op:op-00000001", "enter")
        assert "started to look" in offered(app)["Question" + NOT_NOW].help


@pytest.mark.rule("G3")
async def test_a_card_and_what_lies_over_it_have_no_palette(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        app.opens("card", "op-0000000a")
        await until(pilot, lambda: isinstance(app.screen, CardScreen) and app.screen.shown, "the card")
        card = app.screen
        app.action_command_palette()
        await pilot.press("ctrl+p", "colon")
        assert app.screen is card
        assert list(commands(app, Screen())) == []


async def test_the_keys_in_force_stand_beside_the_commands(fake: FakeCore, tmp_path: Any) -> None:
    (tmp_path / "keys.toml").write_text('[keys]\nexport = ["f7", "ctrl+e"]\n', "utf-8")
    async with console(fake.runner, home=tmp_path, size=(100, 40)) as (app, pilot):
        assert offered(app)["Export"].help.startswith("F7 or ctrl+e  ")
        assert offered(app)["Detail"].help.startswith("Enter or t  ")
        await pilot.press("colon")
        await until(pilot, lambda: isinstance(app.screen, CommandPalette), "the palette is open")
        await until(pilot, lambda: "Copy id" in screen_text(app), "it lists")


@pytest.mark.parametrize(
    ("key", "refused"),
    [
        ("K", {"Open question": "no question is open", "End session": "it has no live session", "Copy all": "no row"}),
        ("P", {"Open row": "no row here", "Open question": "no question is open about this contract"}),
        ("V", {"Export audit": "this console was started to look", "Next match": "nothing was looked for yet"}),
        ("M", {"Next match": "nothing was looked for yet", "Previous match": "nothing was looked for yet"}),
        ("A", {"Open card": "no row here", "Queue detail": "no row here"}),
    ],
)
async def test_on_every_screen_what_cannot_be_used_stays_and_says_why(
    fake: FakeCore, key: str, refused: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(core: Any) -> list[Any]:
        return []

    async def no_chain(core: Any) -> bridge.ChainState:
        return bridge.ChainState()

    monkeypatch.setattr(bridge, "credential_views", nothing)
    monkeypatch.setattr(bridge, "contract_views", nothing)
    monkeypatch.setattr(bridge, "chain_state", no_chain)
    async with console(fake.runner, read_only=True) as (app, pilot):
        await pilot.press(key)
        await until(pilot, lambda: not isinstance(app.screen, LiveScreen) and app.screen.ready, "it is open")
        found = offered(app)
        for title, why in refused.items():
            assert why in found[title + NOT_NOW].help
            assert title not in found
        for binding in help_keys.bindings(type(app.screen)):
            name = binding.action.partition("(")[0]
            title = (binding.id or binding.description).replace("_", " ").capitalize()
            assert name in help_keys.MOVES or {title, title + NOT_NOW} & set(found), title
