"""Both queues, the table and the sticky line agree on what ends soonest; columns at 80 cells hold whole words."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from tests.console.screens.approval_seeds import asking
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import console, screen_text, until
from tests.console.seed import MOMENT, NOW, Seeded, operation, seeded, stopped

from pollconsole import draw, row_columns, rows, short_words, words
from pollconsole.beats import is_polled
from pollconsole.board import Board, Sort, View
from pollconsole.bridge.handing_over import _by_cause as handed_over_cards
from pollconsole.bridge.handing_over import _ends_soon as ends_within_the_hour
from pollconsole.causes import APPROVALS, by_cause, by_time_left, in_order
from pollconsole.cli import takeover
from pollconsole.mailbox import Beat, CoreRole, Delta
from pollconsole.screens.card_lines import named_lines
from pollconsole.screens.detail_lines import fact_lines
from pollconsole.screens.queue import QueueScreen, QueueTable, cards_of
from pollcore.facts import MINUTE, SECOND, BootMs, Instant, Status, StopDetail, StopReason, iso

STOPS = sorted(set(StopReason) - {StopReason.CALL_APPROVAL, StopReason.SESSION_APPROVAL, StopReason.FIRST_USE})


def board_of(*asked: Seeded) -> Board:
    board = Board()
    questions = tuple(each.question for each in asked if each.question)
    board.apply(Delta(operations=tuple(each.operation for each in asked), questions=questions, loaded=True))
    return board


def ordered(*asked: Seeded) -> list[str]:
    board = board_of(*asked)
    causes = by_cause([each.question for each in asked if each.question], board.operations)
    return [each.questions[0].operation_id for each in by_time_left(causes, NOW)]


SOON = stopped(1, StopReason.UNKNOWN_STATE, deadline_at=Instant(NOW + MINUTE), asked_ago=SECOND)
LATER = stopped(2, StopReason.UNKNOWN_STATE, deadline_at=Instant(NOW + 9 * MINUTE), asked_ago=5 * MINUTE)
ASKS = stopped(
    3, StopReason.EXTENSION_REQUESTED, Status.WAITING, deadline_at=Instant(NOW + 9 * MINUTE), asked_ago=8 * MINUTE
)
PASSED = stopped(4, StopReason.DEADLINE_EXCEEDED, deadline_at=Instant(NOW - MINUTE), asked_ago=MINUTE)
PASSED_EARLIER = stopped(5, StopReason.DEADLINE_EXCEEDED, deadline_at=Instant(NOW - SECOND), asked_ago=2 * MINUTE)
ENDED = stopped(6, StopReason.JOB_FAILED, Status.FAILED, deadline_at=Instant(NOW + SECOND), asked_ago=30 * MINUTE)
IN_ORDER = (SOON, LATER, ASKS, PASSED_EARLIER, PASSED, ENDED)


@pytest.mark.rule("E10", "V4")
def test_what_ends_soonest_is_first_then_what_stands_still_then_the_oldest_and_what_no_hurry_saves_is_last() -> None:
    wanted = [each.operation.operation_id for each in IN_ORDER]
    assert ordered(*IN_ORDER) == wanted
    assert ordered(*reversed(IN_ORDER)) == wanted


@pytest.mark.rule("E10", "V4", "V5")
def test_the_command_line_and_the_hand_over_have_the_order_of_the_console() -> None:
    pairs = [(each.operation, each.question) for each in reversed(IN_ORDER) if each.question]
    rows = {operation.operation_id: operation for operation, _ in pairs}
    wanted = [each.operation.operation_id for each in IN_ORDER]
    assert [question.operation_id for question in in_order([q for _, q in pairs], rows, NOW)] == wanted
    assert [one["operation_id"] for one in handed_over_cards(pairs, MOMENT)] == wanted


@pytest.mark.rule("V5", "E10")
def test_the_hand_over_names_all_that_ends_within_the_hour_and_when_the_waits_of_a_card_end() -> None:
    asks = stopped(7, StopReason.CALL_APPROVAL, Status.AWAITING_APPROVAL, deadline_at=Instant(NOW + 4 * MINUTE))
    far = stopped(8, StopReason.UNKNOWN_STATE, deadline_at=Instant(NOW + 61 * MINUTE))
    late = operation(9, Status.WAITING, deadline_at=Instant(NOW - SECOND))
    rows = [each.operation for each in (SOON, asks, far, PASSED)] + [late]
    assert [one.operation_id for one in rows if ends_within_the_hour(one, MOMENT)] == [
        each.operation_id for each in (SOON.operation, asks.operation, late)
    ]
    pairs = [(each.operation, each.question) for each in (SOON, PASSED, ENDED) if each.question]
    cards = handed_over_cards(pairs, MOMENT)
    assert [(one["ends_at"], one["passed"]) for one in cards] == [
        (iso(SOON.operation.deadline_at), False),
        (iso(PASSED.operation.deadline_at), True),
        (None, False),
    ]
    lines = [takeover._card(one) for one in cards]
    assert f", ends {iso(SOON.operation.deadline_at)}" in lines[0]
    assert f", passed {iso(PASSED.operation.deadline_at)}" in lines[1]
    assert "ends" not in lines[2]


def test_the_order_needs_no_screen() -> None:
    code = "import sys, pollconsole.causes; sys.exit(any(name.startswith(('textual', 'rich')) for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


@pytest.mark.rule("E10")
@given(
    st.lists(st.tuples(st.integers(-600, 600), st.integers(0, 900), st.sampled_from(STOPS)), min_size=1, max_size=12)
)
def test_no_row_stands_before_one_that_ends_sooner(drawn: list[tuple[int, int, StopReason]]) -> None:
    asked = [
        stopped(n, reason, deadline_at=Instant(NOW + left * SECOND), asked_ago=ago * SECOND)
        for n, (left, ago, reason) in enumerate(drawn, 1)
    ]
    board = board_of(*asked)
    ends = [board.operations[each].deadline_at for each in ordered(*asked)]
    running = [at for at in ends if at > NOW]
    assert running == sorted(running) == ends[: len(running)]
    waiting = board.waiting(MOMENT)
    left = [each.ends_ms for each in (waiting.approvals, waiting.decisions) if each.ends_ms is not None]
    assert min(left, default=None) == (running[0] - NOW if running else None)


@pytest.mark.rule("V4")
def test_the_table_lists_what_needs_a_person_in_the_same_order() -> None:
    board = board_of(*IN_ORDER)
    shown = board.ordered(View.NEEDS, "", Sort.ATTENTION, False, MOMENT)
    assert shown == [each.operation.operation_id for each in IN_ORDER]


ASKED = st.tuples(st.integers(-600, 600), st.integers(0, 900), st.sampled_from(STOPS), st.integers(1, 4))


@pytest.mark.rule("E10", "V4", "V5")
@given(st.lists(ASKED, min_size=1, max_size=12))
def test_table_queue_escalations_and_hand_over_have_one_order(drawn: list[tuple[int, int, StopReason, int]]) -> None:
    asked = [
        stopped(n, reason, deadline_at=Instant(NOW + left * SECOND), asked_ago=ago * SECOND, cause=f"cause {n}")
        for n, (left, ago, reason, _) in enumerate(drawn, 1)
    ]
    board = board_of(*asked)
    queue = ordered(*asked)
    assert board.ordered(View.NEEDS, "", Sort.ATTENTION, False, MOMENT) == queue
    pairs = [(each.operation, each.question) for each in asked if each.question]
    questions = in_order([question for _, question in pairs], board.operations, NOW)
    assert [question.operation_id for question in questions] == queue
    assert [one["operation_id"] for one in handed_over_cards(pairs, MOMENT)] == queue


@pytest.mark.rule("E10", "V4")
@given(st.lists(ASKED, min_size=1, max_size=12))
def test_a_card_of_many_stands_where_its_soonest_stands_and_the_corner_has_the_time_of_the_first_row(
    drawn: list[tuple[int, int, StopReason, int]],
) -> None:
    asked = [
        stopped(n, reason, deadline_at=Instant(NOW + left * SECOND), asked_ago=ago * SECOND, cause=f"cause {group}")
        for n, (left, ago, reason, group) in enumerate(drawn, 1)
        if reason not in APPROVALS
    ]
    board = board_of(*asked)
    causes = cards_of(board, NOW, approvals=False)
    ends = [each.ends_at(NOW) for each in causes if each.ends_at(NOW) is not None]
    running = [at for at in ends if at is not None and at > NOW]
    assert running == sorted(running) == ends[: len(running)], "no card that has passed stands before one that runs"
    left = board.waiting(MOMENT).decisions.ends_ms
    assert left == (running[0] - NOW if running else None)
    shown = board.ordered(View.NEEDS, "", Sort.ATTENTION, False, MOMENT)
    if not shown:
        return
    assert shown[0] in {question.operation_id for question in causes[0].questions}
    questions = in_order(board.wanted(), board.operations, NOW)
    assert questions[0].operation_id == shown[0]


@pytest.mark.rule("E10", "V4")
async def test_one_that_runs_lifts_the_card_of_those_that_have_passed() -> None:
    passed = [
        stopped(n, StopReason.INTEGRATION_FAILURE, deadline_at=Instant(NOW - n * SECOND), cause="odd") for n in (1, 2)
    ]
    runs = stopped(3, StopReason.INTEGRATION_FAILURE, deadline_at=Instant(NOW + 4 * MINUTE + 2 * SECOND), cause="odd")
    other = stopped(4, StopReason.UNKNOWN_STATE, deadline_at=Instant(NOW + 16 * MINUTE))
    async with console(FakeCore([other, *passed, runs]).runner) as (app, pilot):
        await pilot.press("E")
        await until(pilot, lambda: "! E 4 wait, first ends in 4:02" in screen_text(app), "the corner")
        await until(pilot, lambda: "\n> 3 operations" in screen_text(app), "the first row")
        row = next(line for line in screen_text(app).splitlines() if line.startswith("> "))
        assert row.rstrip("▁▂▃▄▅▆▇█ ").endswith("4:02")


@pytest.mark.rule("V4", "E10")
async def test_the_sticky_line_says_the_time_of_the_first_row_of_the_queue() -> None:
    async with console(FakeCore(list(IN_ORDER)).runner) as (app, pilot):
        await until(pilot, lambda: "first ends in 1:00 - E opens" in screen_text(app), "the strip")
        await pilot.press("E")
        await until(pilot, lambda: isinstance(app.screen, QueueScreen) and app.screen.table.ids, "the queue")
        assert isinstance(app.screen, QueueScreen)
        assert app.screen.table.ids == [each.operation.operation_id for each in IN_ORDER]
        await until(pilot, lambda: "op-00000001 unknown state" in screen_text(app), "its rows are drawn")
        first = next(line for line in screen_text(app).splitlines() if "op-00000001" in line)
        assert first.endswith(" 1:00")
        assert "! E 6 wait, first ends in 1:00" in screen_text(app)


@pytest.mark.rule("V4", "G7")
async def test_where_both_queues_wait_each_has_the_time_of_its_own_first_row_on_every_screen() -> None:
    core = asking(FakeCore(list(IN_ORDER)))
    async with console(core.runner) as (app, pilot):
        wanted = " ! 6 approvals, 0:20 left; 6 decisions, 1:00 left - A or E open"
        await until(pilot, lambda: wanted in screen_text(app), "the strip at 80 cells")
        await pilot.press("A")
        await until(pilot, lambda: "! A 6, 0:20 left; E 6, 1:00 left" in screen_text(app), "the corner")
        assert isinstance(app.screen, QueueScreen)
        await until(pilot, lambda: " 0:20\n" in screen_text(app), "the first row of the approvals")
    async with console(core.runner, size=(140, 40)) as (app, pilot):
        wanted = " ! 6 approvals on 5 cards, first ends in 0:20; 6 decisions, first ends in 1:00 - A or E open"
        await until(pilot, lambda: wanted in screen_text(app), "the strip where there is room")


def test_where_nothing_runs_out_the_sticky_line_says_how_long_the_oldest_waits() -> None:
    assert board_of(PASSED, ENDED).waiting(MOMENT).decisions.ends_ms is None
    assert board_of(PASSED, ENDED).waiting(MOMENT).decisions.oldest_ms == 30 * MINUTE


# --- whole words ------------------------------------------------------------------------------------------------------


def test_every_reason_has_a_short_form_of_its_own_that_its_column_holds() -> None:
    assert set(short_words.REASON) == set(StopReason)
    assert len(set(short_words.REASON.values())) == len(StopReason)
    assert max(map(cell_len, short_words.REASON.values())) <= short_words.REASON_CELLS
    told = [short_words.detail(each) for each in StopDetail]
    assert len(set(told)) == len(told)
    assert not any("_" in each for each in (*told, *short_words.REASON.values()))


@pytest.mark.rule("V1")
@pytest.mark.parametrize("width", [32, 44, 56, 79, 99, 112, 140, 200])
@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("longest", [4, 60])
def test_a_status_has_one_name_in_the_table_at_every_width(width: int, status: Status, longest: int) -> None:
    long = operation(2, operation_id="x" * longest, provider="y" * longest, max_status_requests=10**6)
    columns = row_columns.columns_for(width, row_columns.wanted_by([row_columns.cells_of(long)]))
    at = next(n for n, column in enumerate(columns) if column.key == "status")
    for asked in (True, False):
        shown = rows.row(operation(1, status), MOMENT, columns, asked=asked)[at][0].strip(" !~=+x.")
        assert shown == short_words.STATUS.get(status, words.STATUS[status][1])


def test_the_only_short_status_is_told_in_the_operators_pages_and_in_the_help() -> None:
    assert short_words.STATUS == {Status.AWAITING_APPROVAL: "approval"}
    assert ("approval", "awaiting approval") in list(short_words.explained())
    said = (Path(__file__).parents[3] / "docs" / "operators.md").read_text("utf-8")
    assert "`approval` is `awaiting approval`" in " ".join(said.split())


@pytest.mark.rule("E10")
async def test_every_reason_stands_whole_in_the_queue_and_in_the_help_at_eighty_columns() -> None:
    asked = [
        stopped(n, reason, operation_id=f"op-{n:012x}", deadline_at=Instant(NOW + n * MINUTE), label="word " * 20)
        for n, reason in enumerate(STOPS, 1)
        if reason is not StopReason.MODE_CHANGE
    ]
    async with console(FakeCore(asked).runner, size=(80, 40)) as (app, pilot):
        await pilot.press("E")
        await until(pilot, lambda: isinstance(app.screen, QueueScreen) and app.screen.table.ids, "the queue")
        assert isinstance(app.screen, QueueScreen)
        table = app.screen.table
        assert isinstance(table, QueueTable)
        lines = [draw.plain(table.line_of(each)) for each in table.ids]
        for each, line in zip(table.ids, lines, strict=True):
            reason = next(
                seed.question.reason for seed in asked if seed.question and seed.operation.operation_id == each
            )
            assert f" {short_words.REASON[reason]} " in line
            assert re.search(r"word…? ", line), "a label is cut between its words"
        await pilot.press("question_mark", "G")
        await until(pilot, lambda: "outcome_unknown" in screen_text(app), "the end of the help")
    told = dict(short_words.explained())
    assert {told[short] for short in short_words.REASON.values()} == {each.value for each in StopReason}


@given(st.text(max_size=40), st.integers(0, 45))
def test_a_cut_text_takes_no_more_cells_than_it_has_and_begins_as_the_whole(value: str, width: int) -> None:
    shown = draw.fit(value, width)
    assert cell_len(shown) == width or "\n" in value or "\t" in value
    if cell_len(value) > width > 0:
        cut = draw.cut(value, width)
        assert cut.endswith(draw.ELLIPSIS)
        assert value.startswith(cut[:-1].rstrip(" ")) or cell_len(cut) <= width


def test_half_a_word_is_left_out_where_that_costs_little() -> None:
    assert draw.cut("AWS Athena (query executions)", 24) == "AWS Athena (query…"
    assert draw.cut("GET api.acme.example/v1/jobs/exp_02b", 28) == "GET api.acme.example/v1/…"
    assert draw.cut("op-0123456789abcdef", 10) == "op-012345…"


def test_what_a_card_names_goes_on_under_its_own_beginning_and_no_item_is_broken() -> None:
    said = "op-210 18:28:35 UTC, op-211 18:28:37 UTC, op-212 18:28:40 UTC"
    lines = [draw.plain(line) for line in named_lines(f"{'Ending soonest:':<18} ", said, 77)]
    assert lines == ["Ending soonest:    op-210 18:28:35 UTC, op-211 18:28:37 UTC,", " " * 19 + "op-212 18:28:40 UTC"]
    long = "the provider reports a state that the contract does not list: render-farm:compiling"
    first, second = (draw.plain(line) for line in named_lines(f"{'What happened:':<18} ", long, 77))
    assert second == " " * 19 + "list: render-farm:compiling"
    assert not first.endswith(" ")


# --- numbers that add up, cores that do not live ----------------------------------------------------------------------


@pytest.mark.rule("V1")
def test_open_and_done_are_every_row_once() -> None:
    board = board_of(*seeded(), ENDED)
    counted = board.figures(MOMENT).by_view
    assert counted[View.OPEN] + counted[View.DONE] == len(board.operations)
    both = (board.ordered(view, "", Sort.OPERATION, False, MOMENT) for view in (View.OPEN, View.DONE))
    assert sorted(each for ids in both for each in ids) == sorted(board.operations)


@pytest.mark.rule("O8", "V1")
@pytest.mark.parametrize("due", [-SECOND, 48 * SECOND])
def test_the_detail_promises_no_request_while_no_core_polls(due: int) -> None:
    row = operation(1, next_poll_at=Instant(NOW + due))
    said = draw.join(fact_lines(row, MOMENT, False, polled=False))
    assert "no core is running" in said
    assert "next " not in said
    assert "next " in draw.join(fact_lines(row, MOMENT, False))


@pytest.mark.rule("O8")
def test_a_core_that_ended_here_polls_no_more_although_it_beat_a_moment_ago() -> None:
    beat = Beat("own", 1, "console", NOW, BootMs(MOMENT.boot), MOMENT.boot_id, "ops1", mine=True)
    assert not is_polled(Delta(role=CoreRole.FAILED, beats=(beat,)), MOMENT)
    assert is_polled(Delta(role=CoreRole.READ_ONLY, beats=(beat,)), MOMENT)
