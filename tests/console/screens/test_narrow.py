"""Narrow terminals: whole words or none, the way out always, what hurries before what does not; and what a card says
happens if it is left alone."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from tests.console.screens.approval_seeds import asking
from tests.console.screens.fakes import OPERATOR, FakeCore
from tests.console.screens.harness import console, open_card, screen_text, until
from tests.console.seed import MOMENT, NOW, Seeded, stopped
from textual.pilot import Pilot

from pollconsole import bridge, draw
from pollconsole.board import View
from pollconsole.console import ConsoleApp
from pollconsole.mailbox import CoreRole, Delta
from pollconsole.screens.base import key_line, strip_line, waiting_line
from pollconsole.screens.card import CardScreen
from pollconsole.screens.expiring import alone_line, group_alone_line
from pollconsole.screens.live import LiveScreen
from pollconsole.screens.operation_table import view_lines
from pollconsole.screens.settings import setting_lines
from pollconsole.screens.status_line import head_lines
from pollconsole.state import State
from pollconsole.widgets import OneLine
from pollcore.facts import DAY, MINUTE, Instant, Status, StopReason

PAIRS = (("Enter", "detail"), ("o", "ask"), ("E", "decide"), ("/", "filter"), ("?", "help"), ("q", "quit"))
SIZES = [(40, 12), (60, 20), (80, 24)]


def state_of(*asked: Seeded) -> State:
    link = SimpleNamespace(now=lambda: MOMENT)
    state = State(link, None, title="demo x15", read_only=False)  # type: ignore[arg-type]
    board = state.board
    questions = tuple(each.question for each in asked if each.question)
    board.apply(
        Delta(operations=tuple(each.operation for each in asked), questions=questions, loaded=True, role=CoreRole.OWN)
    )
    return state


MANY = [stopped(n, StopReason.UNKNOWN_STATE, deadline_at=Instant(NOW + n * MINUTE)) for n in range(1, 9)]
MANY += [stopped(n, StopReason.FIRST_USE, deadline_at=Instant(NOW + n * MINUTE)) for n in range(10, 13)]


@given(st.integers(1, 120), st.integers(0, 2))
def test_the_last_line_holds_whole_keys_and_the_way_out(width: int, last: int) -> None:
    line = draw.plain(key_line(PAIRS, width, last))
    shown = [pair for pair in PAIRS if f"{pair[0]} {pair[1]}" in line]
    assert line == draw.plain(key_line(shown))
    assert shown[len(shown) - last :] == list(PAIRS[len(PAIRS) - last :])
    assert shown[: len(shown) - last] == list(PAIRS[: len(shown) - last]), "those that are left out stood last"
    assert cell_len(line) <= width or len(shown) == last


@pytest.mark.rule("V1", "V4")
@pytest.mark.parametrize("view", list(View))
@pytest.mark.parametrize("width", [36, 40, 50, 60, 66, 72, 80, 120])
def test_no_view_is_cut_and_the_one_that_is_shown_and_the_one_that_needs_you_are_there(width: int, view: View) -> None:
    state = state_of(*MANY)
    state.view = view
    left, right = view_lines(state, MOMENT, width, typing=False, found=8)
    said = draw.plain(left)
    assert cell_len(said) + cell_len(draw.plain(right)) <= width
    assert re.search(r"\[[a-z ]+ \d+\]", said)
    assert re.search(r"2 \[?needs( you)? 11", said)


@pytest.mark.rule("V1")
def test_the_order_stands_there_as_words_and_looks_like_no_key() -> None:
    state = state_of(*MANY)
    assert draw.plain(view_lines(state, MOMENT, 140, typing=False, found=8)[1]) == "by attention "
    state.reverse = True
    assert draw.plain(view_lines(state, MOMENT, 140, typing=False, found=8)[1]) == "by attention, reversed "


@pytest.mark.rule("V4")
@pytest.mark.parametrize("width", [38, 40, 60, 80, 120])
def test_the_strip_says_at_every_width_which_key_opens_what_and_what_hurries(width: int) -> None:
    state = state_of(*MANY)
    said = draw.plain(strip_line(state, MOMENT, width))
    assert cell_len(said) <= width
    for key in ("A", "E"):
        assert re.search(rf"\b{key}\b", said)
    assert "1:00" in said


@pytest.mark.rule("V4")
def test_in_the_corner_the_time_gives_way_and_the_count_does_not() -> None:
    state = state_of(*MANY)
    assert draw.plain(waiting_line(state, MOMENT)) == "! A 3, 10:00 left; E 8, 1:00 left "
    assert draw.plain(waiting_line(state, MOMENT, 20)) == "! A 3 E 8 "


@pytest.mark.rule("O8", "G5")
@pytest.mark.parametrize("width", [40, 44, 60, 80])
def test_the_first_line_says_who_polls_before_it_says_what_time_it_is(width: int) -> None:
    state = state_of(*MANY)
    state.clock_name = "demo time"
    state.operator = msgspec.structs.replace(OPERATOR, user=MANY[0].operation.submitted.os_user)
    assert state.gate_is_advisory
    left, right = head_lines(state, MOMENT, width)
    said = draw.plain(draw.beside(left, right, width))
    assert "demo x15  ACTIVE" in said
    assert draw.ELLIPSIS not in said
    assert ("advisory" in said) is (width >= 44)
    assert ("Z" in said) is (width >= 80)


@pytest.mark.rule("V1", "V4", "V5")
@pytest.mark.parametrize("size", SIZES)
async def test_titles_and_last_lines_stand_whole_on_every_screen(size: tuple[int, int]) -> None:
    fake = asking(FakeCore(MANY))
    async with console(fake.runner, size=size) as (app, pilot):
        for key, title in (("E", "decisions"), ("A", "approvals"), ("M", "messages"), ("question_mark", "keys")):
            await pilot.press(key)
            await until(pilot, lambda title=title: f" {title}" in _line(app, "#head"), title)  # type: ignore[misc]
            await _whole(app, pilot, "#foot")
            assert "Esc back" in _line(app, "#foot")
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, LiveScreen), "back at the table")
        for line in ("#views", "#strip", "#foot", "#head"):
            await _whole(app, pilot, line)
        assert "q quit" in _line(app, "#foot")
        assert "? help" in _line(app, "#foot")
        await pilot.press("s")
        await until(pilot, lambda: "n next" in _line(app, "#foot"), "the orders")
        await _whole(app, pilot, "#foot")


@pytest.mark.rule("V4", "G7")
@pytest.mark.parametrize(("key", "ends"), [("E", r"\d+:\d\d$"), ("A", r"(\d+:\d\d|-)$")])
async def test_when_a_row_of_a_queue_ends_or_expires_is_never_cut(key: str, ends: str) -> None:
    fake = asking(FakeCore(MANY[:8]))
    async with console(fake.runner, size=(40, 16)) as (app, pilot):
        await pilot.press(key)
        await until(pilot, lambda: "  WHO" in screen_text(app) and "\n> " in screen_text(app), "the rows")
        heads = next(line for line in screen_text(app).splitlines() if line.startswith("  WHO"))
        assert heads.rstrip().endswith("ENDS" if key == "E" else "EXPIRES")
        (row,) = [line for line in screen_text(app).splitlines() if line.startswith("> ")]
        assert re.search(ends, row.rstrip("▁▂▃▄▅▆▇█ "))


async def test_on_a_small_terminal_the_card_names_no_key_that_cannot_choose(fake: FakeCore) -> None:
    async with console(fake.runner, size=(60, 20)) as (app, pilot):
        app.opens("card", "op-0000000a")
        await until(pilot, lambda: isinstance(app.screen, CardScreen) and app.screen.shown, "the card is there")
        await until(pilot, lambda: "enlarge to 80x24" in screen_text(app), "it says why")
        assert "choose" not in _line(app, "#foot")
        assert "Esc leave" in _line(app, "#foot")


def _line(app: ConsoleApp, which: str) -> str:
    return app.screen.query_one(which, OneLine).words


async def _whole(app: ConsoleApp, pilot: Pilot[object], which: str) -> None:
    await until(pilot, lambda: draw.ELLIPSIS not in _line(app, which), f"{which} stands whole: {_line(app, which)!r}")


# --- paths and addresses ----------------------------------------------------------------------------------------------


def test_a_path_that_is_longer_than_a_line_is_broken_behind_one_of_its_parts() -> None:
    path = "/srv/pollconsole/homes/production-emea/exports/operations-20261130T211500Z.jsonl"
    lines = [draw.plain(line) for line in draw.wrap((("wrote ", "text"), (path, "text")), 50, indent=2)]
    assert "".join(line.strip() for line in lines[1:]) == path
    assert all(line.endswith("/") for line in lines[1:-1])
    assert lines[-1].strip() == "operations-20261130T211500Z.jsonl"


@given(st.text(st.characters(codec="ascii", min_codepoint=33), max_size=90), st.integers(0, 60))
def test_of_an_address_that_is_too_long_the_end_is_shown(value: str, width: int) -> None:
    shown = draw.cut_front(value, width)
    assert cell_len(shown) <= width
    if len(value) <= width:
        assert shown == value
    elif width:
        assert shown[0] == draw.ELLIPSIS
        assert value.endswith(shown[1:])


def test_a_long_path_in_the_home_is_shown_by_its_end_and_copied_whole() -> None:
    home = "/srv/pollconsole/homes/production-emea-nightly-and-weekly"
    found = (
        bridge.Setting("home", "home", home, "--home"),
        bridge.Setting("home", "settings", f"{home}/config.toml", "read"),
        bridge.Setting(
            "log", "file", "/var/log/elsewhere-and-as-long-as-any-other-path/pollconsole.log", "config.toml"
        ),
    )
    shown, whole = (draw.join(setting_lines(found, (), brief=brief)) for brief in (True, False))
    assert shown.count(home) == 1
    assert "…/config.toml  read" in shown
    assert found[2].value in shown
    assert whole.count(home) == 2
    assert draw.ELLIPSIS not in whole


def test_half_a_host_is_not_read_as_another_host() -> None:
    assert draw.cut_front("api.acme.test:443/v1/jobs/7", 22) == "…/v1/jobs/7"
    assert draw.cut_front("api.acme.test/v1/jobs/exp_02b", 16) == "…/jobs/exp_02b"


# --- left alone -------------------------------------------------------------------------------------------------------


def said(each: Seeded, at: int = NOW) -> str:
    assert each.question is not None
    return draw.plain(alone_line(each.question, each.operation, Instant(at)))


@pytest.mark.rule("E7", "V5")
def test_a_card_says_what_happens_if_nobody_decides() -> None:
    ends: dict[str, Any] = {"deadline_at": Instant(NOW + 9 * MINUTE)}
    unknown = stopped(1, StopReason.UNKNOWN_STATE, **ends)
    assert said(unknown) == "left alone: nothing is sent, 9:00 left "
    assert said(unknown, NOW + DAY) == "left alone: nothing is sent, time passed "
    asks = stopped(1, StopReason.EXTENSION_REQUESTED, Status.WAITING, **ends)
    running = msgspec.structs.replace(asks.operation, stop_reason=None)
    assert said(msgspec.structs.replace(asks, operation=running)) == "left alone: polls go on, 9:00 left "
    ended = stopped(1, StopReason.JOB_FAILED, Status.FAILED, **ends)
    assert said(ended) == "left alone: nothing happens "
    many = group_alone_line(["unknown_state", "extension_requested"], Instant(NOW + MINUTE), NOW)
    assert draw.plain(many) == "left alone: nothing is sent, 1:00 left "
    assert unknown.question is not None
    assert draw.plain(alone_line(unknown.question, None, NOW)) == "left alone: nothing changes "


@pytest.mark.rule("E7", "G8")
async def test_the_line_counts_on_beside_the_card_and_locks_nothing() -> None:
    fake = FakeCore(MANY[:3])
    async with console(fake.runner) as (app, pilot):
        name = MANY[2].operation.operation_id
        card = await open_card(app, pilot, name)
        prompt = card.query_one("#prompt", OneLine)
        await until(pilot, lambda: "nothing is sent, 3:00 left" in prompt.words, "it says so")
        shown = card.shown
        fake.clock.forward(MINUTE)
        await until(pilot, lambda: "nothing is sent, 2:00 left" in prompt.words, "it counts on")
        assert card.shown is shown
        assert card._view is not None
        assert card._view.state.value == "ARMED"
