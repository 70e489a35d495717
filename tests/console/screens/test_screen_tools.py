"""What an operator does with rows beside deciding: mark, pin, find, copy, export, and finding all as it was left."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import console, last_message, lives_on, screen_text, until, written
from tests.console.seed import HOSTILE, NOW, operation

from pollconsole import carry, memory, ui_file
from pollconsole.board import Sort, View
from pollconsole.chart import chart_lines
from pollconsole.draw import plain
from pollconsole.screens.detail import DetailScreen
from pollconsole.screens.live import LiveScreen
from pollconsole.screens.story import StoryView
from pollcore.facts import Refused

OSC52 = re.compile(r"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07")
MALFORMED: list[str] = [
    "",
    "[1]",
    "{",
    '{"table": 7}',
    '{"table": {"view": [], "sort": "x", "filter": 3, "cursor": {}, "pins": "no"}}',
    "\x00\xff",
    "[" * 5_000,
]


def live_of(app: Any) -> LiveScreen:
    assert isinstance(app.screen, LiveScreen)
    return app.screen


def copies(app: Any) -> list[str]:
    return [base64.b64decode(each).decode() for each in OSC52.findall(written(app))]


async def test_view_order_filter_cursor_and_pins_are_found_again_at_the_next_start(
    fake: FakeCore, tmp_path: Path
) -> None:
    async with console(fake.runner, home=tmp_path) as (app, pilot):
        await pilot.press("s", "o", "S", "slash", *"acme", "enter", "j", "j", "asterisk", "j")
        cursor = live_of(app).table.cursor_id
        pins = list(app.state.board.pinned)
        await pilot.press("q", "Q")
        await until(pilot, lambda: app._exit, "it quits")
    assert (tmp_path / "ui.json").stat().st_mode & 0o777 == 0o600
    async with console(fake.runner, home=tmp_path) as (app, pilot):
        state = app.state
        assert (state.sort, state.reverse, state.needle) == (Sort.OPERATION, True, "acme")
        assert list(state.board.pinned) == pins
        assert live_of(app).table.cursor_id == cursor
        assert live_of(app).table.ids[0] == pins[0]


@pytest.mark.parametrize("text", MALFORMED)
async def test_a_malformed_memory_is_ignored(fake: FakeCore, tmp_path: Path, text: str) -> None:
    (tmp_path / "ui.json").write_text(text, "utf-8")
    async with console(fake.runner, home=tmp_path) as (app, _):
        assert (app.state.view, app.state.sort, app.state.needle) == (View.OPEN, Sort.ATTENTION, "")


async def test_a_half_typed_filter_is_not_kept_and_a_theme_is_not_lost(fake: FakeCore, tmp_path: Path) -> None:
    ui_file.write(tmp_path, {"theme": "light"})
    async with console(fake.runner, home=tmp_path) as (app, pilot):
        await pilot.press("2")
        await until(pilot, lambda: memory.PART in ui_file.read(tmp_path), "it is kept")
        await pilot.press("slash", *"boo")
        await until(pilot, lambda: live_of(app).mode == "filter" and app.state.needle == "boo", "it is typed")
        await lives_on(app, pilot, 0.6)
    kept = ui_file.read(tmp_path)
    assert kept["theme"] == "light"
    assert kept["table"]["view"] == "needs you"
    assert kept["table"]["filter"] == ""


async def test_marked_rows_are_counted_and_have_a_view_of_their_own(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        live = live_of(app)
        await pilot.press("space", "space")
        assert len(app.state.board.marked) == 2
        assert "7 marked 2" in screen_text(app)
        await pilot.press("7")
        assert set(live.table.ids) == app.state.board.marked
        await pilot.press("U")
        assert live.table.ids == []


async def test_a_pinned_row_stands_first_in_every_order_until_it_is_not_pinned_any_more(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        live = live_of(app)
        await pilot.press("G", "asterisk")
        pinned = live.table.cursor_id
        for keys in (("s", "o"), ("S",), ("s", "l")):
            await pilot.press(*keys)
            assert live.table.ids[0] == pinned
        await pilot.press("asterisk", "s", "a", "S")
        assert live.table.ids[0] != pinned


async def test_n_and_shift_n_go_from_match_to_match_after_the_filter_is_cleared(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        live = live_of(app)
        await pilot.press("n")
        assert "/ filters" in screen_text(app)
        await pilot.press("slash", *"provider", "colon", *"bolt", "enter", "escape")
        assert len(live.table.ids) == 13
        seen = []
        for _ in range(3):
            await pilot.press("n")
            seen.append(live.table.cursor_id)
        assert {fake.store.rows[str(each)].submitted.provider for each in seen} == {"bolt"}
        assert len(set(seen)) == 3
        await pilot.press("N")
        assert live.table.cursor_id == seen[1]


async def test_a_copy_is_sent_harmless_and_said_to_be_sent(fake: FakeCore) -> None:
    fake.store.put(operation(0x41, label=HOSTILE, last_known_state=HOSTILE))
    async with console(fake.runner) as (app, pilot):
        await pilot.press("c")
        assert copies(app) == [live_of(app).table.cursor_id]
        assert "sent to the terminal's clipboard" in screen_text(app)
        app.opens("detail", "op-00000041")
        await until(pilot, lambda: isinstance(app.screen, DetailScreen) and app.screen.ready, "the detail")
        await until(pilot, lambda: "requests" in screen_text(app), "it is drawn")
        await pilot.press("C")
        await until(pilot, lambda: len(copies(app)) > 1, "it is sent")
        copied = copies(app)[1]
    assert copied.startswith("op-00000041\n")
    assert "requests" in copied
    assert all(each.isprintable() for each in copied.split("\n"))


async def test_the_filtered_view_is_exported_as_json_lines_that_only_its_owner_reads(
    fake: FakeCore, tmp_path: Path
) -> None:
    async with console(fake.runner, home=tmp_path) as (app, pilot):
        await pilot.press("slash", *"provider", "colon", *"bolt", "enter", "x")
        await until(pilot, lambda: "exported to" in last_message(app), "it is exported")
        ids = live_of(app).table.ids
        await pilot.press("x")
        await until(pilot, lambda: len(list((tmp_path / "exports").iterdir())) == 2, "a second file")
    first = sorted((tmp_path / "exports").iterdir())[0]
    assert first.stat().st_mode & 0o777 == 0o600
    assert first.parent.stat().st_mode & 0o777 == 0o700
    documents = [json.loads(line) for line in first.read_text("utf-8").splitlines()]
    assert [each["operation_id"] for each in documents] == ids


def test_an_export_without_a_home_or_into_a_file_says_what_is_in_the_way(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no home"):
        carry.export(None, [], NOW)
    (tmp_path / "exports").write_text("", "utf-8")
    with pytest.raises(Refused, match="nothing was exported"):
        carry.export(tmp_path, [{}], NOW)


async def test_the_story_is_searched_and_n_goes_from_place_to_place(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        app.opens("detail", "op-0000000a")
        await until(pilot, lambda: "request budget exhausted" in screen_text(app), "the story")
        await pilot.press("slash", *"POLLED", "enter")
        story = app.screen.query_one(StoryView)
        hits = [n for n, line in enumerate(story.lines) if "polled" in line]
        assert story.found == hits[-1]
        assert f"{len(hits)} of {len(hits)}" in screen_text(app)
        await pilot.press("n")
        assert story.found == hits[0]
        await pilot.press("N")
        assert story.found == hits[-1]
        await pilot.press("slash", *"nowhere", "enter")
        assert "not in the story" in screen_text(app)
        await pilot.press("slash", "escape")
        assert isinstance(app.screen, DetailScreen)


@pytest.mark.rule("S1", "T1")
def test_the_chart_shows_each_wait_and_each_answer_in_plain_text() -> None:
    events: list[dict[str, Any]] = [{"event": "submitted", "at": "2026-01-01T10:00:00Z"}]
    for sent, code, wait in (("10:01:00", 200, None), ("10:01:13", 503, "10:01:20"), ("10:02:29", None, "10:02:34")):
        event = "polled" if code else "faulted"
        at = f"2026-01-01T{sent}.500Z"
        following = f"2026-01-01T{wait}Z" if wait else None
        events.append(
            {"event": event, "at": at, "sent_at": f"2026-01-01T{sent}Z", "http": code, "next_poll_at": following}
        )
    waits, answers = (plain(line) for line in chart_lines(events, 10))
    assert waits.split()[:2] == ["waits", "*#_"], "12.5 s and 1 min 15.5 s went by, then 4.5 s are planned"
    assert "4 s _ to # 1 min 15 s" in waits
    assert not any("waits" in plain(line) for line in chart_lines(events[:2], 10)), "no second request, none planned"
    assert answers.split()[:2] == ["answers", "25!"]
    assert (waits + answers).isascii()
    assert chart_lines(events[:1], 10) == []
    assert len(chart_lines([{"event": "polled", "at": "nonsense", "http": 200}], 10)) == 1


async def test_a_first_start_greets_and_offers_the_demo_and_the_first_provider() -> None:
    fake = FakeCore([])
    async with console(fake.runner) as (app, pilot):
        text = screen_text(app)
        for words in ("Welcome", "pollconsole demo", "provider check", "pollconsole submit", "P shows all there are"):
            assert words in text
        fake.store.put(operation(1))
        await until(pilot, lambda: "op-00000001" in screen_text(app), "the first row")
        assert "Welcome" not in screen_text(app)
