"""The ports of one simulated process: clock, chance, transport, credentials and store, each behind the process's gate.

Job: everything that a process does to the world passes here, where it can be stopped, killed or failed. Must not know:
what the code under test does with it, which faults come when (the world says).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pollcore.adapters.store.face import StoreFace
from pollcore.adapters.store.leases import LeaseWatch
from pollcore.adapters.store.reads import Reads
from pollcore.adapters.store.turns import SqliteTurns
from pollcore.facts import (
    Answer,
    CredentialUnavailable,
    Fault,
    FaultKind,
    Instant,
    Moment,
    Request,
    Secret,
    StoreUnusable,
)
from pollcore.ports import CredentialInfo, CredentialValue, Turn, TurnOutcome
from tests.sim.loop import Killed, Process

if TYPE_CHECKING:
    from tests.sim.things import Flight
    from tests.sim.world import World

T = TypeVar("T")
SLICE_MS: Final = 15_000
FEED_S: Final = 0.25


async def gate(world: World, process: Process, where: str) -> None:
    """A place where this process may be stopped for a while or killed for good."""
    if process.dead:
        raise Killed
    if world.strikes(process, where):
        # a stopped process keeps what comes next
        await asyncio.sleep(0)
    if process.dead:
        raise Killed


class SimClock:
    """ports.Clock on the world's clocks."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = process

    def now(self) -> Moment:
        return self._world.now()

    async def wait(self, event: asyncio.Event, ms: int) -> None:
        if not event.is_set():
            try:
                async with asyncio.timeout(min(ms, SLICE_MS) / 1_000):
                    await event.wait()
            except TimeoutError:
                pass
        if self._process.dead:
            raise Killed


class SimChance:
    """ports.Chance from the seed; the ends of the range come more often than they would."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def draw(self) -> float:
        found = self._random.random()
        if found < 0.04:
            return 0.0
        return 0.999999999 if found > 0.96 else found

    def token(self, size: int = 8) -> str:
        return self._random.randbytes(size).hex()


class SimTransport:
    """ports.Transport: the network between one process and the provider."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = process

    async def send(self, request: Request, secret: Secret | None) -> Answer | Fault:
        world, process = self._world, self._process
        if process.dead:
            raise Killed
        sent_at = world.now().wall
        text = secret.reveal() if secret is not None else None
        flight = world.leaves(process, request, text)
        try:
            return await self._fly(request, flight, sent_at)
        finally:
            flight.end()

    async def _fly(self, request: Request, flight: Flight, sent_at: Instant) -> Answer | Fault:
        world, process = self._world, self._process
        reply = flight.reply
        arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if reply.reach_ms is None:
            world.later(reply.answer_ms, lambda: _done(arrived))
        else:

            def arrive() -> None:
                world.seen(flight)
                if reply.fault != "lost":
                    world.later(reply.answer_ms, lambda: _done(arrived))

            world.later(reply.reach_ms, arrive)
        try:
            async with asyncio.timeout(request.total_ms / 1_000):
                await arrived
        except TimeoutError:
            await gate(world, process, "answer")
            return Fault(FaultKind.TIMEOUT, True, world.now().wall, "no answer in time")
        await gate(world, process, "answer")
        now = world.now()
        if reply.fault is not None:
            return Fault(FaultKind(reply.fault), reply.reach_ms is not None, now.wall, "simulated")
        world.delivered(flight)
        return Answer(reply.status, reply.headers, reply.body, sent_at, now.wall)

    async def aclose(self) -> None:
        """Nothing is open."""


def _done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class SimCredentials:
    """ports.Credentials over the world's keyring."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = process

    async def info(self, name: str) -> CredentialInfo:
        if name not in self._world.keyring.infos:
            raise CredentialUnavailable(f"no credential {name}", "credential_missing")
        return self._world.keyring.infos[name]

    async def read(self, name: str, info: CredentialInfo | None = None) -> CredentialValue:
        await gate(self._world, self._process, "keyring")
        found, secret, digest = self._value(name)
        return CredentialValue(found, Secret(secret), digest)

    async def digest(self, name: str, refused: Collection[str] = ()) -> str:
        await gate(self._world, self._process, "keyring")
        return self._value(name)[2]

    def forget(self, name: str | None = None) -> None:
        """Nothing is kept."""

    async def known(self) -> Sequence[CredentialInfo]:
        return tuple(self._world.keyring.infos.values())

    def _value(self, name: str) -> tuple[CredentialInfo, str, str]:
        ring = self._world.keyring
        if ring.locked_until > self._world.loop.ms:
            raise CredentialUnavailable("the keyring is locked", "keyring_locked")
        if name not in ring.infos:
            raise CredentialUnavailable(f"no credential {name}", "credential_missing")
        return ring.infos[name], ring.secrets[name], f"digest of {ring.secrets[name]}"


class SimStore(StoreFace):
    """The one store as this process sees it: its own faults, and its own idea of who is dead."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = process
        self.path = ":memory:"
        self._watch = LeaseWatch(world.is_proved_dead)

    async def turn(self, turn: Turn) -> TurnOutcome:
        def call(turns: SqliteTurns) -> TurnOutcome:
            outcome = turns.turn(turn)
            for claimed in outcome.claimed:
                if claimed is not None:
                    self._world.claimed(self._process, claimed)
            return outcome

        return await self._write(call)

    async def _write(self, call: Callable[[SqliteTurns], T]) -> T:
        world, process = self._world, self._process
        await gate(world, process, "before commit")
        turns = world.store.turns
        turns.watch = self._watch
        world.acting = process
        world.conn.arm(world.store_fault(process))
        writer: Any = turns.writer
        real, writer.run = writer.run, self._timed(writer.run)
        try:
            found = call(turns)
        except StoreUnusable as error:
            if not world.conn.fired:
                world.broken("O6", f"the store refused without a fault: {error}")
            raise
        finally:
            writer.run = real
            world.conn.arm(None)
            world.acting = world.acting_at = None
        await gate(world, process, "after commit")
        return found

    def _timed(self, run: Any) -> Any:
        def timed(now: Moment, doing: str, work: Any) -> Any:
            self._world.acting_at = now
            return run(now, doing, work)

        return timed

    async def _read(self, call: Callable[[Reads], T]) -> T:
        world, process = self._world, self._process
        await gate(world, process, "read")
        return call(world.store.turns.reads)

    async def _version(self) -> int:
        return self._world.changes

    async def wait_for_change(self, after: int, timeout: float) -> int:
        world = self._world
        change = world.change_number()
        if change <= after:
            try:
                async with asyncio.timeout(timeout):
                    await world.changed.wait()
                    await asyncio.sleep(FEED_S)
            except TimeoutError:
                pass
            change = world.change_number()
        if self._process.dead:
            raise Killed
        return change

    async def close(self) -> None:
        """The world closes the store."""


class FaultyConnection:
    """The SQLite connection, statement by statement: one of them can fail, and each COMMIT is told."""

    def __init__(self, real: Any, errors: Any, committed: Callable[[], None]) -> None:
        self.real = real
        self._errors = errors
        self._committed = committed
        self._at: int | None = None
        self._kind = ""
        self.fired = False

    def arm(self, fault: tuple[int, str] | None) -> None:
        """*fault*: (number of the statement, its error); counted from now on."""
        self._at, self._kind = fault if fault is not None else (None, "")
        self.fired = False

    @property
    def in_transaction(self) -> bool:
        return bool(self.real.in_transaction)

    def execute(self, sql: str, *parameters: Any) -> Any:
        if self._at is not None:
            self._step(sql)
        if sql == "COMMIT":
            found = self.real.execute(sql)
            self._committed()
            return found
        return self.real.execute(sql, *parameters)

    def executemany(self, sql: str, parameters: Any) -> Any:
        if self._at is not None:
            self._step(sql)
        return self.real.executemany(sql, parameters)

    def close(self) -> None:
        self.real.close()

    def _step(self, sql: str) -> None:
        kind = self._kind
        if kind.startswith("COMMIT"):
            if self.fired:
                if kind == "COMMIT_LOST_HARD" and sql.startswith("SELECT mark"):
                    raise self._error("SQLITE_IOERR_READ")
                return
            if sql != "COMMIT":
                return
            self.fired = True
            if kind in ("COMMIT_LOST", "COMMIT_LOST_HARD"):
                self.real.execute("COMMIT")
                self._committed()
            else:
                self.real.execute("ROLLBACK")
            raise self._error("SQLITE_IOERR_FSYNC")
        assert self._at is not None
        self._at -= 1
        if self._at > 0 or sql == "ROLLBACK":
            return
        self._at = None
        self.fired = True
        if kind in ("SQLITE_FULL", "SQLITE_IOERR_WRITE") and self.real.in_transaction:
            self.real.execute("ROLLBACK")
        raise self._error(kind)

    def _error(self, name: str) -> Exception:
        error: Exception = self._errors.OperationalError(f"simulated {name}")
        error.sqlite_errorname = name  # type: ignore[attr-defined]
        return error
