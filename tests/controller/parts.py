"""Stand-ins for the real ports: a clock that jumps, chance from a seed, a keyring that locks, a store that breaks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from pollcore.adapters.keyring_store import MemoryBackend
from pollcore.adapters.transport import HttpTransport
from pollcore.facts import Answer, Fault, Instant, Request, Secret, StoreUnusable
from tests.cases.world import SLICE_MS, JumpingClock


class Clock(JumpingClock):
    """Jumps only when all *workers* wait and no request is out, to the earliest time that one of them waits for."""

    def __init__(self, start: Instant) -> None:
        super().__init__(start)
        self.workers = 1
        self.stand_still = False
        self.sent: list[tuple[int, str]] = []
        """(boot time, job) of every request that left, also of those that no provider saw."""
        self._until: dict[object, int] = {}

    async def wait(self, event: asyncio.Event, ms: int) -> None:
        until, me = self._boot + max(1, min(ms, SLICE_MS)), object()
        self._until[me] = until
        try:
            for _ in range(3):
                await asyncio.sleep(0)
            while not event.is_set() and self._boot < until:
                if not self.requests_out and len(self._until) >= self.workers and not self.stand_still:
                    ends = [*self._until.values(), *(at for at, _ in self.at)]
                    self.jump(max(1, min(ends) - self._boot))
                idle = self.requests_out or self.workers > 1 or self.stand_still
                await asyncio.sleep(0.001 if idle else 0)
        finally:
            del self._until[me]


class Counting:
    """The real transport; tells the clock that a request is out."""

    def __init__(self, clock: Clock) -> None:
        self._real = HttpTransport(clock)
        self._clock = clock

    async def send(self, request: Request, secret: Secret | None) -> Answer | Fault:
        self._clock.requests_out += 1
        self._clock.sent.append((self._clock.now().boot, request.url.rpartition("/")[2]))
        try:
            return await self._real.send(request, secret)
        finally:
            self._clock.requests_out -= 1

    async def aclose(self) -> None:
        await self._real.aclose()


class Draws:
    """Chance from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def draw(self) -> float:
        return self._random.random()

    def token(self, size: int = 8) -> str:
        return self._random.randbytes(size).hex()


class Keyring(MemoryBackend):
    """Can be locked, and counts what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise KeyringLocked
        return super().get_password(service, username)


class KeyringLocked(Exception):
    """As keyring's own: known by its name."""


class Breaking:
    """A store that cannot commit while *broken*; everything else is the real one's."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.broken = False
        self.refused = 0
        self.mends_after = 1_000_000
        """How many turns are refused at most."""
        self.then: Callable[[], None] = lambda: None
        """Called after each turn that was committed."""
        self.uncounted = 0
        self.unwatched = 0
        """How many of the next reads fail."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def turn(self, turn: Any) -> Any:
        if self.broken:
            self.refused += 1
            self.broken = self.refused < self.mends_after
            raise StoreUnusable("the disk is full")
        outcome = await self._real.turn(turn)
        self.then()
        return outcome

    async def counts(self) -> Any:
        if self.uncounted:
            self.uncounted -= 1
            raise StoreUnusable("database is locked")
        return await self._real.counts()

    async def wait_for_change(self, after: int, timeout: float) -> Any:
        if self.unwatched:
            self.unwatched -= 1
            raise StoreUnusable("disk I/O error")
        return await self._real.wait_for_change(after, timeout)
