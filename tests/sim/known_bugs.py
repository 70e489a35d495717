"""Bugs of the code under test that are reported and not yet mended, worked around so that seeds can look for others.

Job: an empty list is the aim. Must not know: anything else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import msgspec

from pollcore import schedule
from pollcore.adapters.store.claims import Claims
from pollcore.controller import Controller
from pollcore.controller.shared import Shared
from pollcore.facts import Moment, Operation, StoreUnusable
from pollcore.grants import asking, effects


@contextlib.contextmanager
def worked_around() -> Iterator[None]:
    """Everything that is known at present."""
    with contextlib.ExitStack() as stack:
        for one in KNOWN:
            stack.enter_context(one())
        yield


@contextlib.contextmanager
def shared_waits_lost_with_a_turn() -> Iterator[None]:
    """F2 (T8, H3, T11): a turn that the store refused loses the cool-downs, denials and origins that were in it."""
    take, turn = Shared.take_new, Controller._turn

    def take_new(self: Shared) -> Any:
        self.given = take(self)  # type: ignore[attr-defined]
        return self.given  # type: ignore[attr-defined]

    async def again(self: Controller) -> None:
        self._shared.given = ((), (), ())  # type: ignore[attr-defined]
        try:
            await turn(self)
        except StoreUnusable:
            shared = self._shared
            cooldowns, origins, denials = shared.given  # type: ignore[attr-defined]
            shared._new_cooldowns = {(c.provider, c.account, c.credential): c for c in cooldowns} | shared._new_cooldowns
            shared._new_origins = {(o.origin, o.account): o for o in origins} | shared._new_origins
            shared._new_denials = {(d.credential, d.origin): d for d in denials} | shared._new_denials
            raise

    with mock.patch.object(Shared, "take_new", take_new), mock.patch.object(Controller, "_turn", again):
        yield


@contextlib.contextmanager
def a_question_plans_anew_by_the_wall() -> Iterator[None]:
    """F6 (T9): a question on a waiting operation works its plan out anew from the wall clock."""

    def raised(operation: Operation, now: Moment, **changes: object) -> Operation:
        before = schedule.reanchor(operation, now)
        after = msgspec.structs.replace(before, **changes, version=operation.version + 1)
        if before.due_boot is not None and not changes.keys() & {"status", "next_poll_at", "hold_until"}:
            return after
        return msgspec.structs.replace(after, due_boot=schedule.due_boot(after, now))

    with mock.patch.object(asking, "raised", raised), mock.patch.object(effects, "raised", raised):
        yield


@contextlib.contextmanager
def useful_until_is_not_in_the_charge() -> Iterator[None]:
    """F7 (B5, O7): the claim looks at the deadline alone."""
    real = Claims._holds

    def holds(self: Claims, claim: Any, fence: Any, charges: int) -> bool:
        useful = claim.operation.useful_until
        return real(self, claim, fence, charges) and (useful is None or useful > self._tx.now.wall)

    with mock.patch.object(Claims, "_holds", holds):
        yield


KNOWN: tuple[Callable[[], AbstractContextManager[None]], ...] = (
    shared_waits_lost_with_a_turn,
    a_question_plans_anew_by_the_wall,
    useful_until_is_not_in_the_charge,
)
