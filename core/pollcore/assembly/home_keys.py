"""A home's keys and audit log: there before the first write that seals, made once, whoever comes first.

Job: of several processes on a new home one makes the reading key pair and the log, and all of them seal. Must not know:
how a key is made, where it is kept, what is sealed.
Source: spec A4, K2; design "Records".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pollcore.adapters.bindings import PUBLIC_KEY, PUBLIC_NAME, LazySealer
from pollcore.adapters.store import ThreadedStore
from pollcore.adapters.worker_lock import WorkerLock
from pollcore.assembly.audit_side import AuditSide
from pollcore.facts import StoreUnusable
from pollcore.ports import Clock

if TYPE_CHECKING:
    from pollcore.adapters.reading_key import ReadingKeys

SETUP_LOCK: Final = "setup"
SETUP_TRIES: Final = 100
SETUP_PAUSE_S: Final = 0.1


class HomeKeys:
    """The keys of one home, for one process.

    Args:
        reading_keys: gives where the private part is looked for.
        locks: the folder of the home's lock files.
        say: takes what a newcomer must be told once (the key pair was made, and where it lies).
    """

    def __init__(
        self,
        sealer: LazySealer,
        audit: AuditSide,
        clock: Clock,
        *,
        reading_keys: Callable[[], ReadingKeys],
        locks: Path,
        say: Callable[[str], None],
    ) -> None:
        self._sealer = sealer
        self._audit = audit
        self._clock = clock
        self._reading_keys = reading_keys
        self._locks = locks
        self._say = say
        self._preparing = asyncio.Lock()

    async def prepare(self, store: ThreadedStore) -> None:
        """Before the first write that seals: the home's keys and audit log (made once) and this run's key."""
        async with self._preparing:
            if self._sealer.is_prepared:
                return
            begun = await self._audit.has_begun()
            if self._sealer.public_key is None or not begun:
                await self._make_home(store)
            await self._sealer.prepare(store, self._clock.now())

    async def _make_home(self, store: ThreadedStore) -> None:
        """The first writer on a new home makes the reading key pair and the audit log; two at once agree on one."""
        lock = await self._setup_lock()
        try:
            await self._sealer.load(store)
            if self._sealer.public_key is None:
                await self._make_pair(store)
            notice = await self._audit.begin()
            if notice is not None:
                self._say(notice)
        finally:
            lock.release()

    async def _setup_lock(self) -> WorkerLock:
        for attempt in range(SETUP_TRIES):
            try:
                return WorkerLock(self._locks, SETUP_LOCK)
            except StoreUnusable:
                if attempt == SETUP_TRIES - 1:
                    raise
                await asyncio.sleep(SETUP_PAUSE_S)
        raise AssertionError("the last try returned or raised")

    async def _make_pair(self, store: ThreadedStore) -> None:
        from pollcore.adapters.reading_key import MemoryPublicKey

        made = await asyncio.to_thread(self._reading_keys().setup, MemoryPublicKey())
        text = made.public_key_text
        await store.put_document(self._clock.now(), PUBLIC_KEY, PUBLIC_NAME, text.encode())
        self._sealer.public_key = text
        self._say(f"made this home's reading key pair; keep its public part elsewhere: {text}")
        if made.notice is not None:
            self._say(made.notice)
