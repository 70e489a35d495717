"""Requests in flight, and answers that wait for their commit.

Job: one task a request; keep each answer until its write is taken; say when a group of answers is worth a commit.
Must not know: the store, what is due. Source: spec O1, O2; design.md "Reserving".
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from pollcore.controller.exchange import Exchanger, Out
from pollcore.controller.prepare import Ready
from pollcore.facts import Answer, BootMs, Fault, FaultKind, Moment, Operation
from pollcore.ports import Claimed, Clock, Write

GRACE_MS: Final = 10_000
"""At the end: how long requests in flight may still be answered."""
CANCEL_S: Final = 1.0


class Result(msgspec.Struct, frozen=True):
    """One answer with its write, kept until the write is taken."""

    write: Write
    out: Out
    ready: Ready
    claimed: Claimed
    brought: Answer | Fault
    moved: Operation | None = None
    """The record as it is by now, on which *write* could not be taken; None: nothing came between."""


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
        """Requests that are out, by the first operation of each."""
        self.asked: set[str] = set()
        """Operations whose request is out."""
        self.epochs: dict[str, int] = {}
        """Leases that are renewed: until the answer is recorded, however long the store cannot commit."""

    def start(self, out: Out) -> None:
        """Send what was claimed."""
        for _, claimed in out.members:
            name = claimed.operation.operation_id
            self.epochs[name] = claimed.operation.epoch
            self.asked.add(name)
        first = out.members[0][1].operation.operation_id
        self.tasks[first] = asyncio.create_task(self._one(first, out))

    async def _one(self, first: str, out: Out) -> None:
        brought: Answer | Fault
        try:
            brought = await self._exchange.send(out)
        except asyncio.CancelledError:
            brought = Fault(FaultKind.ANSWER_LOST, True, self._clock.now().wall, "ended before the answer came")
        # without a pause in between: one answer is one commit, whatever number of operations it is for
        for (ready, claimed), write in zip(out.members, self._exchange.record(out, brought), strict=True):
            self._keep(Result(write, out, ready, claimed, brought))
            self.asked.discard(claimed.operation.operation_id)
        self.tasks.pop(first, None)
        if len(self.results) >= self._group or not self.tasks:
            self._woken.set()

    def _keep(self, result: Result) -> None:
        self.results.append(result)
        if len(self.results) == 1:
            self._first = self._clock.now().boot
            asyncio.get_running_loop().call_later(self._gather_ms / 1000, self._woken.set)

    def gather_ms(self, now: Moment) -> int:
        """How long the answers at hand still wait for company; 0: commit now."""
        waited = now.boot - (self._first if self._first is not None else now.boot)
        if len(self.results) >= self._group or not self.tasks:
            return 0
        return max(0, self._gather_ms - waited)

    async def take(self) -> tuple[Result, ...]:
        """The answers at hand, for one commit, each decided on its record as it is.

        Raises StoreUnusable: one cannot be decided now; all are kept.
        """
        taken, self.results = tuple(self.results), []
        try:
            return tuple([await self._anew(one) for one in taken])
        except BaseException:
            self.put_back(taken)
            raise

    async def _anew(self, result: Result) -> Result:
        if result.moved is None:
            return result
        claimed = Claimed(result.moved, result.claimed.intents, result.claimed.charged_at)
        write = await self._exchange.again(result.out, result.ready, claimed, result.brought)
        return msgspec.structs.replace(result, write=write, moved=None)

    def put_back(self, results: Sequence[Result]) -> None:
        """The commit did not happen: they are offered again."""
        self.results = [*results, *self.results]

    def settled(self, result: Result) -> None:
        """Recorded, or refused as a late owner's: the lease is no longer ours."""
        self.epochs.pop(result.claimed.operation.operation_id, None)

    def again(self, result: Result, moved: Operation) -> None:
        """An operator changed the record while the request was out: the same answer, decided on what is so now."""
        self._keep(msgspec.structs.replace(result, moved=moved))

    async def land(self) -> None:
        """Await answers in flight for a bounded time; then their requests are given up, their answers lost."""
        if not self.tasks:
            return
        _, late = await asyncio.wait(list(self.tasks.values()), timeout=GRACE_MS / 1000)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=CANCEL_S)
