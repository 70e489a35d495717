"""Lines as they are drawn, without a screen: the order of rows, signs of a status, warnings of a choice, key counts."""

from __future__ import annotations

import msgspec
import pytest
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import console, screen_text, until
from tests.console.seed import MOMENT, operation

from pollconsole import draw, row_columns, rows, words
from pollconsole.board import Sort
from pollconsole.cli import takeover
from pollconsole.guard_card import guard_lines
from pollconsole.guard_facts import GuardView, State
from pollconsole.screens.card_lines import guard_bar, priced_lines
from pollconsole.screens.deciding import not_done
from pollconsole.screens.detail_lines import fact_lines
from pollconsole.screens.operation_table import column_line
from pollcore.facts import HOUR, MINUTE, Instant, Refused, Status, StoreUnusable

HEADS = {
    Sort.DEADLINE: "LEFT",
    Sort.NEXT: "NEXT",
    Sort.OPERATION: "OPERATION",
    Sort.PROVIDER: "PROVIDER",
    Sort.STATUS: "STATUS",
    Sort.REQUESTS: "REQ",
}


@pytest.mark.rule("V1")
@pytest.mark.parametrize("width", [58, 79, 99, 140])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("sort", list(Sort))
def test_every_order_that_was_chosen_is_shown_over_the_rows_at_every_width(
    sort: Sort, reverse: bool, width: int
) -> None:
    columns = row_columns.columns_for(width, row_columns.wanted_by([]))
    plain = draw.plain(column_line(columns))
    line = draw.plain(column_line(columns, sort, reverse=reverse))
    sign = "v" if reverse else "^"
    if sort is Sort.ATTENTION and not reverse:
        assert line == plain
    elif sort in HEADS and (sort is not Sort.PROVIDER or width >= 79):
        assert f"{sign}{HEADS[sort]}"[:6] in line
    else:
        assert line.startswith(f"{sign} OPERATION")
    assert len(line) == len(plain)


@pytest.mark.rule("V1")
async def test_the_kept_order_is_on_the_screen_at_eighty_columns(fake: FakeCore) -> None:
    async with console(fake.runner, size=(80, 24)) as (app, pilot):
        await pilot.press("s", "r")
        await until(pilot, lambda: "^REQ" in screen_text(app).splitlines()[2], "it says what it is ordered by")
        await pilot.press("S")
        await until(pilot, lambda: "vREQ" in screen_text(app).splitlines()[2], "and that it is reversed")


@pytest.mark.rule("V1")
@pytest.mark.parametrize("id_cells", [9, 15, 60])
@pytest.mark.parametrize("width", [34, 46, 60, 79, 99, 140])
@pytest.mark.parametrize("status", list(Status))
def test_a_status_keeps_its_sign_in_every_width(status: Status, width: int, id_cells: int) -> None:
    row = operation(1, status, operation_id="x" * id_cells, status_requests_used=118, max_status_requests=120)
    columns = row_columns.columns_for(width, row_columns.wanted_by([row_columns.cells_of(row)]))
    at = next(n for n, column in enumerate(columns) if column.key == "status")
    for asked in (True, False):
        sign = "!" if asked else words.STATUS[status][0]
        shown = rows.row(row, MOMENT, columns, asked=asked)[at][0]
        assert shown.startswith(f"{sign} ")
        assert draw.ELLIPSIS not in shown


@pytest.mark.rule("E3")
@pytest.mark.parametrize("width", [77, 137])
def test_each_warning_and_each_reason_against_a_choice_begins_a_line(width: int) -> None:
    loud = ["warning: it costs", "warning: a cancel was already sent", "cannot be chosen: the contract forbids it"]
    for costs in ([], ["status requests 12 -> 15"]):
        lines = priced_lines((("1  cancel", "key"),), [*costs, "A cancel is sent.", *loud], width)
        said = [draw.plain(line).strip() for line in lines]
        assert said[-3:] == loud
        assert not any(each in other for each in loud for other in said[:-3])


def test_one_ignored_key_is_one_key() -> None:
    view = GuardView(state=State.ARMED, step=1, fraction=1.0, marker="m", prompt="p", message="ready", rejected_keys=1)
    many = msgspec.structs.replace(view, rejected_keys=2)
    for draw_it in (lambda each: draw.join(guard_bar(each)), lambda each: "\n".join(guard_lines(each))):
        assert "(1 key ignored)" in draw_it(view)
        assert "(2 keys ignored)" in draw_it(many)


@pytest.mark.rule("V2")
def test_a_decision_long_after_the_end_does_not_make_the_wait_longer() -> None:
    ended = operation(20, Status.FAILED, now=MOMENT)
    assert ended.last_http is not None
    took = words.span(ended.last_http.answered_at - ended.started_at)
    for last in (None, Instant(MOMENT.wall + HOUR)):
        assert f"took {took} of " in draw.join(fact_lines(ended, MOMENT, False, None, last))


@pytest.mark.rule("B6")
def test_the_detail_tells_the_jobs_start_from_the_hand_over_where_they_differ() -> None:
    one = operation(1)
    assert "job started" not in draw.join(fact_lines(one, MOMENT, False))
    later = msgspec.structs.replace(one, submitted_at=Instant(one.started_at + 5 * MINUTE))
    told = draw.join(fact_lines(later, MOMENT, False))
    assert "submitted    10:55:00 UTC" in told
    assert "job started 10:50:00 UTC" in told


@pytest.mark.rule("V5")
@pytest.mark.parametrize(
    ("event", "decision", "detail", "said"),
    [
        ("granted", "cancel_at_provider", "force-cancel at provider", "granted force-cancel at provider, op-1"),
        ("grant_refused", "extend", "extend 15 min / 4 checks", "grant refused extend 15 min / 4 checks, op-1"),
        ("closed", "close", "close", "closed, op-1"),
        ("rejected", "deny", "deny", "rejected deny, op-1"),
        ("tried", "wait", "running", "tried wait (running), op-1"),
    ],
)
def test_a_handover_says_what_was_decided_in_one_phrase(event: str, decision: str, detail: str, said: str) -> None:
    row = {"at": "T", "event": event, "decision": decision, "detail": detail, "operation_id": "op-1"}
    assert takeover._decided({**row, "operator": "ana", "caller": None, "text": None}) == f"T {said}, by ana"


@pytest.mark.rule("O5")
def test_what_may_have_left_is_never_told_as_refused() -> None:
    assert not_done(Refused("a limit has passed")) == "refused: a limit has passed"
    sent = "op-1: resubmit act-1 was carried out; its outcome could not be recorded"
    assert not_done(StoreUnusable(sent)) == sent
