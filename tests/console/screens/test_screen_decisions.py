"""Decisions by digit and letter, through the real core, on a real store: what was shown is what took effect."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.console.screens.conftest import RealCore
from tests.console.screens.harness import choose, confirm, console, open_card, screen_text, until
from tests.console.seed import Seeded, operation

from pollcore.facts import MINUTE, ChoiceKind, EventName, Operation, Status

SIZE = (100, 60)
SPENT = "op-0000000a"
UNKNOWN = "op-0000000b"


async def decided(
    real: RealCore, operation_id: str, kind: str, label: str = ""
) -> tuple[Operation, Operation, list[Any], str]:
    """Open the card, choose, confirm; the record before and after, its events, and the screen."""
    await asyncio.to_thread(real.fill)
    async with console(real.runner, size=SIZE) as (app, pilot):
        before = app.state.board.operations[operation_id]
        card = await open_card(app, pilot, operation_id)
        await choose(app, pilot, card, kind, label)
        await confirm(app, pilot, card)
        board = app.state.board
        await until(pilot, lambda: not board.asked(board.operations[operation_id]), "the row wants nothing any more")
        await until(pilot, lambda: kind.replace("_", " ") in screen_text(app), "the screen says what was done")
        shown = screen_text(app)
    row = await asyncio.to_thread(real.read, lambda core: core.store.operation(operation_id))
    events = await asyncio.to_thread(real.read, lambda core: core.store.events(operation_id))
    return before, row, [event for _, event in events], shown


@pytest.mark.rule("V5", "G3", "E4")
async def test_an_extension_gives_exactly_the_limits_that_the_card_showed(real: RealCore) -> None:
    before, row, events, shown = await decided(real, SPENT, "extend", "extend 15 min / 4 checks")
    assert row.status is Status.WAITING
    assert row.max_status_requests == before.max_status_requests + 4
    assert row.deadline_at - before.deadline_at == 15 * MINUTE
    assert [e.event for e in events].count(EventName.GRANTED) == 1
    assert "extend 15 min / 4 checks" in shown


@pytest.mark.rule("V5", "G3")
async def test_a_hold_stops_requests_and_keeps_the_question_for_later(real: RealCore) -> None:
    _, row, _, _ = await decided(real, UNKNOWN, "hold")
    assert row.status is Status.HELD
    assert row.hold_until is not None
    assert [r for r in real.transport.sent if "exp_00b" in r.url] == []


@pytest.mark.rule("V5", "G3", "S2")
async def test_check_once_sends_one_request_and_goes_on_when_the_answer_is_known(real: RealCore) -> None:
    await asyncio.to_thread(real.fill)
    async with console(real.runner, size=SIZE) as (app, pilot):
        card = await open_card(app, pilot, UNKNOWN)
        await choose(app, pilot, card, "check_once")
        await confirm(app, pilot, card)
        board = app.state.board
        await until(pilot, lambda: board.operations[UNKNOWN].last_known_state == "running", "the answer is on the row")
        row = board.operations[UNKNOWN]
    assert row.status is Status.WAITING
    assert row.status_requests_used == 5
    assert len([r for r in real.transport.sent if "exp_00b" in r.url]) == 1


@pytest.mark.rule("V5", "E5", "G4")
async def test_a_cancel_shows_its_consequences_and_sends_one_cancel(real: RealCore) -> None:
    await asyncio.to_thread(real.fill)
    async with console(real.runner, size=SIZE) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        await choose(app, pilot, card, "cancel_at_provider")
        between = screen_text(app)
        await confirm(app, pilot, card)
    assert "The job stops; what it has computed so far is thrown away." in " ".join(between.split())
    posts = [r for r in real.transport.sent if r.method == "POST"]
    assert [r.url.rpartition("/v1/")[2] for r in posts] == ["jobs/exp_00a/cancel"]


@pytest.mark.rule("V5", "E8")
async def test_close_says_that_the_job_may_go_on_and_closes(real: RealCore) -> None:
    _, row, events, shown = await decided(real, SPENT, "close")
    assert row.status is Status.CLOSED
    assert EventName.CLOSED in [e.event for e in events]
    assert "the job may go on" in shown


@pytest.mark.rule("G4", "A1")
async def test_a_grant_keeps_who_decided_and_what_the_guard_measured(real: RealCore) -> None:
    _, _, events, _ = await decided(real, SPENT, "extend", "extend 15")
    granted = next(e for e in events if e.event is EventName.GRANTED)
    told = " ".join(granted.notes)
    assert granted.operator
    assert "step1_key 1" in told
    assert "step2_key" in told
    assert "quiet_ms" in told


@pytest.mark.rule("E7", "G4", "G8")
async def test_a_question_that_another_console_decided_is_refused_and_drawn_anew(real: RealCore) -> None:
    await asyncio.to_thread(real.fill)
    async with console(real.runner, size=SIZE) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        await choose(app, pilot, card, "extend", "extend 60")

        async def elsewhere(core: Any) -> Any:
            return await core.actions.lower(SPENT, ChoiceKind.CLOSE, "done by hand", "bo")

        await app.state.link.ask(elsewhere)
        letter = card._view.letter if card._view is not None else None
        if letter is not None:
            await pilot.press(letter)
        await until(pilot, lambda: "no question is open" in screen_text(app), "the card was drawn anew")
    row = await asyncio.to_thread(real.read, lambda core: core.store.operation(SPENT))
    assert row.status is Status.CLOSED
    assert row.max_status_requests == 12


@pytest.mark.rule("E7", "V5")
async def test_o_opens_the_question_on_a_running_operation_and_the_wait_goes_on(real: RealCore) -> None:
    await asyncio.to_thread(real.fill, lambda now: [Seeded(operation(1, now=now))])
    async with console(real.runner, size=SIZE) as (app, pilot):
        await pilot.press("o")
        await until(pilot, lambda: "operator_request" in screen_text(app), "the card is there")
        row = app.state.board.operations["op-00000001"]
    assert row.status is Status.WAITING
