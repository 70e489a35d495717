"""Archiving operations that shared a request: its row stays until the last of them leaves, and the books add up."""

from __future__ import annotations

from pathlib import Path

import pytest

from pollcore.adapters.audit_epochs import rotate
from pollcore.chain.findings import Verdict
from pollcore.facts import DAY, HOUR, Status
from tests.audit.test_archive import archive, proved
from tests.controller.bank import DONE, RUNNING
from tests.controller.batch_house import registry, rows, shared_house

REQUESTS = "SELECT count(*) FROM request"
ORPHANS = "SELECT count(*) FROM intent WHERE request NOT IN (SELECT id FROM request)"


@pytest.mark.rule("A3", "B2", "O6", "S7")
async def test_a_request_stays_until_the_last_operation_that_it_was_for_leaves(tmp_path: Path) -> None:
    long = ('deadline = "40m"\nmax_status_requests = 12', 'deadline = "480h"\nmax_status_requests = 12')
    more = (
        long,
        ('deadline = "8h"', 'deadline = "480h"'),
        ('base_delay = "10s"', 'base_delay = "10s"\nfirst_delay = "10s"'),
    )
    async with shared_house(tmp_path, *more) as h:
        await h.submit("short", DONE)
        await h.submit("long", RUNNING, RUNNING, DONE)
        while len(registry(h).asked) < 2:
            await h.run(500)
        await h.run(100)
        assert sorted(registry(h).asked[0]) == ["long", "short"]
        assert (await h.op("op-short")).status is Status.SUCCEEDED
        assert registry(h).asked[1:] == [("long",)]
        await rotate(h.core.audit, h.core.store, h.clock.now(), "test")
        h.clock.jump(10 * DAY)
        left = await archive(h)
        assert left.operations == 1
        assert rows(h, REQUESTS) == [(2,)]
        assert rows(h, ORPHANS) == [(0,)]
        assert list(await h.core.store.check()) == []
        await h.run(2 * HOUR)
        assert (await h.op("op-long")).status is Status.SUCCEEDED
        await h.submit("newest", DONE)
        await h.run(2 * HOUR)
        await rotate(h.core.audit, h.core.store, h.clock.now(), "test")
        h.clock.jump(10 * DAY)
        await h.submit("today", RUNNING)
        last = await archive(h)
        assert rows(h, "SELECT count(*) FROM archived") == [(3,)]
        # the newest of all requests stays alone: the next one is numbered behind it
        assert rows(h, REQUESTS) == [(1,)]
        assert list(await h.core.store.check()) == []
        files = [Path(one.file) for one in (left, last) if one.file is not None]
        assert len(files) == 2
        assert proved(h, *files).verdict in (Verdict.INTACT, Verdict.TAIL)


@pytest.mark.rule("A3", "O6")
async def test_operations_of_one_request_that_leave_together_take_it_with_them(tmp_path: Path) -> None:
    async with shared_house(tmp_path) as h:
        for name in ("a", "b", "c"):
            await h.submit(name, RUNNING, DONE)
        await h.run()
        await rotate(h.core.audit, h.core.store, h.clock.now(), "test")
        h.clock.jump(10 * DAY)
        await h.submit("today", RUNNING)
        assert rows(h, REQUESTS) == [(2,)]
        assert (await archive(h)).operations == 3
        assert rows(h, REQUESTS) == [(1,)]
        assert rows(h, "SELECT charges, requests FROM archive") == [(6, 1)]
        assert list(await h.core.store.check()) == []
