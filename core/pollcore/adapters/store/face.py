"""The Store port over two executors: one for writes, one for reads.

Job: both halves in one object, the change feed, the care of the file. Must not know: threads, SQL. Where a call runs is
up to the subclass: InlineStore runs it here and now, ThreadedStore on its threads.
Source: design "Store port", "Change feed".
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from pollcore.adapters.store import check, copying, health
from pollcore.adapters.store.face_reads import ReadFace
from pollcore.adapters.store.face_writes import WriteFace

_GRANT_BODIES: Final = 'SELECT grant_id, body FROM "grant" UNION ALL SELECT grant_id, body FROM credential_grant'
FEED_S: Final = 0.25
"""How often a waiter asks for `data_version`: 6 microseconds a call."""


class StoreFace(WriteFace, ReadFace):
    """All of ports.Store. Raises StoreUnusable everywhere."""

    path: str

    async def _version(self) -> int:
        """A number that differs whenever another connection committed."""
        raise NotImplementedError

    # --- change feed ----------------------------------------------------------------------------------------------

    async def change(self) -> int:
        """The store's change number."""
        return await self._read(lambda r: r.change())

    async def wait_for_change(self, after: int, timeout: float) -> int:
        """The change number once it is above *after*, or as it is after *timeout* seconds. Asks no provider."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        seen: int | None = None
        while True:
            version = await self._version()
            if version != seen:
                seen, change = version, await self.change()
                if change > after:
                    return change
            left = end - loop.time()
            if left <= 0:
                return await self.change()
            await asyncio.sleep(min(FEED_S, left))

    # --- care of the file -----------------------------------------------------------------------------------------

    async def check(self) -> Sequence[str]:
        """What does not add up; empty: all well."""
        return await self._read(lambda r: check.run(r.conn))

    async def contrary(self) -> Sequence[str]:
        """Rows that contradict one another, and objects of the schema that are not ours; empty: none is known."""
        from pollcore.adapters.store import contrary  # brings the contracts, which few commands need

        return await self._read(lambda r: contrary.run(r.conn))

    async def grant_bodies(self) -> Mapping[str, str]:
        """Each kept grant as it is stored, by its id: of operations, and of credentials."""
        return await self._read(lambda r: dict(r.conn.execute(_GRANT_BODIES).fetchall()))

    async def copies(self) -> Sequence[str]:
        """Copies of the store that were made when this process brought it up to date."""
        return await self._write(lambda s: tuple(s.copies))

    async def health(self) -> health.Health:
        """What `doctor` says of the store."""
        return await self._read(lambda r: health.health(r.conn, self.path))

    async def backup(self, path: str) -> None:
        """A consistent copy through SQLite's own interface, into a new file."""
        await self._read(lambda r: copying.write_copy(r.conn, path))
