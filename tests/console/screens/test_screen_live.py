"""The table: every live operation with its budgets, what needs a person first, live stories, hostile texts harmless."""

from __future__ import annotations

import re

import msgspec
import pytest
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import console, screen_text, until, written
from tests.console.seed import HOSTILE, NOW, many, operation, seeded, stopped

from pollconsole.board import View
from pollconsole.screens.detail import DetailScreen
from pollconsole.screens.live import LiveScreen
from pollconsole.screens.queue import QueueScreen
from pollconsole.screens.story import StoryView
from pollcore.facts import SECOND, AuditEvent, DelaySource, EventName, Instant, StopReason

KNOWN_SEQUENCES = re.compile(
    r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[78]|\x1b\[\?[0-9;]*\$p|\x1b\[[<>=][0-9;]*u|\x1b\]22;[a-z-]+\x07"
)


@pytest.mark.rule("V1")
async def test_the_table_shows_every_live_operation_with_its_budgets(fake: FakeCore) -> None:
    async with console(fake.runner, size=(100, 40)) as (app, pilot):
        live = [row for row in fake.store.rows.values() if not row.status.is_end]
        await until(pilot, lambda: all(row.operation_id in screen_text(app) for row in live), "every row is drawn")
        lines = screen_text(app).splitlines()
        for row in live:
            line = next(each for each in lines if row.operation_id in each)
            for figure in (
                f"{row.status_requests_used}/{row.max_status_requests}",
                f"{row.transport_failures_used}/{row.max_transport_failures}",
                f"{row.rate_limited_used}/{row.max_rate_limited}",
            ):
                assert figure in line
        assert len(live) == 12
        line = next(each for each in lines if "op-00000002" in each)
        assert "0:09" in line
        assert "30:00" in line


@pytest.mark.rule("V1")
async def test_rows_change_and_count_down_while_they_are_watched(fake: FakeCore) -> None:
    async with console(fake.runner, size=(100, 40)) as (app, pilot):
        row = fake.store.rows["op-00000002"]
        fake.store.put(msgspec.structs.replace(row, status_requests_used=7, last_known_state="packing"))
        fake.clock.forward(3 * SECOND)

        def line() -> str:
            return next(each for each in screen_text(app).splitlines() if "op-00000002" in each)

        await until(pilot, lambda: "7/12" in line() and "packing" in line() and "0:06" in line(), "the row is new")


async def test_what_needs_a_person_stands_first_and_the_cursor_stays_on_its_operation(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        live = app.screen
        assert isinstance(live, LiveScreen)
        first = live.table.ids[:4]
        assert set(first) == set(fake.store.open)
        for _ in range(6):
            await pilot.press("j")
        chosen = live.table.cursor_id
        seeded_row = stopped(0x77, StopReason.DEADLINE_EXCEEDED)
        fake.store.put(seeded_row.operation, seeded_row.question)
        await until(pilot, lambda: "op-00000077" in live.table.ids, "the new row is in")
        assert live.table.cursor_id == chosen
        assert live.table.ids.index("op-00000077") < live.table.cursor


async def test_until_the_operator_moves_the_first_row_is_what_comes_first(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        live = app.screen
        assert isinstance(live, LiveScreen)
        urgent = [stopped(n, StopReason.DEADLINE_EXCEEDED, deadline_at=Instant(NOW - n)) for n in range(0x60, 0x80)]
        for each in urgent:
            fake.store.put(each.operation, each.question)
        await until(pilot, lambda: len(live.table.ids) == 13 + len(urgent), "the new rows are in")
        assert live.table.cursor == 0
        assert live.table.scroll_offset.y == 0
        assert live.table.ids[0] in screen_text(app)


@pytest.mark.rule("V4")
async def test_what_waits_is_counted_on_every_view(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        wanted = r" ! 4 decisions waiting, first ends in \d+:\d\d - E opens\n"
        for number in range(1, 7):
            await pilot.press(str(number))
            await until(pilot, lambda: re.search(wanted, screen_text(app)), "the strip")
        for key in ("question_mark", "M", "E"):
            await pilot.press(key)
            await until(pilot, lambda: not isinstance(app.screen, LiveScreen) and app.screen.ready, "a screen is open")
            await until(pilot, lambda: "! E 4 wait, first ends in " in screen_text(app), "they are counted")
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, LiveScreen), "back")
        await pilot.press("1", "enter")
        await until(pilot, lambda: isinstance(app.screen, DetailScreen) and app.screen.ready, "the detail is open")
        await until(pilot, lambda: "! E 4 wait, first ends in " in screen_text(app), "they are counted")


@pytest.mark.rule("V2", "A2")
async def test_the_story_of_the_chosen_operation_is_told_live(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        app.opens("detail", "op-00000001")
        await until(pilot, lambda: "10:50:05 polled, state queued, next poll 10:50:14" in screen_text(app), "the story")
        row = fake.store.rows["op-00000001"]
        told = AuditEvent(
            at=NOW,
            event=EventName.POLLED,
            operation_id=row.operation_id,
            state="packing",
            http=200,
            next_poll_at=Instant(NOW + 9 * SECOND),
            delay_source=DelaySource.LOCAL_BACKOFF,
        )
        fake.store.put(row, None, (told,))
        line = "11:00:00 polled, state packing, next poll 11:00:09 from local backoff"
        await until(pilot, lambda: line in screen_text(app), "the new line")


@pytest.mark.rule("V2")
async def test_on_a_wide_screen_the_story_stands_beside_the_table_and_follows_the_cursor(fake: FakeCore) -> None:
    async with console(fake.runner, size=(140, 40)) as (app, pilot):
        side = app.screen.query_one(StoryView)
        await until(pilot, lambda: any("exp_00a" in line for line in side.lines), "the first story")
        await pilot.press("j")
        await until(pilot, lambda: any("exp_00b" in line for line in side.lines), "the second story")


@pytest.mark.rule("V1", "S1")
async def test_the_detail_shows_both_facts_beside_every_budget(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        app.opens("detail", "op-00000006")
        await until(pilot, lambda: "job says" in screen_text(app), "the detail")
        text = screen_text(app)
    for words in ("HTTP says    timeout at 10:59:51", "job says     running", "1 of 3", "4 of 12", "deadline"):
        assert words in text


@pytest.mark.rule("G4", "K4")
async def test_what_a_provider_wrote_reaches_the_terminal_only_as_text() -> None:
    rows = [*seeded(), stopped(0x30, StopReason.UNKNOWN_STATE, last_known_state=HOSTILE, stop_explanation=HOSTILE)]
    fake = FakeCore(rows)
    async with console(fake.runner, size=(140, 40)) as (app, pilot):
        for opened in ("detail", "card"):
            app.opens(opened, "op-00000030")
            await until(pilot, lambda: "<1B>" in screen_text(app), "the hostile text is shown")
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, LiveScreen), "back")
        await pilot.press("slash", "h", "o", "s", "t")
        await until(pilot, lambda: "<1B>]52;c" in screen_text(app), "the row")
        rest = KNOWN_SEQUENCES.sub("", written(app))
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]", rest)
    assert "]52;c;cm0" in rest


async def test_a_filter_narrows_the_rows_and_esc_clears_it(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        live = app.screen
        assert isinstance(live, LiveScreen)
        await pilot.press("slash", *"provider", "colon", *"bolt", "enter")
        assert {fake.store.rows[each].submitted.provider for each in live.table.ids} == {"bolt"}
        await pilot.press("q")
        assert app.state.needle == "provider:bolt"
        await pilot.press("escape")
        assert len(live.table.ids) == 13


async def test_views_show_what_they_say(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        live = app.screen
        assert isinstance(live, LiveScreen)
        found = {}
        for number, view in enumerate(View, 1):
            await pilot.press(str(number))
            found[view] = set(live.table.ids)
    assert found[View.NEEDS] == set(fake.store.open)
    assert found[View.UNKNOWN] == {"op-0000000b", "op-0000000c"}
    assert "op-00000004" in found[View.LOW]
    ended = {key for key, row in fake.store.rows.items() if row.status.is_end}
    assert found[View.DONE] == ended - set(fake.store.open)


async def test_ten_thousand_rows_stand_on_the_screen_and_the_last_is_one_key_away() -> None:
    fake = FakeCore([*seeded(), *many(10_000)])
    async with console(fake.runner) as (app, pilot):
        live = app.screen
        assert isinstance(live, LiveScreen)
        await until(pilot, lambda: len(live.table.ids) == 10_013, "those behind the first screen are in")
        await pilot.press("G")
        await until(pilot, lambda: live.table.cursor == 10_012, "the last row")
        await until(pilot, lambda: live.table.ids[-1] in screen_text(app), "it is drawn")


async def test_a_paused_screen_stands_still_while_the_core_goes_on(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        await pilot.press("p")
        turns = fake.polling.turns
        fake.store.put(operation(0x55))
        await until(pilot, lambda: fake.polling.turns > turns + 5, "the core goes on")
        assert "op-00000055" not in app.state.board.operations
        assert "screen paused" in screen_text(app)
        await pilot.press("p")
        await until(pilot, lambda: "op-00000055" in app.state.board.operations, "the row came")


@pytest.mark.rule("E10", "G8")
async def test_the_queue_has_one_row_a_cause_and_a_card_needs_its_own_key() -> None:
    rows = [stopped(n, StopReason.AUTHORIZATION_DENIED, cause="authorization_denied:acme") for n in range(1, 4)]
    fake = FakeCore(rows)
    async with console(fake.runner) as (app, pilot):
        await pilot.press("E")
        await until(pilot, lambda: isinstance(app.screen, QueueScreen) and app.screen.ready, "the queue is open")
        await until(pilot, lambda: "3 operations no access" in screen_text(app), "its row is drawn")
        assert "op-00000001" not in screen_text(app)
        assert not any("card" in str(type(screen)).lower() for screen in app.screen_stack)


@pytest.mark.rule("E10")
async def test_rows_of_the_queue_are_told_apart_at_eighty_columns() -> None:
    details = ("unreadable", "wrong_job", "state_missing", "not_found", "unexpected_status", "foreign_origin")
    asked = [
        stopped(10 * n + m, StopReason.INTEGRATION_FAILURE, cause=f"integration_failure:acme:{detail}")
        for n, detail in enumerate(details, 1)
        for m in (1, 2)
    ]
    asked.append(stopped(0x99, StopReason.REQUEST_BUDGET_EXHAUSTED, operation_id="op-0123456789ab", label="payroll"))
    fake = FakeCore(asked)
    async with console(fake.runner, size=(80, 24)) as (app, pilot):
        await pilot.press("E")
        await until(pilot, lambda: isinstance(app.screen, QueueScreen) and app.screen.ready, "the queue is open")
        await until(pilot, lambda: all(f"acme:{each}" in screen_text(app) for each in details), "its rows are drawn")
        text = screen_text(app)
        for detail in details:
            assert f"acme:{detail}" in text
        line = next(each for each in text.splitlines() if "op-0123456789ab" in each)
        assert "no requests" in line
        assert "payroll" in line


@pytest.mark.rule("V4")
async def test_an_empty_queue_shows_what_was_done_last(fake: FakeCore) -> None:
    with fake.store.lock:
        fake.store.open.clear()
    async with console(fake.runner, size=(80, 24)) as (app, pilot):
        app.state.say("op-0000000a: extend 15 min / 4 checks: deadline 11:45:00, requests 16", "good")
        await pilot.press("E")
        await until(pilot, lambda: "nothing waits here" in screen_text(app), "the queue is empty")
        assert "op-0000000a: extend 15 min / 4 checks: deadline 11:45:00, requests 16" in screen_text(app)
