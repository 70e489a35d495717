"""A hint that was refused for the one who asked teaches nobody else anything (T4); one that holds does (T8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pollcore.facts import SECOND, EventName, Status, StopReason
from tests.controller.bank import DONE, refuses
from tests.controller.batch_house import shared_house
from tests.controller.house import house

HINT = (
    '[schedule]\nbase_delay = "10s"',
    '[[hints]]\nname = "poll_after"\npath = "body.poll_after"\nunit = "seconds"\n[schedule]\nbase_delay = "10s"',
)
CAPPED = (HINT[0], HINT[1] + '\nmax_hint = "60s"')


@pytest.mark.rule("T4", "T8")
@pytest.mark.parametrize("status", [429, 503])
async def test_a_hint_beyond_the_deadline_is_refused_and_cools_nobody_down(status: int, tmp_path: Path) -> None:
    async with house(tmp_path, HINT) as h:
        await h.submit("job-1", refuses(status, poll_after=7200), DONE, credential="key")
        await h.submit("job-2", DONE, credential="key", deadline_ms=8 * 3600 * SECOND)
        await h.run()
        one, two = await h.op("op-job-1"), await h.op("op-job-2")
        assert (one.status, one.stop_reason, one.status_requests_used) == (Status.SUCCEEDED, None, 2)
        assert two.status is Status.SUCCEEDED
        (told,) = [e for e in await h.events(operation_id="op-job-1") if any("hint_invalid" in n for n in e.notes)]
        assert any("beyond the deadline" in note for note in told.notes)
        assert h.bank.job("job-2")[0].boot - h.bank.job("job-1")[0].boot < 60 * SECOND
        assert await h.events(EventName.ESCALATED) == []


@pytest.mark.rule("T4", "T8")
async def test_a_hint_beyond_the_contracts_cap_cools_nobody_down(tmp_path: Path) -> None:
    async with house(tmp_path, CAPPED) as h:
        await h.submit("job-1", refuses(503, poll_after=600), DONE, credential="key")
        await h.submit("job-2", DONE, credential="key")
        await h.run()
        first, second = h.bank.job("job-1")
        assert second.boot - first.boot <= 10 * SECOND
        assert (await h.op("op-job-2")).status is Status.SUCCEEDED


@pytest.mark.rule("T8", "T4")
async def test_a_hint_that_holds_cools_the_account_down_and_a_retry_after_needs_no_room(tmp_path: Path) -> None:
    async with house(tmp_path, HINT) as h:
        await h.submit("job-1", refuses(503, poll_after=300), DONE, credential="key")
        await h.submit("job-2", refuses(503, {"Retry-After": "7200"}), credential="other")
        await h.credential("other")
        await h.submit("job-3", DONE, credential="key", deadline_ms=20 * 60 * SECOND)
        h.clock.jump(11 * SECOND)
        await h.run()
        at = h.bank.job("job-1")[0].boot
        assert h.bank.job("job-1")[1].boot - at >= 300 * SECOND
        assert all(abs(seen.boot - at) < 2 * SECOND or seen.boot - at >= 300 * SECOND for seen in h.bank.job("job-3"))
        assert (await h.op("op-job-2")).stop_reason is StopReason.GUIDANCE_BEYOND_DEADLINE


@pytest.mark.rule("T8", "T4")
@pytest.mark.parametrize(("short", "long"), [("job-1", "job-2"), ("job-2", "job-1")])
async def test_of_those_that_share_a_request_one_for_whom_the_hint_holds_is_enough(
    short: str, long: str, tmp_path: Path
) -> None:
    async with shared_house(tmp_path, HINT) as h:
        bank: Any = h.bank
        bank.whole = lambda _: refuses(503, poll_after=3600) if len(bank.status_seen) == 1 else None
        for job in ("job-1", "job-2"):
            limit = {"deadline_ms": 8 * 3600 * SECOND} if job == long else {}
            await h.submit(job, DONE, credential="key", **limit)
        await h.run()
        first = bank.status_seen[0].boot
        assert sorted(bank.asked[0]) == ["job-1", "job-2"]
        assert [seen.boot - first >= 3600 * SECOND for seen in h.bank.status_seen[1:]] == [True]
        assert (await h.op(f"op-{short}")).stop_reason is StopReason.GUIDANCE_BEYOND_DEADLINE
        assert (await h.op(f"op-{long}")).status is Status.SUCCEEDED
