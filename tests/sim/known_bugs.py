"""Bugs of the code under test that are reported and not yet mended, worked around so that seeds can look for others.

Job: an empty list is the aim. Must not know: anything else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from unittest import mock

import msgspec

from pollcore import schedule
from pollcore.facts import Moment, Operation
from pollcore.grants import asking, effects


@contextlib.contextmanager
def worked_around() -> Iterator[None]:
    """Everything that is known at present."""
    with contextlib.ExitStack() as stack:
        for one in KNOWN:
            stack.enter_context(one())
        yield


@contextlib.contextmanager
def a_grant_is_stopped_at_the_old_deadline() -> Iterator[None]:
    """F8 (E4): the plan counts as unchanged although the limits moved."""

    def raised(operation: Operation, now: Moment, **changes: object) -> Operation:
        before = operation if operation.status.is_end else schedule.reanchor(operation, now)
        after: Operation = msgspec.structs.replace(before, **changes, version=operation.version + 1)
        if before.due_boot is not None and not changes.keys() & {"status", "next_poll_at", "hold_until"}:
            return after
        return msgspec.structs.replace(after, due_boot=schedule.due_boot(after, now))

    with mock.patch.object(asking, "raised", raised), mock.patch.object(effects, "raised", raised):
        yield


KNOWN: tuple[Callable[[], AbstractContextManager[None]], ...] = (a_grant_is_stopped_at_the_old_deadline,)
