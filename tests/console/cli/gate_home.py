"""Shared by the tests of the gate at the real command line: commands in processes, a core to furnish a home with."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pollcore.adapters.keyring_store import MemoryBackend
from pollcore.assembly import Core, open_core

LIMIT_S = 60
ACTION_CONTRACT = """
schema = 1
name = "mine"
origins = ["URL"]
[credential]
kind = "none"
[status]
url = "URL/jobs/{job_id}?sig=SIGNATURE"
observation = "action"
[state]
value = "body.status"
[states]
waiting = ["running"]
succeeded = ["succeeded"]
[schedule]
base_delay = "1s"
[limits]
deadline_basis = "decide-by: the hour"
[limits.default]
deadline = "40m"
max_status_requests = 12
max_transport_failures = 3
max_rate_limited = 3
[limits.max]
deadline = "8h"
max_status_requests = 200
max_transport_failures = 3
max_rate_limited = 3
"""
"""Every request asks; URL stands for the provider's origin."""


def run(home: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """One command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "pollconsole", *argv, "--home", str(home)],
        capture_output=True, text=True, timeout=LIMIT_S, env={**os.environ, "POLLCONSOLE_HOME": ""}, check=False,
    )  # fmt: skip


def document(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def with_core(home: Path, job: Callable[[Core], Awaitable[Any]]) -> Any:
    async def body() -> Any:
        async with open_core(home, kind="run", backend=MemoryBackend()) as core:
            return await job(core)

    return asyncio.run(body())
