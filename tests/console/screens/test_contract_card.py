"""A card about a contract: its difference reads line by line, its text is one key away, what was read stays read."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs
from tests.console.screens.approval_seeds import CALL, FIRST_USE, asking
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import console, open_card, screen_text, until
from tests.console.seed import NOW, stopped
from textual.pilot import Pilot

from pollconsole import draw
from pollconsole.console import ConsoleApp
from pollconsole.guard_facts import State
from pollconsole.screens.card import CardScreen
from pollconsole.screens.card_lines import DIFFERENCE, further_lines
from pollconsole.screens.contract_card import ContractCard
from pollconsole.screens.text import MessagesScreen
from pollconsole.widgets import LinesView, OneLine
from pollcore.escalation import ChangedContract, Circumstances
from pollcore.facts import MINUTE, Instant, StopReason

UNKNOWN = "op-00000007"
ROWS = (
    "--- runs under",
    "+++ file",
    "@@ -1,2 +1,2 @@",
    "-running = []",
    '+running = ["odd"]',
    " a = 1",
    '+b = "two words"',
)


def unknown_state() -> FakeCore:
    stop = stopped(7, StopReason.UNKNOWN_STATE, deadline_at=Instant(NOW + 9 * MINUTE))
    core = FakeCore([stop])
    changed = ChangedContract(digest="9a" * 32, diff="\n".join(ROWS), knows_state=True)
    core.actions.facts[UNKNOWN] = Circumstances(changed_contract=changed)
    return core


def over(card: ContractCard, provider: str) -> None:
    """Any screen over the card: this core has no contract to read."""
    card.app.push_screen(MessagesScreen(card.state))


@pytest.mark.rule("S8", "G4")
@pytest.mark.parametrize("width", [77, 137])
def test_the_difference_of_a_contract_stands_last_one_line_a_line(width: int) -> None:
    pairs = [("Deadline:", "11:40:00 UTC"), *((DIFFERENCE, each) for each in ROWS), ("Contract:", "5f1d")]
    lines = [draw.plain(line) for line in further_lines(pairs, width)]
    assert lines[-len(ROWS) - 1] == "Contract difference: - what it runs under, + what the file says now"
    assert lines[-len(ROWS) :] == [f" {number} | {each}" for number, each in enumerate(ROWS, 1)]
    assert sum(DIFFERENCE in line for line in lines) == 1
    assert "Deadline:" in lines[0]
    assert "Contract: 5f1d" in lines[0]


@pytest.mark.rule("S8")
async def test_on_the_card_of_a_changed_contract_its_key_is_named_and_opens_it(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(CardScreen, "open_contract", lambda card, provider: opened.append(provider))
    async with console(unknown_state().runner) as (app, pilot):
        await open_card(app, pilot, UNKNOWN)
        assert "adopt" in " ".join(app.screen.query_one("#card", LinesView).lines)
        assert "t contract" in screen_text(app)
        await pilot.press("t")
        await until(pilot, lambda: opened == ["acme"], "its contract is opened")
    async with console(asking(FakeCore([])).runner) as (app, pilot):
        await open_card(app, pilot, CALL)
        assert "t contract" not in screen_text(app)


@pytest.mark.rule("G4", "G5", "X7")
async def test_reading_the_contract_keeps_the_card_and_what_was_read_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CardScreen, "open_contract", over)
    core = asking(FakeCore([]))
    async with console(core.runner) as (app, pilot):
        card = await open_card(app, pilot, FIRST_USE)
        shown, body = card.shown, card.query_one("#card", LinesView)
        assert body.max_scroll_y > 0, "it is longer than the screen"
        await _look(app, pilot, card)
        await until(pilot, lambda: card._view is not None and card._view.state is State.ARMED, "armed, without a key")
        assert card.shown is shown
        core.actions.facts[FIRST_USE] = structs.replace(core.actions.facts[FIRST_USE], contract_unseen=False)
        await _look(app, pilot, card)
        guard = card.query_one("#guard", OneLine)
        await until(pilot, lambda: "you have read the contract since" in guard.words, "the old mark is taken back")
        await until(pilot, lambda: card._view is not None and card._view.state is State.ARMED, "armed all the same")
        assert card.shown is shown


@pytest.mark.rule("G4", "G8")
async def test_a_card_that_offers_another_thing_after_its_contract_was_read_is_read_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CardScreen, "open_contract", over)
    core = unknown_state()
    async with console(core.runner) as (app, pilot):
        card = await open_card(app, pilot, UNKNOWN)
        shown = card.shown
        core.actions.facts[UNKNOWN] = Circumstances()
        await _look(app, pilot, card)
        await until(pilot, lambda: card.shown is not None and card.shown is not shown, "it is drawn anew")
        assert "adopt" not in " ".join(card.query_one("#card", LinesView).lines)


async def _look(app: ConsoleApp, pilot: Pilot[Any], card: CardScreen) -> None:
    await pilot.press("t")
    await until(pilot, lambda: isinstance(app.screen, MessagesScreen), "the text is over the card")
    await pilot.press("escape")
    await until(pilot, lambda: app.screen is card, "back")
