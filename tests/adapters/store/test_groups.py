"""Claims that go out in one request: each operation charged for itself, the request counted once, in every process."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.adapters.store.builders import at, claim, inline, result, submit, take

from pollcore.facts import CallGrant, Operation, RateScope
from pollcore.ports import Claimed, Turn

MINUTE = 60_000


async def many(store: Any, count: int, first: int = 0) -> list[Operation]:
    return [await submit(store, f"op-{n}") for n in range(first, first + count)]


async def claimed(store: Any, operations: list[Operation], ms: int = 0, owner: str = "w-1", **fields: Any) -> Any:
    """All of *operations* in one request; what became of each claim."""
    wishes = tuple(claim(one, at(ms), group=7, **fields) for one in operations)
    return (await store.turn(Turn(now=at(ms), owner=owner, claims=wishes))).claimed


async def requests_of(store: Any, operations: list[Operation]) -> list[int]:
    return [intent.request for one in operations for intent in await store.intents(one.operation_id)]


@pytest.mark.rule("B2", "B3", "O6")
async def test_each_is_charged_for_itself_and_all_have_one_request(store: Any) -> None:
    ours = await many(store, 3)
    found = await claimed(store, ours)
    assert all(isinstance(one, Claimed) and one.operation.status_requests_used == 1 for one in found)
    alone = await submit(store, "op-alone")
    assert await take(store, alone, at(1)) is not None
    first, *others = await requests_of(store, ours)
    assert others == [first, first]
    assert await requests_of(store, [alone]) == [first + 1]
    assert list(await store.check()) == []


@pytest.mark.rule("O3", "B3")
async def test_one_that_moved_is_neither_charged_nor_leased_and_the_others_are(store: Any) -> None:
    ours = await many(store, 3)
    stale = msgspec.structs.replace(ours[0], change=ours[0].change + 99)
    found = await claimed(store, [stale, *ours[1:]])
    assert [one is None for one in found] == [True, False, False]
    assert await store.intents("op-0") == ()
    left = await store.operation("op-0")
    assert (left.status_requests_used, left.lease_owner) == (0, None)
    assert len(set(await requests_of(store, ours))) == 1
    assert list(await store.check()) == []


@pytest.mark.rule("T8")
@pytest.mark.parametrize(
    "caps",
    [{"concurrency": 1}, {"per_minute": 1}, {"scopes": (RateScope("provider", 1, MINUTE),)}],
    ids=["flying", "minute", "scope"],
)
async def test_a_cap_counts_a_request_once_and_then_lets_nobody_else_through(store: Any, caps: dict[str, Any]) -> None:
    ours, others = await many(store, 3), await many(store, 2, 3)
    assert all(await claimed(store, ours, **caps))
    assert await claimed(store, others, 1, owner="w-2", **caps) == (None, None)
    assert list(await store.check()) == []


@pytest.mark.rule("T8")
async def test_the_cap_of_requests_in_flight_has_room_again_when_the_last_of_a_request_is_recorded(store: Any) -> None:
    ours, (other,) = await many(store, 3), await many(store, 1, 3)
    found = await claimed(store, ours, concurrency=1)
    now = at(100)
    for one in found[:2]:
        await store.turn(Turn(now=now, owner="w-1", writes=(result(one.operation, 1, now),)))
    assert await take(store, other, at(101), owner="w-2", concurrency=1) is None
    await store.turn(Turn(now=now, owner="w-1", writes=(result(found[2].operation, 1, now),)))
    assert await take(store, other, at(102), owner="w-2", concurrency=1) is not None


@pytest.mark.rule("T8")
async def test_two_requests_of_several_count_as_two_in_flight(store: Any) -> None:
    ours, others, (last,) = await many(store, 3), await many(store, 3, 3), await many(store, 1, 6)
    assert all(await claimed(store, ours, concurrency=2))
    assert all(await claimed(store, others, 1, owner="w-2", concurrency=2))
    assert await take(store, last, at(2), owner="w-3", concurrency=2) is None


@pytest.mark.rule("G6")
async def test_a_leave_that_is_gone_takes_its_own_operation_out_of_the_request_alone(store: Any) -> None:
    ours = await many(store, 3)
    gone = CallGrant(
        grant_id="g-1",
        operation_id="op-1",
        digest="d",
        number=1,
        purpose="status",
        credential=None,
        granted_at=at().wall,
        expires_at=at(MINUTE).wall,
        boot_id="boot-1",
        expires_boot=at(MINUTE).boot,
    )
    wishes = [claim(one, at(), group=1) for one in ours]
    wishes[1] = msgspec.structs.replace(wishes[1], approval=gone)
    found = (await store.turn(Turn(now=at(), owner="w-1", claims=tuple(wishes)))).claimed
    assert [one is None for one in found] == [False, True, False]


@pytest.mark.rule("B2", "O6", "T8")
@given(
    groups=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    cap=st.integers(1, 4),
    stale=st.sets(st.integers(0, 11)),
)
async def test_however_claims_are_grouped_charges_are_those_taken_and_requests_those_that_go_out(
    groups: list[int], cap: int, stale: set[int]
) -> None:
    store = inline()
    try:
        wishes, n = [], 0
        for group, size in enumerate(groups):
            for _ in range(size):
                one = await submit(store, f"op-{n}")
                base = msgspec.structs.replace(one, change=one.change + 50) if n in stale else one
                wishes.append(claim(base, at(), group=group, concurrency=cap, per_minute=9))
                n += 1
        found = (await store.turn(Turn(now=at(), owner="w-1", claims=tuple(wishes)))).claimed
        out = {wish.group for wish, one in zip(wishes, found, strict=True) if one is not None}
        wanted = [g for g, size in enumerate(groups) if any(sum(groups[:g]) + k not in stale for k in range(size))]
        assert sorted(out) == wanted[:cap]
        for wish, one in zip(wishes, found, strict=True):
            used = (await store.operation(wish.operation.operation_id)).status_requests_used
            assert used == (one is not None)
            assert (one is not None) == (wish.group in out and int(wish.operation.operation_id[3:]) not in stale)
        assert list(await store.check()) == []
    finally:
        await store.close()
