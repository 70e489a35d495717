"""Keeps connections: one seat each, per origin, bounded in number and in idle time.

Job: hand out an idle seat or a new one, take it back, close what idles too long or is too many.
Must not know: HTTP, requests, secrets. A seat that was not given back clean is never used again.
Source: spec H7, I23; httpcore's own pool scans all its connections for each request, so each seat is a pool of one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

MAX_CONNECTIONS: Final = 256
IDLE_S: Final = 30.0


class Seat(Protocol):
    """One connection, or the place for it."""

    idle_since: float

    @property
    def is_fresh(self) -> bool:
        """Its connection is up and silent."""
        ...

    def cut(self) -> None:
        """Close at once, without waiting."""
        ...


S = TypeVar("S", bound=Seat)


class Slots(Generic[S]):
    """Seats for all origins. For one event loop."""

    def __init__(self, make: Callable[[str], S], limit: int = MAX_CONNECTIONS, idle_s: float = IDLE_S) -> None:
        self._make = make
        self._limit = limit
        self._idle_s = idle_s
        self._idle: dict[str, deque[S]] = {}
        self._busy: set[S] = set()
        self._count = 0
        self._free = asyncio.Semaphore(limit)
        self._reaper: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def open(self) -> int:
        """Connections (or attempts at one) that exist now."""
        return self._count

    async def take(self, origin: str, *, new: bool = False) -> tuple[S, bool]:
        """A seat for *origin* and whether its connection was used before; waits while all are busy."""
        await self._free.acquire()
        waiting = self._idle.get(origin)
        # the newest first: the old ones may then grow old enough to be closed
        while waiting and not new:
            seat = waiting.pop()
            if seat.is_fresh:
                self._busy.add(seat)
                return seat, True
            self._drop(seat)
        if self._count >= self._limit:
            self._drop_oldest()
        try:
            seat = self._make(origin)
        except BaseException:
            self._free.release()
            raise
        self._count += 1
        self._busy.add(seat)
        return seat, False

    def give(self, origin: str, seat: S, *, clean: bool) -> None:
        """Take *seat* back; it is kept only if *clean*."""
        self._busy.discard(seat)
        self._free.release()
        if not clean or self._closed or not seat.is_fresh:
            self._drop(seat)
            return
        seat.idle_since = asyncio.get_running_loop().time()
        self._idle.setdefault(origin, deque()).append(seat)
        self._watch()

    def close(self) -> None:
        """Close all, those in use as well; a seat that is given back later is closed then."""
        self._closed = True
        if self._reaper is not None:
            self._reaper.cancel()
            self._reaper = None
        for seat in [seat for seats in self._idle.values() for seat in seats]:
            self._drop(seat)
        self._idle.clear()
        for seat in list(self._busy):
            seat.cut()

    def _drop(self, seat: S) -> None:
        self._count -= 1
        seat.cut()

    def _drop_oldest(self) -> None:
        """Make room: some seat idles, because not all are busy."""
        filled = {origin: seats for origin, seats in self._idle.items() if seats}
        if filled:
            oldest = min(filled, key=lambda origin: filled[origin][0].idle_since)
            self._drop(filled[oldest].popleft())

    def _watch(self) -> None:
        if self._reaper is None:
            self._reaper = asyncio.get_running_loop().call_later(self._idle_s, self._reap)

    def _reap(self) -> None:
        self._reaper = None
        too_old = asyncio.get_running_loop().time() - self._idle_s
        for origin in list(self._idle):
            seats = self._idle[origin]
            while seats and (seats[0].idle_since <= too_old or not seats[0].is_fresh):
                self._drop(seats.popleft())
            if not seats:
                del self._idle[origin]
        if self._idle:
            self._watch()
