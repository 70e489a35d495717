"""Who polls: this process, or another that already does, whose work is then only watched.

Job: wait for the other core's end, then run the controller of this process until told to stop. Must not know: threads,
rows, widgets, how a poll is made.
Source: spec V3, O8.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Protocol

from pollconsole.beats import is_alive, read_beats
from pollconsole.core_told import Told
from pollconsole.mailbox import CoreRole
from pollcore.facts import StoreUnusable

if TYPE_CHECKING:
    from pollconsole import bridge

ANCHOR_EVERY_S: Final = 30.0
"""While another process polls: how often the audit's anchor is compared here, so that its state is no memory."""
OTHER_LOOK_S: Final = 1.0
"""Between two looks whether it still is there: one that ended, or was killed, on this machine has left its lock."""


class AnyController(Protocol):
    """What polls."""

    health: str | None

    async def run(self, stop: asyncio.Event) -> object: ...


class Polling:
    """One core, polled until *stop* is set, unless another process does or this console only reads."""

    def __init__(self, core: bridge.Core, told: Told, stop: asyncio.Event, *, read_only: bool) -> None:
        self._core = core
        self._told = told
        self._stop = stop
        self._read_only = read_only
        self._is_ready = False
        """Keys, audit log and anchor were looked at."""
        self._controller: AnyController | None = None

    @property
    def health(self) -> str | None:
        """Why this process sends nothing; None: it sends, or it is not this process that polls."""
        return self._controller.health if self._controller is not None else None

    def tell_audit(self) -> None:
        """What is known of the anchor, once it was looked at."""
        from pollconsole import bridge

        if self._is_ready:
            self._told.audit(bridge.audit_trouble(self._core))

    async def run(self, until_painted: Callable[[], Awaitable[None]]) -> None:
        """Poll until told to stop. *until_painted*: keys and HTTP come after the first picture."""
        if self._read_only:
            self._told.role(CoreRole.READ_ONLY, "started to look: nothing is polled from here")
        await until_painted()
        if self._stop.is_set():
            return
        await self._core.ready()
        self._is_ready = True
        for notice in self._core.notices:
            self._told.note("notice", notice, "held")
        self.tell_audit()
        if self._read_only:
            await self._stop.wait()
            return
        await self._while_another_polls()
        if not self._stop.is_set():
            await self._poll()

    async def _while_another_polls(self) -> None:
        from pollconsole import bridge

        compared = time.monotonic()
        while not self._stop.is_set() and await self._another_runs():
            self._told.role(CoreRole.ATTACHED, "another process polls this store; this one shows it")
            if time.monotonic() - compared > ANCHOR_EVERY_S:
                compared = time.monotonic()
                await bridge.compare_anchor(self._core)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), OTHER_LOOK_S)

    async def _another_runs(self) -> bool:
        """Whether a process without a screen polls this store (a heartbeat of kind `run`, not silent)."""
        now = self._core.clock.now()
        try:
            beats = await read_beats(self._core)
        except StoreUnusable:
            return True
        return any(beat.kind == "run" and is_alive(beat, now) for beat in beats)

    async def _poll(self) -> None:
        from pollconsole import bridge

        self._controller = self._core.controller()
        self._told.role(CoreRole.OWN, "this process polls")
        beside = bridge.beside(self._core, self._controller, lambda text: self._told.note("outside", text, "held"))
        try:
            await self._controller.run(self._stop)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
