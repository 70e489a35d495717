"""One look at the store's changes for all waiters of a process.

Job: tell each subscriber the newest record of every operation that it follows and that was written. Must not know: when
a wait ends, providers, views. It sends nothing and holds no lock. Source: spec O4; the store's change feed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from pollcore.facts import SECOND, Operation, PollconsoleError
from pollcore.ports import Clock, Filter, Store
from pollcore.waiting import LOOK_S, IsGone, core_silence

SLICE_S: Final = 15.0
"""The longest single wait for a change; then it is waited for again."""
MAX_CHANGED: Final = 100_000
"""Records read at once: the store's own limit on one answer."""
MAX_PENDING: Final = 10_000
"""Operations that a subscriber has not taken yet; of more, those that waited longest are left out."""


async def changed(store: Store, after: int, ids: frozenset[str] | None = None) -> Sequence[Operation]:
    """Operations written after change number *after*, newest first; of *ids* alone, unless None."""
    found = await store.operations(Filter(changed_since=after, limit=MAX_CHANGED))
    return [operation for operation in found if ids is None or operation.operation_id in ids]


class Subscription:
    """What one waiter follows; made by `Feed.follow`, ended by `Feed.leave`."""

    def __init__(self, ids: frozenset[str] | None) -> None:
        self.ids = ids
        self._pending: dict[str, Operation] = {}
        self._error: PollconsoleError | None = None
        self._event = asyncio.Event()

    def put(self, operation: Operation) -> None:
        """The newest record replaces an older one that was not taken."""
        if self.ids is not None and operation.operation_id not in self.ids:
            return
        self._pending.pop(operation.operation_id, None)
        self._pending[operation.operation_id] = operation
        if len(self._pending) > MAX_PENDING:
            del self._pending[next(iter(self._pending))]
        self._event.set()

    def fail(self, error: PollconsoleError) -> None:
        """The store cannot be read: every waiter is told."""
        self._error = error
        self._event.set()

    async def next(self, timeout_s: float) -> Sequence[Operation]:
        """Records written since the last call, oldest first; empty: none within *timeout_s*. Raises StoreUnusable."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            return ()
        self._event.clear()
        if self._error is not None:
            raise self._error
        found, self._pending = list(self._pending.values()), {}
        return found


class Feed:
    """Follows one store while anyone subscribes: four glances a second for all waiters together."""

    def __init__(self, store: Store, clock: Clock, is_gone: IsGone) -> None:
        """*is_gone*: proof that a worker has ended; see `core_silence`."""
        self._store = store
        self._clock = clock
        self._is_gone = is_gone
        self._followers: set[Subscription] = set()
        self._task: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._silence: tuple[int, int | None] | None = None
        """(boot ms of the look, ms since a core last beat)."""

    async def follow(self, *ids: str) -> Subscription:
        """A subscription to *ids*, or to all operations; writes from now on reach it."""
        made = Subscription(frozenset(ids) or None)
        async with self._starting:
            if self._task is None or self._task.done():
                change = await self._store.change()
                self._task = asyncio.create_task(self._run(change), name="pollcore.client.feed")
            self._followers.add(made)
        return made

    def leave(self, followed: Subscription) -> None:
        """Ends a subscription; with the last one nothing is looked at any more."""
        self._followers.discard(followed)
        if not self._followers and self._task is not None:
            self._task.cancel()
            self._task = None

    async def silence(self) -> int | None:
        """ms since a polling core last beat; None: none ever did. Looked up once in LOOK_S for all waiters."""
        now = self._clock.now()
        if self._silence is None or not 0 <= now.boot - self._silence[0] < LOOK_S * SECOND:
            self._silence = (now.boot, core_silence(await self._store.workers(), now, self._is_gone))
        return self._silence[1]

    async def _run(self, change: int) -> None:
        try:
            while True:
                seen = await self._store.wait_for_change(change, SLICE_S)
                if seen == change:
                    continue
                found = await changed(self._store, change)
                change = seen
                for operation in reversed(found):
                    for follower in self._followers:
                        follower.put(operation)
        except PollconsoleError as error:
            for follower in self._followers:
                follower.fail(error)
