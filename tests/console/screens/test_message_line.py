"""The message line: what was said ends by its age or with another screen, and stands there whole while it stands."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import console, screen_text, until
from tests.console.seed import MOMENT, operation, stopped

from pollconsole import draw, rows
from pollconsole.console import ConsoleApp
from pollconsole.screens.detail import DetailScreen
from pollconsole.screens.live import LiveScreen
from pollconsole.screens.queue import QueueScreen
from pollconsole.state import GLIMPSE_S, YOUNG_S, Stays
from pollconsole.widgets import MAX_SAID, SaidLine
from pollcore.facts import Status, StopReason

SAID = "New: calls"
SPENT = "op-0000000a"
PATH = Path("/tmp/pollconsole-demo-1a2b3c4d/exports/operations-20260302T110000Z.jsonl")


def age(app: ConsoleApp, seconds: float) -> None:
    """All that was said, was said so long ago."""
    said = app.state.messages
    for at, each in enumerate(said):
        said[at] = msgspec.structs.replace(each, said_s=time.monotonic() - seconds)


@pytest.mark.rule("V4")
@pytest.mark.parametrize("key", ["E", "enter"])
async def test_another_screen_ends_what_was_said_before_it_was_opened(fake: FakeCore, key: str) -> None:
    async with console(fake.runner) as (app, pilot):
        app.state.say(SAID)
        await until(pilot, lambda: SAID in screen_text(app), "it is said")
        age(app, GLIMPSE_S + 0.1)
        await pilot.press(key)
        opened = QueueScreen if key == "E" else DetailScreen
        await until(pilot, lambda: isinstance(app.screen, opened) and app.screen.ready, "another screen is open")
        await until(pilot, lambda: SAID not in screen_text(app), "it ended")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen), "back at the table")
        assert SAID not in screen_text(app)
        assert app.state.messages[-1].text == SAID, "the list of messages keeps it"


@pytest.mark.rule("V4")
async def test_the_queue_lets_an_old_message_go(fake: FakeCore) -> None:
    with fake.store.lock:
        fake.store.open.clear()
    async with console(fake.runner) as (app, pilot):
        await pilot.press("E")
        await until(pilot, lambda: "nothing waits here" in screen_text(app), "the queue is empty")
        app.state.say(SAID)
        await until(pilot, lambda: SAID in screen_text(app), "it is said")
        age(app, YOUNG_S + 1)
        await until(pilot, lambda: SAID not in screen_text(app), "it ended")


@pytest.mark.rule("V4")
async def test_a_message_that_must_be_seen_outlasts_a_screen_until_a_key_is_pressed_where_it_stands(
    fake: FakeCore,
) -> None:
    async with console(fake.runner) as (app, pilot):
        await pilot.press("E")
        await until(pilot, lambda: isinstance(app.screen, QueueScreen) and app.screen.ready, "the queue is open")
        app.state.say(SAID, stays=Stays.UNTIL_SEEN)
        age(app, YOUNG_S + 1)
        app.state.screen_opened()
        assert app.state.message is not None, "no key was pressed: nobody has seen it"
        await pilot.press("j")
        assert app.state.message is None


@pytest.mark.rule("V4")
async def test_at_eighty_columns_a_message_stands_whole_and_its_path_unbroken(fake: FakeCore) -> None:
    async with console(fake.runner, size=(80, 24)) as (app, pilot):
        app.state.home_lasts = False
        app.state.written("", "81 rows exported", PATH)
        await until(pilot, lambda: "copy it now" in screen_text(app), "it is said")
        await until(pilot, lambda: str(PATH) in screen_text(app), "the path has room")
        assert "M messages" in screen_text(app)
        age(app, YOUNG_S + 1)
        await pilot.press("j")
        await until(pilot, lambda: app.screen.query_one("#said", SaidLine).size.height == 1, "the rows have it back")


@pytest.mark.rule("V4")
@pytest.mark.parametrize("size", [(80, 24), (60, 20)])
async def test_a_message_that_is_longer_than_any_leaves_room_for_rows(fake: FakeCore, size: tuple[int, int]) -> None:
    async with console(fake.runner, size=size) as (app, pilot):
        app.state.say("word " * 80)
        await until(pilot, lambda: app.screen.query_one("#said", SaidLine).size.height > 1, "it is said")
        assert app.screen.query_one("#said", SaidLine).size.height <= MAX_SAID
        assert app.screen.query_one("#rows").size.height > MAX_SAID


@pytest.mark.rule("V1", "V4")
@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
async def test_a_decision_stands_behind_the_reason_of_a_stop_and_never_in_its_place(
    fake: FakeCore, size: tuple[int, int]
) -> None:
    async with console(fake.runner, size=size) as (app, pilot):
        app.state.did("op-0000000a", "check once")
        said = "request_budget_exhausted; decided: check once"
        await until(pilot, lambda: said in app.screen.query_one("#said", SaidLine).words, "both stand there")
    waits = rows.note_spans(operation(1), MOMENT, False, "extend 15 min")
    assert draw.plain(waits) == "extend 15 min", "nothing stopped: who set the delay is told by the detail"
    stop = stopped(2, StopReason.JOB_FAILED, Status.FAILED)
    assert draw.plain(rows.note_spans(stop.operation, MOMENT, False, "close")) == "job_failed; decided: close"
