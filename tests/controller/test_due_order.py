"""Who goes first where slots are few: neither those alone nor those that share a request starve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pollcore.contract import Contract, batch_requests
from pollcore.controller.due import DueList
from pollcore.controller.prepare import Ready
from pollcore.facts import MINUTE, SECOND, Moment, Operation
from pollcore.ports import TurnOutcome
from tests.controller.bank import DONE
from tests.controller.batch_house import registry, shared_house
from tests.controller.test_company import NOW, contract, operation, ready

TIMES = st.tuples(st.integers(0, 9_000), st.booleans(), st.sampled_from(["a", "b"]))
"""For how long it is due, whether it shares requests, account."""


class Everybody:
    """Prepares whoever is due. Names from 100 on share requests, by account; the others go alone."""

    def __init__(self, most: int) -> None:
        self._made = contract(most=most)

    async def prepare(self, one: Operation, _: Moment) -> Ready:
        return ready(int(one.operation_id.partition("-")[2]), self._made)

    def goes_alone(self, one: Operation) -> bool:
        return int(one.operation_id.partition("-")[2]) < 100

    async def of(self, one: Operation, _: Moment) -> tuple[Any, Contract]:
        return batch_requests.together(self._made, one), self._made


async def gone(due: list[Operation], most: int, slots: int) -> list[list[str]]:
    """Requests in the order in which they leave, *slots* a turn."""
    world: Any = Everybody(most)
    listed = DueList(world, world, lambda *_: pytest.fail("nothing is lost"))
    found: list[list[str]] = []
    names = {one.operation_id for one in due}
    while names:
        left = tuple(one for one in due if one.operation_id in names)
        listed.load(TurnOutcome(taken=(), claimed=(), due=left, next_due=None), 10_000, 1)
        groups = await listed.make_ready(slots, NOW, set())
        assert groups, "somebody is due, and nobody goes"
        for group in groups:
            found.append([one.claim.operation.operation_id for one in group])
            names -= set(found[-1])
    return found


def made(times: list[tuple[int, bool, str]]) -> list[Operation]:
    found = [
        operation(n + (100 if shares else 0), -due, account=account) for n, (due, shares, account) in enumerate(times)
    ]
    return sorted(found, key=lambda one: one.due_boot or 0)


@pytest.mark.rule("T8", "O7")
@settings(max_examples=60)
@given(
    times=st.lists(
        st.tuples(st.integers(0, 9_000), st.booleans(), st.sampled_from(["a", "b"])), min_size=1, max_size=30
    ),
    most=st.integers(2, 5),
    slots=st.integers(1, 3),
)
async def test_no_request_goes_before_one_that_is_due_longer(
    times: list[tuple[int, bool, str]], most: int, slots: int
) -> None:
    due = made(times)
    at = {one.operation_id: one.due_boot or 0 for one in due}
    groups = await gone(due, most, slots)
    assert sorted(name for group in groups for name in group) == sorted(at)
    for n, group in enumerate(groups):
        for later in groups[n + 1 :]:
            # its oldest is due no later than the oldest of whatever goes after it
            assert min(at[name] for name in group) <= min(at[name] for name in later)


@pytest.mark.rule("T8")
async def test_one_alone_goes_before_full_requests_that_are_due_later_and_a_full_one_before_those_alone() -> None:
    single, later = [(9_000, False, "a")], [(4_000, False, "a")] * 6
    many = [(5_000, True, account) for account in ("a", "b") for _ in range(6)]
    groups = await gone(made(single + many + later), 3, 1)
    assert groups[0] == ["op-0"]
    assert [len(group) for group in groups[1:5]] == [3, 3, 3, 3]
    assert [len(group) for group in groups[5:]] == [1] * 6


@pytest.mark.rule("T8", "O7")
async def test_with_one_slot_a_provider_that_is_asked_one_by_one_is_not_held_up_by_full_requests_of_another(
    tmp_path: Path,
) -> None:
    changes = (('"body.status"', '"body.jobs[0].status"'), ('"body.result.url"', '"body.jobs[0].result.url"'))
    async with shared_house(tmp_path, most=3, gather="0s") as h:
        h.write_contract(*changes, name="single")
        async with h.open(slots=1) as core:
            due = {}
            for n in range(24):
                # those that share come in full requests of two accounts, and between them those that do not
                spec = {"account": f"a{n % 2}"} if n % 4 else {"provider": "single"}
                made = await h.submit(f"j{n:03d}", DONE, credential="key", **spec)
                due[f"j{n:03d}"] = made.due_boot or 0
            h.clock.jump(60 * SECOND)
            await h.run(5 * MINUTE, core)
        asked = registry(h).asked
        assert sorted(name for ids in asked for name in ids) == sorted(due)
        assert {len(ids) for ids in asked} >= {1, 3}
        oldest = [min(due[name] for name in ids) for ids in asked]
        assert oldest == sorted(oldest)
