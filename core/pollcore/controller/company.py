"""Due operations that wait a moment for others with whom they can share one request.

Job: hold them, say when which of them go out together. Must not know: stores, credentials, what is sent, whether a
request may be sent at all.
Source: contract need R39. How long one waits is worked out from when it became due, never from when it was first seen
here: a restart, a new look or another worker adds nothing to it, and no limit passes over it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore import schedule
from pollcore.contract import Contract, batch_requests
from pollcore.contract.batch_requests import Together
from pollcore.facts import BootMs, Moment, Operation
from pollcore.ports import Coming

MAX_CONTRACTS: Final = 1_000
"""Contracts of which is remembered how many operations of a request are too many."""


class Held(msgspec.Struct, frozen=True):
    """One operation, and until when it waits for company."""

    operation: Operation
    until: BootMs


class Pool(msgspec.Struct):
    """Those that can share a request."""

    contract: Contract
    most: int
    held: list[Held] = []
    until: BootMs = BootMs(0)
    """When the first of them goes, full or not."""


class Company:
    """All pools of one worker."""

    def __init__(self) -> None:
        self._pools: dict[Together, Pool] = {}
        self._coming: tuple[Coming, ...] | None = None
        """Who becomes due soon; None: not known."""
        self._more = False
        """More is due than was loaded: among them may be company."""
        self.ahead = 0
        """ms: how far the longest of them wait, of all that were ever held."""
        self._fewer: dict[str, int] = {}
        """Contract -> the most operations of one request, where answers for more were too large."""
        self._fitted: dict[str, int] = {}
        """Contract -> for how many operations a list came since the last answer that was none."""

    def __len__(self) -> int:
        return sum(len(pool.held) for pool in self._pools.values())

    def clear(self, coming: tuple[Coming, ...] | None = None, *, more: bool = False) -> None:
        """The store is looked at anew: who is still due comes again. *coming*: who becomes due soon, where it said;
        *more*: the look did not see all that is due."""
        self._pools.clear()
        self._coming, self._more = coming, more

    @property
    def is_blind(self) -> bool:
        """Somebody waits, and it is not known whether anybody comes."""
        return self._coming is None and bool(self._pools)

    def add(self, key: Together, contract: Contract, operation: Operation, now: Moment) -> None:
        """Hold *operation*, which is due, until it goes with others or its time is over."""
        plan = contract.steps[0].batch
        assert plan is not None
        until = waits_until(operation, plan.gather, now)
        pool = self._pools.get(key)
        if pool is None:
            pool = Pool(contract, self._fewer.get(contract.digest, plan.most), [], until)
            self._pools[key] = pool
        pool.held.append(Held(operation, until))
        pool.until = min(pool.until, until)
        self.ahead = max(self.ahead, plan.gather)

    def _awaited(self, key: Together, pool: Pool) -> bool:
        """Somebody who may share their request becomes due before their time is over, or is due and not loaded."""
        whose = (key.provider, key.account, key.credential, key.digest)
        return (
            self._more
            or self._coming is None
            or any(
                one.due_boot <= pool.until and (one.provider, one.account, one.credential, one.contract_digest) == whose
                for one in self._coming
            )
        )

    def fewer(self, digest: str, count: int) -> None:
        """An answer for *count* operations may have been too large: half as many from now on, as long as this runs. Not
        where a list came for as many: a page of a proxy, once, makes no request smaller for ever."""
        if count <= self._fitted.pop(digest, 0):
            return
        if digest in self._fewer or len(self._fewer) < MAX_CONTRACTS:
            self._fewer[digest] = max(1, min(count // 2, self._fewer.get(digest, count)))

    def fits(self, digest: str, count: int) -> None:
        """An answer for *count* operations came as a list."""
        if digest in self._fitted or len(self._fitted) < MAX_CONTRACTS:
            self._fitted[digest] = max(count, self._fitted.get(digest, 0))

    def largest(self) -> int:
        """The most operations that one of the next requests can ask for."""
        return max((min(pool.most, len(pool.held)) for pool in self._pools.values()), default=0)

    def next_at(self) -> BootMs | None:
        """When the next of them goes; None: nobody waits. 0: at once."""
        ways = (pool.until if self._awaited(key, pool) else BootMs(0) for key, pool in self._pools.items())
        return min(ways, default=None)

    def take(self, now: Moment, *, all_of_them: bool = False) -> tuple[Operation, ...] | None:
        """Those of one request that go now: a full one, or one whose time is over. None: nobody does.

        *all_of_them*: nobody waits any longer.
        """
        for key, pool in self._pools.items():
            full = len(pool.held) >= pool.most
            if full or all_of_them or pool.until <= now.boot or not self._awaited(key, pool):
                going = tuple(one.operation for one in pool.held[: pool.most])
                going = going[: batch_requests.fitting(pool.contract, going)]
                del pool.held[: len(going)]
                if pool.held:
                    pool.until = min(one.until for one in pool.held)
                else:
                    del self._pools[key]
                return going
        return None


def waits_until(operation: Operation, gather_ms: int, now: Moment) -> BootMs:
    """Until when a due operation waits for company: *gather_ms* after it became due, or not at all where a limit of
    its own would pass meanwhile."""
    due = now.boot
    if operation.boot_id == now.boot_id and operation.due_boot is not None:
        due = operation.due_boot
    elif operation.next_poll_at is not None:
        due = BootMs(now.boot + operation.next_poll_at - now.wall)
    until = BootMs(min(due, now.boot) + gather_ms)
    return until if until - now.boot < schedule.room(operation, now) else now.boot
