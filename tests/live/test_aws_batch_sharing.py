"""AWS Batch under the shipped contract, against moto: several jobs in one signed DescribeJobs, each ends as its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from pollcore.actions import SubmitSpec
from pollcore.adapters.store.library import sqlite3
from pollcore.assembly import Core
from pollcore.facts import EventName, Status
from tests.live import aws
from tests.live.aws_world import Get, handed_over, with_core
from tests.live.test_real_servers import is_over, settled

pytestmark = [pytest.mark.slow, pytest.mark.server("moto")]
JOBS = 8


def counts(home: Path) -> tuple[int, int]:
    """Requests that left, and charges."""
    (path,) = home.glob("*.db")
    conn = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        found = conn.execute("SELECT (SELECT count(*) FROM request), (SELECT count(*) FROM intent)").fetchone()
        return int(found[0]), int(found[1])
    finally:
        conn.close()


async def submitted(core: Core, job_id: str) -> str:
    """One more wait under the contract whose first use an operator decided."""
    spec = SubmitSpec(provider="live", job_id=job_id, params={"region": aws.REGION})
    return (await core.actions.submit(spec)).operation.operation_id


@pytest.mark.rule("B2", "S6", "S9", "K5")
async def test_jobs_of_aws_batch_share_requests_and_each_ends_as_its_own_entry_says(
    tmp_path: Path, job_server: Get
) -> None:
    job = aws.Jobs(job_server("moto"), "slow")
    home = tmp_path / "home"

    async def body(core: Core) -> None:
        names = [(await handed_over(core, job.start("failing"), job)).operation_id]
        names += [await submitted(core, job.start("failing")["jobId"]) for _ in range(JOBS - 1)]
        # moto knows no such job, and leaves it out of its list
        unknown = await submitted(core, job.unknown)
        for name in names:
            ended = await settled(core, name, is_over)
            assert (ended.status, ended.last_known_state) == (Status.FAILED, "FAILED")
        lost = await settled(core, unknown, is_over)
        assert (lost.status, lost.stop_detail) == (Status.ESCALATED, "not_found")
        told = [event for _, event in await core.store.events() if event.event is EventName.POLLED]
        assert any(note.startswith("one request with ") for event in told for note in event.notes)
        requests, charges = counts(home)
        assert requests < charges / 2

    await with_core(home, job, body)
