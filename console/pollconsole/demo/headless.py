"""A demo without a screen: poll for some time, then look.

Job: what the console's core thread does, in as many lines as that needs. Must not know: what the looker looks for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from pollconsole import bridge
from pollconsole.demo.setup import DemoSetup, start

T = TypeVar("T")

LOOK_S: Final = 0.2
"""Real time between two looks at whether it is enough."""

Look = Callable[[DemoSetup, "bridge.Core"], Awaitable[T]]


async def run_headless(seconds: float, look: Look[T], until: Look[bool] | None = None, **options: Any) -> T:
    """Poll a new demo for *seconds* of real time, or until *until* holds; end polling; return what *look* finds.

    Args:
        look: Is given the demo and its core, after the last answer was recorded and before the home is removed.
        options: As for `start`.

    Raises what `start`, *look* and *until* raise.
    """
    return await asyncio.to_thread(_run, seconds, look, until, options)


def _run(seconds: float, look: Look[T], until: Look[bool] | None, options: dict[str, Any]) -> T:
    with start(**options) as setup:

        async def job(core: bridge.Core) -> T:
            return await _poll(setup, core, seconds, look, until)

        return bridge.with_core(setup.home, job, kind="demo", **setup.overrides)


async def _poll(setup: DemoSetup, core: bridge.Core, seconds: float, look: Look[T], until: Look[bool] | None) -> T:
    stop = asyncio.Event()
    polling = asyncio.create_task(core.controller().run(stop))
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    try:
        while loop.time() < end and not polling.done():
            if until is not None and await until(setup, core):
                break
            await asyncio.sleep(LOOK_S)
    finally:
        stop.set()
        await polling
    return await look(setup, core)
