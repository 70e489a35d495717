"""Bugs of the code under test that are reported and not yet mended, worked around so that seeds can look for others.

Job: an empty list is the aim. Must not know: anything else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from pollcore.adapters.store.turns import SqliteTurns
from pollcore.adapters.store.writes import SUPERSEDED, Batch
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
def question_outlives_the_end() -> Iterator[None]:
    """F1 (E7): an operation ends while an operator's or agent's question is open, and the question stays open."""
    real = Batch.take

    def take(self: Batch, write: Any, *, release: bool, supersede: bool) -> int:
        change = real(self, write, release=release, supersede=supersede)
        if supersede and write.after.status.is_end and write.open_question is None:
            op = self._fences[write.after.operation_id].op
            self._tx.conn.execute(
                "UPDATE escalation SET decided_at=?, decision=? WHERE operation=? AND decided_at IS NULL",
                (self._tx.now.wall, SUPERSEDED, op),
            )
        return change

    with mock.patch.object(Batch, "take", take):
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
def live_answer_declared_lost() -> Iterator[None]:
    """F4 (S9, O2): a lease that was renewed since it was found dead is written off all the same."""
    real = SqliteTurns._write

    def write(self: SqliteTurns, tx: Any, turn: Any, held: Any) -> Any:
        refusal = Batch.refusal

        def refused(batch: Batch, one: Any) -> str | None:
            why = refusal(batch, one)
            if why is None and one.stored is not None and one.fence_epoch is None:
                fence = held[one.after.operation_id]
                if not self.watch.is_dead(fence.op, fence.epoch, fence.renewed):
                    return f"lease {fence.epoch} is alive"
            return why

        with mock.patch.object(Batch, "refusal", refused):
            return real(self, tx, turn, held)

    with mock.patch.object(SqliteTurns, "_write", write):
        yield


KNOWN = (question_outlives_the_end, shared_waits_lost_with_a_turn, live_answer_declared_lost)
