"""A world for each test, with its servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.real import Provider
from tests.outside.world import Receiver, World
from tests.serving import serving


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    provider, receiver = Provider(), Receiver()
    with serving(provider), serving(receiver):
        yield World(tmp_path, provider, receiver)
