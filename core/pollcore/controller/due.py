"""From what is due to what goes out: each request with the operations that it asks for.

Job: sort due operations into those that go alone and those that share a request, prepare as many requests as there is
room for, keep the rest. Must not know: turns, sleeping, answers.
Source: spec O7, B4; design.md "One request is not one operation"; contract need R39.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Final

import msgspec

from pollcore.contract import Contract
from pollcore.controller.company import Company, due_at
from pollcore.controller.lessons import Went
from pollcore.controller.prepare import Group, Preparer, Ready
from pollcore.controller.sharing import Sharing
from pollcore.facts import BootMs, Moment, Operation, Policy
from pollcore.ports import TurnOutcome, Write

MAX_CLAIMS: Final = 1_000
"""Operations that one turn claims at most (one full request of the largest contract): a commit that takes longer than
a claim may be old burns what it charged."""
MAX_SPACING_MS: Final = 1_000
"""The longest pause between two looks for the sake of those that wait for company: each look loads them all again."""
MAX_MORE: Final = 2_000
"""Rows that a look loads at most beyond the usual, for those that are left alone or wait for company."""


class DueList:
    """What the store said is due, and what of it goes out next. *lost*: makes the write of a lost answer."""

    def __init__(self, prepare: Preparer, sharing: Sharing, lost: Callable[[Operation, int, Policy], Write]) -> None:
        self._prepare = prepare
        self._sharing = sharing
        self._write_off = lost
        self._new: list[Operation] = []
        self._alone: list[Operation] = []
        self._company = Company()
        self._lost: dict[str, int] = {}
        self._left: set[str] = set()
        """Due operations that the last round left alone (another run of the core has their session)."""
        self._whole = True
        """The last look saw all that is due."""
        self.fruitless = False
        """Everything due turned out not to be (another worker was faster)."""
        self.writes: list[Write] = []
        """What prepared operations leave in place of a request, for the next turn."""
        self.stale = False
        """What is at hand is not all that could go now: the store is to be looked at anew."""

    # --- what the loop asks -------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Operations that could go out now, as far as is known."""
        return len(self._new) + len(self._alone)

    @property
    def waits(self) -> bool:
        """Something due was neither sent nor left."""
        return bool(self._new or self._alone or len(self._company))

    def has_work(self) -> bool:
        """Something at hand was not left alone by the last round."""
        return any(one.operation_id not in self._left for one in (*self._new, *self._alone))

    def next_at(self) -> BootMs | None:
        """When a request goes out whose operations wait for company."""
        return self._company.next_at()

    @property
    def spacing(self) -> int:
        """ms that the next look keeps from the last: one for each that waits for company, so that what becomes due one
        by one does not load all of them each time. 0: more is due than the last look saw."""
        return min(len(self._company), MAX_SPACING_MS) if self._whole else 0

    def wanted(self, least: int) -> int:
        """How many due operations to load: what is left alone, or waits for company, hides nothing behind it."""
        return least + min(len(self._left) + 2 * len(self._company), MAX_MORE)

    def learn(self, contract: Contract, names: Sequence[str], went: Went, now: Moment) -> None:
        """R39: what a request that asked for *names* tells of sharing one."""
        self._company.learn(contract, names, went, now)

    def clear(self) -> None:
        """Nothing of it is known to be true any more."""
        self._new.clear()
        self._alone.clear()
        self._company.clear()

    @property
    def ahead(self) -> int:
        """ms: of whom that becomes due so soon a look is to tell, for those that wait for company."""
        return self._company.ahead

    def load(self, outcome: TurnOutcome, looked: int, ahead: int) -> None:
        """Take over what a look found; *looked*: how many it could have loaded, *ahead*: how far it looked."""
        self.clear()
        self._whole = len(outcome.due) < looked
        self._company.clear(outcome.coming if ahead else None, more=not self._whole)
        self.stale = False
        self._new = list(outcome.due)
        self._lost = dict(reversed(outcome.answer_lost))

    # --- a round ------------------------------------------------------------------------------------------------------

    async def make_ready(self, free: int, now: Moment, out: Set[str]) -> list[Group]:
        """Prepare requests for *free* slots; operations that may not send leave a write instead.

        *out*: those whose request is out.
        """
        await self._sort(now, out)
        # whoever waits for company is to know whether anybody comes
        self.stale = self.stale or self._company.is_blind
        ready: list[Group] = []
        left: set[str] = set()
        sent = claims = 0
        before = len(self.writes)
        looked = False
        # who is due longest goes first, alone or with others: neither can starve behind the other
        while len(ready) < free:
            all_of_them = not self._whole and len(self._company) >= MAX_MORE
            together = self._company.first_due(now, all_of_them=all_of_them)
            if sent < len(self._alone) and (together is None or due_at(self._alone[sent], now) <= together):
                if claims >= MAX_CLAIMS:
                    break
                going: tuple[Operation, ...] = (self._alone[sent],)
                sent += 1
            else:
                size = self._company.next_size(now, all_of_them=all_of_them)
                if together is None or claims + size > MAX_CLAIMS:
                    break
                going = self._company.take(now, all_of_them=all_of_them) or ()
                if not going:
                    break
            looked = looked or bool(going)
            made = [one for one in [await self._one(o, now, left) for o in going] if one is not None]
            groups = grouped(made)
            # what there is no room for stays due
            self.stale = self.stale or len(groups) > free - len(ready)
            ready += groups[: free - len(ready)]
            claims += len(made)
        del self._alone[:sent]
        self._left = left
        self.fruitless = looked and not ready and len(self.writes) == before
        return ready

    def refused(self, ready: Sequence[Ready], now: Moment, draw: float | None) -> None:
        """The claims of one request that were not taken: each waits where a cap was in the way. *draw*: as `soon`."""
        self._prepare.leaves.forget()
        for one in ready:
            if one.claim.concurrency is not None or one.claim.per_minute is not None or one.claim.scopes:
                write = self._prepare.unsent.soon(one.claim.operation, now, draw)
                self.writes.append(write)

    async def _one(self, operation: Operation, now: Moment, left: set[str]) -> Ready | None:
        match await self._prepare.prepare(operation, now):
            case Ready() as one:
                return one
            case Write() as write:
                self.writes.append(write)
            case None:
                left.add(operation.operation_id)
        return None

    async def _sort(self, now: Moment, out: Set[str]) -> None:
        """Lost answers are written off; what can share a request waits for company."""
        for operation in self._new:
            if operation.operation_id in out:
                continue
            if (n := self._lost.pop(operation.operation_id, None)) is not None:
                self.writes.append(self._write_off(operation, n, await self._prepare.policy(operation)))
                self.stale = True
                continue
            alone = self._sharing.goes_alone(operation) or self._company.goes_alone(operation, now)
            found = None if alone else await self._sharing.of(operation, now)
            if found is None:
                self._alone.append(operation)
            else:
                self._company.add(*found, operation, now)
        self._new = []


def grouped(ready: Sequence[Ready]) -> list[Group]:
    """Those that were prepared for one request, by what their leave and secret allow to go together.

    One whose leave is for one call goes alone, and one that asks an origin which is down.
    """
    found: dict[object, list[Ready]] = {}
    for n, one in enumerate(ready):
        session = one.claim.session.session_id if one.claim.session is not None else None
        key: object = (one.claim.origin, one.secret_digest, session) if one.shares else n
        found.setdefault(key, []).append(one)
    return [tuple(group) for group in found.values()]


def numbered(groups: Sequence[Group]) -> list[Group]:
    """The claims of each request of several, with a number of their own."""
    return [
        group
        if len(group) == 1
        else tuple(msgspec.structs.replace(one, claim=msgspec.structs.replace(one.claim, group=n)) for one in group)
        for n, group in enumerate(groups)
    ]
