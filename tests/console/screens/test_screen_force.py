"""The card after a cancel that did not end the job: the stronger one beside it, chosen by digit and letter."""

from __future__ import annotations

import msgspec
import pytest
from tests.console.screens import fakes
from tests.console.screens.fakes import POLICY, FakeCore
from tests.console.screens.harness import choose, confirm, console, digit_of, open_card, screen_text, until
from tests.console.screens.test_screen_snapshots import check

from pollconsole.screens.deciding import AGED
from pollconsole.widgets import LinesView, OneLine
from pollcore.escalation import Circumstances
from pollcore.facts import MINUTE, ForceCancel, Instant

OPERATION = "op-0000000a"
LABEL = "force-cancel"


def after_a_cancel(fake: FakeCore) -> None:
    at = Instant(fake.clock.now().wall - 3 * MINUTE)
    fake.actions.facts[OPERATION] = Circumstances(
        cancel_sent_at=at, cancel_outcome="done", cancels_taken=((at, "done"),)
    )


@pytest.mark.rule("E3", "E5", "G3", "G4")
@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
async def test_the_card_looks_as_drawn_before_and_between_the_keys(fake: FakeCore, size: tuple[int, int]) -> None:
    after_a_cancel(fake)
    async with console(fake.runner, size=size) as (app, pilot):
        card = await open_card(app, pilot, OPERATION)
        await check(app, pilot, f"force-card-{size[0]}x{size[1]}")
        await choose(app, pilot, card, "cancel_at_provider", LABEL)
        await check(app, pilot, f"force-confirm-{size[0]}x{size[1]}")
        assert "killed" in screen_text(app), "its consequences stand between the two keys"
        assert fake.actions.decided == []
        await confirm(app, pilot, card)
        ((operation_id, kind, _),) = fake.actions.decided
        assert (operation_id, kind) == (OPERATION, "cancel_at_provider")


@pytest.mark.rule("G3", "G4")
async def test_its_digit_is_not_the_cancels_and_enter_grants_neither(fake: FakeCore) -> None:
    after_a_cancel(fake)
    async with console(fake.runner) as (app, pilot):
        card = await open_card(app, pilot, OPERATION)
        plain = digit_of(card, "cancel_at_provider", "cancel at")
        force = digit_of(card, "cancel_at_provider", LABEL)
        assert int(force) == int(plain) + 1
        await choose(app, pilot, card, "cancel_at_provider", LABEL)
        await pilot.press("enter", "space")
        await until(pilot, lambda: card._view is not None and card._view.rejected_keys, "the keys were counted")
        assert fake.actions.decided == []


def after_a_cancel_whose_stronger_one_comes_later(fake: FakeCore, monkeypatch: pytest.MonkeyPatch) -> None:
    later = ForceCancel("The export is killed.", POLICY.force_cancel.confirm, after=5 * MINUTE)  # type: ignore[union-attr]
    monkeypatch.setattr(fakes, "POLICY", msgspec.structs.replace(POLICY, force_cancel=later))
    after_a_cancel(fake)


@pytest.mark.rule("E7", "G4", "G8")
async def test_when_its_time_comes_the_card_says_so_and_stands_still_until_its_own_key(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_a_cancel_whose_stronger_one_comes_later(fake, monkeypatch)
    async with console(fake.runner) as (app, pilot):
        card = await open_card(app, pilot, OPERATION)
        body = card.query_one("#card", LinesView)
        before, top = body.lines, body.scroll_offset.y
        assert any("not before" in line for line in before), "the stronger cancel cannot be chosen yet"
        assert not card.aged
        fake.clock.forward(3 * MINUTE)
        await until(pilot, lambda: AGED[0][0].strip() in screen_text(app), "the card says that time has changed it")
        assert (body.lines, body.scroll_offset.y) == (before, top), "and stands as it was drawn"
        assert "card " in card.query_one("#guard", OneLine).words, "beside the guard's state and marker"
        await pilot.press("r")
        await until(pilot, lambda: card.shown and not card.aged, "its own key draws it anew")
        await until(pilot, lambda: body.lines and body.lines != before, "as it is now")
        assert not any("not before" in line for line in body.lines)


@pytest.mark.rule("E7", "G4")
async def test_a_choice_of_a_card_that_time_has_changed_is_refused(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_a_cancel_whose_stronger_one_comes_later(fake, monkeypatch)
    async with console(fake.runner) as (app, pilot):
        card = await open_card(app, pilot, OPERATION)
        fake.clock.forward(3 * MINUTE)
        await until(pilot, lambda: card.aged, "it is known")
        await choose(app, pilot, card, "cancel_at_provider", "cancel at")
        assert card._view is not None
        assert card._view.letter is not None
        await pilot.press(card._view.letter)
        await until(pilot, lambda: "refused, nothing was done" in screen_text(app), "the refusal is told")
    assert fake.actions.decided == []
