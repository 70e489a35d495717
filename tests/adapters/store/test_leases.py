"""Who owns an operation: fencing, takeover on proof or after the span, renewal, answers lost in a crash."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.adapters.store.builders import at, claim, event, inline, operation, result, submit, take
from tests.adapters.store.laws import broken

from pollcore.facts import BootMs, EventName, FaultKind, Instant, Operation, Status
from pollcore.ports import Stored, Turn, Write

TTL = 30_000


def lost_write(o: Operation, n: int, now: Any) -> Write:
    """What a controller records of an answer that a crash took."""
    stored = Stored(
        operation_id=o.operation_id,
        n=n,
        answered_at=now.wall,
        http_code=None,
        fault=FaultKind.ANSWER_LOST.value,
        state=None,
        verdict="transport_failure",
        decision="wait",
    )
    after = msgspec.structs.replace(o, next_poll_at=now.wall, due_boot=now.boot, last_fault="answer_lost")
    return Write(
        after=after, fence_change=o.change, stored=stored, events=(event(o.operation_id, now, EventName.ANSWER_LOST),)
    )


@pytest.mark.rule("O2", "O3")
async def test_a_late_owner_changes_nothing_and_leaves_one_event(store: Any) -> None:
    first = await take(store, await submit(store), at(1))
    # seen at one look, and known from the next: a look's own time may be older than what it saw
    for moment in (1_500, 2_600):
        await store.turn(Turn(now=at(moment), owner="w-2"))
    later = at(2_700 + TTL)
    out = await store.turn(Turn(now=later, owner="w-2", look=5))
    assert [o.operation_id for o in out.due] == ["op-1"]
    second = await take(store, out.due[0], later, owner="w-2")
    assert second is not None
    assert second.operation.epoch == 2
    late = await store.turn(Turn(now=later, owner="w-1", writes=(result(first.operation, 1, later),)))
    assert late.taken == (False,)
    assert late.moved == (None,)
    assert await store.operation("op-1") == second.operation
    assert await store.last_answer("op-1") is None
    story = [e for _, e in await store.events("op-1")]
    assert story[-1].event is EventName.LATE_RESULT
    assert story[-1].detail == "lease epoch 1 was taken over by 2"
    mine = await store.turn(Turn(now=later, owner="w-2", writes=(result(second.operation, 2, later),)))
    assert mine.taken == (True,)


@pytest.mark.rule("O2")
async def test_nobody_claims_over_a_living_lease(store: Any) -> None:
    claimed = await take(store, await submit(store), at(1))
    loaded = await store.operation("op-1")
    for owner in ("w-2", "w-1"):
        assert await take(store, loaded, at(2_000), owner=owner) is None
    assert await store.operation("op-1") == claimed.operation


@pytest.mark.rule("O2")
async def test_a_slow_owner_keeps_its_lease_as_long_as_it_renews() -> None:
    store = inline()
    first = await take(store, await submit(store), at(1))
    for k in range(1, 8):
        now = at(k * 10_000)
        assert await store.renew(now, "w-1", {"op-1": 1, "op-none": 1}) == ["op-1"]
        assert (await store.operation("op-1")).lease_until == now.wall + TTL
        assert (await store.turn(Turn(now=now, owner="w-2", look=5))).due == ()
    assert (await store.operation("op-1")).change == first.operation.change
    assert await store.renew(at(80_000), "w-2", {"op-1": 1}) == []
    assert await store.renew(at(80_000), "w-1", {"op-1": 2}) == []
    out = await store.turn(Turn(now=at(80_000), owner="w-1", writes=(result(first.operation, 1, at(80_000)),)))
    assert out.taken == (True,)


@pytest.mark.rule("O2", "T9")
async def test_a_wall_clock_that_jumps_takes_nobodys_lease() -> None:
    store = inline()
    await take(store, await submit(store), at(1))
    for step in (86_400_000, -86_400_000):
        await store.turn(Turn(now=at(1_500, step=step), owner="w-2", look=5))
        out = await store.turn(Turn(now=at(20_000, step=step), owner="w-2", look=5))
        assert out.due == ()


@pytest.mark.rule("T10", "O2")
async def test_the_lease_of_a_long_poll_outlives_its_answer_limit() -> None:
    store = inline()
    await take(store, await submit(store), at(1), lease_ms=300_000)
    for moment in (1_500, 2_600):
        await store.turn(Turn(now=at(moment), owner="w-2", look=5))
    assert (await store.turn(Turn(now=at(299_000), owner="w-2", look=5))).due == ()
    assert len((await store.turn(Turn(now=at(303_000), owner="w-2", look=5))).due) == 1


@pytest.mark.rule("O2", "B4")
async def test_a_dead_worker_is_replaced_at_once_and_its_lost_answer_stays_counted() -> None:
    dead: set[str] = set()
    store = inline(is_dead=lambda owner: owner in dead)
    await take(store, await submit(store), at(1), owner="w-1")
    await store.turn(Turn(now=at(1_500), owner="w-2", look=5))
    dead.add("w-1")
    for now in (at(3_000), at(5_000)):  # it comes again until it is recorded
        out = await store.turn(Turn(now=now, owner="w-2", look=5))
        assert [o.operation_id for o in out.due] == ["op-1"]
        assert out.answer_lost == (("op-1", 1),)
    o = out.due[0]
    done = await store.turn(Turn(now=at(5_001), owner="w-2", writes=(lost_write(o, 1, at(5_001)),), look=5))
    assert done.taken == (True,)
    assert done.answer_lost == ()
    found = await store.operation("op-1")
    assert (found.status_requests_used, found.lease_owner, found.last_fault) == (1, None, "answer_lost")
    assert done.due == (found,)
    assert broken(store.turns.conn) == []


@pytest.mark.rule("O2", "B4")
async def test_a_claim_may_take_a_dead_lease_over_and_is_told_what_was_lost() -> None:
    store = inline(is_dead=lambda owner: owner == "w-1")
    await take(store, await submit(store), at(1), owner="w-1", extra_charges=1)
    out = await store.turn(Turn(now=at(2_000), owner="w-2", look=5))
    claimed = await store.turn(Turn(now=at(2_001), owner="w-2", claims=(claim(out.due[0], at(2_001)),)))
    assert claimed.answer_lost == (("op-1", 1), ("op-1", 2))
    assert claimed.claimed[0].intents == (3,)
    assert claimed.claimed[0].operation.epoch == 2


@pytest.mark.rule("O2")
async def test_the_dead_lease_of_an_ended_operation_ends_by_itself() -> None:
    store = inline(is_dead=lambda owner: owner == "w-1")
    first = await take(store, await submit(store), at(1), owner="w-1")
    closed = msgspec.structs.replace(first.operation, status=Status.CLOSED, version=2, due_boot=None)
    await store.commit(at(2), [Write(after=closed, fence_change=first.operation.change)])
    out = await store.turn(Turn(now=at(2_000), owner="w-2", look=5))
    assert (out.due, out.answer_lost) == ((), ())
    assert (await store.operation("op-1")).lease_owner is None


@pytest.mark.rule("O3", "S9")
async def test_an_answer_over_a_record_that_an_operator_changed_is_decided_anew(store: Any) -> None:
    claimed = await take(store, await submit(store), at(1))
    o = claimed.operation
    extended = msgspec.structs.replace(
        o, version=2, max_status_requests=16, deadline_at=Instant(o.deadline_at + 900_000), status=Status.HELD
    )
    await store.commit(at(2), [Write(after=extended, fence_change=o.change)])
    held = await store.operation("op-1")
    assert (held.lease_owner, held.epoch) == ("w-1", 1)
    out = await store.turn(Turn(now=at(3), owner="w-1", writes=(result(o, 1, at(3)),)))
    assert (out.taken, out.moved) == ((False,), (held,))
    assert await store.operation("op-1") == held
    assert len(await store.events("op-1")) == 2
    end = result(held, 1, at(4), status=Status.SUCCEEDED, version=3, due_boot=None)
    out = await store.turn(Turn(now=at(4), owner="w-1", writes=(end,)))
    assert (out.taken, out.moved) == ((True,), (None,))
    found = await store.operation("op-1")
    assert (found.status, found.max_status_requests, found.lease_owner) == (Status.SUCCEEDED, 16, None)


@pytest.mark.rule("O2")
async def test_an_answer_for_an_operation_that_was_closed_meanwhile_ends_the_lease_only(store: Any) -> None:
    claimed = await take(store, await submit(store), at(1))
    closed = msgspec.structs.replace(claimed.operation, status=Status.CLOSED, version=2, due_boot=None)
    await store.commit(at(2), [Write(after=closed, fence_change=claimed.operation.change)])
    out = await store.turn(Turn(now=at(3), owner="w-1", writes=(result(claimed.operation, 1, at(3)),)))
    assert (out.taken, out.moved) == ((False,), (None,))
    found = await store.operation("op-1")
    assert (found.status, found.lease_owner) == (Status.CLOSED, None)
    assert (await store.events("op-1"))[-1][1].event is EventName.LATE_RESULT


@pytest.mark.rule("O2")
async def test_a_write_without_lease_leaves_the_request_in_flight_alone(store: Any) -> None:
    claimed = await take(store, await submit(store), at(1))
    moved = msgspec.structs.replace(claimed.operation, due_boot=BootMs(at(9_000).boot))
    out = await store.turn(
        Turn(now=at(2), owner="w-2", writes=(Write(after=moved, fence_change=claimed.operation.change),), look=5)
    )
    assert out.taken == (True,)
    assert (await store.operation("op-1")).lease_owner == "w-1"
    stale = Write(after=moved, fence_change=claimed.operation.change)
    assert (await store.turn(Turn(now=at(3), owner="w-2", writes=(stale,)))).taken == (False,)
    assert len(await store.events("op-1")) == 2


@pytest.mark.rule("O2")
async def test_a_chain_keeps_its_lease_until_its_last_step(store: Any) -> None:
    claimed = await take(store, await submit(store), at(1), extra_charges=1)
    first = msgspec.structs.replace(result(claimed.operation, 1, at(2)), release_lease=False)
    assert (await store.turn(Turn(now=at(2), owner="w-1", writes=(first,), look=5))).due == ()
    held = await store.operation("op-1")
    assert held.lease_owner == "w-1"
    last = await store.turn(Turn(now=at(3), owner="w-1", writes=(result(held, 2, at(3)),)))
    assert last.taken == (True,)
    assert (await store.operation("op-1")).lease_owner is None


@pytest.mark.rule("B2")
async def test_counters_and_identity_are_written_by_nobody_but_a_claim(store: Any) -> None:
    claimed = await take(store, await submit(store), at(1))
    write = result(claimed.operation, 1, at(2), status_requests_used=0, epoch=0)
    assert (await store.turn(Turn(now=at(2), owner="w-1", writes=(write,)))).taken == (True,)
    found = await store.operation("op-1")
    assert (found.status_requests_used, found.epoch) == (1, 1)


@pytest.mark.rule("O2")
async def test_a_write_without_any_fence_is_never_taken(store: Any) -> None:
    o = await submit(store)
    out = await store.turn(Turn(now=at(2), owner="w-1", writes=(Write(after=o), Write(after=operation("op-no")))))
    assert out.taken == (False, False)
    assert await store.operation("op-1") == o


@pytest.mark.rule("O2")
async def test_a_worker_that_was_stopped_between_its_clock_and_its_look_takes_no_young_lease_for_dead() -> None:
    store = inline()
    await take(store, await submit(store), at(90_000))
    await store.turn(Turn(now=at(10_000), owner="w-2"))
    assert (await store.turn(Turn(now=at(91_000), owner="w-2", look=5))).due == ()
    assert (await store.turn(Turn(now=at(92_000 + TTL), owner="w-2", look=5))).due != ()
