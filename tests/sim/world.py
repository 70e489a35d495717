"""One world of one seed: clocks, one store, workers, operators, a provider, and what strikes them.

Job: put real controllers and real actions together behind simulated ports, let a seeded fate act on them, then let
everything become healthy and see whether each wait ends. Must not know: what is right (that is invariants.py).
"""

from __future__ import annotations

import asyncio
import collections
import copy
import hashlib
import random
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Final
from unittest import mock
from urllib.parse import unquote

import msgspec

from pollcore.actions import Actions, Caps, Desk, InstanceNames
from pollcore.adapters.audit_plain import PlainAudit
from pollcore.adapters.store import InlineStore, check, opening
from pollcore.adapters.store.library import sqlite3
from pollcore.controller import Controller
from pollcore.controller import contracts as controller_contracts
from pollcore.controller.contracts import Contracts
from pollcore.facts import BootMs, Instant, Moment, Operator, Request
from pollcore.ports import Claimed, Worker
from tests.sim import contracts, people
from tests.sim.fate import Fate
from tests.sim.invariants import Watch
from tests.sim.loop import Process, SimLoop
from tests.sim.plan import Plan, batched, gated
from tests.sim.ports import FaultyConnection, SimChance, SimClock, SimCredentials, SimStore, SimTransport
from tests.sim.provider import Provider
from tests.sim.things import BOOT, WALL, Flight, Keyring, Running, Seal

SETTLE_MS: Final = 150_000
"""After its deadline, so long may an operation still be on its way to a stop: an answer in flight, a lease's span."""
CALM_STEP_S: Final = 5.0
MAX_CALM_MS: Final = 3_600_000
KEPT_TRACE: Final = 100_000
UNTRIED_EVERY: Final = 7
"""In one world of so many nobody has tried the contracts: their first use is asked about (X7)."""


class World(Fate):
    """Everything of one seed. `run` is called once."""

    def __init__(self, seed: int, *, scale: float = 1.0, keep: bool = False) -> None:
        """*keep*: leave the digest of all tables in `digest`, for replays."""
        self.seed = seed
        self._keep = keep
        self.digest = ""
        self.chance = random.Random(f"world {seed}")
        self.plan = batched(
            gated(Plan.of(self.chance, scale), random.Random(f"gate {seed}")), random.Random(f"batch {seed}")
        )
        self.loop = SimLoop()
        self._outside = copy_context()
        self.wall_step = 0
        self.suspended = 0
        self.boot_number = 1
        self._boot_from = 0
        self.trace: collections.deque[tuple[Any, ...]] = collections.deque(maxlen=KEPT_TRACE)
        self.violation: tuple[str, str] | None = None
        self.covered: collections.Counter[str] = collections.Counter()
        self.chaos = True
        self.acting: Process | None = None
        self.acting_at: Moment | None = None
        """The moment that the running store call was given: older than now where its process was stopped before it."""
        self.wall_steps = 0
        self.settle_ms = SETTLE_MS - 1
        self.changed = asyncio.Event()
        self.changes = 0
        self.keyring = Keyring()
        self.provider = Provider(seed)
        # by the seed alone: the draws of all other worlds stay as they are
        self.files = contracts.Files(untried=seed % UNTRIED_EVERY == UNTRIED_EVERY - 1)
        self.workers: dict[int, Running] = {}
        self._generation = 0
        self.dead_owners: set[str] = set()
        self.claims: dict[tuple[str, str], Claimed] = {}
        self._flights = 0
        self._open_store()
        self.watch = Watch(self)

    def _open_store(self) -> None:
        def opened(path: str, **named: Any) -> FaultyConnection:
            return FaultyConnection(real(path, **named), sqlite3, self._committed)

        real = opening.open_writer
        with mock.patch.object(opening, "open_writer", opened):
            self.store = InlineStore(Seal(), PlainAudit())
        self.conn: FaultyConnection = self.store.turns.conn
        self.sql: Any = self.conn.real

    # --- clocks -------------------------------------------------------------------------------------------------------

    def now(self) -> Moment:
        ms = self.loop.ms + self.suspended
        return Moment(
            Instant(WALL + ms + self.wall_step),
            BootMs(BOOT + ms - self._boot_from),
            f"boot-{self.boot_number}",
        )

    @property
    def true_wall(self) -> int:
        """The wall clock of a machine whose clock nobody sets: the provider's."""
        return int(WALL + self.loop.ms + self.suspended)

    def later(self, ms: int, call: Callable[[], None]) -> None:
        """Outside of every process: the network and the provider go on while processes stand still."""
        self.loop.call_later(ms / 1_000, call, context=self._outside)

    # --- telling ------------------------------------------------------------------------------------------------------

    def note(self, *what: Any) -> None:
        self.trace.append((self.loop.ms, *what))

    def cover(self, fault: str) -> None:
        self.covered[fault] += 1
        self.note("fate", fault)

    def broken(self, invariant: str, text: str) -> None:
        """The first violation ends the world."""
        if self.violation is None:
            self.violation = (invariant, text)
            self.note("BROKEN", invariant, text)
            self.chaos = False

    def change_number(self) -> int:
        return self.changes

    def acting_now(self) -> Moment:
        """The moment by which the running store call goes."""
        return self.acting_at or self.now()

    @property
    def acting_late(self) -> bool:
        """The running store call goes by a moment that is past: its process was stopped, or a clock stepped."""
        return self.acting_at is not None and self.acting_at != self.now()

    def books(self) -> list[str]:
        """The store's own check of its books."""
        return check.run(self.sql)

    def _committed(self) -> None:
        change = self.sql.execute("SELECT change FROM meta").fetchone()[0]
        if change != self.changes:
            self.changes = change
            changed, self.changed = self.changed, asyncio.Event()
            changed.set()
        if self.violation is None:
            self.watch.committed()

    # --- requests -----------------------------------------------------------------------------------------------------

    def claimed(self, process: Process, claimed: Claimed) -> None:
        given = claimed.operation.submitted
        self.claims[process.name, f"{given.base_url}/v1/jobs/{given.job_id}"] = claimed

    def leaves(self, process: Process, request: Request, secret: str | None) -> Flight:
        """A request leaves a process."""
        url = request.url
        reply = self.provider.reply(request.method, url, request.headers, secret, self.loop.ms, self.true_wall)
        self._flights += 1
        flight = Flight(process, url, secret, reply, None, 0, 0, process.stops, number=self._flights)
        if request.method == "GET":
            base, ids = asked_for(url)
            taken = [self.claims.pop((process.name, f"{base}/v1/jobs/{one}"), None) for one in ids]
            self._claimed_flights(flight, ids, taken)
        self.covered[f"answer {reply.label.partition(' ')[0] if reply.fault is None else reply.fault}"] += 1
        self.note("sent", process.name, request.method, url[-24:], flight.n, reply.label)
        return flight

    def _claimed_flights(self, flight: Flight, ids: list[str], taken: list[Claimed | None]) -> None:
        """A flight for each operation that the request asks for, each with the charge that it left under."""
        for at, (job, claimed) in enumerate(zip(ids, taken, strict=True)):
            if claimed is None:
                self.broken("I1", f"{flight.process.name} sent {flight.url} without a claim of {job}")
                return
            one = flight if not at else copy.copy(flight)
            if at:
                one.with_it = []
                flight.with_it.append(one)
            one.others = len(ids) - 1
            one.reply = msgspec.structs.replace(flight.reply, final=flight.reply.finals.get(job, flight.reply.final))
            one.operation = claimed.operation.operation_id
            one.n, one.epoch = claimed.intents[0], claimed.operation.epoch
            self.watch.sent(one, claimed)
        if flight.others:
            self.covered["answer several, about none" if flight.reply.about_none else "answer several"] += 1
        self.watch.all_sent(flight)

    def seen(self, flight: Flight) -> None:
        self.note("seen", flight.url[-24:], flight.n)
        for one in flight.each():
            one.arrived = True
            self.watch.seen(one)

    def delivered(self, flight: Flight) -> None:
        self.note("answered", flight.process.name, flight.url[-24:], flight.n, flight.reply.status, flight.reply.label)
        for one in flight.each():
            self.watch.delivered(one)

    # --- processes ----------------------------------------------------------------------------------------------------

    def start_worker(self, number: int) -> None:
        self._generation += 1
        process = Process(f"run-{number}-{self._generation}")
        now = self.now()
        worker = Worker(
            owner=process.name,
            pid=self._generation,
            host="sim",
            kind="console" if number < self.plan.consoles else "run",
            started_at=now.wall,
            beat_at=now.wall,
            beat_boot=now.boot,
            boot_id=now.boot_id,
        )
        controller = Controller(
            SimStore(self, process),
            SimTransport(self, process),
            SimCredentials(self, process),
            SimClock(self, process),
            SimChance(f"{self.seed} {process.name}"),
            worker,
            slots=self.plan.slots,
        )
        stop = asyncio.Event()
        task = self.loop.spawn(process, lambda: controller.run(stop))
        task.add_done_callback(lambda done: self._ended(process, done))
        self.workers[number] = Running(process, controller, stop, task)
        self.note("start", process.name)

    def _ended(self, process: Process, task: asyncio.Task[Any]) -> None:
        if task.cancelled() or process.dead:
            return
        error = task.exception()
        if error is not None:
            self.broken("total", f"{process.name} ended with {type(error).__name__}: {error}")
        else:
            self.dead_owners.add(process.name)
            self.note("ended", process.name)

    def desk(self, process: Process, operator: str) -> Desk:
        store = SimStore(self, process)
        credentials, transport = SimCredentials(self, process), SimTransport(self, process)

        async def prepare() -> None:
            return

        return Desk(
            store=store,
            contracts=self.files,
            snapshots=Contracts(store),
            credentials=lambda: credentials,
            transport=lambda: transport,
            clock=SimClock(self, process),
            chance=SimChance(f"{self.seed} {process.name}"),
            caps=Caps(),
            operator=Operator(operator, "sim", "tty"),
            instances={name: InstanceNames(f"key-{name[-1]}", None) for name in self.plan.providers},
            prepare=prepare,
            os_user="sim",
        )

    def actions(self, process: Process, operator: str) -> Actions:
        return Actions(self.desk(process, operator))

    # --- the run ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """The whole life. Afterwards `violation` is None or (invariant, text)."""
        asyncio.set_event_loop(None)
        with mock.patch.object(controller_contracts, "from_snapshot", contracts.parsed):
            try:
                self.loop.run_until_complete(self._main())
            except Exception as error:
                self.broken("total", f"{type(error).__name__}: {error}")
                raise
            finally:
                self._dispose()

    def _dispose(self) -> None:
        self.chaos = False
        self.loop.steps = 0
        if self._keep:
            self.digest = digest(self)
        asyncio.events._set_running_loop(None)
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        try:
            self.loop.run_until_complete(self._unwind())
        except Exception as error:
            self.broken("total", f"while ending: {type(error).__name__}: {error}")
        self.sql.close()
        self.loop.close()

    async def _unwind(self) -> None:
        for _ in range(50):
            left = [t for t in asyncio.all_tasks(self.loop) if t is not asyncio.current_task()]
            if not left:
                return
            for task in left:
                task.cancel()
            await asyncio.sleep(1)

    async def _main(self) -> None:
        for name in self.plan.credentials:
            self.keyring.set(name, tuple(f"{o}:443" for o in contracts.ORIGINS.values()))
        for name, mode in self.plan.modes.items():
            self.keyring.infos[name] = msgspec.structs.replace(self.keyring.infos[name], mode=mode)
        for number in range(self.plan.workers):
            self.start_worker(number)
        crowd = people.Crowd(self)
        crowd.start()
        end = self.loop.virtual + self.plan.chaos_ms / 1_000
        while self.loop.virtual < end and self.violation is None:
            gap = self.chance.expovariate(1 / self.plan.gap_s)
            await asyncio.sleep(min(gap, max(0.0, end - self.loop.virtual)))
            if self.loop.virtual < end and self.violation is None:
                self.strike()
        await self._calm(crowd)
        if self.violation is None:
            self.watch.end()

    async def _calm(self, crowd: people.Crowd) -> None:
        """No more faults: everybody runs, the provider answers, nobody grants. Until every wait is over."""
        self.chaos = False
        self.provider.calm = True
        self.provider.revoked.clear()
        self.keyring.locked_until = -1
        self.note("calm")
        crowd.stop()
        for number, running in list(self.workers.items()):
            if running.process.stopped:
                running.process.resume(self.loop)
            if running.process.dead or running.task.done() or running.stop.is_set():
                self.start_worker(number)
        begin = self.loop.ms
        while self.violation is None and self.loop.ms < begin + MAX_CALM_MS:
            await asyncio.sleep(CALM_STEP_S)
            live = self.sql.execute(
                "SELECT max(deadline_boot) FROM operation WHERE status IN ('waiting', 'held', 'awaiting_approval') "
                "OR lease_owner IS NOT NULL"
            ).fetchone()[0]
            if live is None:
                return
            if self.loop.ms > begin + SETTLE_MS and live + SETTLE_MS < self.now().boot:
                return

    # --- afterwards ---------------------------------------------------------------------------------------------------

    def text(self, last: int | None = None) -> str:
        """The trace, a line an event."""
        lines = [" ".join(map(str, line)) for line in self.trace]
        return "\n".join(lines if last is None else lines[-last:])


def asked_for(url: str) -> tuple[str, list[str]]:
    """The server of a status request, and the jobs that it asks for."""
    base, _, path = url.partition("/v1/")
    named = path.partition("?ids=")[2]
    return base, unquote(named).split(",") if named else [path.rpartition("/")[2]]


TABLES: Final = ("operation", "intent", "observation", "event", "escalation", '"grant"', "action", "cooldown", "denial",
                 "contract_use", "approval", "session")  # fmt: skip


def digest(world: World) -> str:
    """SHA-256 of everything that the store holds; to be taken before it is closed."""
    made = hashlib.sha256()
    for table in TABLES:
        for row in world.sql.execute(f"SELECT * FROM {table}").fetchall():
            made.update(repr(row).encode())
    return made.hexdigest()
