"""One set of waits played twice, with the same draws: by the simulation, and by the real core on a clock that jumps."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pollcore.actions import SubmitSpec
from pollcore.adapters.keyring_store import MemoryBackend
from pollcore.adapters.system import SystemChance
from pollcore.assembly import Core, open_core
from pollcore.contract import Contract, parse
from pollcore.controller import loop, unsent
from pollcore.controller.shared import Shared
from pollcore.facts import (
    Answer,
    BootMs,
    Fault,
    FaultKind,
    Instant,
    Limits,
    Moment,
    Operation,
    Request,
    Secret,
    Status,
    StopReason,
)
from pollcore.whatif import Chances, JobTime, Parameters, Worker
from pollcore.whatif.provider import Fate, Provider, arrivals, job_times, until_next_minute
from pollcore.whatif.run import Trace
from pollcore.whatif.simulate import record, run
from pollcore.whatif.waits import BEGINNING

SLICE_MS = 15_000
MAX_CLOCK_STEPS = 200_000

BASE = """
schema = 1
name = "played"
tested_live = "the two players of these tests"
origins = ["http://127.0.0.1:9"]
[credential]
kind = "bearer"
optional = true
[status]
url = "http://127.0.0.1:9/jobs/{job_id}"
observation = "read_only"
evidence = "a test"
[state]
value = "body.status"
[states]
waiting = ["running"]
succeeded = ["done"]
failed = ["broken"]
"""


def contract_of(*, schedule: str = "", default: str = "", caps: str = "", rest: str = "") -> Contract:
    """A contract of which only the numbers matter."""
    limits = {"deadline": '"40m"', "max_status_requests": "25", "max_transport_failures": "3", "max_rate_limited": "3"}
    limits |= dict(part.strip().split(" = ") for part in default.split(";") if part)
    text = [
        BASE,
        rest,
        "[schedule]",
        *(part.strip() for part in schedule.split(";")),
        caps,
        '[limits]\ndeadline_basis = "decide-by: the end of the test"\nextend = [{ minutes = 15, checks = 4 }]',
        "[limits.default]",
        *(f"{name} = {value}" for name, value in limits.items()),
    ]
    return parse("\n".join(text), "played.toml")


def source(seed: int, name: str) -> Callable[[], float]:
    return random.Random(f"{seed}:{name}").random


def chances(seed: int) -> Chances:
    return Chances(source(seed, "draws"), source(seed, "world"), source(seed, "fates"))


def worker() -> Worker:
    """The real one's rules."""
    return Worker(shared=Shared(), slots=loop.SLOTS, recheck_ms=unsent.RECHECK_MS, cap_pause_ms=unsent.CAP_PAUSE_MS)


@dataclass
class Played:
    """What can be compared; times in ms from the beginning."""

    sent: list[tuple[int, str]] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    stops: Counter[StopReason] = field(default_factory=Counter)


def simulated(contract: Contract, asked: Parameters, seed: int) -> Trace:
    """By the simulation."""
    chance = chances(seed)
    template = record(contract, asked, remote=False, ceilings=Limits())
    comes = arrivals(asked, chance.world)
    takes = job_times(asked, asked.job_time or JobTime("fixed", 1), chance.world)
    return run(contract, asked, template, comes, takes, worker=worker(), chances=chance)


async def really(contract: Contract, asked: Parameters, seed: int, home: Path) -> Played:
    """By the core: real store, real loop, real reading of answers; the transport alone makes its answers itself."""
    chance = chances(seed)
    comes = arrivals(asked, chance.world)
    takes = job_times(asked, asked.job_time or JobTime("fixed", 1), chance.world)
    (home / "providers").mkdir(parents=True)
    (home / "providers" / "played.toml").write_text(contract.snapshot_text)
    clock = Clock(comes)
    transport = Transport(clock, asked, chance, [at + time for at, time in zip(comes, takes, strict=True)])
    draws = Draws(chance)
    opened = open_core(home, kind="run", clock=clock, chance=draws, transport=transport, backend=MemoryBackend())
    async with opened as core:
        clock.core, clock.asked = core, asked
        controller = core.controller()
        clock.wake = controller.wake
        await clock.submit_due()
        await controller.run(clock.stop, watch=False)
        assert list(await core.store.check()) == []
        return await _result(core, transport, len(comes), [at + time for at, time in zip(comes, takes, strict=True)])


async def _result(core: Core, transport: Transport, n: int, ends: list[int]) -> Played:
    played = Played(sent=transport.sent)
    for index in range(n):
        operation: Operation | None = await core.store.operation(f"op-{index}")
        assert operation is not None
        played.requests.append(operation.status_requests_used)
        if operation.status is Status.SUCCEEDED:
            assert operation.last_http is not None
            played.late.append(operation.last_http.answered_at - BEGINNING - ends[index])
        else:
            assert operation.stop_reason is not None
            played.stops[operation.stop_reason] += 1
    return played


class Draws(SystemChance):
    """The seeded draws of the schedule."""

    def __init__(self, chance: Chances) -> None:
        super().__init__()
        self._next = chance.draws

    def draw(self) -> float:
        return self._next()


class Clock:
    """Both clocks jump over waits; operations are handed over when their time has come."""

    def __init__(self, comes: list[int]) -> None:
        self._comes = comes
        self._at = 0
        self._next = 0
        self._steps = 0
        self.stop = asyncio.Event()
        self.core: Core | None = None
        self.asked: Parameters | None = None
        self.wake: Callable[[], None] = lambda: None

    @property
    def at(self) -> int:
        return self._at

    def now(self) -> Moment:
        return Moment(Instant(BEGINNING + self._at), BootMs(self._at), "played")

    async def wait(self, event: asyncio.Event, ms: int) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        if event.is_set():
            return
        self._steps += 1
        assert self._steps < MAX_CLOCK_STEPS
        room = min(ms, SLICE_MS)
        if self._next < len(self._comes):
            room = min(room, self._comes[self._next] - self._at)
        elif self.core is not None and not (await self.core.store.counts()).get(Status.WAITING, 0):
            self.stop.set()
            return
        self._at += max(0, room)
        await self.submit_due()

    async def submit_due(self) -> None:
        """Hand over what has come."""
        core, asked = self.core, self.asked
        if core is None or asked is None:
            return
        while self._next < len(self._comes) and self._comes[self._next] <= self._at:
            name = str(self._next)
            self._next += 1
            await core.actions.submit(
                SubmitSpec(
                    provider="played",
                    job_id=name,
                    operation_id=f"op-{name}",
                    account="acct",
                    deadline_ms=asked.deadline,
                    max_status_requests=asked.max_status_requests,
                )
            )
            self.wake()


class Transport:
    """Answers at once, as the simulation's provider says."""

    def __init__(self, clock: Clock, asked: Parameters, chance: Chances, ends: list[int]) -> None:
        self._clock = clock
        self._asked = asked
        self._provider = Provider(asked, chance.fates)
        self._ends = ends
        self.sent: list[tuple[int, str]] = []

    async def send(self, request: Request, secret: Secret | None) -> Answer | Fault:
        at, job = self._clock.at, request.url.rpartition("/")[2]
        self.sent.append((at, job))
        instant = Instant(BEGINNING + at)
        match self._provider.fate(at):
            case Fate.REFUSED:
                return Fault(FaultKind.CONNECTION_REFUSED, False, instant)
            case Fate.LIMITED:
                seconds = str(until_next_minute(at) // 1_000)
                headers = (("retry-after", seconds),) if self._asked.retry_after else ()
                return Answer(429, headers, b"{}", instant, instant)
            case _:
                done = at >= self._ends[int(job)]
                guided = self._asked.guidance is not None and not done
                headers = (("retry-after", str((self._asked.guidance or 0) // 1_000)),) if guided else ()
                body = json.dumps({"status": "done" if done else "running"}).encode()
                return Answer(200, headers, body, instant, instant)

    async def aclose(self) -> None:
        """Nothing is open."""
