"""Whatever workers and operators do in whatever order, I2 to I11 hold at every commit."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.adapters.store.builders import at, claim, inline, operation, question, result, submit
from tests.adapters.store.laws import broken, illegal

from pollcore.facts import BootMs, Instant, Refused, Stale, Status
from pollcore.ports import Turn, Write

MAX_STEPS = 40
NAMES = ("op-a", "op-b", "op-c")
STATUSES = st.sampled_from([Status.WAITING, Status.WAITING, Status.HELD, Status.ESCALATED, *Status])
STEP = st.one_of(
    st.tuples(st.just("claim"), st.sampled_from(("w-1", "w-2")), st.sampled_from(NAMES), st.integers(0, 2)),
    st.tuples(st.just("answer"), st.integers(0, 5), STATUSES, st.booleans()),
    st.tuples(st.just("commit"), st.sampled_from(NAMES), STATUSES, st.booleans()),
    st.tuples(st.just("submit"), st.sampled_from(NAMES), st.integers(1, 4), st.integers(0, 5)),
    st.tuples(st.just("time"), st.integers(0, 45_000), st.integers(-100_000, 100_000), st.booleans()),
)


class World:
    """Two workers and an operator over one store; remembers what was seen, to hold it against later rows."""

    def __init__(self) -> None:
        self.dead: set[str] = set()
        self.store = inline(is_dead=lambda owner: owner in self.dead)
        self.now = at()
        self.loaded: dict[str, Any] = {}
        self.flying: list[tuple[str, Any]] = []
        self.status: dict[str, Status] = {}
        self.used: dict[str, int] = {}

    async def step(self, kind: str, a: Any, b: Any, c: Any) -> None:
        await getattr(self, kind)(a, b, c)
        assert broken(self.store.turns.conn) == []
        for name in NAMES:
            o = await self.store.operation(name)
            if o is not None:
                before = self.status.get(name, o.status)
                assert not illegal(before, o.status), f"{before} -> {o.status}"
                assert o.status_requests_used >= self.used.get(name, 0)
                self.status[name], self.used[name] = o.status, o.status_requests_used

    async def submit(self, name: str, budget: int, minutes: int) -> None:
        try:
            await submit(
                self.store,
                name,
                self.now,
                max_status_requests=budget,
                deadline_at=Instant(self.now.wall + 1 + minutes * 60_000),
                deadline_boot=BootMs(self.now.boot + 1 + minutes * 60_000),
            )
        except Refused:
            pass
        self.loaded.setdefault(name, await self.store.operation(name))

    async def claim(self, owner: str, name: str, extra: int) -> None:
        o = self.loaded.get(name, operation(name))
        wish = claim(o, self.now, extra_charges=extra, concurrency=2)
        out = await self.store.turn(Turn(now=self.now, owner=owner, claims=(wish,), look=3))
        self.loaded.update({d.operation_id: d for d in out.due})
        if out.claimed[0] is not None:
            self.flying.append((owner, out.claimed[0]))

    async def answer(self, which: int, status: Status, asks: bool) -> None:
        if not self.flying:
            return
        owner, claimed = self.flying[which % len(self.flying)]
        o = claimed.operation
        write = result(o, claimed.intents[-1], self.now, status=status, version=o.version + (status is not o.status))
        if asks:
            write = msgspec.structs.replace(write, open_question=question(o, self.now, f"q-{o.change}-{which}"))
        out = await self.store.turn(Turn(now=self.now, owner=owner, writes=(write,)))
        if out.taken[0]:
            self.flying.pop(which % len(self.flying))

    async def commit(self, name: str, status: Status, asks: bool) -> None:
        o = self.loaded.get(name)
        if o is None:
            return
        after = msgspec.structs.replace(o, status=status, version=o.version + 1)
        ask = question(o, self.now, f"q-{o.change}-c") if asks else None
        try:
            await self.store.commit(self.now, [Write(after=after, fence_change=o.change, open_question=ask)])
        except Stale:
            pass
        self.loaded[name] = await self.store.operation(name)

    async def time(self, ms: int, step: int, dies: bool) -> None:
        moved = self.now.after(ms)
        self.now = msgspec.structs.replace(moved, wall=Instant(max(moved.wall + step, at().wall - 500_000)))
        self.dead = {"w-1"} if dies else set()


@pytest.mark.rule("B2", "B3", "O2", "O3", "E7", "T9")
@given(st.lists(STEP, max_size=MAX_STEPS))
def test_no_order_of_claims_answers_and_decisions_breaks_a_law(steps: list[tuple[str, Any, Any, Any]]) -> None:
    async def run() -> None:
        world = World()
        for name in NAMES[:2]:
            await world.step("submit", name, 4, 2)
        for step in steps:
            await world.step(*step)
        assert list(await world.store.check()) == []
        await world.store.close()

    asyncio.run(run())
