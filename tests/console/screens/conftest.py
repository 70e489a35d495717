"""Cores for screen tests: one in memory, one real over a store on disk with a transport that answers by script."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.console.screens.fakes import FakeCore
from tests.console.seed import Seeded, fill_core, seeded, write_config

from pollconsole import bridge
from pollcore.adapters.keyring_store import MemoryBackend
from pollcore.adapters.system import SystemClock
from pollcore.facts import Answer, Fault, Request, Secret

RUNNING = msgspec.json.encode({"id": None, "status": "running"})


class ScriptedTransport:
    """Answers every request with what the test put in; keeps the requests."""

    def __init__(self) -> None:
        self.sent: list[Request] = []
        self.body = RUNNING
        self.status = 200
        self._clock = SystemClock()

    async def send(self, request: Request, secret: Secret | None) -> Answer | Fault:
        self.sent.append(request)
        now = self._clock.now().wall
        job = request.url.rpartition("/jobs/")[2].partition("/")[0]
        body = self.body.replace(b"null", msgspec.json.encode(job))
        return Answer(self.status, (("content-type", "application/json"),), body, now, now)

    async def aclose(self) -> None:
        """Nothing is open."""


class RealCore:
    """A home on disk that `bridge.with_core` opens; seeded before the console sees it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.transport = ScriptedTransport()
        self.backend = MemoryBackend()
        self.core: Any = None
        write_config(home)

    def fill(self, rows: Callable[[Any], Sequence[Seeded]] = seeded) -> None:
        """Write rows into the store, before a console opens it."""
        self._open(lambda core: fill_core(core, rows(core.clock.now())))

    def read(self, what: Callable[[Any], Awaitable[Any]]) -> Any:
        """Read with a core of its own, after the console has ended."""
        found: list[Any] = []

        async def job(core: Any) -> None:
            found.append(await what(core))

        self._open(job)
        return found[0]

    def runner(self, job: Callable[[Any], Awaitable[None]]) -> None:
        async def kept(core: Any) -> None:
            self.core = core
            await job(core)

        self._open(kept)

    def _open(self, job: Callable[[Any], Awaitable[None]]) -> None:
        bridge.with_core(self.home, job, kind="console", backend=self.backend, transport=self.transport)


@pytest.fixture
def fake() -> FakeCore:
    """A core in memory with one operation in every state."""
    return FakeCore(seeded())


@pytest.fixture
def real(tmp_path: Path) -> RealCore:
    """A real core over a real store."""
    return RealCore(tmp_path / "home")
