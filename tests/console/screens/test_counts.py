"""Every count of the screen has one meaning: what a view says it holds is what it shows, and cards are counted once."""

from __future__ import annotations

import re

import msgspec
import pytest
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import console, screen_text, until
from tests.console.screens.test_screen_group import SHARED
from tests.console.seed import seeded, stopped

from pollconsole.board import View
from pollconsole.screens.card import CardScreen
from pollconsole.screens.live import LiveScreen
from pollconsole.screens.queue import QueueScreen
from pollcore.facts import Status, StopReason


def core_with_a_cause_of_many() -> FakeCore:
    many = [stopped(n, StopReason.PROVIDER_FAILURE, cause=SHARED, transport_failures_used=3) for n in range(50, 54)]
    return FakeCore([*seeded(), *many])


@pytest.mark.rule("V1", "V4")
async def test_each_view_shows_as_many_rows_as_it_says() -> None:
    async with console(core_with_a_cause_of_many().runner, size=(120, 40)) as (app, pilot):
        live = app.screen
        assert isinstance(live, LiveScreen)
        await pilot.press("space", "space")
        for number, view in enumerate(View, 1):
            await pilot.press(str(number))
            await until(pilot, lambda view=view: app.state.view is view, "the view")  # type: ignore[misc]
            said = re.search(rf"\[{view.value} ([\d,]+)\]", screen_text(app))
            assert said is not None
            assert int(said[1]) == len(live.table.ids), view


@pytest.mark.rule("V1")
async def test_a_filter_counts_within_its_view(fake: FakeCore) -> None:
    async with console(fake.runner, size=(120, 30)) as (app, pilot):
        live = app.screen
        assert isinstance(live, LiveScreen)
        await pilot.press("2")
        needing = len(live.table.ids)
        await pilot.press("slash", *"provider:bolt", "enter")
        assert f"{len(live.table.ids)} of {needing}  " in screen_text(app)
        assert 0 < len(live.table.ids) < needing


@pytest.mark.rule("V4", "E10")
async def test_the_strip_the_queue_and_the_card_count_the_same_cards() -> None:
    core = core_with_a_cause_of_many()
    async with console(core.runner, size=(120, 40)) as (app, pilot):
        waiting = app.state.board.waiting(app.state.now()).decisions
        assert f"{waiting.count} decisions on {waiting.cards} cards" in screen_text(app)
        await pilot.press("E")
        await until(pilot, lambda: isinstance(app.screen, QueueScreen) and app.screen.table.ids, "the queue")
        assert isinstance(app.screen, QueueScreen)
        assert len(app.screen.table.ids) == waiting.cards
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CardScreen) and app.screen.shown, "the card")
        card = app.screen
        assert isinstance(card, CardScreen)
        place = card.ids.index(card.operation_id) + 1
        await until(pilot, lambda: f"card {place} of {waiting.cards}" in screen_text(app), "the place")
        core.store.put(*_one_more())
        await until(pilot, lambda: f"card {place} of {waiting.cards + 1}" in screen_text(app), "one more waits")
        assert app.state.board.waiting(app.state.now()).decisions.cards == waiting.cards + 1


def _one_more() -> tuple[object, ...]:
    more = stopped(0x60, StopReason.JOB_FAILED, Status.FAILED, asked_ago=1)
    return more.operation, more.question


@pytest.mark.rule("V4")
async def test_what_was_decided_elsewhere_is_counted_by_no_one_any_more(fake: FakeCore) -> None:
    async with console(fake.runner, size=(120, 30)) as (app, pilot):
        before = app.state.board.needing()
        row = fake.store.rows["op-0000000a"]
        fake.store.put(msgspec.structs.replace(row, status=Status.CLOSED, version=row.version + 1), ask=True)
        await until(pilot, lambda: app.state.board.needing() == before - 1, "one less")
        await until(pilot, lambda: f"needs you {before - 1}" in screen_text(app), "the view says so")
        assert app.state.board.waiting(app.state.now()).total == before - 1


def test_marks_of_rows_that_are_gone_are_not_counted() -> None:
    from tests.console.screens.test_screen_pure import board_of

    board = board_of()
    board.marked |= {next(iter(board.operations)), "op-gone"}
    assert board.marked_here() == 1
