"""The guard inside a Textual app: what counts is what the driver's input thread read, whatever else the app is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.console.guard_example import ExampleApp
from textual import events
from textual.message import Message
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input, Static

from pollconsole.driver import GuardDriver, HeadlessGuardDriver, StampingDriver, TerminalGone, headless_guard_driver
from pollconsole.guard_card import GuardedCard
from pollconsole.guard_facts import GuardTimes, GuardView, State
from pollconsole.terminal_input import Parsed

pytestmark = pytest.mark.rule("G3")

LIMIT = 60.0
SHORT = GuardTimes(quiet=0.15, alone=0.05, quiet_again=0.1, fence=0.3, quiet_unanswered=0.3)


class QuickApp(ExampleApp):
    guard_times = SHORT


class WaitingApp(ExampleApp):
    """Awaits the terminal's answer longer than any machine stands still."""

    guard_times = GuardTimes(quiet=0.15, alone=0.05, quiet_again=0.1, fence=LIMIT, quiet_unanswered=0.3)


class Strict(HeadlessGuardDriver):
    """A driver whose pilot is no keyboard."""

    stamp_pilot = False


class Silent(HeadlessGuardDriver):
    """A terminal without a cursor report."""

    answer_fence = False


def keyboard(app: ExampleApp) -> HeadlessGuardDriver:
    driver = app._guard_driver
    assert isinstance(driver, HeadlessGuardDriver)
    return driver


def view(app: ExampleApp) -> GuardView:
    opened = app._guard_opened
    assert opened is not None
    assert opened.view is not None
    return opened.view


async def until(condition: Callable[[], bool], limit: float = LIMIT) -> None:
    async with asyncio.timeout(limit):
        while not condition():
            await asyncio.sleep(0.01)


async def until_state(app: ExampleApp, state: State, step: int = 1) -> None:
    await until(lambda: app._guard_opened is not None and (view(app).state, view(app).step) == (state, step))


@asynccontextmanager
async def disturbing(app: ExampleApp) -> AsyncIterator[None]:
    """What is done inside must end the armed state, though it may come back soon."""
    painted = len(app.views)
    yield
    await until(lambda: any(view.state is not State.ARMED for view in app.views[painted:]))


async def pass_time(app: ExampleApp) -> None:
    """Long enough for whatever was wrongly accepted to be decided: the guard is armed anew, or never was."""
    ticks = 0

    def count() -> None:
        nonlocal ticks
        ticks += 1

    timer = app.set_interval(SHORT.alone, count)
    await until(lambda: ticks >= 4)
    timer.stop()


@asynccontextmanager
async def running(
    driver: type[HeadlessGuardDriver] = HeadlessGuardDriver,
    *,
    lines: int = 3,
    size: tuple[int, int] = (100, 30),
    app_class: type[ExampleApp] = QuickApp,
) -> AsyncIterator[tuple[ExampleApp, Pilot[int]]]:
    with headless_guard_driver(driver):
        app = app_class(lines=lines)
        async with app.run_test(size=size) as pilot:
            app.action_open_card()
            await until(lambda: app._guard_opened is not None and app._guard_opened.view is not None)
            yield app, pilot
            if app.is_running:
                await pilot.pause()  # what was typed last is handled while there are screens


async def test_a_digit_and_the_shown_letter_decide_once() -> None:
    async with running() as (app, _):
        await until_state(app, State.ARMED)
        keyboard(app).type_bytes(b"1")
        await until_state(app, State.ARMED, 2)
        keyboard(app).type_bytes((view(app).letter or "").encode())
        await until(lambda: bool(app.evidence))
        record = app.evidence[0].record
        assert (record.choice, record.card_digest, len(app.evidence)) == ("1", "d1", 1)
        assert record.steps[0].fence_ms is not None
        await until(lambda: app._guard_opened is None)


async def test_the_pilot_can_press_keys_for_tests_of_screens() -> None:
    async with running() as (app, pilot):
        await until_state(app, State.ARMED)
        await pilot.press("1")
        await until_state(app, State.ARMED, 2)
        await pilot.press(view(app).letter or "")
        await until(lambda: bool(app.evidence))
        assert app.naive_approvals == 0


@pytest.mark.parametrize("way", ["simulate_key", "post", "pilot", "process_message", "forged stamp"])
async def test_a_key_that_no_keyboard_sent_decides_nothing(way: str) -> None:
    async with running(Strict) as (app, pilot):
        await until_state(app, State.ARMED)
        if way == "simulate_key":
            app.simulate_key("2")
        elif way == "post":
            app.post_message(events.Key("2", "2"))
        elif way == "pilot":
            await pilot.press("2")
        elif way == "process_message":
            keyboard(app).process_message(events.Key("2", "2"))
        else:
            key = events.Key("2", "2")
            key._pollconsole_stamp = object()  # type: ignore[attr-defined]
            app.post_message(key)
        await until(lambda: view(app).rejected_keys == 1)
        await pass_time(app)
        assert app.evidence == []


async def test_a_posted_paste_or_mouse_event_only_ends_the_quiet() -> None:
    async with running() as (app, pilot):
        await until_state(app, State.ARMED)
        async with disturbing(app):
            app.post_message(events.Paste("2"))
        await until_state(app, State.ARMED)
        async with disturbing(app):
            await pilot.click("#guard")
        assert app.evidence == []


@pytest.mark.parametrize(
    "data",
    [b"2\r", b"22", b"\x1b2", b"\x1b[50;3;50u", b"\x1b[200~2\x1b[201~", b"\x1b[200~x\x1b[201~2", b"\r", b" ", b"y"],
)
async def test_what_is_not_one_lone_digit_decides_nothing(data: bytes) -> None:
    async with running() as (app, _):
        await until_state(app, State.ARMED)
        async with disturbing(app):
            keyboard(app).type_bytes(data)
        await pass_time(app)
        assert (app.evidence, app.naive_approvals) == ([], 0)


async def test_the_name_of_a_key_counts_not_its_character() -> None:
    async with running() as (app, _):
        await until_state(app, State.ARMED)
        driver = keyboard(app)
        async with disturbing(app):
            driver._deliver([Parsed(events.Key("alt+2", "2"), isolated=True)], driver.clock())
        await pass_time(app)
        assert app.evidence == []


class Recording(HeadlessGuardDriver):
    """Keeps what it sends to the app."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.sent: list[Message] = []
        super().__init__(*args, **kwargs)

    def send_message(self, message: Message) -> None:
        self.sent.append(message)
        super().send_message(message)


async def test_the_mouse_does_not_reach_an_open_card_and_ends_the_quiet() -> None:
    async with running(Recording) as (app, _):
        await until_state(app, State.ARMED)
        keyboard(app).type_bytes(b"\x1b[<35;4;4M")
        async with disturbing(app):
            keyboard(app).type_bytes(b"\x1b[<0;4;4M\x1b[<0;4;4m")
        driver = keyboard(app)
        assert isinstance(driver, Recording)
        assert [message for message in driver.sent if isinstance(message, events.MouseEvent)] == []
        app.action_leave_card()
        await until(lambda: not driver.card_open)
        driver.type_bytes(b"\x1b[<0;4;4M")
        assert isinstance(driver.sent[-1], events.MouseDown)


async def test_bindings_of_the_app_do_not_see_the_keys_of_a_card() -> None:
    async with running() as (app, _):
        for key in (b"\r", b" ", b"y", b"Q", b"\x11", b"\x10"):
            keyboard(app).type_bytes(key)
        await until(lambda: view(app).rejected_keys == 6)
        assert app.is_running
        assert app.naive_approvals == 0
        assert len(app.screen_stack) == 2


@pytest.mark.rule("G8")
async def test_escape_leaves_the_card_and_decides_nothing() -> None:
    async with running() as (app, _):
        await until_state(app, State.ARMED)
        keyboard(app).type_bytes(b"2")
        keyboard(app).type_bytes(b"\x1b")
        await until(lambda: len(app.screen_stack) == 1 and app._guard_opened is None)
        assert app.evidence == []
        assert keyboard(app).card_open is False


async def test_escape_in_step_two_goes_back_to_step_one_only() -> None:
    async with running() as (app, _):
        await until_state(app, State.ARMED)
        keyboard(app).type_bytes(b"1")
        await until_state(app, State.ARMED, 2)
        keyboard(app).type_bytes(b"\x1b")
        await until(lambda: view(app).step == 1)
        assert len(app.screen_stack) == 2


async def test_inspect_needs_its_digit_alone() -> None:
    async with running() as (app, _):
        await until_state(app, State.ARMED)
        keyboard(app).type_bytes(b"3")
        await until(lambda: bool(app.inspected))
        assert app.evidence == []


@pytest.mark.rule("G4")
@pytest.mark.parametrize("size", [(79, 30), (100, 23)])
async def test_a_small_terminal_never_arms_and_says_why(size: tuple[int, int]) -> None:
    async with running(size=size) as (app, pilot):
        await until(lambda: view(app).message == "enlarge to 80x24")
        keyboard(app).type_bytes(b"2")
        await pass_time(app)
        assert (view(app).state, app.evidence) == (State.LOCKED, [])
        await pilot.resize_terminal(100, 30)
        await until_state(app, State.ARMED)


@pytest.mark.rule("G4")
async def test_a_long_card_arms_only_after_its_end_was_on_the_screen() -> None:
    async with running(lines=60) as (app, _):
        await until(lambda: "scroll to the end" in view(app).message)
        keyboard(app).type_bytes(b"2")
        await pass_time(app)
        assert (view(app).state, app.evidence) == (State.LOCKED, [])
        for _ in range(3):
            painted = len(app.views)
            keyboard(app).type_bytes(b"\x1b[6~")
            await until(lambda: len(app.views) > painted)  # noqa: B023
            if view(app).state is not State.LOCKED:
                break
        await until_state(app, State.ARMED)


@pytest.mark.rule("G4")
async def test_another_screen_on_top_or_a_focused_field_locks() -> None:
    async with running() as (app, _):
        await until_state(app, State.ARMED)
        await app.push_screen(Screen[None]())
        await until(lambda: view(app).message == "another window is on top")
        app.pop_screen()
        await until_state(app, State.ARMED)
        await app.screen.mount(Input())
        app.screen.query_one(Input).focus()
        await until(lambda: view(app).message == "an input field has the keyboard")
        assert app.evidence == []


async def test_a_resize_locks_until_the_card_was_painted_again() -> None:
    async with running() as (app, pilot):
        await until_state(app, State.ARMED)
        marker = view(app).marker
        await pilot.resize_terminal(110, 35)
        await until(lambda: view(app).marker != marker)
        await until_state(app, State.ARMED)
        assert keyboard(app).fences == 2


async def test_a_terminal_without_a_cursor_report_arms_late() -> None:
    async with running(Silent) as (app, _):
        await until_state(app, State.ARMED)
        keyboard(app).type_bytes(b"2")
        await until(lambda: bool(app.evidence))
        assert app.evidence[0].record.steps[0].fence_ms is None
        assert app.evidence[0].record.steps[0].quiet_ms >= 300


async def test_while_the_terminal_says_nothing_keys_are_only_counted() -> None:
    async with running(Silent, app_class=WaitingApp) as (app, _):
        await until(lambda: any(view.state is State.FENCING for view in app.views))
        keyboard(app).type_bytes(b"2")
        await until(lambda: view(app).rejected_keys == 1)
        assert app.evidence == []


async def test_stopping_and_going_on_locks() -> None:
    async with running() as (app, _):
        await until_state(app, State.ARMED)
        marker = view(app).marker
        keyboard(app).start_application_mode()
        await until(lambda: view(app).marker != marker)
        await until_state(app, State.ARMED)
        assert keyboard(app).fences == 2


async def test_an_odd_sequence_is_counted_and_ends_nothing() -> None:
    async with running() as (app, _):
        await until_state(app, State.ARMED)
        async with disturbing(app):
            keyboard(app).type_bytes(b"\x1b[97:65;2;65u")
        assert keyboard(app).dropped_sequences == 1
        assert app.is_running


async def test_notices_wait_until_the_card_is_closed() -> None:
    async with running() as (app, _):
        app.notify("something happened", markup=False)
        assert len(app._notifications) == 0
        app.action_leave_card()
        await until(lambda: len(app._notifications) == 1)


async def test_a_terminal_that_went_away_ends_the_app() -> None:
    async with running() as (app, _):
        keyboard(app).send_message(TerminalGone())
        await until(lambda: not app.is_running)
        assert app.return_code == 1


async def test_without_the_stamping_driver_nothing_arms() -> None:
    app = QuickApp()
    async with app.run_test(size=(100, 30)) as pilot:
        app.action_open_card()
        await until(lambda: app._guard_opened is not None and app._guard_opened.view is not None)
        await until(lambda: view(app).message == "this screen has no guarded keyboard")
        await pilot.press("2")
        await until(lambda: view(app).rejected_keys == 1)
        assert (view(app).state, app.evidence) == (State.LOCKED, [])


async def test_a_browser_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HeadlessGuardDriver, "is_web", True)
    async with running() as (app, _):
        await until(lambda: view(app).message == "a browser cannot approve; use a terminal")
        assert view(app).state is State.LOCKED


@pytest.mark.rule("G4")
async def test_the_driver_takes_apart_what_even_a_filter_let_through() -> None:
    async with running() as (app, _):
        written: list[str] = []
        driver = keyboard(app)
        driver.watch.wrote = written.append  # type: ignore[method-assign, assignment]
        driver.write("\x1b[1;1Hraw \x1b]52;c;aGk=\x07")
        assert written == ["\x1b[1;1Hraw ␛]52;c;aGk=�"]


@pytest.mark.rule("G4")
async def test_hostile_text_past_every_wall_reaches_the_terminal_as_text() -> None:
    async with running() as (app, _):
        written: list[str] = []
        driver = keyboard(app)
        driver.watch.wrote = written.append  # type: ignore[method-assign, assignment]
        app.screen.query_one("#text Static", Static).update("raw \x1b]52;c;aGk=\x07 \x1b[6n\x9b6n \u202e end")
        await until(lambda: any("end" in data for data in written))
        out = "".join(written)
        assert "\x1b]" not in out
        assert "[6n" in out
        assert "\x1b[6n" not in out
        assert "\x9b" not in out
        assert "\u202e" not in out


def test_no_variable_names_another_driver() -> None:
    assert ExampleApp().driver_class is GuardDriver
    assert issubclass(GuardDriver, StampingDriver)


def test_a_card_must_name_what_it_shows() -> None:
    with pytest.raises(ValueError, match="lines"):
        GuardedCard("d", (" ",), ())
