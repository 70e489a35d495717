"""Requests for several operations that fail: nobody ends by it, no origin is flooded, who does harm is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pollcore.controller.lessons import Heard, Went, went
from pollcore.controller.sizes import GOOD_UNTIL_MORE
from pollcore.facts import MINUTE, SECOND, Fault, FaultKind, Instant, Status
from tests.controller.bank import DONE, LOST, RUNNING, refuses
from tests.controller.batch_house import registry, shared_house
from tests.controller.house import House
from tests.controller.test_shared_requests import asked_of, hand_over

MANY = {"max_status_requests": 100}


def fails(how: str) -> dict[str, Any]:
    return LOST if how == "reset" else refuses(int(how))


async def counted(h: House, names: list[str]) -> None:
    """B2: every request in which an operation was asked for is one of its own."""
    for name in names:
        assert (await h.op(f"op-{name}")).status_requests_used == len(asked_of(h, name)), name
    assert list(await h.core.store.check()) == []


@pytest.mark.rule("B4", "X6", "B2")
@pytest.mark.parametrize("how", ["reset", "500", "504"])
@pytest.mark.parametrize("failures", [1, 2, 3, 5])
async def test_where_every_request_for_several_fails_each_is_asked_alone_before_its_budget_is_spent(
    how: str, failures: int, tmp_path: Path
) -> None:
    async with shared_house(tmp_path) as h:
        names = await hand_over(h, 8, RUNNING, RUNNING, DONE, max_transport_failures=failures)
        registry(h).whole = lambda ids: fails(how) if len(ids) > 1 else None
        await h.run(30 * MINUTE)
        for name in names:
            found = await h.op(f"op-{name}")
            assert (found.status, found.stop_reason) == (Status.SUCCEEDED, None), name
            assert found.transport_failures_used < failures
            # every failure was that of a request that asked for it
            assert found.transport_failures_used == sum(len(ids) > 1 for ids in asked_of(h, name))
        await counted(h, names)


@pytest.mark.slow
@pytest.mark.rule("B4", "B2")
async def test_where_budgets_are_large_requests_for_several_become_smaller_until_they_ask_for_one(
    tmp_path: Path,
) -> None:
    async with shared_house(tmp_path) as h:
        names = await hand_over(h, 20, *[RUNNING] * 20, DONE, max_transport_failures=50, **MANY)
        registry(h).whole = lambda ids: refuses(502) if len(ids) > 1 else None
        await h.run(39 * MINUTE)
        sizes = [len(ids) for ids in registry(h).asked if len(ids) > 1]
        assert sizes[:2] == [20, 20]
        assert sizes == sorted(sizes, reverse=True)
        for name in names:
            found = await h.op(f"op-{name}")
            assert found.status is Status.SUCCEEDED
            # 20, 20, 10, 5, 2, and trials of two that are ever rarer
            assert found.transport_failures_used <= 8
        await counted(h, names)


@pytest.mark.rule("T11", "B4")
@pytest.mark.parametrize(("how", "failures"), [("reset", 2), ("reset", 3), ("503", 3), ("reset", 5)])
async def test_an_origin_that_is_down_is_asked_by_one_after_two_requests_for_several(
    how: str, failures: int, tmp_path: Path
) -> None:
    async with shared_house(tmp_path) as h:
        names = await hand_over(h, 30, DONE, max_transport_failures=failures)
        registry(h).whole = lambda _: fails(how)
        await h.run(2 * MINUTE)
        asked, at = registry(h).asked, registry(h).asked_at
        shared = sum(len(ids) > 1 for ids in asked)
        assert shared == (1 if failures == 2 else 2)
        # one probe at a time, no two within five seconds: 30 alone at once would be a flood
        assert all(len(ids) == 1 for ids in asked[shared:])
        assert all(later - one >= 5 * SECOND for one, later in zip(at[shared:], at[shared + 1 :], strict=False))
        assert 3 <= len(asked) <= 20
        waits = [one for one in [await h.op(f"op-{name}") for name in names] if one.status is Status.WAITING]
        assert len(waits) >= 30 - len(asked)
        await counted(h, names)
        registry(h).whole = lambda _: None
        await h.run(10 * MINUTE)
        assert {(await h.op(one.operation_id)).status for one in waits} == {Status.SUCCEEDED}


@pytest.mark.rule("B4")
async def test_the_last_failure_of_a_budget_is_asked_for_alone_also_after_a_restart(tmp_path: Path) -> None:
    async with shared_house(tmp_path) as h:
        names = await hand_over(h, 4, RUNNING, RUNNING, DONE, max_transport_failures=2)
        registry(h).whole = lambda ids: LOST if len(ids) > 1 else None
        while not registry(h).asked:
            await h.run(500)
        await h.run(100)
        async with h.open() as again:
            await h.run(30 * MINUTE, again)
        assert [len(ids) > 1 for ids in registry(h).asked].count(True) == 1
        assert {(await h.op(f"op-{name}")).status for name in names} == {Status.SUCCEEDED}


@pytest.mark.rule("B2", "B4")
@pytest.mark.parametrize("how", ["400", "500"])
async def test_an_id_that_does_harm_only_beside_others_is_found_and_costs_them_nothing_more(
    how: str, tmp_path: Path
) -> None:
    async with shared_house(tmp_path) as h:
        names = await hand_over(h, 8, *[RUNNING] * 60, max_transport_failures=20, **MANY)
        broken: list[int] = []

        def whole(ids: tuple[str, ...]) -> dict[str, Any] | None:
            if "j005" not in ids or len(ids) == 1:
                return None
            broken.append(len(registry(h).asked))
            return refuses(int(how), error="one of these is no id")

        registry(h).whole = whole
        await h.run(8 * MINUTE)
        # all, all, and by halves: 4, 2, and beside those that do no harm
        assert 4 <= len(broken) <= 6
        later = registry(h).asked[broken[-1] + 8 :]
        assert len(later) > 30
        assert ("j005",) in later
        assert not any(len(ids) == 1 and ids != ("j005",) for ids in later)
        # where nothing but failures came at first, fewer went together for a while
        assert [len(ids) for ids in later if "j005" not in ids][-3:] == [7, 7, 7]
        await counted(h, names)


@pytest.mark.slow
@pytest.mark.rule("B2")
async def test_where_answers_fit_again_more_go_together_again(tmp_path: Path) -> None:
    limits = ("max_status_requests = 200", "max_status_requests = 400")
    async with shared_house(tmp_path, limits, most=12) as h:
        await hand_over(h, 12, RUNNING, max_status_requests=400, deadline_ms=7 * 60 * MINUTE)
        registry(h).whole = lambda _: refuses(200, blob="x" * 300_000) if len(registry(h).asked) == 1 else None
        await h.run(30 * MINUTE)
        sizes = [len(ids) for ids in registry(h).asked]
        assert sizes[:13] == [12, *[1] * 12]
        # slowly, by two: each step after so many good answers for as many as went together
        assert sizes[13:].count(12) > 0
        for count in (6, 8, 10):
            assert sizes.count(count) >= GOOD_UNTIL_MORE, count
        assert max(sizes[1 : 13 + GOOD_UNTIL_MORE]) == 6


@pytest.mark.slow
@pytest.mark.rule("X5", "B2")
async def test_an_answer_that_is_too_costly_to_read_for_all_makes_the_next_request_smaller(tmp_path: Path) -> None:
    # over all entries, for each operation: 120 of them are too much, 60 are not
    fold = ".[@, @, @, @][]" * 3
    rule = f'[[rules]]\nwhen = "length(body.jobs[]{fold}) > `1000000`"\ncategory = "failed"\n'
    change = ('[state]\nvalue = "item.status"\n', f'{rule}[state]\nvalue = "item.status"\n')
    async with shared_house(tmp_path, most=120) as h:
        text = (h.home / "providers" / "acme.toml").read_text()
        assert change[0] in text
        (h.home / "providers" / "acme.toml").write_text(text.replace(*change))
        names = await hand_over(h, 120, *[RUNNING] * 3, DONE, **MANY)
        await h.run(30 * MINUTE)
        sizes = [len(ids) for ids in registry(h).asked if len(ids) > 1]
        assert sizes[0] == 120
        # after it nobody is asked as many at once as could not be read
        assert max(sizes[1:]) <= 60, sizes
        for name in names:
            assert (await h.op(f"op-{name}")).status is Status.SUCCEEDED
        await counted(h, names)


@pytest.mark.rule("B4")
@pytest.mark.parametrize("kind", list(FaultKind))
def test_a_request_that_never_left_tells_nothing_of_its_size(kind: FaultKind) -> None:
    for left in (True, False):
        fault = Fault(kind, left, Instant(0))
        heard = Heard(None, None, fault)  # type: ignore[arg-type]
        told = went(heard, fault, 5, False)
        if not left or kind in (FaultKind.NOT_SENT, FaultKind.ANSWER_LOST):
            assert told in (None, Went.TOO_MANY)
        elif kind in (FaultKind.TIMEOUT, FaultKind.RESET, FaultKind.CUT_OFF):
            assert told is Went.FAILED
        assert went(heard, fault, 1, False) is None
