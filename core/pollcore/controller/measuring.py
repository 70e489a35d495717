"""Takes the figures of a running core, beside it.

Job: read, count, put one snapshot where another thread finds it. Must not know: HTTP, formats. It reads what was
committed and is on the way of no poll; a read that fails is itself a figure.
Source: spec O8.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from pollcore import measures
from pollcore.controller.live import Live, rest_s
from pollcore.facts import Instant, PollconsoleError
from pollcore.measures import Counted, Snapshot
from pollcore.ports import Clock, Store
from pollcore.waiting import core_silence

EVERY_S: Final = 5.0
"""Between two snapshots."""
MAX_EVERY_S: Final = 20.0
"""Less than the age at which figures are no sign of life."""
PAGE: Final = 5_000
"""Events of one read."""
MAX_PAGES: Final = 20
"""Reads of one snapshot; what is more comes with the next."""


class AuditFigures(NamedTuple):
    """How the audit stands; read without waiting."""

    anchored: bool
    damaged: bool
    since: Instant | None


class Measuring:
    """The figures of one store, as one process sees them. *latest* may be read from any thread."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        last_event: Callable[[], Awaitable[int]],
        audit: Callable[[], AuditFigures],
        pauses: Callable[[], Awaitable[int]],
        health: Callable[[], str | None],
    ) -> None:
        """*last_event*: number of the newest event, where counting begins. *health*: why nothing is sent, or None."""
        self._store = store
        self._clock = clock
        self._last_event = last_event
        self._audit = audit
        self._pauses = pauses
        self._health = health
        self._live = Live(store)
        self._after: int | None = None
        self._counted = Counted()
        self.latest: Snapshot | None = None

    async def run(self) -> None:
        """A snapshot every five seconds, until cancelled; rarer where one takes long."""
        while True:
            began = self._clock.now().boot
            await self.take()
            await asyncio.sleep(rest_s(self._clock.now().boot - began, EVERY_S, MAX_EVERY_S))

    async def take(self) -> None:
        """One snapshot. Raises nothing of ours: a store that cannot be read is told in it."""
        try:
            self.latest = await self._read()
        except PollconsoleError as error:
            before = self.latest or Snapshot(at=self._clock.now())
            self.latest = measures.unreadable(before, self._clock.now(), str(error))

    async def _read(self) -> Snapshot:
        if self._after is None:
            self._after = await self._last_event()
        await self._count()
        await self._live.look()
        live = self._live.operations.values()
        questions = (*await self._store.questions(), *await self._store.credential_questions())
        counts = dict(await self._store.counts())
        counts.pop("questions", None)
        now, audit = self._clock.now(), self._audit()
        return Snapshot(
            at=now,
            by_status=counts,
            by_provider=measures.by_provider(live),
            by_delay=measures.by_delay(live),
            questions=measures.by_reason(questions),
            counted=self._counted,
            paused=await self._pauses(),
            beat_age_ms=core_silence(await self._store.workers(), now),
            store_fault=self._health(),
            anchored=audit.anchored,
            damaged=audit.damaged,
            unanchored_ms=0 if audit.since is None else max(0, now.wall - audit.since),
        )

    async def _count(self) -> None:
        for _ in range(MAX_PAGES):
            assert self._after is not None
            page = await self._store.events(after=self._after, limit=PAGE)
            if not page:
                return
            self._after = page[-1][0]
            self._counted = measures.count(self._counted, [event for _, event in page])
            if len(page) < PAGE:
                return
