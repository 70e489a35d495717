"""The card after a cancel that did not end the job: the stronger one beside it, chosen by digit and letter."""

from __future__ import annotations

import pytest
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import choose, confirm, console, digit_of, open_card, screen_text, until
from tests.console.screens.test_screen_snapshots import check

from pollcore.escalation import Circumstances
from pollcore.facts import MINUTE, Instant

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
