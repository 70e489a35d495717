"""All live operations in memory, kept up with the store by what changed.

Job: one read at the start, then changes alone. Must not know: what anybody counts or tells of them.
Nothing here is on the way of a poll: it reads what others have committed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pollcore.facts import Operation, Status
from pollcore.ports import Filter, Store

MAX_LIVE: Final = 100_000
"""Live operations that are held."""
SHARE: Final = 20
"""Whoever looks again and again rests so many times as long as a look took: a twentieth of one interpreter at most."""
MAX_CHANGED: Final = 10_000
"""Changed operations of one look; of more, the oldest changes are not seen as changes."""
_LIVE: Final = tuple(status for status in Status if not status.is_end)


def rest_s(took_ms: int, least_s: float, most_s: float) -> float:
    """How long to rest after a look that took *took_ms*."""
    return min(most_s, max(least_s, took_ms * SHARE / 1_000))


class Changed(NamedTuple):
    """What one look found. *was_live*: ids among *ended* that this process had seen alive."""

    change: int
    running: tuple[Operation, ...]
    ended: tuple[Operation, ...]
    was_live: frozenset[str]


class Live:
    """The operations of one store that have not ended, by id."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._change: int | None = None
        self.operations: dict[str, Operation] = {}

    async def look(self, since: int | None = None) -> Changed:
        """Read what changed since the last look; the first one reads all. Raises StoreUnusable.

        *since*: the change number after which the first look tells ends; None: it tells none.
        """
        change = await self._store.change()
        if self._change is None:
            found = await self._store.operations(Filter(statuses=_LIVE, limit=MAX_LIVE))
            ended = () if since is None else await self._changed(since)
        else:
            found, ended = await self._changed(self._change), ()
        was_live = frozenset(self.operations)
        self._change = change
        running, over = [], [one for one in ended if one.status.is_end]
        for operation in found:
            if operation.status.is_end:
                self.operations.pop(operation.operation_id, None)
                over.append(operation)
            elif operation.operation_id in self.operations or len(self.operations) < MAX_LIVE:
                self.operations[operation.operation_id] = operation
                running.append(operation)
        return Changed(change, tuple(running), tuple(over), was_live & {one.operation_id for one in over})

    async def _changed(self, since: int) -> tuple[Operation, ...]:
        return tuple(await self._store.operations(Filter(changed_since=since, limit=MAX_CHANGED)))
