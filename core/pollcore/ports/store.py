"""The durable records, whole: both halves, the change feed, and the care of the file.

Job: what a store is, so that one object fulfils it. Must not know: SQLite, files' names, threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pollcore.ports.store_reads import StoreReads
from pollcore.ports.store_writes import StoreWrites


class Store(StoreWrites, StoreReads, Protocol):
    """The durable records. Everything that returns has been committed with synchronous=FULL. Raises StoreUnusable."""

    async def change(self) -> int:
        """The store's change number."""
        ...

    async def wait_for_change(self, after: int, timeout: float) -> int:
        """Until the change number is above *after*, whoever wrote, or the time is over; the change number then."""
        ...

    async def check(self) -> Sequence[str]:
        """O6: what does not add up (counters against intents); empty: all well. Never before the first rows are
        shown.
        """
        ...

    async def backup(self, path: str) -> None:
        """A consistent copy through SQLite's own interface."""
        ...

    async def close(self) -> None: ...
