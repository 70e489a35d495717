"""The loop's own life: stopping, a store that cannot commit, heartbeats, missed intervals, clocks that move."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pollcore.actions import SubmitSpec
from pollcore.controller import Controller
from pollcore.facts import HOUR, MINUTE, SECOND, ChoiceKind, EventName, Status, StopReason
from tests.controller.bank import DONE, RUNNING, refuses, says
from tests.controller.house import LIMIT_S, Breaking, House, house, until


async def started(h: House, controller: Controller, stop: asyncio.Event) -> asyncio.Task[Any]:
    return asyncio.create_task(controller.run(stop, watch=False))


# --- stopping ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("O1", "S9", "V3")
async def test_a_stop_while_requests_are_out_records_their_answers_and_claims_nothing_anew(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.open(slots=2) as core:
        h.bank.gate, stop = asyncio.Event(), asyncio.Event()
        for n in range(5):
            await h.submit(f"j{n}", says("running"))
        h.clock.jump(11 * SECOND)
        with h.worker(core) as controller:
            drain, ending = controller._drain, asyncio.Event()

            async def told() -> None:
                ending.set()
                await drain()

            controller._drain = told  # type: ignore[method-assign]
            running = await started(h, controller, stop)
            await until(lambda: len(h.bank.status_seen) == 2, "two are out")
            stop.set()
            await until(ending.is_set, "it ends")
            assert not running.done()
            h.bank.gate.set()
            report = await asyncio.wait_for(running, LIMIT_S)
        ops = [await h.op(f"op-j{n}") for n in range(5)]
        assert len(h.bank.status_seen) == 2
        assert sorted(op.completed_polls for op in ops) == [0, 0, 0, 1, 1]
        assert sum(op.status_requests_used for op in ops) == 2
        assert {op.lease_owner for op in ops} == {None}
        assert (report.sent, report.recorded) == (2, 2)


@pytest.mark.rule("O1", "S9")
async def test_a_final_answer_that_comes_while_the_loop_ends_is_kept(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        h.bank.gate, stop = asyncio.Event(), asyncio.Event()
        await h.submit("job-1", DONE)
        h.clock.jump(11 * SECOND)
        with h.worker() as controller:
            running = await started(h, controller, stop)
            await until(lambda: len(h.bank.status_seen) == 1, "it is out")
            stop.set()
            h.bank.gate.set()
            await asyncio.wait_for(running, LIMIT_S)
        op = await h.op()
        assert op.status is Status.SUCCEEDED
        assert op.result is not None


@pytest.mark.rule("O1", "B4")
async def test_an_operators_hold_while_a_request_is_out_stands_and_the_answer_is_recorded(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        h.bank.gate, stop = asyncio.Event(), asyncio.Event()
        await h.submit("job-1", RUNNING)
        h.clock.jump(11 * SECOND)
        with h.worker() as controller:
            running = await started(h, controller, stop)
            await until(lambda: len(h.bank.status_seen) == 1, "it is out")
            await h.core.actions.lower("op-job-1", ChoiceKind.HOLD, "maintenance", "ops")
            h.bank.gate.set()
            stop.set()
            await asyncio.wait_for(running, LIMIT_S)
        op = await h.op()
        assert (op.status, op.completed_polls, op.last_known_state) == (Status.HELD, 1, "running")


# --- a store that cannot commit ---------------------------------------------------------------------------------------


@pytest.mark.rule("O6", "B3")
async def test_a_store_that_cannot_commit_sends_nothing_says_so_and_the_loop_goes_on_once_it_can(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", DONE)
        store: Any = Breaking(h.core.store)
        h.core.store = store
        store.broken, stop = True, asyncio.Event()
        with h.worker() as controller:
            running = await started(h, controller, stop)
            await until(lambda: store.refused >= 5, "it was tried again")
            assert controller.health == "the disk is full"
            assert h.clock.sent == []
            store.broken = False
            await until(lambda: len(h.bank.status_seen) == 1, "it goes on")
            stop.set()
            await asyncio.wait_for(running, LIMIT_S)
            assert controller.health is None
        assert (await h.op()).status is Status.SUCCEEDED


@pytest.mark.rule("O6", "B2")
async def test_an_answer_that_cannot_be_written_is_kept_and_written_later_without_a_second_request(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        h.bank.gate, stop = asyncio.Event(), asyncio.Event()
        await h.submit("job-1", DONE)
        await h.submit("job-2", RUNNING)
        h.clock.jump(11 * SECOND)
        store: Any = Breaking(h.core.store)
        h.core.store = store
        with h.worker() as controller:
            running = await started(h, controller, stop)
            await until(lambda: len(h.bank.status_seen) == 2, "both are out")
            store.broken = True
            h.bank.gate.set()
            await until(lambda: store.refused >= 4, "it was tried again")
            assert controller.health is not None
            assert len(h.clock.sent) == 2
            store.broken = False
            await until(lambda: controller.report.recorded == 2, "both are written")
            stop.set()
            await asyncio.wait_for(running, LIMIT_S)
        assert (await h.op("op-job-1")).status is Status.SUCCEEDED
        running_on = await h.op("op-job-2")
        assert running_on.completed_polls == running_on.status_requests_used == len(h.bank.job("job-2"))
        assert len(h.bank.job("job-1")) == 1
        assert await h.events(EventName.ANSWER_LOST) == []


@pytest.mark.rule("O6", "T8")
async def test_a_cool_down_learnt_while_the_store_cannot_commit_is_not_forgotten(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        h.bank.gate, stop = asyncio.Event(), asyncio.Event()
        await h.submit("job-1", refuses(429, {"Retry-After": "300"}), DONE, credential="key")
        h.clock.jump(11 * SECOND)
        store: Any = Breaking(h.core.store)
        h.core.store = store
        with h.worker() as controller:
            running = await started(h, controller, stop)
            await until(lambda: len(h.bank.status_seen) == 1, "it is out")
            # no time passes once it is written: the next operation comes right then
            store.then = lambda: setattr(h.clock, "stand_still", True)
            store.broken, store.mends_after = True, 3
            h.bank.gate.set()
            await until(lambda: controller.report.recorded == 1, "it is written")
            stop.set()
            await asyncio.wait_for(running, LIMIT_S)
        store.then, h.clock.stand_still = (lambda: None), False
        asked = h.bank.status_seen[0].boot
        assert (store.refused, h.clock.now().boot < asked + 60 * SECOND) == (3, True)
        await h.submit("job-2", DONE, credential="key")
        await h.run()
        assert h.bank.job("job-2")[0].boot >= asked + 300 * SECOND


@pytest.mark.rule("O6")
async def test_a_store_that_cannot_be_read_ends_no_loop(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", DONE)
        store: Any = Breaking(h.core.store)
        h.core.store = store
        store.uncounted = 2
        await h.run()
        assert (await h.op()).status is Status.SUCCEEDED
        assert store.uncounted == 0


@pytest.mark.rule("O6", "O4")
async def test_changes_of_other_processes_are_seen_again_after_the_store_could_not_be_read(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.open() as other:
        store: Any = Breaking(h.core.store)
        store.unwatched, stop = 1, asyncio.Event()
        h.core.store = store
        h.clock.stand_still = True
        with h.worker() as controller:
            running = asyncio.create_task(controller.run(stop))
            await until(lambda: store.unwatched == 0, "the look has failed once")
            h.bank.scripts["job-1"] = [DONE]
            spec = SubmitSpec(provider="acme", job_id="job-1", operation_id="op-job-1", account="acct")
            await other.actions.submit(spec)
            seen = controller.report.turns
            try:
                # this clock stands still: no heartbeat would make it look
                await until(lambda: controller.report.turns > seen, "it looked")
            finally:
                stop.set()
                await asyncio.wait_for(running, LIMIT_S)


# --- heartbeats -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("O8", "O4")
async def test_every_worker_leaves_a_heartbeat_that_keeps_up_while_it_runs(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.open() as other:
        await h.submit("job-1", RUNNING, deadline_ms=2 * MINUTE)
        await h.run(50 * SECOND)
        await h.run(50 * SECOND, core=other)
        workers = await h.core.store.workers()
        now = h.clock.now()
        assert len(workers) == 2
        assert {worker.kind for worker in workers} == {"run"}
        ages = sorted(now.wall - worker.beat_at for worker in workers)
        assert ages[0] <= 16 * SECOND
        assert 45 * SECOND <= ages[1] <= 66 * SECOND


# --- intervals and clocks ---------------------------------------------------------------------------------------------


@pytest.mark.rule("T6", "T1")
async def test_missed_intervals_are_never_made_up_for(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING)
        h.clock.jump(20 * MINUTE)
        began = h.clock.now().boot
        await h.run(30 * SECOND)
        sent = [seen.boot for seen in h.bank.status_seen]
        assert sent[0] - began <= 1 * SECOND
        assert 3 <= len(sent) <= 7
        for one, later in pairwise(sent):
            assert later - one >= 5 * SECOND


@pytest.mark.rule("T6", "X2")
async def test_after_a_long_absence_the_deadline_comes_before_any_request(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING)
        h.clock.jump(41 * MINUTE)
        await h.run()
        op = await h.op()
        assert (op.stop_reason, op.status_requests_used, h.bank.requests) == (StopReason.DEADLINE_EXCEEDED, 0, [])


@pytest.mark.rule("T9", "T6")
async def test_a_suspend_is_recorded_and_leads_to_one_request_at_most(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING)
        wakes = h.clock.now().boot + 2 * SECOND
        h.clock.at.append((wakes, lambda: h.clock.jump(10 * MINUTE)))
        await h.run(10 * MINUTE + 4 * SECOND)
        (step,) = await h.events(EventName.CLOCK_STEP)
        assert step.text is not None
        assert "suspended" in step.text
        assert len(h.bank.status_seen) == 1
        assert h.bank.status_seen[0].boot >= wakes + 10 * MINUTE


@pytest.mark.rule("T9", "X2")
async def test_a_suspend_past_the_deadline_stops_without_a_request(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, deadline_ms=5 * MINUTE)
        h.clock.at.append((h.clock.now().boot + 2 * SECOND, lambda: h.clock.jump(10 * MINUTE)))
        await h.run()
        op = await h.op()
        assert (op.stop_reason, h.bank.requests) == (StopReason.DEADLINE_EXCEEDED, [])


@pytest.mark.rule("T9")
@pytest.mark.parametrize("hours", [-3, -1])
async def test_a_wall_clock_set_back_gives_no_more_time_and_is_recorded(hours: int, tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, deadline_ms=5 * MINUTE, max_status_requests=100)
        began = h.clock.now().boot
        h.clock.at.append((began + 40 * SECOND, lambda: h.clock.step(hours * HOUR)))
        await h.run()
        op = await h.op()
        assert op.stop_reason is StopReason.DEADLINE_EXCEEDED
        assert h.clock.now().boot - began <= 5 * MINUTE + 20 * SECOND
        assert all(seen.boot <= began + 5 * MINUTE for seen in h.bank.status_seen)
        # as often as without the step: the waits are counted on the clock that did not move
        sent = [seen.boot for seen in h.bank.status_seen]
        for one, later in pairwise(sent):
            assert 5 * SECOND <= later - one <= 11 * SECOND
        (step,) = await h.events(EventName.CLOCK_STEP)
        assert step.text is not None
        assert str(hours * 3600) in step.text


@pytest.mark.rule("T9", "T5")
async def test_a_wall_clock_set_forward_past_the_deadline_stops_and_one_before_it_cuts_no_wait_short(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        await h.submit("short", RUNNING, deadline_ms=5 * MINUTE)
        await h.submit("long", says("running", headers={"Retry-After": "600"}), RUNNING, deadline_ms=4 * HOUR)
        began = h.clock.now().boot
        h.clock.at.append((began + 60 * SECOND, lambda: h.clock.step(1 * HOUR)))
        await h.run(11 * MINUTE)
        short = await h.op("op-short")
        assert short.stop_reason is StopReason.DEADLINE_EXCEEDED
        assert all(seen.boot <= began + 80 * SECOND for seen in h.bank.job("short"))
        first, second = h.bank.job("long")[:2]
        assert second.boot - first.boot >= 600 * SECOND
        assert len(await h.events(EventName.CLOCK_STEP)) == 1


@pytest.mark.rule("T9", "O6")
async def test_a_clock_step_seen_while_the_loop_ends_is_recorded_too(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING)
        h.clock.at.append((h.clock.now().boot + 2 * SECOND, lambda: h.clock.step(-1 * HOUR)))
        await h.run(4 * SECOND)
        assert len(await h.events(EventName.CLOCK_STEP)) == 1


@pytest.mark.rule("O6")
async def test_records_that_do_not_add_up_are_found_at_the_start_and_nothing_is_sent(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.open() as core:
        await h.submit("j", says("running"))
        h.clock.jump(11 * SECOND)
        # a counter that no recorded send explains
        await core.store._write(
            lambda s: s.conn.execute("UPDATE operation SET status_requests_used = status_requests_used + 1")
        )
        with h.worker(core) as controller:
            await controller.run(asyncio.Event(), until_idle=True, watch=False)
        assert h.bank.status_seen == []
        assert controller.health is not None
        assert "do not add up" in controller.health


# --- a failure of our own ---------------------------------------------------------------------------------------------


@pytest.mark.rule("O1", "S9")
async def test_an_answer_is_recorded_also_where_what_it_teaches_cannot_be_learned(tmp_path: Path) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("ours")

    async with house(tmp_path) as h:
        await h.submit("j1", DONE)
        with h.worker() as controller, pytest.MonkeyPatch.context() as patch:
            patch.setattr(controller._exchange._lessons, "learn", broken)
            await asyncio.wait_for(controller.run(asyncio.Event(), until_idle=True, watch=False), LIMIT_S)
        assert (await h.op("op-j1")).status is Status.SUCCEEDED
        assert (controller.report.sent, controller.report.recorded) == (1, 1)
