"""Counts that are kept as rows change are the counts that a look at every row gives."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.console.seed import MOMENT, NOW, operation, stopped

from pollconsole import board as boards
from pollconsole import tally
from pollconsole.board import Board, Sort, View
from pollconsole.mailbox import Delta
from pollconsole.tally import Tally
from pollcore.facts import MINUTE, SECOND, BootMs, Instant, Moment, Operation, Status, StopReason

ROWS = 6
NEAR = st.integers(-40, 40)
"""Minutes around now: within them waits begin to run low and end."""


@st.composite
def records(draw: st.DrawFn) -> Operation:
    useful = draw(st.none() | NEAR)
    return operation(
        draw(st.integers(1, ROWS)),
        draw(st.sampled_from(list(Status))),
        stop_reason=draw(st.none() | st.sampled_from(list(StopReason))),
        os_user=draw(st.sampled_from(["ann", "agent"])),
        change=draw(st.integers(1, 100)),
        deadline_at=Instant(NOW + draw(NEAR) * MINUTE),
        useful_until=None if useful is None else Instant(NOW + useful * MINUTE),
        status_requests_used=draw(st.sampled_from([0, 11])),
        boot_id=draw(st.sampled_from([MOMENT.boot_id, "another boot"])),
    )


@st.composite
def moments(draw: st.DrawFn) -> Moment:
    """Any: the wall clock is put back, the boot clock stands still or begins anew, and both go on."""
    wall = Instant(NOW + draw(NEAR) * MINUTE)
    return Moment(wall, BootMs(MOMENT.boot + draw(NEAR) * MINUTE), draw(st.sampled_from([MOMENT.boot_id, "boot-2"])))


def seen(board: Board, now: Moment) -> dict[View, int]:
    return {view: len(board.ordered(view, "", Sort.ATTENTION, False, now)) for view in View}


@pytest.mark.rule("V1")
@given(st.lists(st.tuples(st.lists(records(), max_size=4), moments(), st.booleans()), min_size=1, max_size=8))
def test_each_view_counts_what_it_shows_however_rows_and_clocks_change(
    steps: list[tuple[list[Operation], Moment, bool]],
) -> None:
    """Rows come, change, end and are forgotten; questions open and close; clocks jump."""
    with patch.object(boards, "MAX_ENDED", 2), patch.object(tally, "MAX_STALE", 3):
        board = Board()
        for number, (operations, now, asks) in enumerate(steps):
            questions = (stopped(number % ROWS + 1, StopReason.DEADLINE_EXCEEDED).question,) if asks else ()
            board.apply(Delta(operations=tuple(operations), questions=tuple(q for q in questions if q), loaded=True))
            now = Moment(Instant(now.wall + number * SECOND), now.boot, now.boot_id)  # no second twice
            figures = board.figures(now)
            assert figures.by_view == seen(board, now)
            live = [each for each in board.operations.values() if not each.status.is_end]
            assert figures.live == len(live)
            assert figures.handed_over_by == {each.submitted.os_user for each in live}


@pytest.mark.rule("V1")
def test_a_wait_counts_as_low_by_either_clock_and_no_longer_once_its_clock_or_its_record_says_otherwise() -> None:
    board = Board()
    board.apply(Delta(operations=(operation(1), operation(2)), loaded=True))
    later = MOMENT.after(29 * MINUTE)
    second = Instant(NOW + SECOND)

    def low(now: Moment) -> int:
        return board.figures(now).by_view[View.LOW]

    assert low(MOMENT) == 0
    assert low(later) == 2
    assert low(Moment(second, later.boot, later.boot_id)) == 2, "the wall clock was put back, the other goes on"
    assert low(Moment(Instant(second + SECOND), later.boot, "boot-2")) == 0, "another start of the machine"
    assert low(Moment(NOW, later.boot, later.boot_id)) == 2
    assert low(Moment(second, BootMs(MOMENT.boot), later.boot_id)) == 0
    assert low(Moment(Instant(second + 2 * SECOND), later.boot, later.boot_id)) == 2, "the other clock alone went on"
    assert low(later) == 2
    more = operation(1, deadline_at=Instant(NOW + 3_000 * MINUTE))
    board.apply(Delta(operations=(more, operation(2, Status.SUCCEEDED)), loaded=True))
    assert low(later.after(SECOND)) == 0
    assert low(MOMENT.after(2_900 * MINUTE)) == 1
    assert low(MOMENT.after(2_800 * MINUTE)) == 1
    assert low(Moment(Instant(NOW + 2 * MINUTE), BootMs(MOMENT.boot + 2_901 * MINUTE), "boot-3")) == 0
    assert low(MOMENT.after(MINUTE)) == 0, "the wall clock was put back, the boot clock with it"
    assert low(Moment(Instant(NOW + 2_900 * MINUTE), BootMs(MOMENT.boot + MINUTE), MOMENT.boot_id)) == 1
    assert low(Moment(NOW, BootMs(MOMENT.boot + MINUTE), MOMENT.boot_id)) == 0, "the wall clock alone was put back"


@pytest.mark.rule("V1")
def test_what_is_kept_for_replaced_records_stays_bounded() -> None:
    board = Board()
    kept = board._tally
    assert isinstance(kept, Tally)
    for number in range(3 * tally.MAX_STALE):
        board.apply(Delta(operations=(operation(1, change=number + 1),), loaded=True))
        board.figures(MOMENT.after(number * 100))  # five minutes in all: it never runs low
    assert len(kept._walls) <= tally.MAX_STALE + 3
    assert len(kept._boots) <= tally.MAX_STALE + 3
