"""When to ask again, by hand-made numbers."""

from __future__ import annotations

import random

import msgspec
import pytest
from tests.core.rules.make import NOW, T0, hint, operation, retry_after

from pollcore import schedule
from pollcore.facts import (
    DAY,
    HOUR,
    MINUTE,
    BootMs,
    DelaySource,
    Instant,
    Moment,
    Schedule,
    Status,
)

LAST = 0.999_999_999


@pytest.mark.rule("T1")
@pytest.mark.parametrize(("polls", "low", "high"), [(1, 5_000, 10_000), (2, 10_000, 20_000), (5, 60_000, 120_000)])
def test_local_backoff_doubles_and_is_drawn_from_the_upper_half(polls: int, low: int, high: int) -> None:
    plan = Schedule()
    assert schedule.local_delay(plan, polls, 0, 0.0) == low
    assert schedule.local_delay(plan, polls, 0, LAST) == high
    assert low < schedule.local_delay(plan, polls, 0, 0.5) < high


@pytest.mark.rule("T1")
def test_local_backoff_never_overflows_however_many_polls() -> None:
    assert schedule.local_delay(Schedule(), 10**100, 0, LAST) == 120_000


@pytest.mark.rule("T2")
def test_the_first_delay_is_jittered_and_the_smallest_is_a_floor_after_the_jitter() -> None:
    assert schedule.local_delay(Schedule(), 0, 0, 0.0) == 2_500
    assert schedule.local_delay(Schedule(), 0, 0, LAST) == 5_000
    assert schedule.local_delay(Schedule(min_delay=4_000), 0, 0, 0.0) == 4_000
    assert schedule.local_delay(Schedule(first_delay=60_000), 0, 0, LAST) == 60_000


@pytest.mark.rule("T2")
def test_an_expected_duration_sets_first_and_smallest_delay_only_where_the_contract_does_not() -> None:
    plan = Schedule(expected_duration=20 * MINUTE)
    assert (schedule.first_delay(plan), schedule.min_delay(plan)) == (2 * MINUTE, 20_000)
    own = Schedule(expected_duration=20 * MINUTE, first_delay=7_000, min_delay=3_000)
    assert (schedule.first_delay(own), schedule.min_delay(own)) == (7_000, 3_000)
    batch = Schedule(expected_duration=DAY)
    assert schedule.local_delay(batch, 1, 0, 0.0) == DAY // 60


@pytest.mark.rule("T7")
def test_unguided_429s_in_a_row_multiply_the_wait_up_to_their_cap() -> None:
    plan = Schedule()
    assert schedule.local_delay(plan, 1, 1, LAST) == 40_000
    assert schedule.local_delay(plan, 2, 2, LAST) == 320_000
    assert schedule.local_delay(plan, 9, 10**6, LAST) == 480_000
    assert schedule.local_delay(Schedule(rate_limit_max_delay=90_000), 2, 9, LAST) == 90_000


@pytest.mark.rule("T5")
def test_retry_after_is_a_floor_whatever_the_draw() -> None:
    plan = Schedule()
    assert schedule.guided_delay(plan, 120_000, 0.0) == 120_000
    assert 131_900 <= schedule.guided_delay(plan, 120_000, LAST) <= 132_000
    assert schedule.guided_delay(plan, 0, 0.0) == 2_500


@pytest.mark.rule("T5")
def test_the_spread_of_guidance_is_cut_before_a_limit_and_leaves_room_for_the_request() -> None:
    assert schedule.guided_delay(Schedule(), 100_000, LAST, room_ms=104_000) == 102_000


@pytest.mark.rule("T10")
def test_the_longest_interval_bounds_backoff_but_not_guidance() -> None:
    plan = Schedule(max_interval=30_000)
    assert schedule.local_delay(plan, 50, 3, LAST) == 30_000
    assert schedule.guided_delay(plan, 60_000, 0.0) == 60_000
    assert schedule.local_delay(Schedule(expected_duration=DAY, max_interval=30_000), 9, 0, 0.0) == 30_000


@pytest.mark.rule("T8", "T11")
def test_releases_are_spread_wider_the_more_there_are_and_under_the_cap() -> None:
    assert schedule.spread(60_000, 0.0) == 60_000
    assert 65_900 < schedule.spread(60_000, LAST) <= 66_000
    assert schedule.spread(0, LAST, waiting=3_000) > 299_000
    assert schedule.spread(0, LAST, waiting=10, per_minute=10) > 59_000
    assert schedule.spread(60_000, LAST, room_ms=61_000) == 60_500


@pytest.mark.rule("T8")
def test_thousands_that_a_cool_down_held_back_are_let_go_one_every_gap() -> None:
    """The n-th has the n-th gap, whatever it draws; the first ones share the smallest window."""
    chance = random.Random(7)
    offsets = sorted(schedule.spread(60_000, chance.random(), waiting=n) - 60_000 for n in range(1, 3_001))
    busiest = max(sum(1 for at in offsets if second <= at < second + 1_000) for second in range(0, 300_000, 1_000))
    # one every 100 ms is ten a second
    assert busiest <= 22
    assert 290_000 < offsets[-1] <= 300_000


@pytest.mark.rule("T2", "B6")
def test_the_first_poll_of_a_job_handed_over_late_counts_from_its_start() -> None:
    plan = Schedule(expected_duration=20 * MINUTE)
    fresh = schedule.first_poll(plan, started_at=T0, now=NOW, draw=LAST, room_ms=HOUR)
    late = schedule.first_poll(plan, started_at=Instant(T0 - HOUR), now=NOW, draw=LAST, room_ms=HOUR)
    assert fresh.next_poll_at == T0 + 2 * MINUTE
    assert late.next_poll_at == T0 + 20_000


@pytest.mark.rule("T5", "T4")
def test_the_first_poll_obeys_valid_guidance_and_never_passes_the_limit() -> None:
    guided = schedule.first_poll(
        Schedule(), started_at=T0, now=NOW, draw=0.0, room_ms=HOUR, guidance=retry_after(9_000)
    )
    assert (guided.next_poll_at, guided.source) == (T0 + 9_000, DelaySource.PROVIDER_RETRY_AFTER)
    assert guided.guidance_until == T0 + 9_000
    wild = schedule.first_poll(Schedule(), started_at=T0, now=NOW, draw=LAST, room_ms=1_000, guidance=hint(HOUR))
    assert (wild.next_poll_at, wild.source) == (T0 + 1_000, DelaySource.LOCAL_BACKOFF)


@pytest.mark.rule("T9")
@pytest.mark.parametrize(
    ("changes", "due"),
    [
        ({"next_poll_at": Instant(T0 + 9_000)}, 9_000),
        ({"next_poll_at": Instant(T0 + 9_000), "useful_until": Instant(T0 + 4_000)}, 4_000),
        ({"next_poll_at": Instant(T0 + 2 * HOUR)}, HOUR),
        ({"status": Status.HELD, "hold_until": Instant(T0 + 60_000)}, 60_000),
        ({"status": Status.AWAITING_APPROVAL, "next_poll_at": T0}, HOUR),
        ({"status": Status.ESCALATED, "useful_until": Instant(T0 - 1)}, HOUR),
        ({"status": Status.ESCALATED, "deadline_at": Instant(T0 - 1)}, None),
        ({"status": Status.CLOSED}, None),
    ],
)
def test_what_is_due_next_is_the_nearest_of_poll_hold_and_limits(changes: dict[str, object], due: int | None) -> None:
    found = schedule.due_boot(operation(**changes), NOW)
    assert found == (None if due is None else NOW.boot + due)


@pytest.mark.rule("T9")
def test_another_boot_takes_what_the_wall_clock_leaves_once() -> None:
    record = operation(next_poll_at=Instant(T0 + 30_000), deadline_boot=BootMs(NOW.boot + HOUR))
    rebooted = Moment(Instant(T0 + 10_000), BootMs(77), "boot-2")
    moved = schedule.reanchor(record, rebooted)
    assert (moved.boot_id, moved.deadline_boot, moved.due_boot) == ("boot-2", 77 + HOUR - 10_000, 77 + 20_000)
    assert schedule.reanchor(moved, rebooted) is moved
    assert msgspec.structs.replace(
        moved, boot_id="boot-1", deadline_boot=record.deadline_boot, due_boot=record.due_boot
    ) == (record)


@pytest.mark.rule("T9")
def test_a_wall_clock_set_back_or_forward_does_not_move_a_wait() -> None:
    record = operation(next_poll_at=Instant(T0 + 30_000), due_boot=BootMs(NOW.boot + 30_000))
    at = Instant(T0 + 30_000)
    back = Moment(Instant(T0 - HOUR), BootMs(NOW.boot + 30_000), "boot-1")
    forward = Moment(Instant(T0 + 10 * MINUTE), BootMs(NOW.boot + 10_000), "boot-1")
    assert schedule.reached(record, at, back)
    assert not schedule.reached(record, at, forward)
