"""The app: a crash of the screen leaves the core alone and shows no values; quitting says what goes on."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import LIMIT_S, QuickApp, console, screen_text, until

from pollconsole import app as console_app
from pollconsole import crash
from pollconsole.app import run_app
from pollconsole.console import ConsoleApp
from pollconsole.core_thread import CoreThread
from pollconsole.draw import plain
from pollconsole.key_names import shown
from pollconsole.mailbox import CoreRole
from pollconsole.screens.live import LiveScreen
from pollconsole.screens.text import HelpScreen
from pollcore.facts import Refused

CANARY = "tok-canary-31337"


class Fragile(QuickApp):
    """A console whose table breaks when told to, with a secret in a local variable."""

    breaks = False

    def _tick(self) -> None:
        secret = CANARY
        if self.breaks:
            raise ValueError(f"cannot draw {secret}")
        super()._tick()


@pytest.mark.rule("V3", "K1")
async def test_a_crash_of_the_screen_does_not_stop_the_core_and_shows_no_values(
    fake: FakeCore, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    crashed: list[BaseException] = []
    turns = 0
    with pytest.raises(ValueError, match="cannot draw"):  # noqa: PT012 (Pilot raises it again at its end)
        async with console(fake.runner, app_class=Fragile) as (app, pilot):
            assert isinstance(app, Fragile)
            link = app.state.link
            app.breaks = True
            await until(pilot, lambda: app.crashed is not None, "the screen broke")
            assert app.crashed is not None
            crashed.append(app.crashed)
            turns = fake.polling.turns
            assert link.alive
            end = time.monotonic() + LIMIT_S
            while fake.polling.turns <= turns + 3 and time.monotonic() < end:
                await pilot.pause(0.02)
            assert fake.polling.turns > turns + 3
    reference, path = crash.record(crashed[0], tmp_path)
    assert path is not None
    assert path.stat().st_mode & 0o777 == 0o600
    told = crash.told(crashed[0], reference, path)
    for text in (told, path.read_text("utf-8"), *capfd.readouterr()):
        assert CANARY not in text
    assert "ValueError" in told
    assert "_tick" in path.read_text("utf-8")


@pytest.mark.rule("V3")
def test_a_crashed_screen_is_started_again_over_the_running_core(
    fake: FakeCore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[list[str]] = []

    class Scripted(ConsoleApp):
        def run(self, *args: Any, **options: Any) -> Any:
            runs.append([message.text for message in self.state.messages])
            if len(runs) == 1:
                self.crashed = ValueError(CANARY)
            return 0

    monkeypatch.setattr(console_app, "ConsoleApp", Scripted)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert run_app(fake.runner, home=tmp_path) == 0
    assert len(runs) == 2
    assert runs[0] == []
    assert "the screen ended: ValueError, reference" in runs[1][0]
    assert runs[1][0].endswith("the core went on")
    assert CANARY not in runs[1][0]
    assert fake.polling.ended or fake.polling.turns == 0


@pytest.mark.rule("V3")
async def test_q_says_what_goes_on_and_only_q_then_shift_q_quits(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        await until(pilot, lambda: app.state.board.latest.role is CoreRole.OWN, "the core is ours")
        await pilot.press("Q")
        assert app.is_running
        await pilot.press("q")
        assert "Q quits: its core stops, 12 live waits stand still; jobs go on" in screen_text(app)
        await pilot.press("Q")
        await until(pilot, lambda: app._exit, "it quits")
        assert app.return_code == 0


@pytest.mark.rule("G3")
async def test_ctrl_c_and_ctrl_q_do_not_quit_by_themselves(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        await pilot.press("ctrl+c", "ctrl+q")
        assert app.is_running
        assert "Q quits" in app.state.messages[-1].text


@pytest.mark.rule("V3")
async def test_a_hangup_of_the_terminal_ends_the_screen_and_the_core_ends_cleanly(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        await until(pilot, lambda: fake.polling.turns > 0, "the core polls")
        os.kill(os.getpid(), signal.SIGHUP)
        await until(pilot, lambda: app.terminal_gone, "the hang-up was seen")
    assert fake.polling.ended


@pytest.mark.rule("G3", "G5")
async def test_the_palette_offers_no_decision_and_no_screenshot(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, _):
        titles = {command.title for command in app.get_system_commands(app.screen)}
    assert {"Decisions", "Approvals", "Credentials", "Providers", "Messages", "Help", "Themes", "Quit"} <= titles
    assert not {title for title in titles if "creenshot" in title or "rant" in title or "pprove" in title}


async def test_the_help_lists_every_key_that_is_bound_and_those_of_the_screen_below_first(fake: FakeCore) -> None:
    async with console(fake.runner, size=(100, 60)) as (app, pilot):
        bound = {shown(key) for key in app.screen.active_bindings} - {"tab", "Tab", "shift+tab", "ctrl+c", "super+c"}
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen) and app.screen.ready, "the help is open")
        help_screen = app.screen
        assert isinstance(help_screen, HelpScreen)
        lines = [plain(line) for line in help_screen.content()]
        assert lines[0] == "Table"
        told = " ".join(lines)
        ranges = {str(number) for number in range(1, 8)} if "1 - 7" in told else set()
        assert {key for key in bound if key not in ranges and key not in told.split()} == set()
        for heading in ("Everywhere", "Detail", "Queue", "Audit", "Providers", "Credentials", "Card"):
            assert heading in lines
        await pilot.press("slash", *"queue", "enter")
        assert "of" in help_screen._place


async def test_the_theme_changes_at_once(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        assert isinstance(app.screen, LiveScreen)
        before = app.state.palette
        await pilot.press("T", "down")
        await until(pilot, lambda: app.theme == "pollconsole-light", "the next theme")
        await pilot.pause()
        assert app.state.palette is not before
        colours = {
            segment.style.bgcolor.triplet.hex
            for strip in app.screen._compositor.render_strips()
            for segment in strip
            if segment.style and segment.style.bgcolor and segment.style.bgcolor.triplet
        }
    assert "#f7f6f2" in colours
    assert "#12161b" not in colours


def test_a_dumb_terminal_is_refused_with_a_hint(fake: FakeCore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with pytest.raises(Refused, match="pollconsole list"):
        run_app(fake.runner)
    assert fake.polling.turns == 0


@pytest.mark.rule("G5")
async def test_the_status_line_says_that_the_gate_is_advisory_where_agents_share_the_user(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        assert "gate advisory" not in screen_text(app)
        app.state.operator = type(app.state.operator)("agent", "h", "t")  # type: ignore[misc]
        await until(pilot, lambda: "gate advisory" in screen_text(app), "it says so")


@pytest.mark.rule("O8")
async def test_the_status_line_shows_the_cores_heartbeat_and_what_is_wrong(fake: FakeCore) -> None:
    async with console(fake.runner, size=(120, 24)) as (app, pilot):
        await until(pilot, lambda: "ACTIVE  core 0s" in screen_text(app), "it beats")
        fake.polling.health = "the disk is full"
        await until(pilot, lambda: "NOTHING IS SENT: the disk is full" in screen_text(app), "it says so")


def test_a_link_that_never_started_can_be_stopped(fake: FakeCore) -> None:
    assert CoreThread(fake.runner).stop(0.1)
