"""Requests in flight, and answers that wait for their commit.

Job: one task a request; keep each answer until its write is taken; say when a group of answers is worth a commit.
Must not know: the store, what is due. Source: spec O1, O2; design.md "Reserving".
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from pollcore.controller.exchange import Exchanger
from pollcore.controller.prepare import Ready
from pollcore.facts import Answer, BootMs, Fault, FaultKind, Moment, Operation
from pollcore.ports import Claimed, Clock, Write

GRACE_MS: Final = 10_000
"""At the end: how long requests in flight may still be answered."""
CANCEL_S: Final = 1.0


class Result(msgspec.Struct, frozen=True):
    """One answer with its write, kept until the write is taken."""

    write: Write
    ready: Ready
    claimed: Claimed
    brought: Answer | Fault


class Flight:
    """What this worker has out. *woken* is set when a group of answers is complete."""

    def __init__(self, exchange: Exchanger, clock: Clock, woken: asyncio.Event, *, group: int, gather_ms: int) -> None:
        self._exchange = exchange
        self._clock = clock
        self._woken = woken
        self._group = group
        self._gather_ms = gather_ms
        self._first: BootMs | None = None
        self.results: list[Result] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.epochs: dict[str, int] = {}
        """Leases that are renewed: until the answer is recorded, however long the store cannot commit."""

    def start(self, ready: Ready, claimed: Claimed) -> None:
        """Send what was claimed."""
        name = claimed.operation.operation_id
        self.tasks[name] = asyncio.create_task(self._one(ready, claimed))
        self.epochs[name] = claimed.operation.epoch

    async def _one(self, ready: Ready, claimed: Claimed) -> None:
        brought: Answer | Fault
        try:
            brought = await self._exchange.send(ready, claimed)
        except asyncio.CancelledError:
            brought = Fault(FaultKind.ANSWER_LOST, True, self._clock.now().wall, "ended before the answer came")
        self._keep(ready, claimed, brought)
        self.tasks.pop(claimed.operation.operation_id, None)
        if len(self.results) >= self._group or not self.tasks:
            self._woken.set()

    def _keep(self, ready: Ready, claimed: Claimed, brought: Answer | Fault) -> None:
        write = self._exchange.record(ready, claimed, brought)
        self.results.append(Result(write, ready, claimed, brought))
        if len(self.results) == 1:
            self._first = self._clock.now().boot
            asyncio.get_running_loop().call_later(self._gather_ms / 1000, self._woken.set)

    def gather_ms(self, now: Moment) -> int:
        """How long the answers at hand still wait for company; 0: commit now."""
        waited = now.boot - (self._first if self._first is not None else now.boot)
        if len(self.results) >= self._group or not self.tasks:
            return 0
        return max(0, self._gather_ms - waited)

    def take(self) -> tuple[Result, ...]:
        """The answers at hand, for one commit."""
        taken, self.results = tuple(self.results), []
        return taken

    def put_back(self, results: Sequence[Result]) -> None:
        """The commit did not happen: they are offered again."""
        self.results = [*results, *self.results]

    def settled(self, result: Result) -> None:
        """Recorded, or refused as a late owner's: the lease is no longer ours."""
        self.epochs.pop(result.claimed.operation.operation_id, None)

    def again(self, result: Result, moved: Operation) -> None:
        """An operator changed the record while the request was out: the same answer, decided on what is so now."""
        claimed = Claimed(moved, result.claimed.intents, result.claimed.charged_at)
        self._keep(result.ready, claimed, result.brought)

    async def land(self) -> None:
        """Await answers in flight for a bounded time; then their requests are given up, their answers lost."""
        if not self.tasks:
            return
        _, late = await asyncio.wait(list(self.tasks.values()), timeout=GRACE_MS / 1000)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=CANCEL_S)
