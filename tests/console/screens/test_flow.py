"""A terminal that is behind is not drawn for, catches up with the newest picture, and is told of; no key is lost."""

from __future__ import annotations

import pytest
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import RecordingDriver, console, lives_on, screen_text, until

from pollconsole.flow import ASK_EVERY_S, BEHIND_S, GIVE_UP_S, STALL_S, Flow

CELL = (7, 9)


def asked_at(flow: Flow, now: float) -> None:
    assert flow.wants_to_ask(now)
    flow.asked(CELL, now)


@pytest.mark.rule("V3")
def test_a_terminal_that_answers_is_asked_again_only_after_a_while() -> None:
    flow = Flow()
    asked_at(flow, 100.0)
    assert not flow.wants_to_ask(100.0 + ASK_EVERY_S)
    assert flow.answered(100.2) == 0.0
    assert not flow.wants_to_ask(100.3)
    assert flow.wants_to_ask(100.0 + ASK_EVERY_S)


@pytest.mark.rule("V3")
def test_a_terminal_that_never_answered_is_never_waited_for() -> None:
    flow = Flow()
    asked_at(flow, 0.0)
    assert not any(flow.is_behind(at) for at in (BEHIND_S, 2 * BEHIND_S, GIVE_UP_S, 10 * GIVE_UP_S))


@pytest.mark.rule("V3")
def test_an_answer_that_is_out_stops_the_drawing_until_it_comes_and_a_long_silence_is_told_whole() -> None:
    flow = Flow()
    asked_at(flow, 0.0)
    flow.answered(0.1)
    asked_at(flow, 10.0)
    assert not flow.is_behind(10.0 + BEHIND_S)
    assert flow.is_behind(10.1 + BEHIND_S)
    assert not flow.is_behind(10.0 + GIVE_UP_S)  # an answer may be lost: one frame, one more question
    asked_at(flow, 10.0 + GIVE_UP_S)
    assert flow.is_behind(10.1 + BEHIND_S + GIVE_UP_S)
    assert flow.answered(40.0) == 30.0
    assert not flow.is_behind(41.0)


@pytest.mark.rule("V3")
def test_a_short_silence_is_not_worth_a_word() -> None:
    flow = Flow()
    asked_at(flow, 0.0)
    assert flow.answered(STALL_S) == 0.0


@pytest.mark.rule("V3", "V1")
async def test_while_the_terminal_takes_nothing_no_frame_is_queued_keys_count_and_the_newest_picture_comes_after(
    fake: FakeCore,
) -> None:
    async with console(fake.runner) as (app, pilot):
        await until(pilot, lambda: "op-00000001" in screen_text(app), "rows")
        driver = app._driver
        assert isinstance(driver, RecordingDriver)
        await lives_on(app, pilot)  # nothing of the start is still to be written
        stuck = type("Stuck", (RecordingDriver,), {"unread": property(lambda self: True)})
        driver.__class__ = stuck
        before, cursor = len(driver.frames), app.screen.query_one("#rows").cursor_id  # type: ignore[attr-defined]
        await pilot.press("j", "j", "slash", "b")
        await lives_on(app, pilot, 0.6)  # ticks go by
        assert driver.frames[before:] == []
        driver.__class__ = RecordingDriver
        await until(pilot, lambda: len(driver.frames) > before, "the picture")
        await until(pilot, lambda: "b_" in "".join(driver.frames[before:]) + screen_text(app), "what was typed")
        assert app.screen.query_one("#rows").cursor_id != cursor  # type: ignore[attr-defined]


@pytest.mark.rule("V3")
@pytest.mark.parametrize(("keys", "needle"), [(b"/ab", "ab"), (b"/q", "q"), (b"sn/x", "x")])
async def test_keys_that_came_in_one_read_mean_what_they_would_have_meant_one_by_one(
    fake: FakeCore, keys: bytes, needle: str
) -> None:
    """As after a stall, or over a slow line: the letter behind `/` is typed, not lost and not a command."""
    async with console(fake.runner) as (app, pilot):
        await until(pilot, lambda: "op-00000001" in screen_text(app), "rows")
        app._driver.type_bytes(keys)  # type: ignore[union-attr]
        await until(pilot, lambda: app.state.needle == needle, f"{needle} is looked for")
