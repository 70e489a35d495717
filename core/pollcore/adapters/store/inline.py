"""The store in one thread: async methods that run at once, on one connection.

Job: the same store for a simulation with a loop of its own, for `:memory:`, and for tests. Must not know: threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pollcore.adapters.store.connecting import MEMORY
from pollcore.adapters.store.errors import unusable
from pollcore.adapters.store.face import StoreFace
from pollcore.adapters.store.library import sqlite3
from pollcore.adapters.store.reads import Reads
from pollcore.adapters.store.turns import SqliteTurns
from pollcore.facts import StoreUnusable
from pollcore.ports import AuditLog, Sealer

T = TypeVar("T")


class InlineStore(StoreFace):
    """ports.Store without threads; several workers of one process may share it (each turn names its owner)."""

    def __init__(
        self, sealer: Sealer, audit: AuditLog, path: str = MEMORY, is_dead: Callable[[str], bool] = lambda _: False
    ) -> None:
        """Raises StoreUnusable."""
        self.path = path
        self.turns = SqliteTurns(path, sealer, audit, is_dead)
        self._closed = False

    async def _write(self, call: Callable[[SqliteTurns], T]) -> T:
        self._must_be_open()
        try:
            return call(self.turns)
        except sqlite3.Error as error:
            raise unusable(error, self.path, "writing it") from error

    async def _read(self, call: Callable[[Reads], T]) -> T:
        self._must_be_open()
        try:
            return call(self.turns.reads)
        except sqlite3.Error as error:
            raise unusable(error, self.path, "reading it") from error

    async def _version(self) -> int:
        # our own commits do not move this connection's data_version
        return await self.change()

    def _must_be_open(self) -> None:
        if self._closed:
            raise StoreUnusable(f"store {self.path}: it was closed")

    async def close(self) -> None:
        """Close the file."""
        self._closed = True
        self.turns.close()
