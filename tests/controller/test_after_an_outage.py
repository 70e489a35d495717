"""T11: looks at an origin that is down are soon, however many wait; its answer lets them go spread, deadlines first."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pollcore.controller.release import KEPT_MS, MAX_LET_GO, Release
from pollcore.controller.shared import PROBE_LOOK_MS, Shared
from pollcore.controller.unsent import RECHECK_MS
from pollcore.facts import HOUR, MINUTE, SECOND, BootMs, Instant, Moment, Status
from pollcore.schedule import RELEASE_GAP
from tests.controller.bank import DONE
from tests.controller.batch_house import registry, shared_house
from tests.controller.house import house
from tests.controller.test_company import NOW, operation
from tests.controller.test_shared_requests import hand_over
from tests.controller.test_shared_waits import MANY, most_in_a_second, outage

ORIGIN = "https://one.test:443"


def later(ms: int) -> Moment:
    return Moment(Instant(NOW.wall + ms), BootMs(NOW.boot + ms), NOW.boot_id)


def down() -> Shared:
    shared = Shared()
    for n in range(3):
        shared.faulted(operation(n), ORIGIN, NOW)
    return shared


@pytest.mark.rule("T11")
def test_of_ten_thousand_that_wait_the_last_looks_again_as_soon_as_one_alone_at_the_latest() -> None:
    shared, one = down(), operation(0)
    looks = [shared.look_again(one, ORIGIN, NOW, RECHECK_MS, n % 97 / 97, HOUR) for n in range(10_000)]
    assert max(looks) <= RECHECK_MS
    # and they are spread: no second has more than a fifth of them
    assert max(sum(at <= other < at + SECOND for other in looks) for at in range(0, RECHECK_MS, SECOND)) <= 2_000


@pytest.mark.rule("T11", "X2")
@given(room=st.integers(0, HOUR), waiting=st.integers(1, 300), draw=st.floats(0, 1, exclude_max=True))
@settings(deadline=None, max_examples=50)
def test_no_look_lies_beyond_half_of_what_is_left_unless_a_probe_takes_longer(
    room: int, waiting: int, draw: float
) -> None:
    shared, one = down(), operation(0)
    looks = [shared.look_again(one, ORIGIN, NOW, RECHECK_MS, draw, room) for _ in range(waiting)]
    assert max(looks) <= max(PROBE_LOOK_MS, room // 2)


@pytest.mark.rule("T11")
@given(
    comes=st.lists(st.integers(0, 3_000), min_size=1, max_size=200),
    together=st.integers(1, 30),
    draw=st.floats(0, 1, exclude_max=True),
)
@settings(deadline=None, max_examples=60)
def test_who_has_time_goes_one_request_after_the_other_and_a_full_request_is_one(
    comes: list[int], together: int, draw: float
) -> None:
    release, at = Release(), []
    for n, come in enumerate(sorted(comes)):
        left = release.left(f"o{n}", later(come), HOUR, draw, together)
        at.append(come + left)
        # its time stays, and once it has come the operation goes however often it is asked for
        assert release.left(f"o{n}", later(come), HOUR, draw, together) == left
        assert release.left(f"o{n}", later(come + left + 7), HOUR, draw, together) == 0
    times = sorted(set(at))
    assert all(after - before >= RELEASE_GAP for before, after in pairwise(times))
    assert max(at.count(one) for one in times) <= together
    assert times[-1] <= max(comes) + RELEASE_GAP * -(-len(comes) // together)


@pytest.mark.rule("T11", "X2")
def test_who_is_nearer_to_its_deadline_than_its_place_goes_before_and_takes_no_place() -> None:
    release = Release()
    for n in range(1_000):
        release.left(f"o{n}", NOW, HOUR, 0.5, 1)
    assert release.left("near", NOW, 20 * SECOND, 0.5, 1) == 5 * SECOND
    assert release.left("last", NOW, HOUR, 0.5, 1) == 1_000 * RELEASE_GAP


@pytest.mark.rule("T11")
def test_a_release_that_is_over_holds_nobody_back_and_what_it_remembers_is_bounded() -> None:
    release = Release()
    for n in range(MAX_LET_GO):
        release.left(f"o{n}", NOW, 3 * 24 * HOUR, 0.5, 1)
    assert release.left("more", NOW, 3 * 24 * HOUR, 0.5, 1) == 0
    over = later(MAX_LET_GO * RELEASE_GAP + KEPT_MS)
    assert release.left("late", over, HOUR, 0.5, 1) == 0
    assert release.left("later", over, HOUR, 0.5, 1) == RELEASE_GAP


@pytest.mark.slow
@pytest.mark.rule("T11", "X2")
async def test_nobody_ends_at_its_deadline_though_the_origin_answered_well_before(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await outage(h, 400, 20 * SECOND, MINUTE, deadline_ms=50 * SECOND)
        ends = [await h.op(f"op-j{n}") for n in range(400)]
        assert {op.status for op in ends} == {Status.SUCCEEDED}


@pytest.mark.slow
@pytest.mark.rule("T11")
async def test_of_many_whose_looks_come_close_together_no_more_go_than_the_pace_lets(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        released = await outage(h, 400, MINUTE, 3 * MINUTE)
        assert len(released) == 400
        assert most_in_a_second(released) <= 20


@pytest.mark.rule("T11")
async def test_those_that_share_a_request_are_let_go_together(tmp_path: Path) -> None:
    async with shared_house(tmp_path, most=20, gather="1s") as h:
        await h.bank.close_port()
        names = await hand_over(h, 60, DONE, **MANY)
        await h.run(MINUTE)
        await h.bank.open_port()
        await h.run(2 * MINUTE)
        for name in names:
            assert (await h.op(f"op-{name}")).status is Status.SUCCEEDED
        # the probe, and the others in few requests
        assert len(registry(h).asked) <= 12
