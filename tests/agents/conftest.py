"""A home with a provider on loopback, and a core on it in a process of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.real import LIMIT_S, PROGRAM, Provider, environment, make_home
from tests.serving import serving


@pytest.fixture
def provider() -> Iterator[Provider]:
    """Job states by id; `asked` are the paths that were requested."""
    with serving(Provider()) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, provider: Provider) -> Path:
    """A home without a core; instances `lab` and `jobs` of the quick contract."""
    folder = make_home(tmp_path / "home", provider.url)
    with (folder / "config.toml").open("a") as settings:
        settings.write(f'[providers.jobs]\ncontract = "quick"\nbase_url = "{provider.url}"\naccount = "jobs"\n')
    return folder


@pytest.fixture
def running(home: Path) -> Iterator[Path]:
    """The home with `pollconsole run` on it."""
    core = subprocess.Popen(
        [*PROGRAM, "--home", str(home), "run"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()
    )
    try:
        yield home
        assert core.poll() is None
    finally:
        core.terminate()
        core.wait(LIMIT_S)
