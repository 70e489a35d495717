"""Which process sends notices, and which minute of the day it is where people sleep.

Job: one lock file for the sender of a store; an instant in a zone of time. Must not know: what is sent.
The lock ends with its process, however it ends, so that another takes over at once; a store is used from one machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from pollcore.adapters.worker_lock import Deaths, WorkerLock
from pollcore.facts import Instant, StoreUnusable

NAME: Final = "notices"


class Claim:
    """The sender's lock of one home."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock: WorkerLock | None = None

    async def take(self) -> bool:
        """Whether this process is the sender from now on."""
        if self._lock is None and Deaths(self._folder)(NAME):
            try:
                # it may wait some moments for another's look at the file
                self._lock = await asyncio.to_thread(WorkerLock, self._folder, NAME)
            except StoreUnusable:
                return False
        return self._lock is not None

    def release(self) -> None:
        """Let another process send."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def minute_in(zone: str) -> Callable[[Instant], int]:
    """The minute of the day (0-1439) of an instant in *zone*, its summer time included."""
    place = ZoneInfo(zone)

    def minute(at: Instant) -> int:
        there = datetime.fromtimestamp(at / 1_000, place)
        return there.hour * 60 + there.minute

    return minute
