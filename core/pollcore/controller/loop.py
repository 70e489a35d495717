"""The loop: results of the last group in, reservations of the next out, one look ahead, in one commit.

Job: when a turn is made, what goes into it, when to sleep. Must not know: SQL, contracts' contents, what an answer
means.
Source: spec O1-O8, T6, T8, T9, T11; design.md "Reserving". The loop holds nothing while it sleeps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from pollcore.controller.asked import Asked
from pollcore.controller.clock_events import ClockEvents
from pollcore.controller.contracts import Contracts
from pollcore.controller.due import DueList, numbered
from pollcore.controller.exchange import Exchanger, Out
from pollcore.controller.flight import Flight, Result
from pollcore.controller.pacing import SLICE_MS, Pacing
from pollcore.controller.prepare import Caps, Group, Preparer
from pollcore.controller.run_report import RunReport
from pollcore.controller.shared import Shared
from pollcore.controller.sharing import Sharing
from pollcore.controller.watching import wake_on, watch_store
from pollcore.facts import Moment, Status, StoreUnusable
from pollcore.ports import Chance, Claimed, Clock, Credentials, Store, Transport, Turn, TurnOutcome, Worker

SLOTS: Final = 100
"""Requests in flight at once: never more operations are claimed than there are free slots."""
GATHER_MS: Final = 50
"""A smaller group waits so long for company before its commit."""
RETRY_MIN_MS: Final = 500
RETRY_MAX_MS: Final = 15_000
"""Pause before a store that cannot commit is tried again."""
DRAIN_TRIES: Final = 5
"""At the end: how often results are offered to a store that cannot commit."""


async def nothing() -> None:
    """What else is done with each heartbeat, by default."""


class Controller:
    """One worker over one store. `run` is called once."""

    def __init__(
        self,
        store: Store,
        transport: Transport,
        credentials: Credentials,
        clock: Clock,
        chance: Chance,
        worker: Worker,
        *,
        caps: Mapping[str, Caps] | None = None,
        slots: int = SLOTS,
        gather_ms: int = GATHER_MS,
        each_beat: Callable[[], Awaitable[None]] = nothing,
    ) -> None:
        self._store = store
        self._clock = clock
        self._worker = worker
        self._slots = slots
        self._shared = Shared()
        self.contracts = Contracts(store)
        self._prepare = Preparer(store, self.contracts, credentials, self._shared, chance, caps or {}, worker.owner)
        self._asked = Asked(store, self.contracts, credentials, chance, worker.owner)
        self._exchange = Exchanger(transport, clock, chance, self._shared, credentials.forget, self.contracts)
        self._woken = asyncio.Event()
        self._group = max(1, slots // 2)
        self._flight = Flight(self._exchange, clock, self._woken, group=self._group, gather_ms=gather_ms)
        self._due = DueList(self._prepare, Sharing(self.contracts, credentials), self._exchange.lost)
        self._exchange.taught = self._due.learn
        self._chance = chance
        self._pacing = Pacing()
        self._stale = True
        self._checked = False
        self._ends: Callable[[], bool] = lambda: False
        """Whether no new claim is made any more (O7): from the stop on, or once the loop drains."""
        self._damage: str | None = None
        self._unsent = False
        """The store refused the newest claims, and none was taken since while something wanted to be sent."""
        self._seen = 0
        self._clock_events = ClockEvents()
        self._each_beat = each_beat
        self.health: str | None = None
        """Why the store cannot commit now; None: all well. Nothing is sent meanwhile (O6)."""
        self.report = RunReport()

    def wake(self) -> None:
        """Something changed: look now. From the loop's own thread."""
        self._stale = True
        self._asked.wanted = self._asked.wanted or self._asked.open > 0
        self._woken.set()

    def _saw(self, change: int) -> int:
        """Another process wrote *change*, or (0) nobody did: the newest change that this loop knows."""
        if change > self._seen:
            self._seen = change
            self.wake()
        return self._seen

    # --- the life of the loop -----------------------------------------------------------------------------------------

    async def run(
        self, stop: asyncio.Event, *, until_idle: bool = False, for_ms: int | None = None, watch: bool = True
    ) -> RunReport:
        """Poll until *stop* is set (then end cleanly: no new claim, answers in flight awaited and recorded).

        Args:
            until_idle: end when no operation is waiting or held.
            for_ms: end after so much boot time.
            watch: look for changes made by other processes four times a second.
        """
        end = None if for_ms is None else self._clock.now().boot + for_ms
        self._ends = stop.is_set
        watchers = [asyncio.create_task(wake_on(stop, self._woken))]
        if watch:
            watchers.append(asyncio.create_task(watch_store(self._store, self._saw)))
        pause = RETRY_MIN_MS
        try:
            while not stop.is_set() and (end is None or self._clock.now().boot < end):
                if await self._try_turn():
                    pause = RETRY_MIN_MS
                    if stop.is_set() or (until_idle and (self._damage is not None or await self._idle())):
                        break
                    await self._sleep(self._pause_ms(end))
                else:
                    await self._sleep(pause)
                    pause = min(RETRY_MAX_MS, pause * 2)
        finally:
            for watcher in watchers:
                watcher.cancel()
            await self._drain()
        return self.report

    async def _sleep(self, ms: int) -> None:
        before = self._clock.now()
        self._woken.clear()
        if ms > 0:
            await self._clock.wait(self._woken, min(ms, SLICE_MS))
        else:
            await asyncio.sleep(0)
        if self._clock_events.notice(before, self._clock.now(), min(ms, SLICE_MS)):
            self._stale = True

    async def _idle(self) -> bool:
        """Nothing waits any more, here or under another worker's lease."""
        if self._flight.tasks or self._flight.results or self._due.waits or self._due.writes or self._stale:
            return False
        try:
            counts = await self._store.counts()
        except StoreUnusable as error:
            self.health = str(error)
            self._stale = True
            return False
        return not counts.get(Status.WAITING, 0) and not counts.get(Status.HELD, 0)

    def _pause_ms(self, end: int | None) -> int:
        """How long nothing is due: 0 = make the next turn at once."""
        now = self._clock.now()
        if self._damage is not None:
            return SLICE_MS
        if self._stale or self._due.writes:
            return 0
        free = self._slots - len(self._flight.tasks)
        if self._flight.results:
            return self._flight.gather_ms(now)
        if free and self._due.has_work():
            return 0 if free >= min(self._group, len(self._due)) else GATHER_MS
        return self._pacing.pause_ms(
            now,
            has_room=free > 0,
            fruitless=self._due.fruitless,
            spacing=self._due.spacing,
            together=self._due.next_at(),
            expires=self._asked.next_at,
            end=end,
        )

    # --- one turn -----------------------------------------------------------------------------------------------------

    async def _try_turn(self) -> bool:
        """One turn; False: the store could not commit. Results are kept and tried again, claims are dropped."""
        try:
            await self._turn()
            if not self._checked:
                await self._check()
            await self._look_at_asked()
        except StoreUnusable as error:
            self.health = str(error)
            self._stale = True
            return False
        if self._unsent:
            return False  # the health stands: a look, or a beat, is no proof that a send can be recorded
        self.health = self._damage
        return True

    async def _look_at_asked(self) -> None:
        """G7: the time of open questions; with each heartbeat, when one expires, when something happened beside one."""
        leaves = self._prepare.leaves
        self._asked.wanted, leaves.asked = self._asked.wanted or leaves.asked, False
        if await self._asked.look_if_wanted(self._clock.now()):
            self._stale = True

    async def _check(self) -> None:
        """O6: do the counters equal the recorded sends? Once, after the first look and before the first send."""
        wrong = await self._store.check()
        self._checked = True
        if wrong:
            self._damage = f"the records do not add up, nothing is sent: {wrong[0]} (all: `pollconsole doctor`)"

    async def _turn(self) -> None:
        now = self._clock.now()
        # before anything goes out on a clock that was set: what is written later stands behind it (A5)
        await self._clock_events.record(self._store, now)
        ready = await self._make_ready(now)
        results = await self._flight.take()
        now = self._clock.now()
        if self._ends():
            ready = []  # the stop came while they were prepared
        writes = (*(r.write for r in results), *self._due.writes)
        beat = self._pacing.wants_beat(now)
        look = self._look(beat)
        if not (writes or ready or look or beat):
            return
        self._due.writes = []
        cooldowns, origins, denials = self._shared.take_new()
        turn = Turn(
            now=now,
            owner=self._worker.owner,
            writes=writes,
            claims=tuple(one.claim for group in ready for one in group),
            cooldowns=cooldowns,
            origins=origins,
            denials=denials,
            look=look,
            ahead=self._due.ahead if look else 0,
            beat=msgspec.structs.replace(self._worker, beat_at=now.wall, beat_boot=now.boot) if beat else None,
        )
        try:
            outcome = await self._store.turn(turn)
        except StoreUnusable:
            # nothing of the turn is known to have happened: results are fenced, so writing them again is harmless
            self._flight.put_back(results)
            self._shared.put_back(cooldowns, origins, denials)
            self._due.clear()
            self._unsent = self._unsent or bool(ready)
            raise
        self._take(turn, outcome, ready, results)
        self._unsent = self._unsent and not ready and self._due.has_work()
        if beat:
            self._pacing.beaten(now)
            self._asked.wanted = True
            await self._beat(now)

    async def _beat(self, now: Moment) -> None:
        """Every 10 s: renew the leases of requests in flight, write down what happened to the clock."""
        if self._flight.epochs:
            await self._store.renew(now, self._worker.owner, dict(self._flight.epochs))
        await self._each_beat()
        await self._clock_events.record(self._store, now)

    def _look(self, beat: bool) -> int:
        """How many due operations to load: none while enough are at hand. Each heartbeat looks for dead leases, too."""
        now = self._clock.now()
        if self._ends():
            return 0
        wanted = beat or (
            (self._pacing.is_overdue(now) or self._flight.results) and self._pacing.is_spaced(now, self._due.spacing)
        )
        if self._stale or (wanted and len(self._due) < self._group):
            return self._due.wanted(2 * self._slots)
        return 0

    async def _make_ready(self, now: Moment) -> list[Group]:
        """Prepare due operations for the free slots; those that may not send leave a write instead."""
        if not self._checked or self._damage is not None:
            return []
        ready = await self._due.make_ready(self._slots - len(self._flight.tasks), now, self._flight.asked)
        self._stale = self._stale or self._due.stale
        return numbered(ready)

    def _take(self, turn: Turn, outcome: TurnOutcome, ready: list[Group], results: tuple[Result, ...]) -> None:
        """Act on a committed turn: send what was claimed, keep what is due."""
        self._shared.learn(outcome)
        self._seen = max(self._seen, outcome.change)
        self.report.turns += 1
        for at, result in enumerate(results):
            moved = outcome.moved[at] if outcome.moved else None
            if outcome.taken[at]:
                self.report.recorded += 1
                self._flight.settled(result)
            elif moved is not None:
                self._flight.again(result, moved)
            else:
                self.report.refused += 1
                self._flight.settled(result)
        if turn.look:
            self._pacing.looked(turn.now)
            self._due.load(outcome, turn.look, turn.ahead)
            self._stale = False
        self._pacing.learn(outcome)
        claimed = iter(outcome.claimed)
        for group in ready:
            self._start(group, [next(claimed) for _ in group], turn.now)

    def _start(self, group: Group, claimed: list[Claimed | None], now: Moment) -> None:
        """Send one request for those whose claim was taken; the others wait where a cap was in the way."""
        taken = tuple((one, is_) for one, is_ in zip(group, claimed, strict=True) if is_ is not None)
        if taken:
            self.report.sent += 1
            self._flight.start(Out(*taken))
        refused = [one for one, is_ in zip(group, claimed, strict=True) if is_ is None]
        if refused:
            self._due.refused(refused, now, self._chance.draw() if len(refused) > 1 else None)

    async def _drain(self) -> None:
        """No new claim; answers in flight are awaited for a bounded time, then given up as lost; all is recorded."""
        self._ends = lambda: True
        await self._flight.land()
        self._due.clear()
        try:
            await self._prepare.leaves.end_sessions(self._clock.now())
        except StoreUnusable as error:
            self.health = str(error)
        for _ in range(DRAIN_TRIES):
            if not self._flight.results:
                break
            self._stale = False
            # a committed turn may hand an answer back: its record moved, it is decided anew and offered once more
            if not await self._try_turn():
                await asyncio.sleep(RETRY_MIN_MS / 1000)
        try:
            await self._clock_events.record(self._store, self._clock.now())
        except StoreUnusable as error:
            self.health = str(error)
