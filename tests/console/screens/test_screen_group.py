"""The card of one cause: one row in the queue, one frozen list, one answer by digit and letter, and what came of it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from rich.cells import cell_len
from tests.console.screens.conftest import RealCore
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import (
    choose,
    confirm,
    console,
    lives_on,
    read_to_the_end,
    screen_text,
    until,
    written,
)
from tests.console.seed import HOSTILE, NOW, stopped
from tests.outage.made import CAUSE, outage, seed
from textual.pilot import Pilot

from pollconsole import draw
from pollconsole.approve import approve_group
from pollconsole.console import ConsoleApp
from pollconsole.screens.card import CardScreen
from pollconsole.screens.deciding import AGED
from pollconsole.screens.detail import DetailScreen
from pollconsole.screens.group import GroupScreen
from pollconsole.screens.members import MembersScreen, OutcomeScreen
from pollconsole.screens.queue import QueueScreen
from pollconsole.widgets import LinesView
from pollcore.facts import MINUTE, ChoiceKind, Instant, Status, StopReason

pytestmark = pytest.mark.slow

SHARED = "origin_down:https://acme"


def few(count: int = 4) -> list[Any]:
    """Stopped for one cause: the last one has used all its extensions."""
    rows = [
        stopped(
            n,
            StopReason.PROVIDER_FAILURE,
            cause=SHARED,
            transport_failures_used=3,
            deadline_at=Instant(NOW + n * MINUTE),
        )
        for n in range(1, count)
    ]
    last = stopped(
        count, StopReason.PROVIDER_FAILURE, cause=SHARED, transport_failures_used=3, extensions_used=3, label=HOSTILE
    )
    return [*rows, last, stopped(0x40, StopReason.JOB_FAILED, Status.FAILED, asked_ago=1_000)]


async def queue(app: ConsoleApp, pilot: Pilot[Any]) -> QueueScreen:
    await pilot.press("E")
    await until(pilot, lambda: isinstance(app.screen, QueueScreen) and app.screen.ready, "the queue is open")
    await until(pilot, lambda: app.screen.table.ids, "it is filled")  # type: ignore[attr-defined]
    assert isinstance(app.screen, QueueScreen)
    return app.screen


async def group_card(app: ConsoleApp, pilot: Pilot[Any]) -> GroupScreen:
    """Open the first row's card by Enter."""
    await queue(app, pilot)
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, GroupScreen) and app.screen.shown, "the group's card is there")
    assert isinstance(app.screen, GroupScreen)
    return app.screen


@pytest.mark.rule("E10", "V4")
async def test_a_cause_is_one_row_with_count_reason_oldest_and_who_ends_first() -> None:
    fake = FakeCore(few())
    async with console(fake.runner) as (app, pilot):
        assert "5 decisions on 2 cards waiting" in screen_text(app)
        screen = await queue(app, pilot)
        lines = [draw.plain(screen.table.line_of(each)) for each in screen.table.ids]
        assert len(lines) == 2
        assert " ".join(lines[0].split()).startswith("> 4 operations failures origin_down:http")
        assert lines[0].split()[-2:] == ["4:00", "1:00"]
        assert f"cause: {SHARED}" in screen_text(app)
        assert all(cell_len(line) <= 80 for line in lines)
        await pilot.press("down")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CardScreen), "one operation has its own card")


@pytest.mark.rule("E10", "E3", "G4")
async def test_a_groups_card_leaves_nothing_out_and_nothing_hostile_in() -> None:
    fake = FakeCore(few())
    async with console(fake.runner, size=(100, 70)) as (app, pilot):
        card = await group_card(app, pilot)
        assert card.shown is not None
        last = card.shown.card.lines[-1].text.split()[-1]
        await until(pilot, lambda: last in " ".join(screen_text(app).split()), "its last line is drawn")
        words = " ".join(screen_text(app).split())
        for line in card.shown.card.lines:
            assert " ".join(f"{line.label} {line.text}".split()) in words
        for option in card.shown.card.choices:
            assert option.label in words
            assert all(" ".join(detail.split()) in words for detail in option.details)
        assert "extend 15 min / 4 checks 3 of 4" in words
        assert "\x1b]52" not in written(app)


@pytest.mark.rule("E10", "G3", "G8")
async def test_digit_and_letter_give_one_answer_and_the_outcome_is_listed() -> None:
    fake = FakeCore(few())
    async with console(fake.runner) as (app, pilot):
        card = await group_card(app, pilot)
        await read_to_the_end(app, pilot, card)
        await choose(app, pilot, card, "extend")
        between = " ".join(screen_text(app).split())
        assert "This gives new authority to 3 of 4 operations: extend 15 min / 4 checks" in between
        assert "deadline 11:01:00 UTC to 11:03:00 UTC -> 11:16:00 UTC to 11:18:00 UTC" in between
        assert "the other 1 is not touched" in between
        assert fake.actions.decided == []
        # one of them moves between drawing and deciding
        row = fake.store.rows["op-00000002"]
        with fake.store.lock:
            fake.store.rows["op-00000002"] = msgspec.structs.replace(row, version=row.version + 1)
        await confirm(app, pilot, card)
        assert isinstance(app.screen, OutcomeScreen)
        await until(pilot, lambda: "op-00000002" in screen_text(app), "the outcome is there")
        told = screen_text(app)
        assert "2 operations" in told
        assert "it changed since the list was drawn" in told
        assert [line for line in told.splitlines() if line.strip() == "op-00000001"]
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, QueueScreen), "back in the queue")
        await until(pilot, lambda: "2 operations" in screen_text(app), "what was not done still waits")
    assert [(name, kind) for name, kind, _ in fake.actions.decided] == [
        ("op-00000001", "extend"),
        ("op-00000003", "extend"),
    ]
    assert len(str(fake.actions.decided[0][2]["step2_key"])) == 1
    assert fake.actions.threads == {"pollconsole-core"}


@pytest.mark.rule("G3", "G8", "E10")
@pytest.mark.parametrize("keys", [("escape",), ("enter",), ("y",), ("l", "escape"), ("1", "escape", "escape")])
async def test_no_other_key_decides_for_many(keys: tuple[str, ...]) -> None:
    fake = FakeCore(few())
    async with console(fake.runner, size=(100, 70)) as (app, pilot):
        card = await group_card(app, pilot)
        await read_to_the_end(app, pilot, card)
        for key in keys:
            await pilot.press(key)
            await lives_on(app, pilot)
        if app.screen is card:
            await pilot.press("escape")
        await until(pilot, lambda: app.screen is not card, "the card was left")
    assert fake.actions.decided == []
    assert len(fake.store.open) == 5


@pytest.mark.rule("E10", "G8")
async def test_the_list_is_frozen_says_what_moved_and_r_draws_it_anew() -> None:
    fake = FakeCore(few())
    async with console(fake.runner, size=(100, 70)) as (app, pilot):
        card = await group_card(app, pilot)
        first = card.shown
        assert first is not None
        row = fake.store.rows["op-00000001"]
        fake.store.put(msgspec.structs.replace(row, version=row.version + 1))
        late = stopped(0x60, StopReason.PROVIDER_FAILURE, cause=SHARED)
        fake.store.put(late.operation, late.question)
        await until(pilot, lambda: "1 moved, 1 joined since" in screen_text(app), "the head counts them")
        assert card.shown is first
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, MembersScreen), "the list is open")
        assert "1 of 4, frozen at 11:00:00 UTC" in screen_text(app)
        assert "op-00000060" not in screen_text(app)
        await pilot.press("end")
        await until(pilot, lambda: "cannot extend 15 min" in screen_text(app), "it says who differs in what")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, DetailScreen), "the record is open")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, MembersScreen), "back on the list")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is card, "back on the card")
        await pilot.press("r")
        await until(pilot, lambda: card.shown is not None and card.shown is not first, "the card was drawn anew")
        assert card.shown is not None
        assert card.shown.card.count == 5
        await read_to_the_end(app, pilot, card)
    assert fake.actions.decided == []


@pytest.mark.rule("E7", "E10", "G8")
async def test_a_groups_card_says_when_time_has_changed_it_and_stands_still() -> None:
    fake = FakeCore(few())
    async with console(fake.runner, size=(100, 70)) as (app, pilot):
        card = await group_card(app, pilot)
        await read_to_the_end(app, pilot, card)
        first, lines = card.shown, card.query_one("#card", LinesView).lines
        assert "left alone: nothing is sent, 1:00 left" in screen_text(app)
        fake.clock.forward(90_000)
        await until(pilot, lambda: AGED[0][0].strip() in screen_text(app), "a deadline has passed")
        assert (card.shown, card.query_one("#card", LinesView).lines) == (first, lines)
        await pilot.press("r")
        await until(pilot, lambda: card.shown is not None and card.shown is not first, "it was drawn anew")
        assert not card.aged
    assert fake.actions.decided == []


@pytest.mark.rule("E9", "E10")
async def test_inspect_on_a_groups_card_shows_the_list_and_decides_nothing() -> None:
    fake = FakeCore(few())
    async with console(fake.runner, size=(100, 70)) as (app, pilot):
        card = await group_card(app, pilot)
        await read_to_the_end(app, pilot, card)
        assert card.shown is not None
        await pilot.press(next(c.key for c in card.shown.card.choices if c.kind is ChoiceKind.INSPECT))
        await until(pilot, lambda: isinstance(app.screen, MembersScreen), "the list is open")
    assert fake.actions.decided == []


@pytest.mark.rule("E10", "E7")
async def test_a_cause_that_is_answered_meanwhile_says_so() -> None:
    fake = FakeCore(few())
    async with console(fake.runner) as (app, pilot):
        app.opens("group", "nothing:here")
        await until(pilot, lambda: "nothing is asked any more" in screen_text(app), "the card says so")
        await pilot.press("1")
        await lives_on(app, pilot)
    assert fake.actions.decided == []


@pytest.mark.rule("G3")
async def test_a_console_that_only_reads_shows_a_groups_card_and_never_arms() -> None:
    fake = FakeCore(few())
    async with console(fake.runner, size=(100, 70), read_only=True) as (app, pilot):
        await group_card(app, pilot)
        await until(pilot, lambda: "READ-ONLY" in screen_text(app), "the card says so")
        await pilot.press("1")
        await lives_on(app, pilot, 0.4)
    assert fake.actions.decided == []


@pytest.mark.rule("G3", "G5")
async def test_without_the_guards_evidence_no_answer_for_many_is_asked_of_the_core() -> None:
    fake = FakeCore(few())
    async with console(fake.runner) as (app, _):
        shown = await app.state.link.ask(lambda core: core.actions.group(SHARED))
        with pytest.raises(TypeError, match="evidence"):
            await approve_group(app.state.link, shown, {"choice": "1"})  # type: ignore[arg-type]
    assert fake.actions.decided == []


@pytest.mark.rule("E10", "G3", "V5")
async def test_three_thousand_stopped_by_one_outage_are_decided_by_two_keys_on_a_small_screen(real: RealCore) -> None:
    """The whole way over a real store: the queue's one row, the card, the list, two keys, the outcome."""

    def fill() -> None:
        real._open(lambda core: seed(core, outage(core.clock.now())))

    await asyncio.to_thread(fill)
    async with console(real.runner, size=(80, 24)) as (app, pilot):
        screen = await queue(app, pilot)
        await until(pilot, lambda: screen.table.ids == [f"cause {CAUSE}"], "one row")
        await until(pilot, lambda: "3,000 operations failures +1 more" in screen_text(app), "it is drawn")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, GroupScreen) and app.screen.shown, "the card is there")
        card = app.screen
        assert isinstance(card, GroupScreen)
        assert "3,000 operations, one cause" in screen_text(app)
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, MembersScreen) and app.screen.ready, "the list")
        await pilot.press("end")
        await until(pilot, lambda: "3,000 of 3,000, frozen at" in screen_text(app), "its end")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is card, "back on the card")
        await read_to_the_end(app, pilot, card)
        await choose(app, pilot, card, "extend")
        assert "new authority to 2,990 of 3,000 operations" in screen_text(app)
        await confirm(app, pilot, card)
        await until(pilot, lambda: isinstance(app.screen, OutcomeScreen), "the outcome")
        await until(pilot, lambda: "2,990 operations" in screen_text(app), "its figures")
        assert "Not offered this choice" in screen_text(app)
        await until(pilot, lambda: len(app.state.board.questions) == 10, "the board knows")
    left = await asyncio.to_thread(real.read, lambda core: core.store.asked())
    assert len(left) == 10
    assert real.transport.sent == [] or all(r.method == "GET" for r in real.transport.sent)
