"""Fixtures of the adapters' tests: servers on loopback, certificates, the transport, a clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from pollcore.adapters.system import SystemClock
from pollcore.adapters.transport import HttpTransport
from tests.adapters.certificates import Authority
from tests.adapters.hostile_server import HostileServer


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as running:
        yield running


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


@pytest.fixture
async def transport(clock: SystemClock) -> AsyncIterator[HttpTransport]:
    made = HttpTransport(clock)
    yield made
    await made.aclose()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir(0o700)
    return made
