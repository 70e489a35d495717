"""The one operation that makes shared requests fail is found by halves, goes alone for a while, and is tried again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollcore.contract import batch_requests
from pollcore.controller.company import Company
from pollcore.controller.lessons import Went
from pollcore.controller.suspects import ALONE_MS, MAX_SUSPECTS, Suspects
from pollcore.facts import BootMs, Instant, Moment, Operation
from tests.controller.test_company import contract, operation

NOW = Moment(Instant(1_700_000_000_000), BootMs(500_000), "b")
MADE = contract(most=100)


def one_round(company: Company, all_: list[Operation], bad: set[str], now: Moment) -> tuple[list[int], list[str]]:
    """Everybody asks once: sizes of the requests that failed, and who went alone by its own name."""
    company.clear(())
    alone = [one.operation_id for one in all_ if company.goes_alone(one, now)]
    for one in all_:
        key = batch_requests.together(MADE, one)
        assert key is not None
        if one.operation_id not in alone:
            company.add(key, MADE, one, now)
    failed = []
    while (going := company.take(now)) is not None:
        names = [one.operation_id for one in going]
        if len(names) > 1:
            broke = not bad.isdisjoint(names)
            failed += [len(names)] if broke else []
            company.learn(MADE, names, Went.NONE if broke else Went.LISTED, now)
    return failed, alone


@pytest.mark.rule("B2")
@given(count=st.integers(3, 64), which=st.integers(0, 63))
def test_one_among_many_is_found_in_few_rounds_and_then_nothing_fails(count: int, which: int) -> None:
    company, bad = Company(), {f"op-{which % count}"}
    all_ = [operation(n) for n in range(count)]
    rounds = [one_round(company, all_, bad, NOW) for _ in range(12)]
    # twice together, then by halves, and beside others
    assert sum(len(failed) for failed, _ in rounds) <= 3 + (count - 1).bit_length()
    assert rounds[-1] == ([], sorted(bad))
    # its time is over: it is tried with the others once, and found again by that one failure
    later = NOW.after(ALONE_MS)
    tried = [one_round(company, all_, bad, later) for _ in range(2)]
    assert [len(failed) for failed, _ in tried] == [1, 0]
    assert tried[1][1] == sorted(bad)
    # where it no longer does harm, it goes with the others for good
    healed = [one_round(company, all_, set(), later.after(ALONE_MS)) for _ in range(2)]
    assert healed == [([], []), ([], [])]


@pytest.mark.rule("B2")
@given(bad=st.sets(st.integers(0, 19), max_size=4))
def test_several_are_found_one_by_one_and_nobody_else_is_left_alone(bad: set[int]) -> None:
    company = Company()
    all_ = [operation(n) for n in range(20)]
    names = {f"op-{n}" for n in bad}
    rounds = [one_round(company, all_, names, NOW) for _ in range(60)]
    assert rounds[-1] == ([], [one.operation_id for one in all_ if one.operation_id in names])


@pytest.mark.rule("B2")
def test_where_two_are_left_and_nobody_to_tell_by_both_go_alone_and_where_a_third_is_there_one_does() -> None:
    for count, alone in ((2, ["op-0", "op-1"]), (3, ["op-1"])):
        company, all_ = Company(), [operation(n) for n in range(count)]
        rounds = [one_round(company, all_, {"op-1"}, NOW) for _ in range(8)]
        assert rounds[-1] == ([], alone)


@pytest.mark.rule("B2")
@given(count=st.integers(2, 24))
def test_where_every_request_for_several_fails_each_goes_alone_after_few_rounds(count: int) -> None:
    company, all_ = Company(), [operation(n) for n in range(count)]
    rounds = [one_round(company, all_, {one.operation_id for one in all_}, NOW) for _ in range(count + 12)]
    # the last one has nobody to fail beside
    assert rounds[-1][0] == []
    assert len(rounds[-1][1]) >= count - 1


def test_one_failure_that_is_not_repeated_splits_nobody() -> None:
    suspects = Suspects()
    suspects.failed(["a", "b", "c"], NOW)
    assert len({suspects.group(name, NOW) for name in "abc"}) == 1
    suspects.fine(["a", "b", "c"])
    assert len(suspects) == 0
    assert suspects.group("a", NOW) == 0


def test_a_suspicion_that_nothing_bears_out_is_forgotten_after_its_time() -> None:
    suspects = Suspects()
    suspects.failed(["a", "b"], NOW)
    later = NOW.after(ALONE_MS)
    assert [suspects.group(name, later) for name in "ab"] == [0, 0]
    assert len(suspects) == 0


def test_those_that_are_remembered_are_limited_and_the_oldest_go_first() -> None:
    suspects = Suspects()
    for n in range(MAX_SUSPECTS // 1_000 + 1):
        suspects.failed([f"{n}-{m}" for m in range(1_000)], NOW)
    assert len(suspects) == MAX_SUSPECTS
    assert suspects.group("0-0", NOW) == 0
    assert suspects.size(suspects.group(f"{n}-0", NOW)) == 1_000
    assert sum(suspects._sizes.values()) == MAX_SUSPECTS
