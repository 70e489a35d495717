"""An agent that asked Prefect in a loop, and the one call that replaces the loop: requests that the server saw."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from pollcore import submit, wait
from pollcore.facts import SECOND
from pollcore.waiting import WaitEnd
from tests.console.real import PROGRAM, environment
from tests.live.counting import Counting, counting
from tests.live.jobs import Prefect, call
from tests.support.servers import JobServer

LOOP_S = 0.5
"""How often the agent asked."""
JOB_S = 20
LIMIT_S = 120


def asked_in_a_loop(base_url: str, job_id: str) -> str:
    """What the agent did before."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        state = call("GET", f"{base_url}/flow_runs/{job_id}")["state"]["type"]
        if state not in ("SCHEDULED", "PENDING", "RUNNING"):
            return str(state)
        time.sleep(LOOP_S)
    raise AssertionError("the run did not end")


async def handed_over(home: Path, job_id: str) -> tuple[str | None, int]:
    """What it does now: the last state, and ms from the provider's answer to the waiter's wake-up."""
    op = await submit("live", job_id, home=home)
    outcome = await wait(op, LIMIT_S, home=home)
    woke = time.time()
    assert outcome.ended is WaitEnd.SUCCEEDED, outcome
    shown = subprocess.run(
        [*PROGRAM, "--home", str(home), "show", op.operation_id, "--json"],
        capture_output=True,
        check=True,
        env=environment(),
    )
    answered = datetime.fromisoformat(json.loads(shown.stdout)["last_http"]["at"])
    return outcome.operation.last_known_state, round((woke - answered.timestamp()) * SECOND)


@pytest.mark.slow
@pytest.mark.server("prefect")
@pytest.mark.rule("S3", "T1", "O4")
def test_one_call_asks_the_server_a_fraction_of_what_the_loop_asked(
    tmp_path: Path, job_server: Callable[[str], JobServer], record_property: Callable[[str, object], None]
) -> None:
    server = job_server("prefect")
    jobs = Prefect(server)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    with counting(server.url) as (proxy, base_url):
        (home / "config.toml").write_text(
            f'[providers.live]\ncontract = "prefect"\nbase_url = "{base_url}"\n[audit]\nkey_file = "reading.key"\n'
        )
        core = subprocess.Popen(
            [*PROGRAM, "--home", str(home), "run"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(),
        )  # fmt: skip
        try:
            before = in_a_loop(jobs, proxy, base_url)
            job_id = jobs.lasting(JOB_S)
            state, late_ms = asyncio.run(handed_over(home, job_id))
        finally:
            core.terminate()
            core.wait(LIMIT_S)
        after = proxy.asked_for(job_id)
    assert state == jobs.state_of_success
    # under load each look of the loop takes longer, and it looks less often
    assert 1 <= after * 2 < before, (before, after)
    record_property("requests in a loop", before)
    record_property("requests after one call", after)
    record_property("ms from answer to wake-up", late_ms)
    sys.stderr.write(f"\nrequests: loop {before}, one call {after}; from answer to wake-up {late_ms} ms\n")


def in_a_loop(jobs: Prefect, proxy: Counting, base_url: str) -> int:
    """Requests that the server saw of the loop."""
    job_id = jobs.lasting(JOB_S)
    assert asked_in_a_loop(base_url, job_id) == jobs.state_of_success
    return proxy.asked_for(job_id)
