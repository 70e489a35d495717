"""The note of a card: recorded with the decision, and never a way to one."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import (
    choose,
    confirm,
    console,
    lives_on,
    open_card,
    read_to_the_end,
    screen_text,
    until,
)
from tests.console.screens.test_screen_group import few
from tests.console.seed import HOSTILE
from textual import events

from pollconsole.console import ConsoleApp
from pollconsole.driver import HeadlessGuardDriver
from pollconsole.guard_facts import LETTER_POOL, State
from pollconsole.safe import safe
from pollconsole.screens.card import CardScreen
from pollconsole.screens.deciding import DecidingScreen
from pollconsole.screens.group import GroupScreen
from pollconsole.screens.live import LiveScreen
from pollconsole.screens.note import MAX_NOTE, Note
from pollconsole.widgets import LinesView

SPENT = "op-0000000a"
LONGER_THAN_ALL_QUIET_S = 0.4
"""The guard of these tests wants 0.12 s and 0.08 s."""


def driver(app: ConsoleApp) -> HeadlessGuardDriver:
    found = app._guard_driver
    assert isinstance(found, HeadlessGuardDriver)
    return found


def state(card: DecidingScreen) -> State:
    assert card._view is not None
    return card._view.state


async def writing(app: ConsoleApp, pilot: Any, card: DecidingScreen) -> None:
    await pilot.press("w")
    await until(pilot, lambda: card.note.writing, "the note is open")


@pytest.mark.rule("A1", "G4")
async def test_what_was_written_stands_on_the_card_and_goes_with_the_decision(fake: FakeCore) -> None:
    async with console(fake.runner, size=(80, 40)) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        before = card.guarded._guard._card
        assert before is not None
        await writing(app, pilot, card)
        assert "nothing can be chosen while you write" in screen_text(app)
        assert "Enter keep the note" in screen_text(app)
        await pilot.press(*"the  team  said  so", "enter")
        await read_to_the_end(app, pilot, card)
        assert "Your note: the team said so" in screen_text(app)
        after = card.guarded._guard._card
        assert after is not None
        assert (after.card_digest, after.text_digest == before.text_digest) == (before.card_digest, False)
        await choose(app, pilot, card, "extend")
        await confirm(app, pilot, card)
    assert fake.actions.noted == ["the team said so"]


@pytest.mark.rule("A1")
async def test_without_a_note_a_decision_has_no_reason(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        await writing(app, pilot, card)
        await pilot.press("space", "enter")
        await read_to_the_end(app, pilot, card)
        await choose(app, pilot, card, "extend")
        await confirm(app, pilot, card)
    assert fake.actions.noted == [None]


@pytest.mark.rule("G3")
async def test_no_key_of_a_note_chooses_or_confirms_however_long_the_keyboard_is_quiet(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        await writing(app, pilot, card)
        for key in ("1", "2", *LETTER_POOL, "y"):
            await pilot.press(key)
            await lives_on(app, pilot, LONGER_THAN_ALL_QUIET_S / 2)
            assert app._guard_opened is None
            assert app._guard.state is State.CLOSED
        assert card.note._typed == f"12{LETTER_POOL}y"
        await pilot.press("escape")
        assert app.screen is card
        assert (card.note.text, card.note.writing) == ("", False)
        await read_to_the_end(app, pilot, card)
        assert card._view is not None
        assert card._view.step == 1
    assert fake.actions.decided == []


@pytest.mark.rule("G3")
@pytest.mark.parametrize("way", ["enter", "escape"])
async def test_keys_on_the_heels_of_a_note_meet_a_card_that_is_locked_anew(fake: FakeCore, way: str) -> None:
    async with console(fake.runner) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        marker = app._guard.marker
        await writing(app, pilot, card)
        await pilot.press(*"ok", way, "1", *LETTER_POOL, "1")
        assert app._guard.marker not in ("", marker)
        assert card._view is not None
        assert card._view.step == 1
        await lives_on(app, pilot, LONGER_THAN_ALL_QUIET_S)
        assert card._view.step == 1
        assert app.screen is card
    assert fake.actions.decided == []


@pytest.mark.rule("G3")
@pytest.mark.parametrize("seed", range(4))
async def test_whatever_bytes_come_while_a_note_is_written_nothing_is_decided(fake: FakeCore, seed: int) -> None:
    draw = random.Random(seed)
    pool = [*b"12345abdefhmuvwzyn \t\x7f\x15\x17", b"\x1b[A", b"\x1b[200~1\r1\x1b[201~", b"\x1b[50;3u", b"1\r"]
    async with console(fake.runner) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        for _ in range(40):
            if isinstance(app.screen, CardScreen) and not card.note.writing and app._guard.state is State.ARMED:
                driver(app).type_bytes(b"w")
            else:
                piece = draw.choice(pool)
                driver(app).type_bytes(piece if isinstance(piece, bytes) else bytes([piece]))
            await pilot.pause(draw.choice([0.0, 0.02, 0.05]))
    assert fake.actions.decided == []


@pytest.mark.rule("G3")
async def test_a_paste_is_text_of_the_note_and_its_line_ends_do_not_end_it(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        await writing(app, pilot, card)
        app.post_message(events.Paste("first\r\nsecond 1\x1b[2J\u202e"))
        await until(pilot, lambda: "second" in card.note._typed, "it is pasted")
        assert card.note.writing
        await pilot.press("enter")
        assert card.note.text == "first second 1[2J"
    assert fake.actions.decided == []


@pytest.mark.rule("G3")
async def test_w_writes_no_note_in_the_second_step_and_is_no_letter_that_confirms(fake: FakeCore) -> None:
    assert "w" not in LETTER_POOL
    async with console(fake.runner) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        await choose(app, pilot, card, "extend")
        await pilot.press("w")
        await until(pilot, lambda: card._view is not None and card._view.step == 1, "back to the first step")
        assert not card.note.writing
    assert fake.actions.decided == []


async def test_a_console_that_only_looks_writes_no_note(fake: FakeCore) -> None:
    async with console(fake.runner, read_only=True) as (app, pilot):
        app.opens("card", SPENT)
        await until(pilot, lambda: isinstance(app.screen, CardScreen) and app.screen.shown, "the card")
        await pilot.press("w", "1")
        assert isinstance(app.screen, CardScreen)
        assert not app.screen.note.writing


@pytest.mark.rule("E7", "G8")
async def test_a_card_that_moves_waits_until_the_note_is_written_and_keeps_it(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        await writing(app, pilot, card)
        await pilot.press(*"half a ")
        row = fake.store.rows[SPENT]
        fake.store.put(msgspec.structs.replace(row, version=row.version + 1))
        await until(pilot, lambda: app.state.board.operations[SPENT].version > row.version, "it moved")
        await lives_on(app, pilot, LONGER_THAN_ALL_QUIET_S)
        assert card.note.writing
        await pilot.press(*"note", "enter")
        await until(pilot, lambda: card.shown and "drawn anew" in str(card.notice), "drawn anew")
        assert card.note.text == "half a note"
        await read_to_the_end(app, pilot, card)
        assert card.shown is not None
        assert card.shown.operation is not None
        assert card.shown.operation.version == row.version + 1


async def test_the_next_card_begins_without_a_note(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        app.opens("card", SPENT, (SPENT, "op-0000000b"))
        await until(pilot, lambda: isinstance(app.screen, CardScreen) and app.screen.shown, "the card")
        card = app.screen
        assert isinstance(card, CardScreen)
        await read_to_the_end(app, pilot, card)
        await writing(app, pilot, card)
        await pilot.press(*"mine", "enter")
        await read_to_the_end(app, pilot, card)
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: card.shown and card.operation_id == "op-0000000b", "the next card")
        assert card.note.text == ""


async def test_a_resize_while_a_note_is_written_opens_no_guard(fake: FakeCore) -> None:
    async with console(fake.runner, size=(80, 24)) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        await writing(app, pilot, card)
        await pilot.press(*"abc")
        await pilot.resize_terminal(100, 30)
        await until(pilot, lambda: card.size.width == 100, "it has the new size")
        await lives_on(app, pilot)
        assert app._guard_opened is None
        await pilot.press("1")
        assert card.note._typed == "abc1"


@pytest.mark.rule("A1", "E10")
async def test_the_note_of_a_card_of_many_is_recorded_for_each(fake: FakeCore) -> None:
    core = FakeCore(few())
    async with console(core.runner, size=(100, 50)) as (app, pilot):
        app.opens("group", "origin_down:https://acme")
        await until(pilot, lambda: isinstance(app.screen, GroupScreen) and app.screen.shown, "the card")
        card = app.screen
        assert isinstance(card, GroupScreen)
        await writing(app, pilot, card)
        await pilot.press(*"acme is back", "enter")
        await read_to_the_end(app, pilot, card)
        assert "Your note: acme is back" in screen_text(app)
        await pilot.press("1")
        await until(pilot, lambda: card._view and card._view.step == 2 and state(card) is State.ARMED, "step 2")
        assert card._view is not None
        await pilot.press(card._view.letter or "")
        await until(pilot, lambda: app.screen is not card, "carried out")
    assert core.actions.noted
    assert set(core.actions.noted) == {"acme is back"}


@pytest.mark.rule("G3")
async def test_letters_that_move_scroll_a_card_end_the_quiet_and_are_not_counted(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        body = card.query_one("#card", LinesView)
        end = body.scroll_offset.y
        assert end > 0
        for key, place in (("g", 0), ("j", 1), ("k", 0), ("G", end)):
            await until(pilot, lambda: state(card) is State.ARMED, "armed")
            quiet_since = app._guard._quiet_since
            await pilot.press(key)
            assert app._guard._quiet_since > quiet_since
            await until(pilot, lambda place=place: body.scroll_offset.y == place, f"{key} scrolls")  # type: ignore[misc]
        assert card._view is not None
        assert card._view.rejected_keys == 0
        await pilot.press("y")
        assert card._view.rejected_keys == 1


@pytest.mark.rule("G3")
async def test_over_a_card_there_is_no_palette(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        await writing(app, pilot, card)
        await pilot.press("ctrl+p", "colon")
        app.action_command_palette()
        await lives_on(app, pilot)
        assert app.screen is card
        await pilot.press("escape", "escape")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen), "left")


@pytest.mark.rule("G4")
@given(st.text(max_size=900) | st.just(HOSTILE * 30))
def test_a_note_is_harmless_short_and_drawn_as_it_is_recorded(pasted: str) -> None:
    note = Note()
    note.begin()
    note.paste(pasted)
    for character in pasted[:20]:
        note.type("x", character)
    note.end(keep=True)
    assert len(note.text) <= MAX_NOTE
    assert note.text.isprintable() or all(each == safe(each) for each in note.text)
    assert safe(note.text, MAX_NOTE) == note.text
    assert note.text == " ".join(note.text.split())
    if note.text:
        assert note.shown[1][1] == (note.text, "text")


def test_a_note_is_mended_and_left_as_it_was() -> None:
    note = Note()
    note.begin()
    for character in "two words here":
        note.type(character, character)
    note.type("ctrl+w", None)
    note.type("backspace", None)
    note.type("s", "s")
    note.end(keep=True)
    assert note.text == "two words"
    note.begin()
    note.type("ctrl+u", "\x15")
    note.end(keep=False)
    assert note.text == "two words"
