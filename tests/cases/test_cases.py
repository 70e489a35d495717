"""Every answer sequence of tests/data/cases.json, over real loopback HTTP, with a clock that jumps over the waits."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pollcore.actions import SubmitSpec
from pollcore.adapters.credential_ops import set_credential
from pollcore.adapters.keyring_store import MemoryBackend
from pollcore.adapters.system import SystemChance
from pollcore.adapters.transport import HttpTransport
from pollcore.adapters.worker_lock import WorkerLock
from pollcore.assembly import Core, open_core
from pollcore.facts import (
    Answer,
    ChoiceKind,
    EventName,
    Fault,
    Operation,
    Operator,
    Request,
    Secret,
    Status,
    parse_instant,
)
from pollcore.ports import Claim, Turn, Write
from tests.cases.world import JumpingClock, Provider
from tests.core.reading.case_contracts import CASES, contract_text

BY_ID = {case["id"]: case for case in CASES}
OPERATOR = Operator("ops", "here", "pty")
LEASE_CASES = {"second-poller", "stale-owner-writes"}
LONGEST_MS = 30 * 3_600_000


class Draws(SystemChance):
    """Chance that always draws the same number."""

    def __init__(self, draw: float) -> None:
        super().__init__()
        self._always = draw

    def draw(self) -> float:
        return self._always


class Counting:
    """The real transport; tells the clock that a request is out."""

    def __init__(self, clock: JumpingClock) -> None:
        self._real = HttpTransport(clock)
        self._clock = clock
        self.hosts: set[str] = set()
        self.longest_s = 0.0

    async def send(self, request: Request, secret: Secret | None) -> Answer | Fault:
        self.hosts.add(request.url.split("/")[2])
        self._clock.requests_out += 1
        began = time.monotonic()
        try:
            return await self._real.send(request, secret)
        finally:
            self._clock.requests_out -= 1
            self.longest_s = max(self.longest_s, time.monotonic() - began)

    async def aclose(self) -> None:
        await self._real.aclose()


class World:
    """One case: its home, provider, clock, and the core on them."""

    def __init__(self, case: dict[str, Any], home: Path, draw: float) -> None:
        self.case = case
        self.home = home
        self.draw = draw
        self.first_delay = int(case["contract"]["limits"]["base_wait_seconds"] * 500 * (1 + draw))
        self.start = parse_instant(case["start_at"])
        self.clock = JumpingClock(self.start)
        self.clock.step(-self.first_delay)
        self.transport = Counting(self.clock)
        self.backend = MemoryBackend()
        scripts = {"job-1": case.get("responses", [])}
        scripts["sibling"] = [{"status": 429, "headers": {"Retry-After": "600"}, "body": {}}]
        self.provider = Provider(self.clock, scripts)

    def core(self) -> Core:
        self.transport = Counting(self.clock)
        return open_core(
            self.home,
            kind="run",
            clock=self.clock,
            chance=Draws(self.draw),
            transport=self.transport,
            backend=self.backend,
        )

    def write_contract(self) -> None:
        case = dict(self.case, contract=dict(self.case["contract"]))
        text = contract_text(case).replace("https://api.example.test", self.provider.url)
        text = text.replace("total = 10", "total = 1").replace("/v1/jobs/job-1", "/v1/jobs/{job_id}")
        folder = self.home / "providers"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.case['contract']['provider']}.toml").write_text(text)

    async def add_credential(self, core: Core) -> None:
        header = self.case["contract"].get("auth", {}).get("header")
        await set_credential(
            core.vault,
            core.credential_admin.meta,
            name="cred-1",
            kind="header" if header else "bearer",
            names=(header,) if header else (),
            origins=[self.provider.url],
            secret=Secret("canary-secret-of-the-case"),
            now=self.clock.now().wall,
        )

    async def run_to_the_end(self, core: Core, ms: int = LONGEST_MS) -> None:
        await core.controller().run(asyncio.Event(), until_idle=True, for_ms=ms, watch=False)
        core._lock.release()  # one core runs several controllers here, one after the other

    async def submit(self, core: Core, job: str = "job-1") -> Operation:
        response = self.case.get("submit_response")
        answer = None
        if response is not None and job == "job-1":
            now = self.clock.now().wall
            answer = Answer(response["status"], (), json.dumps(response["body"]).encode(), now, now)
        spec = SubmitSpec(
            provider=self.case["contract"]["provider"],
            job_id=None if answer else job,
            operation_id=f"op-{job}",
            credential="cred-1",
            account="acct",
            response=answer,
            response_url=f"{self.provider.url}/v1/jobs",
        )
        return (await core.actions.submit(spec)).operation


async def play(world: World) -> tuple[Operation, str]:
    """Run the case with its events; the operation at the end, and its audit as one text."""
    events = world.case.get("events", [])
    async with world.provider:
        world.write_contract()
        async with world.core() as core:
            await world.add_credential(core)
            if any(e["event"] == "sibling_rate_limited" for e in events):
                await sibling_first(world, core)
            await world.submit(core)
            restarts = arrange(world, events)
            await cancel_if_chosen(world, core, events)
            if not restarts:
                await world.run_to_the_end(core)
        for _ in restarts:
            await run_until_answer(world, restarts.pop(0))
        async with world.core() as core:
            if world.case["id"] != "done-in-first-answer":
                await world.run_to_the_end(core)
            operation = await core.store.operation("op-job-1")
            assert operation is not None
            told = await core.store.events("op-job-1")
            assert await core.store.check() == () or list(await core.store.check()) == []
            return operation, msgspec.json.encode([event for _, event in told]).decode()


async def sibling_first(world: World, core: Core) -> None:
    """Another operation with the same credential is told to wait 600 s, at the case's start."""
    await world.submit(core, "sibling")
    await world.run_to_the_end(core, world.first_delay + 100)
    assert len(world.provider.of("sibling")) == 1


def arrange(world: World, events: list[dict[str, Any]]) -> list[int]:
    """Lay the events of clocks and answers in; returns after which answers the process dies."""
    restarts = []
    for event in events:
        match event["event"]:
            case "suspend":
                after(world, event["after_response"], lambda e=event: later(world, 1_000, e["wall_seconds"] * 1_000))
            case "wall_clock_step":
                ms = event["seconds"] * 1_000
                at = event["at_seconds"] * 1_000
                after(world, event["after_response"], lambda ms=ms, at=at: step_later(world, at, ms))
            case "crash_and_restart":
                restarts.append(event["after_response"])
            case _:
                pass
    if world.case["id"] == "final-answer-after-deadline":
        world.provider.before_answer = lambda n: world.clock.jump(15_000) if n == 2 else None
    return restarts


def after(world: World, n: int, then: Any) -> None:
    world.provider.after_answer = lambda seen: then() if seen == n else None


def later(world: World, delay_ms: int, jump_ms: int) -> None:
    world.clock.at.append((world.clock.now().boot + delay_ms, lambda: world.clock.jump(jump_ms)))


def step_later(world: World, delay_ms: int, step_ms: int) -> None:
    world.clock.at.append((world.clock.now().boot + delay_ms, lambda: world.clock.step(step_ms)))


async def run_until_answer(world: World, n: int) -> None:
    """A process that dies (kill -9: nothing is ended cleanly) once the answer *n* was written down."""
    core = world.core()
    await core.__aenter__()
    after(world, n, lambda: setattr(world.clock, "frozen", True))
    running = asyncio.create_task(core.controller().run(asyncio.Event(), watch=False))
    async with asyncio.timeout(60):
        while True:
            operation = await core.store.operation("op-job-1")
            assert operation is not None
            if operation.completed_polls >= n or operation.status.is_end:
                break
            await asyncio.sleep(0.005)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    core._lock.release()
    await core.store.close()
    world.clock.frozen = False


async def cancel_if_chosen(world: World, core: Core, events: list[dict[str, Any]]) -> None:
    for event in events:
        if event["event"] != "human_choice":
            continue
        world.provider.cancel_answer = event["cancel_response"]
        first = asyncio.create_task(core.controller().run(asyncio.Event(), watch=False))
        async with asyncio.timeout(60):
            while len(world.provider.of("job-1")) < event["before_request"] - 1:
                await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        core._lock.release()
        await core.actions.open_question("op-job-1", OPERATOR)
        shown = await core.actions.card("op-job-1")
        choice = next(c for c in shown.choices if c.kind is ChoiceKind.CANCEL_AT_PROVIDER)
        await core.actions.decide(
            "op-job-1", shown.question.escalation_id, choice.key, shown.digest, {"kind": "test"}, OPERATOR
        )
        assert world.provider.cancels == 1


def check(world: World, operation: Operation, audit: str) -> None:
    right = world.case["right"]
    sent = world.provider.of("job-1")
    assert operation.status.value == right["status"], audit
    assert operation.stop_reason == right["stop_reason"]
    assert operation.stop_detail == right["stop_detail"]
    assert len(sent) == right["status_requests_sent"]
    assert operation.status_requests_used == len(sent)
    waits = [(b - a) / 1_000 for a, b in itertools.pairwise(sent)]
    steps = [e for e in world.case.get("events", []) if e["event"] == "wall_clock_step"]
    waits = [w - sum(e["seconds"] for e in steps) for w in waits]
    for got, least in zip(waits, right.get("min_wait_seconds", []), strict=False):
        assert got >= least
    for got, most in zip(waits, right.get("max_wait_seconds", []), strict=False):
        assert got <= most
    if "transport_failures" in right:
        assert operation.transport_failures_used == right["transport_failures"]
    if "first_request_not_before_seconds" in right:
        asked = world.provider.of("sibling")[0]
        assert sent[0] - asked >= right["first_request_not_before_seconds"] * 1_000
    for text in right.get("audit_contains", []):
        assert text in audit
    for name in right.get("request_headers_absent", []):
        assert all(name.lower() not in headers for headers in world.provider.headers)
    assert world.transport.hosts <= {f"127.0.0.1:{world.provider.port}"}
    assert "canary-secret-of-the-case" not in audit


PLAIN = sorted(set(BY_ID) - LEASE_CASES)


@pytest.mark.rule("S1", "S2", "S4", "S6", "S9", "T3", "T4", "T5", "T7", "T8", "T9", "B2", "B4", "X3", "X4", "X5", "X6")
@pytest.mark.rule("H1", "H2", "H3", "H4", "H5", "H6", "H7")
@pytest.mark.parametrize("draw", [0.0, 0.999])
@pytest.mark.parametrize("name", PLAIN)
async def test_a_reported_answer_sequence_ends_as_it_should(name: str, draw: float, tmp_path: Path) -> None:
    world = World(BY_ID[name], tmp_path / "home", draw)
    operation, audit = await play(world)
    check(world, operation, audit)
    if name == "slow-drip":
        assert world.transport.longest_s < 2.5


@pytest.mark.rule("T4")
async def test_a_time_without_a_zone_is_refused_in_every_time_zone(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(os.environ, "TZ", "Asia/Tokyo")
    time.tzset()
    try:
        world = World(BY_ID["next-check-without-offset"], tmp_path / "home", 0.5)
        check(world, *(await play(world)))
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.rule("O2", "O3", "O4")
async def test_a_worker_that_does_not_own_the_operation_sends_and_changes_nothing(tmp_path: Path) -> None:
    world = World(BY_ID["second-poller"], tmp_path / "home", 0.5)
    async with world.provider:
        world.write_contract()
        async with world.core() as core:
            await world.add_credential(core)
            operation = await world.submit(core)
            world.clock.jump(world.first_delay + 1)
            alive = WorkerLock(core.home.workers, "run-other")
            assert await claim(core, operation, "run-other", lease_ms=45_000) is not None
            before = await core.store.operation("op-job-1")
            await world.run_to_the_end(core, 29_000)
            assert world.provider.seen == []
            assert await core.store.operation("op-job-1") == before
            alive.release()


@pytest.mark.rule("O2", "B4")
async def test_a_dead_workers_operation_goes_on_and_its_lost_answer_stays_counted(tmp_path: Path) -> None:
    world = World(BY_ID["state-number"], tmp_path / "home", 0.5)
    async with world.provider:
        world.write_contract()
        async with world.core() as core:
            await world.add_credential(core)
            operation = await world.submit(core)
            world.clock.jump(world.first_delay + 1)
            assert await claim(core, operation, "run-dead") is not None
            await world.run_to_the_end(core)
            after = await core.store.operation("op-job-1")
            told = [event.event for _, event in await core.store.events("op-job-1")]
            assert after is not None
            assert after.status is Status.FAILED
            assert after.status_requests_used == 1 + len(world.provider.seen) == 3
            assert told.count(EventName.ANSWER_LOST) == 1


@pytest.mark.rule("O2", "O3")
async def test_a_late_owner_changes_nothing(tmp_path: Path) -> None:
    world = World(BY_ID["stale-owner-writes"], tmp_path / "home", 0.5)
    async with world.provider:
        world.write_contract()
        async with world.core() as core:
            await world.add_credential(core)
            operation = await world.submit(core)
            world.clock.jump(world.first_delay + 1)
            mine = await claim(core, operation, "run-same-name")
            assert mine is not None
            for _ in range(3):
                world.clock.jump(31_000)
                await core.store.turn(Turn(now=world.clock.now(), owner="run-same-name", look=10))
            fresh = await core.store.operation("op-job-1")
            assert fresh is not None
            other = await claim(core, fresh, "run-same-name")
            assert other is not None
            assert other.epoch > mine.epoch
            late = msgspec.structs.replace(mine, status=Status.FAILED)
            write = Write(after=late, fence_epoch=mine.epoch)
            outcome = await core.store.turn(Turn(now=world.clock.now(), owner="run-same-name", writes=(write,)))
            assert outcome.taken == (False,)
            after = await core.store.operation("op-job-1")
            assert after is not None
            assert (after.status, after.epoch, after.status_requests_used) == (Status.WAITING, other.epoch, 2)


async def claim(core: Core, operation: Operation, owner: str, lease_ms: int = 30_000) -> Operation | None:
    from pollcore.controller.prepare import sent_event

    now = core.clock.now()
    one = Claim(
        operation=operation,
        step="status",
        origin="http://127.0.0.1:1",
        method="GET",
        event=sent_event(operation, now),
        lease_ms=lease_ms,
    )
    outcome = await core.store.turn(Turn(now=now, owner=owner, claims=(one,)))
    taken = outcome.claimed[0]
    return taken.operation if taken is not None else None
