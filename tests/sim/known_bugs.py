"""Bugs of the code under test that are reported and not yet mended, worked around so that seeds can look for others.

Job: an empty list is the aim. Must not know: anything else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from pollcore.controller import Controller
from pollcore.controller.shared import Shared
from pollcore.facts import StoreUnusable


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
            shared._new_cooldowns = {
                (c.provider, c.account, c.credential): c for c in cooldowns
            } | shared._new_cooldowns
            shared._new_origins = {(o.origin, o.account): o for o in origins} | shared._new_origins
            shared._new_denials = {(d.credential, d.origin): d for d in denials} | shared._new_denials
            raise

    with mock.patch.object(Shared, "take_new", take_new), mock.patch.object(Controller, "_turn", again):
        yield


KNOWN: tuple[Callable[[], AbstractContextManager[None]], ...] = (shared_waits_lost_with_a_turn,)
