"""What screens are made of, without a screen: rows, order, wrapped lines, themes, what a decision did."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from tests.console.screens.fakes import FakeOutcome
from tests.console.seed import HOSTILE, MOMENT, NOW, operation, seeded, stopped
from tests.console.seed import Seeded as SeededRow
from textual.color import Color

from pollconsole import draw, due, row_columns, rows, themes
from pollconsole.board import Board, Sort, View
from pollconsole.causes import by_cause
from pollconsole.mailbox import Delta
from pollconsole.row_facts import RowFacts, finder
from pollconsole.safe import safe
from pollconsole.screens.card_lines import outcome_words as single_words
from pollconsole.screens.cause_words import why
from pollconsole.screens.detail_lines import fact_lines
from pollconsole.screens.group_lines import outcome_lines, outcome_words
from pollconsole.screens.story import story_line
from pollcore.facts import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Choice,
    ChoiceKind,
    Instant,
    Refused,
    Status,
    StopReason,
)

TEXTS = st.text(max_size=60) | st.sampled_from([HOSTILE, "导出报告 导出", "a" * 90, "x " * 40])


def board_of(*seeded_rows: object) -> Board:
    board = Board()
    given_rows = list(seeded_rows or seeded())
    board.apply(
        Delta(
            operations=tuple(each.operation for each in given_rows),  # type: ignore[attr-defined]
            questions=tuple(each.question for each in given_rows if each.question),  # type: ignore[attr-defined]
            loaded=True,
        )
    )
    return board


@pytest.mark.rule("V1", "V3")
@given(TEXTS, st.integers(-2, 30), st.integers(0, 30))
@example("a word", 2, 4)
@example("\u5b57" * 3, 1, 1)
def test_text_wraps_in_any_width_also_where_the_indent_alone_is_wider(said: str, width: int, indent: int) -> None:
    lines = draw.wrap((draw.text(said),), width, indent=indent)
    assert 1 <= len(lines) <= draw.MAX_WRAPPED
    widest = max((cell_len(character) for character in said), default=1)
    assert all(draw.width_of(line) <= max(width, widest) for line in lines)
    words = "".join(draw.plain(line) for line in lines).replace(" ", "")
    whole = draw.text(said)[0].replace(" ", "")
    assert words == whole or (len(lines) == draw.MAX_WRAPPED and words.endswith(draw.ELLIPSIS))


@pytest.mark.rule("V1")
@given(width=st.integers(40, 240), state=TEXTS, job=TEXTS, provider=TEXTS, used=st.integers(0, 100_000))
def test_a_row_fills_its_columns_exactly_whatever_the_texts(
    width: int, state: str, job: str, provider: str, used: int
) -> None:
    row = operation(
        1, last_known_state=state, job_id=job, provider=provider, status_requests_used=used, max_status_requests=100_000
    )
    columns = row_columns.columns_for(width)
    cells = rows.row(row, MOMENT, columns, asked=False)
    assert [cell_len(text) for text, _ in cells] == [column.width for column in columns]
    total = row_columns.LEAD + sum(column.width for column in columns) + len(columns) - 1
    assert total <= width
    assert all(role in themes.ROLES for _, role in cells)
    assert all(character.isprintable() for text, _ in cells for character in text)


@pytest.mark.rule("V1")
def test_at_eighty_columns_every_budget_has_its_column() -> None:
    assert {column.key for column in row_columns.columns_for(79)} == {
        *("operation", "provider", "status", "state", "next", "left", "requests", "failures", "limited"),
    }


@pytest.mark.rule("V1")
def test_at_eighty_columns_an_id_and_every_figure_stand_whole_and_a_provider_is_told() -> None:
    row = operation(
        1, operation_id="op-0123456789ab", provider="render-farm", status_requests_used=118, max_status_requests=120
    )
    columns = row_columns.columns_for(79, row_columns.wanted_by([row_columns.cells_of(row)]))
    cells = {c.key: text for c, (text, _) in zip(columns, rows.row(row, MOMENT, columns, asked=False), strict=True)}
    assert cells["operation"] == "op-0123456789ab"
    assert cells["requests"] == "118/120!"
    assert cells["provider"].startswith("rende")
    other = operation(1, operation_id="op-311", provider="render-farm")
    short = row_columns.columns_for(79, row_columns.wanted_by([row_columns.cells_of(other)]))
    assert next(column.width for column in short if column.key == "provider") >= len("render-farm")


@pytest.mark.rule("G4")
@pytest.mark.parametrize("space", ["\xa0", "\u2003", "\u3000", "\u202f", "\u1680"])
def test_a_space_of_another_kind_is_drawn_as_a_plain_one(space: str) -> None:
    assert safe(f"a{space}b") == "a b"
    assert safe(f"a{space}\nb", multiline=True) == "a \nb"


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (HOUR - SECOND, "59:59"),
        (HOUR - 1, "1h 00m"),
        (HOUR, "1h 00m"),
        (HOUR + 4 * MINUTE, "1h 04m"),
        (23 * HOUR, "23h00m"),
        (2 * DAY, "2d 0h"),
    ],
)
def test_the_next_request_stands_in_its_six_cells(ms: int, shown: str) -> None:
    assert rows.short_countdown(ms) == shown


@pytest.mark.parametrize(
    ("ms", "shown"),
    [(1, "0:01"), (12 * SECOND, "0:12"), (HOUR + 4 * MINUTE + 10 * SECOND, "1:04:10"), (2 * DAY + 4 * HOUR, "2d 4h")],
)
def test_a_countdown_reads_like_a_clock_and_zero_means_now(ms: int, shown: str) -> None:
    assert rows.countdown(ms) == shown


@pytest.mark.parametrize(
    ("used", "allowed", "shown", "role"),
    [(0, 3, "0/3", "muted"), (1, 3, "1/3", "text"), (118, 120, "118/120!", "attention"), (12, 12, "12/12!", "danger")],
)
def test_a_budget_that_runs_out_is_marked_by_a_sign_and_not_by_colour_alone(
    used: int, allowed: int, shown: str, role: str
) -> None:
    assert rows.budget_span(used, allowed) == (shown, role)


@pytest.mark.rule("B5", "T9")
def test_time_left_counts_to_the_nearest_end_by_the_nearer_clock() -> None:
    row = operation(1, useful_until=Instant(NOW + 5 * MINUTE))
    assert due.time_left(row, MOMENT) == 5 * MINUTE
    slow = msgspec.structs.replace(row, useful_until=None, deadline_boot=type(MOMENT.boot)(MOMENT.boot + MINUTE))
    assert due.time_left(slow, MOMENT) == MINUTE


def test_every_status_has_a_word_a_sign_and_a_role() -> None:
    for status in Status:
        word, role = rows.status_span(operation(1, status), False)
        assert word[1] == " "
        assert role in themes.ROLES


def test_what_needs_a_person_is_ordered_first_then_what_runs_low() -> None:
    board = board_of()
    ids = board.ordered(View.OPEN, "", Sort.ATTENTION, False, MOMENT)
    assert set(ids[:4]) == set(board.questions)
    assert ids[4] == "op-00000004"
    assert ids[-1] == "op-00000007"


@given(sort=st.sampled_from(list(Sort)), reverse=st.booleans(), view=st.sampled_from(list(View)))
def test_every_order_shows_each_row_of_a_view_once(sort: Sort, reverse: bool, view: View) -> None:
    board = board_of()
    ids = board.ordered(view, "", sort, reverse, MOMENT)
    assert len(ids) == len(set(ids)) == board.figures(MOMENT).by_view[view]
    assert ids == board.ordered(view, "", sort, reverse, MOMENT)


def test_a_held_operations_own_question_waits_for_nobody() -> None:
    held = stopped(0x40, StopReason.OPERATOR_REQUEST, Status.HELD, hold_until=Instant(NOW + MINUTE))
    board = board_of(held)
    assert not board.asked(held.operation)
    assert board.waiting(MOMENT).total == 0


def test_a_filter_finds_by_word_and_by_field() -> None:
    row = RowFacts(operation(1, provider="acme", label="Nightly Export", last_known_state="running"))
    assert finder("nightly acme")(row)
    assert finder("state:run provider:ac")(row)
    assert not finder("state:done")(row)
    assert not finder("provider:bolt")(row)


@pytest.mark.rule("E10")
def test_questions_of_one_cause_stand_together_the_oldest_first() -> None:
    asked = [
        stopped(1, StopReason.UNKNOWN_STATE, cause="a", asked_ago=10 * SECOND),
        stopped(2, StopReason.JOB_FAILED, cause="b", asked_ago=90 * SECOND),
        stopped(3, StopReason.NEEDS_HUMAN, cause="a", asked_ago=5 * SECOND, useful_until=Instant(NOW + MINUTE)),
    ]
    board = board_of(*asked)
    causes = by_cause([each.question for each in asked if each.question], board.operations)
    assert [[question.operation_id[-1] for question in each.questions] for each in causes] == [["2"], ["1", "3"]]
    assert [why(each, short=False) for each in causes] == ["job_failed", "unknown_state +1 more"]
    assert [why(each, short=True) for each in causes] == ["job failed", "unknown state +1 more"]
    assert causes[1].oldest_at == NOW - 10 * SECOND
    assert causes[1].ends_at(NOW) == NOW + MINUTE
    assert by_cause([asked[0].question] if asked[0].question else [], {})[0].ends_at(NOW) is None
    waiting = board.waiting(MOMENT).decisions
    assert (waiting.count, waiting.cards) == (3, 2)


@pytest.mark.rule("E10", "G8")
def test_an_outcome_names_every_refused_operation_with_its_reason() -> None:
    outcome = FakeOutcome("extend", ("op-1", "op-2"), (("op-3", HOSTILE),), ("op-4",))
    lines = [draw.plain(line) for line in outcome_lines(outcome)]
    assert all(line.isprintable() for line in lines)
    assert [line for line in lines if line.startswith("op-3")]
    assert {"op-1", "op-2", "op-4"} <= set(lines)
    assert outcome_words(outcome) == "extend: done for 2, refused for 1, 1 were not offered it and stay asked"


@given(texts=st.lists(TEXTS, max_size=4), width=st.integers(1, 100), indent=st.integers(0, 4))
def test_wrapped_lines_hold_every_word_and_none_is_wider_than_the_screen(
    texts: list[str], width: int, indent: int
) -> None:
    line = tuple(draw.text(each) for each in texts)
    wrapped = draw.wrap(line, width, indent=min(indent, max(0, width - 2)))
    assert all(draw.width_of(each) <= max(width, 2) for each in wrapped)
    if len(wrapped) < draw.MAX_WRAPPED:
        joined = "".join(draw.plain(each) for each in wrapped)
        assert joined.replace(" ", "") == draw.plain(line).replace(" ", "")


@given(left=TEXTS, right=TEXTS, width=st.integers(1, 120))
def test_two_ends_of_a_line_fill_it_exactly(left: str, right: str, width: int) -> None:
    line = draw.beside((draw.text(left),), (draw.text(right),), width)
    assert draw.width_of(line) == width


@pytest.mark.parametrize("name", [name for name in themes.SHIPPED if name != "terminal"])
def test_a_shipped_theme_is_readable_in_every_role(name: str) -> None:
    loaded = next(each for each in themes.shipped() if each.name == name)
    ground = Color.parse(loaded.theme.background or "")
    for role, style in loaded.palette.roles.items():
        assert style.color is not None
        ink = Color.from_rich_color(style.color)
        least = {"faint": 2.5, "bar-empty": 1.2, "bar-full": 3.0}.get(role, 4.5)
        assert ground.get_contrast_text is not None
        assert contrast(ink, ground) >= least, role


def contrast(one: Color, other: Color) -> float:
    """The ratio of WCAG 2."""

    def light(colour: Color) -> float:
        parts = [part / 255 for part in colour.rgb]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('text = "#c9d1d9"', 'text = "#nope"'), "roles.text"),
        (('text = "#c9d1d9"', 'text = "auto 50%"'), "roles.text"),
        (('text = "#c9d1d9"', "text = 7"), "roles.text"),
        (('text = "#c9d1d9"', ""), "roles.text: missing"),
        (("[grounds]", "[grounds]\nhalo = '#000000'"), "grounds.halo"),
        (("dark = true", ""), "dark"),
        (("dark = true", "dark = true\nscript = 1"), "script"),
    ],
)
def test_a_theme_that_would_end_the_app_is_refused_by_file_and_key(change: tuple[str, str], said: str) -> None:
    source = themes.folder().joinpath("dark.toml").read_text("utf-8")
    assert change[0] in source
    with pytest.raises(Refused) as refused:
        themes.read("mine", source.replace(*change))
    assert said in str(refused.value)
    assert "mine.toml" in str(refused.value)


def test_the_story_keeps_its_words_and_marks_what_is_loud() -> None:
    line = "10:58:00 polled, state running, request budget exhausted, escalated"
    assert draw.plain(story_line(line)) == line
    assert story_line(line)[1][1] == "attention"
    assert story_line("2026-03-02") == (("2026-03-02", "faint"),)


def test_what_a_decision_did_is_said_in_figures() -> None:
    before = operation(1, Status.ESCALATED)
    after = msgspec.structs.replace(
        before, status=Status.WAITING, max_status_requests=16, deadline_at=Instant(before.deadline_at + 15 * MINUTE)
    )
    choice = Choice(key="1", kind=ChoiceKind.EXTEND, label="extend 15 min / 4 checks", grants=True)
    assert single_words(before, after, choice) == "extend 15 min / 4 checks: deadline 11:45:00, requests 16"
    closed = msgspec.structs.replace(before, status=Status.CLOSED)
    close = Choice(key="2", kind=ChoiceKind.CLOSE, label="close")
    assert single_words(before, closed, close) == "close: closed, we stop watching, the job may go on"


@pytest.mark.rule("V2")
def test_an_ended_operation_says_how_long_it_took_and_counts_no_further() -> None:
    ended = operation(20, Status.SUCCEEDED, now=MOMENT)
    later = msgspec.structs.replace(MOMENT, wall=Instant(MOMENT.wall + HOUR), boot=MOMENT.boot + HOUR)
    last = Instant(ended.started_at + 4 * MINUTE + 22 * SECOND)
    for now in (MOMENT, later):
        told = draw.join(fact_lines(ended, now, False, None, last))
        assert "took 4 min 22 s of " in told
        assert " left" not in told
        assert "unnamed" not in told


@pytest.mark.rule("V1")
@given(st.data())
def test_when_a_row_begins_to_run_low_is_what_its_budgets_and_clocks_say(data: st.DataObject) -> None:
    """What ordering and counting keep of a record against the definition: under a tenth of any budget is left."""
    number = st.integers(0, 40)
    moment = MOMENT.after(data.draw(st.integers(-40 * MINUTE, 40 * MINUTE)))
    useful = data.draw(st.none() | st.integers(-40 * MINUTE, 40 * MINUTE))
    row = operation(
        1,
        data.draw(st.sampled_from(list(Status))),
        status_requests_used=data.draw(number),
        transport_failures_used=data.draw(number),
        rate_limited_used=data.draw(number),
        useful_until=None if useful is None else Instant(NOW + useful),
        boot_id=data.draw(st.sampled_from([MOMENT.boot_id, "another boot"])),
    )
    spent = (
        (row.status_requests_used, row.max_status_requests),
        (row.transport_failures_used, row.max_transport_failures),
        (row.rate_limited_used, row.max_rate_limited),
    )
    whole = row.deadline_at - row.started_at
    low = due.time_left(row, moment) < whole / 10 or any(most - used < most / 10 for used, most in spent)
    found = rows.low_from(row)
    assert (found is not None and found.at(moment)) == (low and not row.status.is_end)
    board = board_of(SeededRow(row))
    assert (board.ordered(View.LOW, "", Sort.ATTENTION, False, moment) != []) == (low and not row.status.is_end)
    counted = board.figures(moment).by_view
    for view in set(View) - {View.MARKED}:
        assert counted[view] == len(board.ordered(view, "", Sort.ATTENTION, False, moment)), view


@pytest.mark.rule("V1")
def test_a_newer_record_is_ordered_counted_and_found_by_what_it_says_now() -> None:
    before = operation(1, last_known_state="queued")
    board = board_of(SeededRow(before))
    assert board.ordered(View.OPEN, "queued", Sort.ATTENTION, False, MOMENT) == [before.operation_id]
    after = operation(1, Status.SUCCEEDED, last_known_state="done", change=before.change + 1)
    board.apply(Delta(operations=(after,), loaded=True))
    assert board.ordered(View.OPEN, "queued", Sort.ATTENTION, False, MOMENT) == []
    assert board.ordered(View.DONE, "done", Sort.ATTENTION, False, MOMENT) == [after.operation_id]
    assert board.figures(MOMENT.after(SECOND)).by_view[View.DONE] == 1
