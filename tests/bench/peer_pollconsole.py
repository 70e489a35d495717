#!/usr/bin/env python3
"""Durable polling with full records: the pollconsole core on a home in --workdir. Requirements: the project itself.

--jobs operations are submitted before the clock starts (a bare loop submits nothing either); then one controller polls
them until nothing waits. The server answers `Retry-After: 0` and the contract's `min_delay` is zero, so every answer
makes the next request due at once: what is measured is what a poll costs, not how long it waits. --plain leaves the
sealed audit chain out.
"""

import asyncio
import sys
from pathlib import Path

from _common import Meter, args_for, job_ids, run_async, versions
from pollcore.actions import SubmitSpec
from pollcore.adapters.audit_plain import PlainAudit
from pollcore.adapters.keyring_store import MemoryBackend
from pollcore.assembly import open_core
from pollcore.facts import Status
from pollcore.ports import Filter

CONTRACT = """
schema = 1
name = "bench"
title = "bench job server"
sources = ["tests/bench/job_server.py"]
tested_live = "this job server"
requires_base_url = true
[credential]
kind = "none"
[status]
url = "{base_url}/jobs/{job_id}"
observation = "read_only"
evidence = "the bench server counts and answers"
[state]
value = "body.status"
[states]
waiting = ["running"]
succeeded = ["succeeded"]
[identity]
job_id = "body.id"
[request_id]
header = "x-request-id"
[[success.requires]]
path = "body.result_url"
format = "url"
[schedule]
base_delay = "100ms"
min_delay = "0s"
first_delay = "0s"
[limits]
deadline_basis = "a benchmark ends"
[limits.default]
deadline = "1h"
max_status_requests = 1000
max_transport_failures = 10
max_rate_limited = 10
"""


async def main(a):
    home = Path(a.workdir) / "home"
    if not a.resume:
        (home / "providers").mkdir(parents=True, mode=0o700)
        (home / "providers/bench.toml").write_text(CONTRACT)
        (home / "config.toml").write_text(
            f'[audit]\nkey_file = "reading.key"\n[providers.bench-1]\ncontract = "bench"\nbase_url = "{a.base_url}"\n'
        )
    more = {"audit": PlainAudit()} if a.plain else {}
    options = {"kind": "run", "backend": MemoryBackend(), "slots": a.slots, **more}
    if not a.resume:
        async with open_core(home, **options) as core:
            for job in job_ids(a.jobs):
                await core.actions.submit(SubmitSpec(provider="bench-1", job_id=job))
    # opened anew, so that the submissions' write-ahead log is no part of what the polls are said to store
    async with open_core(home, **options) as core:
        m = Meter("pollconsole", a)
        m.start()
        controller = core.controller()
        report = await controller.run(asyncio.Event(), until_idle=True)
        m.stop()
        found = await core.store.operations(Filter(limit=1_000_000))
        wrong = await core.store.check()
    m.report(
        sum(o.status_requests_used for o in found),
        durable=a.workdir,
        succeeded=sum(o.status is Status.SUCCEEDED for o in found),
        turns=report.turns,
        wrong=list(wrong),
        versions=versions("httpx", "httpcore", "h11"),
    )


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "core"))
    a = args_for("peer_pollconsole", 32, slots=100, plain=False)
    run_async(main(a), a.uvloop)
