"""Compressed time: it passes only while the polling loop waits, never faster than asked, and not for ever."""

from __future__ import annotations

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollconsole.demo.clock import SLICE_MS, DemoClock
from pollcore.facts import Instant

BEGIN = Instant(1_800_000_000_000)


class Real:
    """Real time by hand."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


async def test_time_stands_still_while_nothing_waits() -> None:
    real = Real()
    clock = DemoClock(BEGIN, factor=10, real=real)
    before = clock.now()
    real.seconds += 3_600
    assert clock.now() == before
    assert before.wall == BEGIN


@pytest.mark.rule("T9")
async def test_both_clocks_run_compressed_during_a_wait_and_never_past_what_was_asked() -> None:
    real = Real()
    clock = DemoClock(BEGIN, factor=10, real=real)
    first = clock.now()
    event = asyncio.Event()
    waiting = asyncio.create_task(clock.wait(event, 10_000))
    while clock.now() == first:
        real.seconds += 0.001
        await asyncio.sleep(0)
    real.seconds += 0.5
    middle = clock.now()
    real.seconds += 7_200
    late = clock.now()
    event.set()
    await waiting
    assert 5_000 <= middle.wall - first.wall < 6_000
    assert middle.boot - first.boot == middle.wall - first.wall
    assert late.wall - first.wall == 10_000
    assert clock.now() == late


async def test_a_wait_that_is_waited_out_has_passed_whole() -> None:
    clock = DemoClock(BEGIN, factor=1_000)
    for _ in range(5):
        await clock.wait(asyncio.Event(), 3_000)
    assert clock.now().wall - BEGIN == 15_000


@pytest.mark.rule("T9")
async def test_one_wait_is_one_slice_at_most() -> None:
    clock = DemoClock(BEGIN, factor=10_000)
    await clock.wait(asyncio.Event(), 3_600_000)
    assert clock.now().wall - BEGIN == SLICE_MS


async def test_what_was_started_before_a_wait_runs_before_time_does() -> None:
    real = Real()
    clock = DemoClock(BEGIN, factor=10, real=real)
    seen = []
    event = asyncio.Event()

    async def send() -> None:
        real.seconds += 60
        seen.append(clock.now().wall)
        event.set()

    sending = asyncio.create_task(send())
    await clock.wait(event, 5_000)
    await sending
    assert seen == [BEGIN]


async def test_an_event_that_is_set_costs_no_time() -> None:
    clock = DemoClock(BEGIN)
    event = asyncio.Event()
    event.set()
    await clock.wait(event, 5_000)
    assert clock.now().wall == BEGIN


async def test_the_demo_s_time_ends() -> None:
    clock = DemoClock(BEGIN, factor=1_000, life_s=0.01)
    event = asyncio.Event()
    await clock.wait(event, 15_000)
    asyncio.get_running_loop().call_later(0.01, event.set)
    await clock.wait(event, 15_000)
    assert clock.now().wall - BEGIN == 10_000


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 20_000), st.booleans()), max_size=6))
def test_it_never_goes_back_and_never_runs_ahead(steps: list[tuple[int, int, bool]]) -> None:
    async def run() -> None:
        real = Real()
        clock = DemoClock(BEGIN, factor=15, real=real)
        asked, last = 0, clock.now()
        for hundredths, ms, cut in steps:
            event = asyncio.Event()
            waiting = asyncio.create_task(clock.wait(event, ms))
            for _ in range(4):
                await asyncio.sleep(0)
                real.seconds += hundredths / 400
                now = clock.now()
                assert last.wall <= now.wall <= BEGIN + asked + min(ms, SLICE_MS)
                assert now.wall - BEGIN == now.boot - last.boot + last.wall - BEGIN
                last = now
            if cut:
                event.set()
                await waiting
            else:
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)
            asked = clock.now().wall - BEGIN

    asyncio.run(run())


def test_other_threads_may_read_it() -> None:
    clock = DemoClock(BEGIN, factor=1_000)
    read: list[int] = []
    thread = threading.Thread(target=lambda: read.extend(clock.now().wall for _ in range(200)))

    async def run() -> None:
        thread.start()
        for _ in range(20):
            await clock.wait(asyncio.Event(), 1_000)

    asyncio.run(run())
    thread.join(10)
    assert read == sorted(read)
    assert len(read) == 200


async def test_time_runs_as_in_life_while_somebody_looks_at_what_counts_down() -> None:
    real = Real()
    clock = DemoClock(BEGIN, factor=10, real=real)

    async def passed_of_a_wait(seconds: float) -> int:
        """Demo time of one wait, of which so many real seconds are over."""
        first, event = clock.now(), asyncio.Event()
        waiting = asyncio.create_task(clock.wait(event, 10_000))
        for _ in range(4):
            await asyncio.sleep(0)
        real.seconds += seconds
        event.set()
        await waiting
        return clock.now().wall - first.wall

    assert await passed_of_a_wait(0.2) in range(1_990, 2_001)
    clock.as_in_life(True)
    assert await passed_of_a_wait(0.2) in range(199, 201)
    assert await passed_of_a_wait(60) == 250, "one wait is short meanwhile: time is compressed again soon"
    clock.as_in_life(False)
    assert await passed_of_a_wait(0.2) in range(1_990, 2_001)
