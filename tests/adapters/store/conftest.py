"""Both stores of the contract suite, and a home folder of its own for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.store.builders import Chain, Seal

from pollcore.adapters.store import InlineStore, ThreadedStore


@pytest.fixture
def seal() -> Seal:
    return Seal()


@pytest.fixture
def chain() -> Chain:
    return Chain()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(params=["inline", "threaded"])
async def store(request: pytest.FixtureRequest, home: Path, seal: Seal, chain: Chain) -> AsyncIterator[Any]:
    """The same promises, with and without threads."""
    if request.param == "inline":
        made: Any = InlineStore(seal, chain)
    else:
        made = await ThreadedStore.open(str(home / "pollconsole.db"), seal, chain)
    yield made
    await made.close()
