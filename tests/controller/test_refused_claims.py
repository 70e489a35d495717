"""A store that refuses every claim, and nothing else (an audit alarm): what is said of it stands until one is taken."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pollcore.facts import SECOND, StoreUnusable
from tests.controller.bank import RUNNING
from tests.controller.house import LIMIT_S, house, until
from tests.controller.test_life_of_the_loop import started


class Alarmed:
    """A store that looks, beats and writes, and takes no claim while *alarmed*."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.alarmed = True
        self.refused = 0
        self.said: list[str | None] = []
        """Why nothing is sent, as the controller says it before each turn."""
        self.controller: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def turn(self, turn: Any) -> Any:
        if self.controller is not None:
            self.said.append(self.controller.health)
        if turn.claims and self.alarmed:
            self.refused += 1
            raise StoreUnusable("nothing is sent and nothing is granted: its anchor is gone")
        return await self._store.turn(turn)


@pytest.mark.rule("O6", "A4")
async def test_while_every_claim_is_refused_nobody_is_told_that_polling_goes_on(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING)
        await h.submit("job-2", RUNNING)
        store: Any = Alarmed(h.core.store)
        h.core.store, stop = store, asyncio.Event()
        with h.worker() as controller:
            store.controller = controller
            h.clock.jump(11 * SECOND)
            running = await started(h, controller, stop)
            await until(lambda: store.refused >= 4, "it was tried again")
            first = next(n for n, said in enumerate(store.said) if said is not None)
            assert set(store.said[first:]) == {"nothing is sent and nothing is granted: its anchor is gone"}
            assert len(store.said) - first > store.refused, "looks and beats came between"
            assert h.bank.status_seen == []
            store.alarmed = False
            await until(lambda: len(h.bank.status_seen) >= 2, "it goes on")
            await until(lambda: controller.health is None, "it says so")
            stop.set()
            await asyncio.wait_for(running, LIMIT_S)


@pytest.mark.rule("O6")
async def test_what_was_said_ends_when_nothing_wants_to_be_sent_any_more(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        op = await h.submit("job-1", RUNNING)
        store: Any = Alarmed(h.core.store)
        h.core.store, stop = store, asyncio.Event()
        with h.worker() as controller:
            store.controller = controller
            h.clock.jump(11 * SECOND)
            running = await started(h, controller, stop)
            await until(lambda: store.refused >= 1 and controller.health is not None, "it is told")
            await until(lambda: controller.health is None, "the deadline ended the wait")
            stop.set()
            await asyncio.wait_for(running, LIMIT_S)
        assert (await h.op()).stop_reason is not None
        assert op.deadline_at <= h.clock.now().wall
