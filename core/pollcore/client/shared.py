"""One open client for all calls of a process on one home: the calls that open it themselves.

Job: open it for the first call that needs it, close it after the last; run a call where no event loop runs. Must not
know: what a call does.
Source: spec S3, O4.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar, Unpack
from weakref import WeakKeyDictionary

from pollcore.adapters import places
from pollcore.client import given
from pollcore.client.client import Client
from pollcore.client.shown import OperationView, Outcome
from pollcore.facts import Refused

T = TypeVar("T")


class _Entry:
    """An open client and how many calls use it now."""

    def __init__(self) -> None:
        self.users = 0
        self.lock = asyncio.Lock()
        self.client: Client | None = None


_ENTRIES: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Path, _Entry]] = WeakKeyDictionary()


@asynccontextmanager
async def _shared(home: str | Path | None, *, makes: bool = False) -> AsyncIterator[Client]:
    """The client of *home* on this event loop, opened by the first call that needs it and closed after the last.

    Raises Refused, code `no_home`: there is none, and *makes* is false.
    """
    place = places.find(None if home is None else str(home)).home
    if not makes and not place.is_dir():
        raise Refused(f"no home at {place}: hand a wait over first, or name another home", code="no_home")
    entries = _ENTRIES.setdefault(asyncio.get_running_loop(), {})
    entry = entries.setdefault(place, _Entry())
    entry.users += 1
    try:
        async with entry.lock:
            if entry.client is None:
                entry.client = await Client(place).__aenter__()
        yield entry.client
    finally:
        entry.users -= 1
        if entry.users == 0:
            entries.pop(place, None)
            if entry.client is not None:
                await entry.client.__aexit__(None, None, None)


async def submit(
    provider: str, job_id: str, *, home: str | Path | None = None, **more: Unpack[given.Terms]
) -> OperationView:
    """Hand a wait over: `Client.submit`, whose arguments *more* are. A home that does not exist is made."""
    async with _shared(home, makes=True) as client:
        return await client.submit(provider, job_id, **more)


async def wait(
    op: OperationView | str, timeout: timedelta | float | None = None, *, home: str | Path | None = None
) -> Outcome:
    """Until the operation has ended or wants a decision: `Client.wait`. Many at once share one look at the store."""
    async with _shared(home) as client:
        return await client.wait(op, timeout)


async def watch(
    op: OperationView | str | None = None, *, home: str | Path | None = None
) -> AsyncIterator[OperationView]:
    """Changes as they are written: `Client.watch`."""
    async with _shared(home) as client:
        async for view in client.watch(op):
            yield view


def submit_sync(
    provider: str, job_id: str, *, home: str | Path | None = None, **more: Unpack[given.Terms]
) -> OperationView:
    """`submit` for a program without an event loop. Raises Refused inside one: await `submit` there."""
    return _run(submit(provider, job_id, home=home, **more))


def wait_sync(
    op: OperationView | str, timeout: timedelta | float | None = None, *, home: str | Path | None = None
) -> Outcome:
    """`wait` for a program without an event loop. Raises Refused inside one: await `wait` there."""
    return _run(wait(op, timeout, home=home))


def _run(job: Coroutine[Any, Any, T]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(job)
    job.close()
    raise Refused("an event loop runs here already: await the function without _sync instead", code="usage")
