"""What one operation's answer means for the others: cool-downs, caps, an origin that is down."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pollcore.facts import MINUTE, SECOND, BootMs, DelaySource, EventName, Status, StopReason
from pollcore.ports import OriginState, Turn
from tests.controller.bank import DONE, LOST, RUNNING, refuses
from tests.controller.house import House, house, until

CAPPED = '[providers.acme]\ncontract = "acme"\n'


async def tell_to_wait(h: House, status: int, seconds: int) -> int:
    """`op-told` is answered *status* with Retry-After; returns the boot time at which the cool-down ends."""
    await h.submit("told", refuses(status, {"Retry-After": str(seconds)}), DONE, credential="key")
    await h.run(10_100)
    (asked,) = h.bank.job("told")
    return asked.boot + seconds * SECOND


@pytest.mark.rule("T8", "T5")
@pytest.mark.parametrize("status", [429, 503])
async def test_guidance_cools_down_the_same_provider_account_and_credential_and_nothing_else(
    status: int, tmp_path: Path
) -> None:
    async with house(tmp_path) as h:
        await h.credential("second", "another-secret")
        h.write_contract(name="twin")
        end = await tell_to_wait(h, status, 100)
        await h.submit("same", DONE, credential="key")
        await h.submit("account", DONE, credential="key", account="other")
        await h.submit("secret", DONE, credential="second")
        await h.submit("nobody", DONE)
        await h.submit("provider", DONE, credential="key", provider="twin")
        await h.run(30 * SECOND)
        for job in ("account", "secret", "nobody", "provider"):
            assert len(h.bank.job(job)) == 1, job
        cooled = await h.op("op-same")
        assert h.bank.job("same") == []
        assert cooled.delay_source is DelaySource.SHARED_COOLDOWN
        assert (cooled.status, cooled.status_requests_used) == (Status.WAITING, 0)
        (told,) = await h.events(EventName.SCHEDULED, "op-same")
        assert told.delay_source is DelaySource.SHARED_COOLDOWN
        await h.run()
        assert (await h.op("op-same")).status is Status.SUCCEEDED
        assert h.bank.job("same")[0].boot >= end
        assert h.bank.job("told")[1].boot >= end


@pytest.mark.rule("T8")
async def test_a_429_without_guidance_cools_down_nobody_else(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("told", refuses(429), DONE, credential="key")
        await h.run(10_100)
        await h.submit("same", DONE, credential="key")
        await h.run(10_100)
        assert (await h.op("op-same")).status is Status.SUCCEEDED


@pytest.mark.rule("T8")
async def test_operations_are_let_go_spread_after_a_cool_down_and_never_before_its_end(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        end = await tell_to_wait(h, 429, 120)
        for n in range(20):
            await h.submit(f"j{n}", DONE, credential="key")
        await h.run()
        first = sorted(h.bank.job(f"j{n}")[0].boot for n in range(20))
        assert first[0] >= end
        assert first[-1] - first[0] >= 1 * SECOND
        assert len(set(first)) >= 18
        for at in first:
            assert sum(at <= other < at + 100 for other in first) <= 5


@pytest.mark.rule("T8")
async def test_a_cool_down_past_the_deadline_escalates_and_past_usefulness_too(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await tell_to_wait(h, 503, 300)
        now = h.clock.now().wall
        await h.submit("late", DONE, credential="key", deadline_ms=2 * MINUTE)
        await h.submit("useless", DONE, credential="key", useful_until=now + 2 * MINUTE)
        await h.run(20 * SECOND)
        late, useless = await h.op("op-late"), await h.op("op-useless")
        assert (late.status, late.stop_reason) == (Status.ESCALATED, StopReason.GUIDANCE_BEYOND_DEADLINE)
        assert (useless.status, useless.stop_reason) == (Status.ESCALATED, StopReason.USEFULNESS_ENDED)
        assert late.status_requests_used == useless.status_requests_used == 0
        assert h.bank.job("late") == h.bank.job("useless") == []
        question = await h.question("op-late")
        assert question is not None
        assert question.cause == "shared_cooldown:acme:acct:key"


@pytest.mark.rule("T8", "O4")
async def test_a_cool_down_told_to_one_core_holds_for_the_other(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.open() as other:
        end = await tell_to_wait(h, 429, 90)
        await h.submit("same", DONE, credential="key")
        await h.run(core=other, ms=60 * SECOND)
        assert h.bank.job("same") == []
        await h.run(core=other)
        assert h.bank.job("same")[0].boot >= end


@pytest.mark.rule("T8", "O4")
async def test_two_cores_together_never_have_more_requests_out_than_the_provider_allows(tmp_path: Path) -> None:
    async with house(tmp_path, config=CAPPED + "concurrency = 2\n") as h, h.open() as other:
        h.bank.overlap_s = 0.02
        for n in range(12):
            await h.submit(f"j{n}", RUNNING, DONE, account=f"a{n}")
        h.clock.jump(11 * SECOND)
        await h.run_together(other)
        assert h.bank.most_at_once == 2
        assert len(h.bank.status_seen) == 24
        for n in range(12):
            assert (await h.op(f"op-j{n}")).status is Status.SUCCEEDED


@pytest.mark.rule("T8", "O4")
async def test_two_cores_together_never_ask_oftener_in_a_minute_than_the_provider_allows(tmp_path: Path) -> None:
    async with house(tmp_path, config=CAPPED + "per_minute = 4\n") as h, h.open() as other:
        for n in range(9):
            await h.submit(f"j{n}", DONE)
        h.clock.jump(11 * SECOND)
        await h.run_together(other)
        sent = sorted(seen.boot for seen in h.bank.status_seen)
        assert len(sent) == 9
        for at in sent:
            assert sum(at <= one < at + MINUTE for one in sent) <= 4


@pytest.mark.rule("T8")
async def test_after_a_cool_down_the_release_stays_under_the_cap(tmp_path: Path) -> None:
    async with house(tmp_path, config=CAPPED + "per_minute = 5\nconcurrency = 1\n") as h:
        end = await tell_to_wait(h, 429, 60)
        for n in range(8):
            await h.submit(f"j{n}", DONE, credential="key")
        await h.run()
        sent = sorted(seen.boot for seen in h.bank.status_seen)[1:]
        assert len(sent) == 9
        assert sent[0] >= end
        for at in sent:
            assert sum(at <= one < at + MINUTE for one in sent) <= 5
        assert h.bank.most_at_once == 1


@pytest.mark.rule("T8", "X2")
async def test_a_cap_that_never_lets_an_operation_go_leaves_its_deadline_running(tmp_path: Path) -> None:
    async with house(tmp_path, config=CAPPED + "per_minute = 1\n") as h:
        for n in range(4):
            await h.submit(f"j{n}", RUNNING, deadline_ms=2 * MINUTE)
        await h.run()
        ends = [await h.op(f"op-j{n}") for n in range(4)]
        assert {op.stop_reason for op in ends} == {StopReason.DEADLINE_EXCEEDED}
        assert sum(op.status_requests_used for op in ends) == len(h.bank.status_seen) <= 3


# --- an origin that is down -------------------------------------------------------------------------------------------

MANY = {"max_transport_failures": 50, "max_status_requests": 60}


@pytest.mark.rule("T11", "B4")
async def test_an_origin_that_is_down_is_asked_by_one_and_the_others_burn_nothing(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.bank.close_port()
        for n in range(8):
            await h.submit(f"j{n}", DONE, **MANY)
        await h.run(4 * MINUTE)
        probes = h.clock.sent[3:]
        assert 3 <= len(probes) <= 30
        for (one, _), (later, _) in pairwise(probes):
            assert later - one >= 5 * SECOND
        ops = [await h.op(f"op-j{n}") for n in range(8)]
        for op in ops:
            sent = sum(job == op.submitted.job_id for _, job in h.clock.sent)
            assert op.status is Status.WAITING
            assert op.status_requests_used == op.transport_failures_used == op.completed_polls == sent
        assert {op.delay_source for op in ops} >= {DelaySource.ORIGIN_DOWN}
        waited = [op for op in ops if op.delay_source is DelaySource.ORIGIN_DOWN]
        assert len(waited) >= 6


async def outage(h: House, count: int, down_ms: int, up_ms: int, **limits: Any) -> list[int]:
    """*count* operations `op-jN` wait while their origin is down, and go on when it answers: when each was asked."""
    await h.bank.close_port()
    for n in range(count):
        await h.submit(f"j{n}", DONE, **MANY, **limits)
    await h.run(down_ms)
    await h.bank.open_port()
    await h.run(up_ms)
    return sorted(seen.boot for seen in h.bank.status_seen)


def most_in_a_second(released: list[int]) -> int:
    return max(sum(at <= other < at + SECOND for other in released) for at in released)


@pytest.mark.rule("T11")
async def test_all_are_let_go_spread_when_the_probe_answers(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.bank.close_port()
        for n in range(12):
            await h.submit(f"j{n}", DONE, **MANY)
        await h.run(3 * MINUTE)
        await h.bank.open_port()
        before = len(h.clock.sent)
        await h.run(3 * MINUTE)
        ops = [await h.op(f"op-j{n}") for n in range(12)]
        assert {op.status for op in ops} == {Status.SUCCEEDED}
        assert len(h.clock.sent) - before == 12
        released = sorted(seen.boot for seen in h.bank.status_seen)[1:]
        assert released[-1] - released[0] >= 1 * SECOND
        assert len(set(released)) >= 9
        for at in released:
            assert sum(at <= other < at + 100 for other in released) <= 5


@pytest.mark.rule("T11")
async def test_those_that_waited_for_the_probe_are_let_go_within_seconds_of_its_answer(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        released = await outage(h, 12, 8 * MINUTE, 3 * MINUTE)
        assert len(released) == 12
        assert released[-1] - released[0] <= 5 * SECOND


@pytest.mark.slow
@pytest.mark.rule("T11")
async def test_however_many_waited_no_more_are_let_go_at_a_time(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        released = await outage(h, 200, MINUTE, 2 * MINUTE)
        assert len(released) == 200
        assert most_in_a_second(released) <= 20


@pytest.mark.rule("T11", "X2", "E10")
async def test_deadlines_run_while_an_origin_is_down_and_its_casualties_share_one_cause(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.bank.close_port()
        for n in range(3):
            await h.submit(f"probe{n}", DONE, **MANY)
        await h.run(11 * SECOND)
        for n in range(3):
            await h.submit(f"j{n}", DONE, deadline_ms=40 * SECOND, **MANY)
        began = h.clock.now().wall
        await h.run(2 * MINUTE)
        waited = [op for op in [await h.op(f"op-j{n}") for n in range(3)] if op.status_requests_used == 0]
        assert len(waited) >= 1
        for op in waited:
            question = await h.question(op.operation_id)
            assert (op.status, op.stop_reason) == (Status.ESCALATED, StopReason.DEADLINE_EXCEEDED)
            assert question is not None
            assert question.cause.startswith("origin_down:")
            assert 40 * SECOND <= question.asked_at - began <= 42 * SECOND


@pytest.mark.rule("T11")
async def test_another_account_on_the_same_origin_is_judged_on_its_own(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        for n in range(4):
            await h.submit(f"j{n}", LOST, credential="key", **MANY)
        await h.run(30 * SECOND)
        down = [op for op in [await h.op(f"op-j{n}") for n in range(4)] if op.delay_source is DelaySource.ORIGIN_DOWN]
        assert down
        await h.submit("mine", RUNNING, DONE, account="other", credential="key")
        await h.run(30 * SECOND)
        mine = await h.op("op-mine")
        assert (mine.status, mine.status_requests_used) == (Status.SUCCEEDED, 2)
        scheduled = await h.events(EventName.SCHEDULED, "op-mine")
        assert scheduled == []


@pytest.mark.rule("T11")
async def test_one_operation_alone_never_declares_its_origin_down(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("sick", LOST, **MANY)
        await h.run(2 * MINUTE)
        await h.submit("well", DONE)
        await h.run(10_100)
        assert (await h.op("op-well")).status is Status.SUCCEEDED


@pytest.mark.rule("T11", "O4")
async def test_two_cores_send_one_probe_at_a_time_between_them(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.open() as other:
        h.bank.overlap_s = 0.01
        for n in range(10):
            await h.submit(f"j{n}", LOST, **MANY)
        await h.run(10_100)
        before = len(h.bank.status_seen)
        await h.run_together(other, 5 * MINUTE)
        probes = h.bank.status_seen[before:]
        assert len(probes) >= 3
        assert h.bank.most_at_once == 1
        for one, later in pairwise(probes):
            assert later.boot - one.boot >= 5 * SECOND


@pytest.mark.rule("T11", "O4")
async def test_a_probe_of_one_core_stops_what_the_other_has_already_lined_up(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.open(slots=1) as other:
        h.bank.gate = asyncio.Event()
        await h.submit("first", RUNNING, account="other")
        h.clock.jump(11 * SECOND)
        await h.submit("second", DONE)
        h.clock.jump(11 * SECOND)
        stop = asyncio.Event()
        with h.worker(other) as controller:
            running = asyncio.create_task(controller.run(stop, watch=False))
            await until(lambda: len(h.bank.status_seen) == 1, "the one slot is taken, the second one is lined up")
            now = h.clock.now()
            probe = {"probe_operation": "op-elsewhere", "probe_until_boot": BootMs(now.boot + 60 * SECOND)}
            down = OriginState(origin=h.bank.url, account="acct", faults_in_a_row=3, down_since=now.wall, **probe)
            await h.core.store.turn(Turn(now=now, owner="run-elsewhere", origins=(down,)))
            h.bank.gate.set()
            await until(lambda: _waits_for_origin(h), "it was looked at")
            stop.set()
            await running
        assert [seen.job for seen in h.bank.status_seen if seen.boot < now.boot + 60 * SECOND].count("second") == 0


async def _waits_for_origin(h: House) -> bool:
    op = await h.op("op-second")
    return op.delay_source is DelaySource.ORIGIN_DOWN or op.completed_polls > 0
