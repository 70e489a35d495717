"""Opening a core, and what needs none: places, settings, spans.

Job: one function runs with one open core on an event loop of its own. Must not know: what that function does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pollcore.adapters.config import Config
    from pollcore.assembly import Core

T = TypeVar("T")


def with_core(
    home: Path | None,
    job: Callable[[Core], Awaitable[T]],
    *,
    kind: str = "cli",
    tell: Callable[[str], None] | None = None,
    **overrides: Any,
) -> T:
    """Open the core of *home*, run *job* with it, close it; on an event loop of its own.

    Args:
        kind: `cli`, or `run`, `console`, `demo` for processes that poll.
        tell: gets what a newcomer must be told once (the reading key was made, and where it lies).

    Raises what the core raises (PollconsoleError) and what *job* raises.
    """
    import asyncio

    from pollcore.assembly import open_core

    async def body() -> T:
        async with open_core(home, kind=kind, **overrides) as core:
            try:
                _tell(core, tell)
                return await job(core)
            finally:
                _tell(core, tell)

    return asyncio.run(body())


def _tell(core: Core, tell: Callable[[str], None] | None) -> None:
    while tell is not None and core.notices:
        tell(core.notices.pop(0))


def harden() -> None:
    """For a process that runs the core: no core file, no reading of its memory, crash hooks without locals (K1)."""
    from pollcore.assembly import harden as hardened

    hardened()


def home_path(home: Path | None) -> Path:
    """Where the home is, whether it exists or not."""
    from pollcore.adapters.places import find

    return find(None if home is None else str(home)).home


def config(home: Path | None) -> Config:
    """The settings of *home*. Raises Refused."""
    from pollcore.adapters.config import load_config

    return load_config(home_path(home))


def parse_span(text: str) -> int:
    """`40m` in ms; see the core's configuration. Raises ValueError."""
    from pollcore.adapters.config import parse_span as parse

    return parse(text)
