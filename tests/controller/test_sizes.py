"""How many operations one request asks for: less after what was too much, more after good answers, within `max`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollcore.controller.sizes import (
    FAULTS_UNTIL_FEWER,
    GOOD_UNTIL_MORE,
    MAX_CONTRACTS,
    MAX_GOOD_UNTIL_MORE,
    TRIAL_MS,
    Sizes,
)
from pollcore.facts import BootMs, Instant, Moment

NOW = Moment(Instant(1_700_000_000_000), BootMs(500_000), "b")


def good(sizes: Sizes, most: int, times: int, now: Moment = NOW) -> None:
    """So many lists for as many as go together."""
    for _ in range(times):
        sizes.listed("d", most, sizes.of("d", most, now))


@pytest.mark.rule("B2")
def test_a_contract_that_is_known_is_halved_again_whatever_number_of_others_is_known() -> None:
    sizes = Sizes()
    for n in range(MAX_CONTRACTS):
        sizes.too_many(f"d{n}", 100, 100)
    sizes.too_many("d0", 100, 50)
    sizes.too_many("newest", 100, 100)
    assert (sizes.of("d0", 100, NOW), sizes.of("newest", 100, NOW)) == (25, 50)
    # the one that was not learned of for longest makes room
    assert (sizes.of("d1", 100, NOW), sizes.of("d2", 100, NOW)) == (100, 50)
    assert len(sizes._known) == MAX_CONTRACTS


def test_one_odd_answer_where_a_list_came_for_as_many_makes_no_request_smaller_and_the_second_does() -> None:
    sizes = Sizes()
    sizes.listed("d", 100, 100)
    sizes.too_many("d", 100, 60)
    assert sizes.of("d", 100, NOW) == 100
    sizes.too_many("d", 100, 60)
    assert sizes.of("d", 100, NOW) == 30
    sizes.listed("d", 100, 30)
    sizes.too_many("d", 100, 40)
    assert sizes.of("d", 100, NOW) == 20


@pytest.mark.rule("B4")
def test_one_failure_makes_no_request_smaller_and_every_second_one_in_a_row_halves() -> None:
    sizes, found = Sizes(), []
    for _ in range(14):
        sizes.failed("d", 100, sizes.of("d", 100, NOW))
        found.append(sizes.of("d", 100, NOW))
    assert FAULTS_UNTIL_FEWER == 2
    assert found == [100, 50, 50, 25, 25, 12, 12, 6, 6, 3, 3, 1, 1, 1]
    other = Sizes()
    for _ in range(9):
        other.failed("d", 100, 100)
        other.listed("d", 100, 100)
    assert other.of("d", 100, NOW) == 100


@pytest.mark.rule("B2")
def test_after_good_answers_more_go_together_again_until_max_and_never_beyond() -> None:
    sizes = Sizes()
    sizes.too_many("d", 45, 45)
    found = [sizes.of("d", 45, NOW)]
    for _ in range(7):
        good(sizes, 45, GOOD_UNTIL_MORE - 1)
        assert sizes.of("d", 45, NOW) == found[-1]
        good(sizes, 45, 1)
        found.append(sizes.of("d", 45, NOW))
    assert found == [22, 27, 32, 37, 42, 45, 45, 45]


@pytest.mark.rule("B2")
def test_answers_for_fewer_than_go_together_prove_nothing() -> None:
    sizes = Sizes()
    sizes.too_many("d", 100, 100)
    for _ in range(10 * GOOD_UNTIL_MORE):
        sizes.listed("d", 100, 49)
    assert sizes.of("d", 100, NOW) == 50


@pytest.mark.rule("B4")
def test_where_nobody_goes_with_others_answers_to_one_alone_lead_back_by_pairs() -> None:
    sizes = Sizes()
    for _ in range(9):
        sizes.failed("d", 100, 100)
        sizes.failed("d", 100, 2)
    assert sizes.of("d", 100, NOW) == 1
    for _ in range(GOOD_UNTIL_MORE):
        sizes.alone("d", 100)
    assert sizes.of("d", 100, NOW) == 2
    sizes.alone("d", 100)
    assert sizes.of("d", 100, NOW) == 2


@pytest.mark.rule("B4")
def test_one_request_tries_more_and_its_failure_goes_back_and_doubles_the_wait() -> None:
    sizes = Sizes()
    sizes.too_many("d", 100, 100)
    needed = GOOD_UNTIL_MORE
    for _ in range(9):
        good(sizes, 100, needed - 1)
        assert sizes.of("d", 100, NOW) == 50
        good(sizes, 100, 1)
        assert sizes.of("d", 100, NOW) == 60
        sizes.goes("d", 60, NOW)
        assert sizes.of("d", 100, NOW) == 50
        # a trial whose answer never came is made again
        assert sizes.of("d", 100, NOW.after(TRIAL_MS)) == 60
        sizes.failed("d", 100, 60)
        assert sizes.of("d", 100, NOW) == 50
        needed = min(MAX_GOOD_UNTIL_MORE, 2 * needed)
    assert needed == MAX_GOOD_UNTIL_MORE


@given(
    told=st.lists(st.tuples(st.sampled_from(["listed", "too_many", "failed", "alone", "goes"]), st.booleans())),
    most=st.integers(2, 1_000),
)
def test_whatever_answers_come_a_request_asks_for_one_at_least_and_max_at_most(
    told: list[tuple[str, bool]], most: int
) -> None:
    sizes, now = Sizes(), NOW
    for what, later in told * 8:
        now = now.after(TRIAL_MS) if later else now
        count = sizes.of("d", most, now)
        assert 1 <= count <= most
        if what == "alone":
            sizes.alone("d", most)
        elif what == "goes":
            sizes.goes("d", count, now)
        else:
            getattr(sizes, what)("d", most, count)
