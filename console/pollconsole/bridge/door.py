"""Opening a core, and what needs none: places, settings, spans.

Job: one function runs with one open core on an event loop of its own. Must not know: what that function does.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, cast

if TYPE_CHECKING:
    from pollcore.adapters.config import Config
    from pollcore.adapters.store import ThreadedStore
    from pollcore.adapters.store.ahead import Found
    from pollcore.assembly import Core
    from pollcore.ports import Clock

T = TypeVar("T")
READ_ONLY: Final = "{home} cannot be written, it is only read: nothing can be handed over, decided or polled from here"


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

    from pollcore.adapters.places import can_be_written
    from pollcore.assembly import open_core

    async def body() -> T:
        watch_loop()
        async with open_core(home, kind=kind, **overrides) as core:
            try:
                if tell is not None and not can_be_written(core.home.home):
                    tell(READ_ONLY.format(home=core.home.home))
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
    from pollcore.adapters.quiet import harden as hardened

    hardened()


def watch_loop() -> None:
    """Have the running loop report what nobody awaited without locals and scrubbed (K1)."""
    import asyncio

    from pollcore.adapters.quiet import watch_loop as watched

    watched(asyncio.get_running_loop())


def first_rows(home: Path | None) -> Callable[[], tuple[Found, Clock] | None]:
    """Begin to read what stands on top of the list, beside this process; call the result for it and a clock.

    For a program that has started no thread yet. The result is called once, raises nothing, and gives None where
    opening the core has something to say first (no store yet, another version of it, trouble).
    """
    from pollcore.adapters.places import find
    from pollcore.adapters.store.ahead import Ahead
    from pollcore.facts import PollconsoleError

    try:
        ahead = Ahead(find(None if home is None else str(home)).database)
    except (PollconsoleError, OSError):
        return lambda: None

    def take() -> tuple[Found, Clock] | None:
        from pollcore.adapters.system import SystemClock

        found = ahead.take()
        return None if found is None else (found, SystemClock())

    return take


def home_path(home: Path | None) -> Path:
    """Where the home is, whether it exists or not."""
    from pollcore.adapters.places import find

    return find(None if home is None else str(home)).home


def missing_home(home: Path | None) -> str | None:
    """The path of a home that does not exist, and near names beside it, or of a folder that is none; None: it is there,
    or an empty folder. Makes nothing."""
    from difflib import get_close_matches

    from pollcore.adapters.places import beside, is_foreign

    folder = home_path(home)
    if os.path.lexists(folder):
        return f"{folder}: it holds other things and nothing of a home's" if is_foreign(folder) else None
    near = get_close_matches(folder.name, beside(folder), n=3)
    return f"{folder}; did you mean {' or '.join(str(folder.parent / name) for name in near)}?" if near else str(folder)


def home_is_named(home: Path | None) -> bool:
    """Whether a flag or a variable named the home; False: it is the platform's."""
    from pollcore.adapters.places import is_named

    return is_named(None if home is None else str(home))


def without_store(home: Path | None) -> Core:
    """A core whose settings are read and whose store stays closed: for what contracts and settings alone tell.

    Makes nothing. Raises Refused: the settings.
    """
    from pollcore.assembly import open_core

    core = open_core(home)
    core.config = config(home)
    core.store = cast("ThreadedStore", _Unopened())
    return core


class _Unopened:
    """Stands where the store is of a core that was not opened: what asks nothing of it works, all else says so.

    Small records alone it has none of, as the store that would be made: no credential is stored.
    """

    async def document(self, _kind: str, _name: str) -> None:
        return None

    async def documents(self, _kind: str) -> dict[str, bytes]:
        return {}

    def __getattr__(self, name: str) -> NoReturn:
        from pollcore.facts import StoreUnusable

        raise StoreUnusable(f"the store was not opened (asked for {name})")


def config(home: Path | None) -> Config:
    """The settings of *home*. Raises Refused."""
    from pollcore.adapters.config import load_config

    return load_config(home_path(home))


def parse_listen(text: str) -> tuple[str, int]:
    """`127.0.0.1:9464` as (host, port); see the core's configuration. Raises ValueError: not a loopback address."""
    from pollcore.adapters.config import parse_listen as parse

    return parse(text)


def parse_span(text: str) -> int:
    """`40m` in ms; see the core's configuration. Raises ValueError."""
    from pollcore.adapters.config import parse_span as parse

    return parse(text)
