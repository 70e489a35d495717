"""`from pollcore import submit, wait, watch`: beside a core in another process, and without one."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import pollcore
from pollcore import client
from pollcore.facts import NotFound, Refused, Status
from pollcore.waiting import WaitEnd
from tests.console.real import LIMIT_S, ROOT, Provider, environment

WAITERS = 100


def example() -> str:
    """The first block of Python on the page for agents."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "agents.md").read_text("utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.slow
@pytest.mark.rule("S3", "O4")
def test_the_example_of_the_page_runs_as_it_stands(running: Path, provider: Provider) -> None:
    provider.states["good-7"] = "succeeded"
    code = example()
    assert len([line for line in code.splitlines() if line.strip()]) <= 12
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        timeout=LIMIT_S,
        env={**environment(), "POLLCONSOLE_HOME": str(running)},
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().splitlines()[-1].startswith("succeeded Take the one action")


@pytest.mark.slow
@pytest.mark.rule("O4", "S3", "K6")
async def test_a_hundred_waiters_beside_a_running_core_end_together_and_share_one_store(
    running: Path, provider: Provider
) -> None:
    threads = threading.active_count()
    op = await pollcore.submit("lab", "good-1", operation_id="mine", caller="test", home=running)
    waits = [asyncio.create_task(pollcore.wait(op, timedelta(seconds=60), home=running)) for _ in range(WAITERS)]
    seen = []

    async def look() -> None:
        async for view in pollcore.watch(op, home=running):
            seen.append(view)
            assert threading.active_count() - threads < 20
            if view.status_requests_used:
                provider.states["good-1"] = "succeeded"

    async with asyncio.timeout(60):
        await look()
        outcomes = await asyncio.gather(*waits)
    assert {one.ended for one in outcomes} == {WaitEnd.SUCCEEDED}
    assert outcomes[0].succeeded
    assert outcomes[0].exit_code == 0
    result = outcomes[0].operation.result
    assert result is not None
    assert "presigned" not in repr(outcomes[0])
    assert seen[0].status is Status.WAITING
    assert seen[-1].is_end
    used = [view.status_requests_used for view in seen]
    assert used == sorted(used)
    assert [file.name for file in (running / "workers").iterdir() if not file.name.startswith("run-")] == []


@pytest.mark.slow
@pytest.mark.rule("O8", "S3")
async def test_without_a_core_the_wait_says_so_and_nothing_is_asked(home: Path, provider: Provider) -> None:
    op = await client.submit("lab", "lone-1", home=home)
    outcome = await client.wait(op, 0.2, home=home)
    assert (outcome.ended, outcome.exit_code) == (WaitEnd.NO_CORE, 15)
    assert "pollconsole run" in outcome.next
    assert provider.asked == []
    again = await client.submit("lab", "lone-1", operation_id=op.operation_id, home=home)
    assert again.existed


@pytest.mark.rule("B1", "S7")
async def test_what_is_refused_says_what_and_the_way_out(home: Path) -> None:
    op = await client.submit("lab", "j-1", operation_id="night-1", home=home)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"deadline": datetime(2027, 1, 1)}, "zone"),
        ({"deadline": timedelta(0)}, "longer than 0"),
        ({"deadline": float("nan")}, "longer than"),
        ({"deadline": timedelta(days=30)}, "limits.max.deadline"),
        ({"max_requests": True}, "whole number"),
        ({"max_requests": 10_000}, "limits.max"),
        ({"label": "a\x1b[2J"}, "control character"),
        ({"params": {"x": [1]}}, "params"),
    ]
    for terms, said in wrong:
        with pytest.raises(Refused, match=re.escape(said)):
            await client.submit("lab", "j-2", home=home, **terms)
    with pytest.raises(Refused, match="night-1") as twice:
        await client.submit("lab", "j-1", home=home)
    assert twice.value.code == "duplicate_job"
    with pytest.raises(NotFound, match="did you mean night-1"):
        await client.wait("night-2", 0, home=home)
    with pytest.raises(Refused, match="await the function"):
        client.wait_sync(op, home=home)


async def test_a_wait_on_a_home_that_does_not_exist_makes_none(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        await client.wait("op-1", 0, home=tmp_path / "none")
    assert refused.value.code == "no_home"
    assert not (tmp_path / "none").exists()


@pytest.mark.rule("O8")
def test_the_twins_without_an_event_loop_do_the_same(home: Path) -> None:
    soon = datetime.now(UTC) + timedelta(minutes=20)
    op = client.submit_sync("lab", "j-9", deadline=soon, useful_until=soon, home=home)
    assert abs((op.deadline_at - soon).total_seconds()) < 1
    assert client.wait_sync(op.operation_id, 0, home=home).ended is WaitEnd.NO_CORE


@pytest.mark.rule("K6", "G5")
def test_the_client_has_no_name_that_grants_or_reads_a_secret() -> None:
    names = {name for name in (*dir(client.Client), *pollcore.__all__) if not name.startswith("_")}
    assert names == {"submit", "get", "wait", "watch", "Client", "submit_sync", "wait_sync"}
    fields = set(client.OperationView.__struct_fields__) | set(client.Result.__struct_fields__)
    assert not [name for name in fields if "credential" in name or "secret" in name or "key" in name]
