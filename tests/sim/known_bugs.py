"""Bugs of the code under test that are reported and not yet mended, worked around so that seeds can look for others.

Job: an empty list is the aim. Must not know: anything else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from pollcore.adapters.store.writes import SUPERSEDED, Batch


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


KNOWN = (question_outlives_the_end,)
