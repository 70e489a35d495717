"""Due operations that wait a moment for others with whom they can share one request.

Job: hold them, say when which of them go out together. Must not know: stores, credentials, what is sent, whether a
request may be sent at all.
Source: contract need R39. How long one waits is worked out from when it became due, never from when it was first seen
here: a restart, a new look or another worker adds nothing to it, and no limit passes over it.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import msgspec

from pollcore import schedule
from pollcore.contract import Contract, batch_requests
from pollcore.contract.batch_requests import Together
from pollcore.controller.lessons import Went
from pollcore.controller.sizes import Sizes
from pollcore.controller.suspects import Suspects
from pollcore.facts import BootMs, Moment, Operation
from pollcore.ports import Coming


class Held(msgspec.Struct, frozen=True):
    """One operation, since when it is due, and until when it waits for company."""

    operation: Operation
    due: BootMs
    until: BootMs


class Pool(msgspec.Struct):
    """Those that can share a request: all that are under no suspicion, or one *group* of suspects."""

    contract: Contract
    most: int
    group: int
    held: list[Held] = []
    until: BootMs = BootMs(0)
    """When the first of them goes, full or not."""
    due: BootMs = BootMs(0)
    """Since when the longest of them is due."""
    tells: bool = False
    """Some of them are, or were, under no suspicion: beside them it shows who does harm."""


PoolKey = tuple[Together, int]
"""Whose request, and which group of suspects (0: all others)."""


class Company:
    """All pools of one worker."""

    def __init__(self) -> None:
        self._pools: dict[PoolKey, Pool] = {}
        self._coming: dict[tuple[str, str, str | None, str], BootMs] | None = None
        """When the first becomes due of those whose it is; None: not known."""
        self._order: tuple[tuple[BootMs, bool], list[tuple[BootMs, int, PoolKey]]] | None = None
        """Pools that go now, the one that is due longest first, as worked out for a time; None: to be worked out."""
        self._more = False
        """More is due than was loaded: among them may be company."""
        self.ahead = 0
        """ms: how far the longest of them wait, of all that were ever held."""
        self._sizes = Sizes()
        self._suspects = Suspects()

    def __len__(self) -> int:
        return sum(len(pool.held) for pool in self._pools.values())

    def clear(self, coming: tuple[Coming, ...] | None = None, *, more: bool = False) -> None:
        """The store is looked at anew: who is still due comes again. *coming*: who becomes due soon, where it said;
        *more*: the look did not see all that is due."""
        self._pools.clear()
        self._order, self._coming, self._more = None, None, more
        if coming is not None:
            self._coming = {}
            for one in coming:
                whose = (one.provider, one.account, one.credential, one.contract_digest)
                self._coming[whose] = min(one.due_boot, self._coming.get(whose, one.due_boot))

    @property
    def is_blind(self) -> bool:
        """Somebody waits, and it is not known whether anybody comes."""
        return self._coming is None and bool(self._pools)

    def goes_alone(self, operation: Operation, now: Moment) -> bool:
        """It was found to be the one that makes shared requests fail."""
        return self._suspects.goes_alone(operation.operation_id, now)

    def add(self, key: Together, contract: Contract, operation: Operation, now: Moment) -> None:
        """Hold *operation*, which is due, until it goes with others or its time is over."""
        plan = contract.steps[0].batch
        assert plan is not None
        until, due = waits_until(operation, plan.gather, now), due_at(operation, now)
        group = self._suspects.group(operation.operation_id, now)
        pool = self._pools.get((key, group))
        if pool is None:
            pool = self._pools[key, group] = Pool(contract, plan.most, group, [], until, due)
        pool.held.append(Held(operation, due, until))
        pool.until, pool.due = min(pool.until, until), min(pool.due, due)
        self._order = None
        self.ahead = max(self.ahead, plan.gather)

    def learn(self, contract: Contract, names: Sequence[str], went: Went, now: Moment) -> None:
        """What became of a request that asked for the operations *names*."""
        plan = contract.steps[0].batch
        if plan is None:
            return
        digest, most = contract.digest, plan.most
        if went is Went.ALONE:
            self._sizes.alone(digest, most)
        elif went is Went.LISTED:
            self._sizes.listed(digest, most, len(names))
            self._suspects.fine(names)
        else:
            if went is Went.TOO_MANY:
                self._sizes.too_many(digest, most, len(names))
            elif went is Went.FAILED:
                self._sizes.failed(digest, most, len(names))
            self._suspects.failed(names, now)

    def _awaited(self, key: Together, pool: Pool) -> bool:
        """Somebody who may share their request becomes due before their time is over, or is due and not loaded."""
        if self._more or self._coming is None:
            return True
        first = self._coming.get((key.provider, key.account, key.credential, key.digest))
        return first is not None and first <= pool.until

    def _most(self, pool: Pool, now: Moment) -> int:
        """How many of *pool* the next request asks for."""
        most = self._sizes.of(pool.contract.digest, pool.most, now)
        # a group may have been forgotten while those who wait for it are held: then each of them goes
        return min(most, max(1, self._suspects.size(pool.group))) if pool.group else most

    def next_at(self) -> BootMs | None:
        """When the next of them goes; None: nobody waits. 0: at once."""
        ways = (pool.until if self._awaited(key, pool) else BootMs(0) for (key, _), pool in self._pools.items())
        return min(ways, default=None)

    def first_due(self, now: Moment, *, all_of_them: bool = False) -> BootMs | None:
        """Since when those are due that `take` gives next; None: nobody goes now."""
        order = self._going(now, all_of_them)
        return order[0][0] if order else None

    def next_size(self, now: Moment, *, all_of_them: bool = False) -> int:
        """The most operations that `take` gives next; 0: nobody goes now."""
        order = self._going(now, all_of_them)
        if not order:
            return 0
        pool = self._pools[order[0][2]]
        return min(self._most(pool, now), len(pool.held))

    def take(self, now: Moment, *, all_of_them: bool = False) -> tuple[Operation, ...] | None:
        """Those of one request that go now: a full one, or one whose time is over; of several the one that is due
        longest. None: nobody does.

        *all_of_them*: nobody waits any longer.
        """
        order = self._going(now, all_of_them)
        if not order:
            return None
        _, n, key = heapq.heappop(order)
        pool = self._pools[key]
        chosen = self._chosen(pool, now)
        going = tuple(pool.held[at].operation for at in chosen)
        going = going[: batch_requests.fitting(pool.contract, going)]
        gone = set(chosen[: len(going)])
        pool.held = [one for at, one in enumerate(pool.held) if at not in gone]
        self._sizes.goes(pool.contract.digest, len(going), now)
        if pool.held:
            pool.until = min(one.until for one in pool.held)
            pool.due = min(one.due for one in pool.held)
            if self._goes(key[0], pool, now, all_of_them):
                heapq.heappush(order, (pool.due, n, key))
        else:
            del self._pools[key]
        return going

    def _going(self, now: Moment, all_of_them: bool) -> list[tuple[BootMs, int, PoolKey]]:
        """A heap of the pools that go now."""
        made_for = (now.boot, all_of_them)
        if self._order is None or self._order[0] != made_for:
            going = [
                (pool.due, n, key)
                for n, (key, pool) in enumerate(self._pools.items())
                if self._goes(key[0], pool, now, all_of_them)
            ]
            heapq.heapify(going)
            self._order = (made_for, going)
        return self._order[1]

    def _goes(self, key: Together, pool: Pool, now: Moment, all_of_them: bool) -> bool:
        """Full, or its time is over, or nobody comes."""
        is_full = len(pool.held) >= self._most(pool, now)
        return all_of_them or is_full or pool.until <= now.boot or not self._awaited(key, pool)

    def _chosen(self, pool: Pool, now: Moment) -> list[int]:
        """Places in *pool* of those that go in one request, in their order: beside others at most one that is left of
        its group, so that the answer tells of that one; where all are, and nobody is to be cleared, two, those that
        were left first."""
        most = self._most(pool, now)
        left = [(self._suspects.last_of(one.operation.operation_id, now), n) for n, one in enumerate(pool.held)]
        by_age = sorted(one for one in left if one[0])
        pool.tells = pool.tells or len(by_age) < len(left)
        beside = 1 if pool.tells or self._suspects.has_groups(now) else 2
        told = {n for _, n in by_age[:beside]}
        return [n for group, n in left if not group or n in told][:most]


def due_at(operation: Operation, now: Moment) -> BootMs:
    """Since when a due operation is, on the boot clock; at the latest now."""
    due = now.boot
    if operation.boot_id == now.boot_id and operation.due_boot is not None:
        due = operation.due_boot
    elif operation.next_poll_at is not None:
        due = BootMs(now.boot + operation.next_poll_at - now.wall)
    return min(due, now.boot)


def waits_until(operation: Operation, gather_ms: int, now: Moment) -> BootMs:
    """Until when a due operation waits for company: *gather_ms* after it became due, or not at all where a limit of
    its own would pass meanwhile."""
    until = BootMs(due_at(operation, now) + gather_ms)
    return until if until - now.boot < schedule.room(operation, now) else now.boot
