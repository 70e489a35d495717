"""The audit beside everything else that a core does: begun, anchored while it polls, finished at its end.

Job: when keys, checkpoints and anchor are looked after, and for how long anybody waits for it. Must not know: links,
keys, where they lie, what a grant means.
Source: spec A4, O6.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pollcore.adapters.audit_chain import ChainAudit
from pollcore.adapters.store import ThreadedStore
from pollcore.facts import StoreUnusable
from pollcore.ports import Clock, Granting

if TYPE_CHECKING:
    from pollcore.adapters.audit_checkpoint import AuditKeeper

BEAT_S: Final = 0.05
"""How long a heartbeat waits for the anchor; most visits to a keyring end within it."""
FOLLOW_S: Final = 2.0
"""How long the commit of a grant whose record was anchored is waited for, to anchor it, too."""
COMMAND_S: Final = 1.0
"""How long the end of a command that wrote may wait for the keyring; the next run anchors what it could not."""
END_S: Final = 3.0
"""How long the end of a process may wait for its last checkpoint and anchor."""


class AuditSide:
    """The audit of one core. Every call but `open` wants an open store.

    Args:
        make: gives what looks after the keys; called once, by the first call that needs it.
        off: another log is written (for measurements): no chain, no checkpoints, no anchor.
        polls: this process polls; another one leaves a checkpoint only if it wrote.
    """

    store: ThreadedStore

    def __init__(
        self, chain: ChainAudit, make: Callable[[], AuditKeeper], clock: Clock, *, off: bool, polls: bool
    ) -> None:
        self._chain = chain
        self._make = make
        self._clock = clock
        self._off = off
        self._polls = polls
        self._begun = False
        """The audit chain of this home was looked at; where there was none, one was begun."""
        self._anchoring: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None

    def open(self, store: ThreadedStore) -> None:
        """The store whose audit it is."""
        self.store = store

    @cached_property
    def keeper(self) -> AuditKeeper:
        """Keys, checkpoints and anchor of the audit chain."""
        return self._make()

    async def has_begun(self) -> bool:
        """Whether this home has an audit log; looked up until it has."""
        if not self._begun:
            self._begun = self._off or await self.keeper.load(self.store)
        return self._begun

    async def begin(self) -> str | None:
        """Begin the log unless another process did meanwhile, under the setup lock of the home; a notice, or None."""
        notice = None if await self.has_begun() else await self.keeper.begin(self.store, self._clock.now())
        self._begun = True
        return notice

    async def ready(self) -> str | None:
        """Before a process polls: the anchor against the chain; what is wrong."""
        if self._off:
            return None
        await self.keeper.ready(self.store, self._clock.now())
        return self.keeper.state.why

    async def authorise(self, writes: Sequence[Granting]) -> None:
        """Put the grants of *writes* on record before any of them takes effect. Raises Refused (`unanchored`)."""
        if not self._off:
            before, change = self._chain.granted, await self.store.change()
            await self.keeper.authorise(self.store, self._clock.now(), writes)
            self._following = asyncio.create_task(self._follow_grant(before, change))

    async def _follow_grant(self, before: int, change: int) -> None:
        """The rows that carry a grant out are anchored as soon as they are committed, beside loop and screen (A4)."""
        try:
            async with asyncio.timeout(FOLLOW_S):
                while True:
                    change = await self.store.wait_for_change(change, FOLLOW_S)
                    tip = await self.store.audit_tip()
                    if before != self._chain.granted and tip is not None and tip.seq >= self._chain.granted:
                        break
            await self.keeper.anchor(self.store, self._clock.now())
        except (StoreUnusable, TimeoutError):
            pass  # not carried out, or told by the loop's own writes

    async def beat(self) -> None:
        """With each heartbeat, beside the loop: a keyring that hangs holds up no poll."""
        if not self._off and (self._anchoring is None or self._anchoring.done()):
            self._anchoring = asyncio.create_task(self._anchor())
            await asyncio.wait([self._anchoring], timeout=BEAT_S)

    async def _anchor(self) -> None:
        try:
            await self.keeper.beat(self.store, self._clock.now())
        except StoreUnusable:
            pass  # the loop's own writes tell it

    async def end(self) -> None:
        """A process that polled, or wrote, leaves a checkpoint and an anchor, if store and keyring let it."""
        try:
            async with asyncio.timeout(END_S):
                if self._anchoring is not None:
                    await asyncio.wait([self._anchoring])
                if self._following is not None:
                    self._following.cancel()
                if not self._off and self._polls and self._begun:
                    await self.keeper.finish(self.store, self._clock.now())
            if not self._off and not self._polls and self._chain.has_sealed:
                await self._end_of_command()
        except (StoreUnusable, TimeoutError):
            pass  # told when it happened; the chain is as it was committed, its anchor behind it

    async def _end_of_command(self) -> None:
        """A command that wrote leaves a checkpoint and an anchor, too, where the keyring answers at once."""
        async with asyncio.timeout(COMMAND_S):
            if self.keeper.log is not None or await self.keeper.load(self.store):
                await self.keeper.finish(self.store, self._clock.now())
