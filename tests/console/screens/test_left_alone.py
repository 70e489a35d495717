"""What whoever comes back to a console must find: who polls now, his note, and nothing that did not happen."""

from __future__ import annotations

import time

import msgspec
import pytest
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import (
    choose,
    confirm,
    console,
    last_message,
    lives_on,
    open_card,
    read_to_the_end,
    screen_text,
    until,
)
from tests.console.screens.test_screen_beside import Shown, beat, told
from tests.console.screens.test_screen_group import few
from tests.console.seed import MOMENT, operation

from pollconsole import row_columns, rows
from pollconsole.beats import is_polled, other_core
from pollconsole.console import ConsoleApp
from pollconsole.driver import HeadlessGuardDriver
from pollconsole.mailbox import CoreRole, Delta
from pollconsole.screens.card import CardScreen
from pollconsole.screens.group import GroupScreen
from pollconsole.state import YOUNG_S
from pollcore.facts import BootMs, Instant, Status
from pollcore.ports import Worker

SPENT = "op-0000000a"
GONE = "the core of run 9 is gone: this screen polls now; closing it stops the polling"
NOTE = "asked the team"


def age_messages(app: ConsoleApp) -> None:
    """All that was said, was said long ago."""
    said = app.state.messages
    for at, each in enumerate(said):
        said[at] = msgspec.structs.replace(each, said_s=time.monotonic() - 10 * YOUNG_S)


@pytest.mark.rule("V3", "O8")
async def test_a_core_that_went_is_told_until_somebody_has_seen_it(fake: FakeCore) -> None:
    fake.store.beats = [
        Worker(
            owner="other", pid=9, host="h", kind="run", started_at=MOMENT.wall, beat_at=MOMENT.wall,
            beat_boot=BootMs(MOMENT.boot), boot_id=MOMENT.boot_id,
        )
    ]  # fmt: skip
    async with console(fake.runner) as (app, pilot):
        await until(pilot, lambda: app._news._attached_to == 9, "attached")
        fake.clock.forward(60_000)
        await until(pilot, lambda: app.state.board.latest.role is CoreRole.OWN, "it polls")
        await until(pilot, lambda: GONE in " ".join(screen_text(app).split()) or GONE in last_message(app))
        age_messages(app)
        assert app.state.message is not None
        assert app.state.message.text == GONE
        await pilot.press("j")
        assert app.state.message is None
        assert [each.text for each in app.state.messages].count(GONE) == 1


@pytest.mark.rule("V3")
async def test_q_says_that_another_core_polls_on(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        await until(pilot, lambda: app.state.board.latest.beats, "this core beats")
        await until(pilot, lambda: app.state.board.latest.role is CoreRole.OWN, "it polls")
        latest = app.state.board.latest
        app.state.board.latest = msgspec.structs.replace(latest, beats=(*latest.beats, beat("console", 4711, 9_000)))
        assert app.goes_on() == "its core stops; another core (console 4711) polls on with 12 live waits"
        late = beat("console", 4711, 90_000)
        app.state.board.latest = msgspec.structs.replace(latest, beats=(*latest.beats, late))
        assert app.goes_on() == "its core stops, 12 live waits stand still; jobs go on"


@pytest.mark.rule("O8")
def test_where_no_core_lives_the_newest_beat_of_any_kind_is_named() -> None:
    beats = (beat("console", 12, 60_000), beat("run", 28_435, 279_000))
    said = told(Shown(role=CoreRole.READ_ONLY, beats=beats, read_s=time.monotonic()), 140)
    assert "console pid 12@ops2 60s" in said
    assert "nothing is polled" in said
    killed = msgspec.structs.replace(beat("run", 28_435, 3_000), gone=True)
    said = told(Shown(role=CoreRole.READ_ONLY, beats=(killed, beat("console", 12, 9_000))), 140)
    assert "console pid 12@ops2 9s" in said


@pytest.mark.rule("O8")
def test_a_core_counts_while_it_beats_and_is_not_proved_to_have_ended() -> None:
    young, late = beat("console", 12, 9_000), beat("run", 13, 90_000)
    assert other_core((young, late), MOMENT) == young
    assert other_core((msgspec.structs.replace(young, mine=True), late), MOMENT) is None
    assert is_polled(Delta(role=CoreRole.READ_ONLY, beats=(young,)), MOMENT)
    assert not is_polled(Delta(role=CoreRole.READ_ONLY, beats=(msgspec.structs.replace(young, gone=True),)), MOMENT)


@pytest.mark.rule("V1", "O8")
def test_a_request_that_is_due_goes_out_now_only_where_a_core_lives() -> None:
    due = msgspec.structs.replace(operation(7), status=Status.WAITING, next_poll_at=Instant(MOMENT.wall - 1))
    assert rows.next_span(due, MOMENT)[0] in ("now", "asking")
    assert rows.next_span(due, MOMENT, polled=False)[0] == "-"
    columns = row_columns.columns_for(80)
    assert [
        each for each, _ in rows.row(due, MOMENT, columns, asked=False, polled=False) if each.strip() == "now"
    ] == []


@pytest.mark.rule("A1")
async def test_a_note_is_there_again_when_its_card_is_opened_again_and_gone_once_it_is_recorded(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        await pilot.press("w", *NOTE, "enter")
        await until(pilot, lambda: card.note.text == NOTE, "the note is kept")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is not card, "the card is left")
        other = next(each for each in app.state.board.questions if each != SPENT)
        away = await open_card(app, pilot, other)
        assert away.note.text == ""
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is not away, "the other card is left")
        again = await open_card(app, pilot, SPENT)
        assert f"Your note: {NOTE}" in "\n".join(app.screen.query_one("#card").lines)  # type: ignore[attr-defined]
        await choose(app, pilot, again, "extend")
        await confirm(app, pilot, again)
        assert app.state.notes == {}
    assert fake.actions.noted == [NOTE]


@pytest.mark.rule("G7", "E3")
async def test_a_card_that_was_painted_is_told_to_be_seen_whatever_it_asks(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        await open_card(app, pilot, SPENT)
        question = fake.store.open[SPENT].escalation_id
        await until(pilot, lambda: fake.actions.looked == [(SPENT, question)], "it is told")
        await lives_on(app, pilot)
        assert fake.actions.looked == [(SPENT, question)]


@pytest.mark.rule("E10", "E3")
async def test_the_questions_of_a_group_card_are_told_to_be_seen() -> None:
    fake = FakeCore(few())
    cause = next(iter(fake.store.open.values())).cause
    async with console(fake.runner, size=(80, 40)) as (app, pilot):
        app.opens("group", cause)
        await until(pilot, lambda: isinstance(app.screen, GroupScreen) and app.screen.shown, "the card is there")
        asked = {(key, each.escalation_id) for key, each in fake.store.open.items() if each.cause == cause}
        await until(pilot, lambda: set(fake.actions.looked) == asked, "all are told")
        assert len(fake.actions.looked) == len(asked)


@pytest.mark.rule("E7")
async def test_the_operators_own_question_is_no_change_of_the_card_that_he_opened(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        board = app.state.board
        running = next(
            key for key, row in board.operations.items() if row.status is Status.WAITING and key not in board.questions
        )
        app.opens("question", running)
        await until(pilot, lambda: isinstance(app.screen, CardScreen) and app.screen.shown, "the card is there")
        card = app.screen
        assert isinstance(card, CardScreen)
        await until(pilot, lambda: running in board.questions, "the board knows it")
        await read_to_the_end(app, pilot, card)
        assert card.notice == ()
        assert "drawn anew" not in screen_text(app)


@pytest.mark.rule("V3")
async def test_only_an_answer_that_came_late_is_a_stall_and_it_is_told_until_the_next_key(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        driver = app._guard_driver
        assert isinstance(driver, HeadlessGuardDriver)
        before = [each.text for each in app.state.messages]
        now = driver.clock()
        app._flow._asked = now - 8.0
        driver.progressed, driver.progressed_at = True, now - 7.9
        app._is_behind(driver)  # the next frame, long after the answer
        await lives_on(app, pilot)
        assert [each.text for each in app.state.messages] == before
        app._flow._asked = now - 8.0
        driver.progressed, driver.progressed_at = True, now
        app._is_behind(driver)
        await until(pilot, lambda: app.state.message is not None and "stalled" in app.state.message.text, "it is told")
        assert app.state.message is not None
        assert app.state.message.text == "the terminal was stalled for 8 s; the core went on"
        await pilot.press("j")
        assert app.state.message is None or "stalled" not in app.state.message.text
