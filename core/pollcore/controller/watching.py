"""Another process wrote something: the loop looks.

Job: wait for changes of the store, over its failures. Must not know: what is looked at.
Source: spec O4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from pollcore.facts import StoreUnusable
from pollcore.ports import Store

WAIT_S: Final = 15.0
"""The longest wait for a change in one piece."""
RETRY_S: Final = 0.5
"""Pause before a store that cannot be read is watched again."""


async def wake_on(stop: asyncio.Event, woken: asyncio.Event) -> None:
    """A loop that sleeps sees at once that it is to end."""
    await stop.wait()
    woken.set()


async def watch_store(store: Store, saw: Callable[[int], int]) -> None:
    """Tell *saw* every change; it returns the newest that is known. Never ends by itself."""
    known = saw(0)
    while True:
        try:
            known = saw(await store.wait_for_change(known, WAIT_S))
        except StoreUnusable:
            # the loop itself tells of it; a store that reads again is watched again
            await asyncio.sleep(RETRY_S)
            known = saw(0)
