"""A change of a record that others write meanwhile: made again on the fresh record until it is taken.

Job: the one loop around a conditional write. Must not know: what is changed.
Source: spec O7.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from pollcore.actions.desk import Desk
from pollcore.facts import Stale
from pollcore.ports import Write

T = TypeVar("T")


async def until_taken(desk: Desk, tries: int, make: Callable[[], Awaitable[tuple[Write, T]]]) -> T:
    """Commit the write that *make* gives, made anew each time, and return what it gives beside it.

    Raises Stale after *tries*, and whatever *make* raises.
    """
    for attempt in range(tries):
        write, made = await make()
        try:
            await desk.store.commit(desk.clock.now(), (write,))
        except Stale:
            if attempt == tries - 1:
                raise
            continue
        return made
    raise AssertionError("unreachable: the last try returns or raises")
