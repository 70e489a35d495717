"""What the screen shows, read from the store as it changes: rows, questions, heartbeats, sessions.

Job: hand the newest over, the first screen full first, then whatever changed, and tell when the store cannot be read.
Must not know: threads, widgets, how rows are drawn, who polls.
Source: spec V3, O4, G6, G7.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from pollconsole.beats import read_beats
from pollconsole.core_polling import Polling
from pollconsole.core_told import Told
from pollconsole.mailbox import SessionLeft
from pollcore.facts import Status, StoreUnusable

if TYPE_CHECKING:
    from pollconsole import bridge

FEED_WAIT_S: Final = 2.0
"""One wait for a change; heartbeats and health are read at least so often."""
FEED_REST_S: Final = 0.1
"""Between two reads of the store, however fast it changes."""
FEED_RETRY_S: Final = 2.0
"""Pause after the store could not be read."""
MAX_ROWS: Final = 100_000
"""Live operations that a screen holds."""
FIRST_ROWS: Final = 200
"""Rows handed over before all the others are read."""
MAX_ENDED: Final = 1_000
"""Ended operations loaded at start."""


class Feed:
    """One store's news, into one mailbox.

    Args:
        polling: says why this process sends nothing, and what is known of the audit's anchor.
        read_only: this console only looks: no sign that it is open is left in the store.
    """

    def __init__(self, core: bridge.Core, told: Told, polling: Polling, *, read_only: bool) -> None:
        self._core = core
        self._told = told
        self._polling = polling
        self._read_only = read_only

    async def load(self, until_painted: Callable[[], Awaitable[None]]) -> int:
        """All live operations, those with an open question, and the newest ends; the change number they stand for."""
        from pollconsole import bridge

        core, mailbox = self._core, self._told.mailbox
        change = await core.store.change()
        live = tuple(status for status in Status if not status.is_end)
        ended = tuple(status for status in Status if status.is_end)
        pairs = await core.store.asked()
        questions = (*(question for _, question in pairs), *await core.store.credential_questions())
        rows = list(await bridge.operations(core, statuses=live, limit=FIRST_ROWS))
        more = len(rows) == FIRST_ROWS
        rows += await bridge.operations(core, statuses=ended, limit=MAX_ENDED)
        known = {row.operation_id for row in rows}
        rows += [operation for operation, _ in pairs if operation.operation_id not in known]
        self._polling.tell_audit()
        beats, read_s = await read_beats(core), time.monotonic()
        mailbox.put(rows, questions=questions, beats=beats, change=change, loaded=True, read_s=read_s)
        mailbox.sessions(await self._sessions())
        if more:  # a screen full is there already: nothing competes with its painting
            await until_painted()
            mailbox.put(await bridge.operations(core, statuses=live, limit=MAX_ROWS))
        return change

    async def run(self, seen: int) -> None:
        """Hand over what changes after *seen*, newest only, until cancelled."""
        core, told = self._core, self._told
        while True:
            try:
                change = await core.store.wait_for_change(seen, FEED_WAIT_S)
                if change > seen:
                    await self._changes(seen, change)
                    seen = change
                told.mailbox.put(beats=await read_beats(core), read_s=time.monotonic())
                told.mailbox.sessions(await self._sessions())
                await self._present()
                told.health(self._polling.health)
                self._polling.tell_audit()
                await asyncio.sleep(FEED_REST_S)
            except StoreUnusable as error:
                told.health(self._polling.health or str(error))
                await asyncio.sleep(FEED_RETRY_S)

    async def _changes(self, seen: int, change: int) -> None:
        from pollconsole import bridge

        store = self._core.store
        rows = await bridge.operations(self._core, changed_since=seen, limit=MAX_ROWS)
        questions = (*await store.questions(), *await store.credential_questions())
        self._told.mailbox.put(rows, questions=questions, change=change)

    async def _present(self) -> None:
        """G7: a console is open on the store, whoever polls it: the time of questions runs. Who polls tells trouble."""
        if not self._read_only:
            with contextlib.suppress(StoreUnusable):
                await self._core.actions.present()

    async def _sessions(self) -> tuple[SessionLeft, ...]:
        """Sessions that can still be used; their counts move with each request that goes out under them."""
        return tuple(
            SessionLeft(s.session_id, s.credential, s.owner, s.until, s.calls, s.calls_left)
            for s in await self._core.actions.sessions()
        )
