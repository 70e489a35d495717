"""What killed processes and failing statements brought to light, each as small as it can be told."""

from __future__ import annotations

import asyncio
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from pollcore.actions import SubmitSpec
from pollcore.adapters.keyring_store import MemoryBackend
from pollcore.adapters.system import SystemClock
from pollcore.assembly import Core, open_core
from pollcore.assembly import parts as assembled
from pollcore.facts import Operation, Status
from tests.adapters.store.failing import error
from tests.processes.herd import PROGRAM, environment, lay_out
from tests.processes.provider import CountingProvider
from tests.processes.scenario import Inline, Play, spec

LIMIT_S = 60
LONG_MS = 2_000
"""Longer than any wait for a poll of these jobs."""


def job() -> SubmitSpec:
    return SubmitSpec(provider="lab", job_id="job-1", operation_id="op-1", account="one", deadline_ms=60_000)


async def until(core: Core, condition: Any) -> Operation | None:
    """The operation once *condition* holds for it; None after LIMIT_S."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        o = await core.store.operation("op-1")
        if o is not None and condition(o):
            return o
        await asyncio.sleep(0.02)
    return None


@pytest.mark.rule("S9", "O1")
async def test_an_answer_to_a_record_that_moved_meanwhile_is_recorded_before_the_worker_ends(tmp_path: Path) -> None:
    with CountingProvider({"job-1": ["ok"]}) as provider:
        provider.hold_s["job-1"] = 0.8
        lay_out(tmp_path / "home", provider.url)
        async with open_core(tmp_path / "home", kind="run", backend=MemoryBackend()) as core:
            await core.actions.submit(job())
            stop = asyncio.Event()
            running = asyncio.create_task(core.controller().run(stop))
            assert await until(core, lambda o: provider.seen["job-1"] == 1)
            await core.actions.open_question("op-1", core.actions.operator())
            stop.set()
            report = await running
            after = await core.store.operation("op-1")
    assert after is not None
    assert (report.sent, report.recorded, after.status) == (1, 1, Status.SUCCEEDED)


class OnceBroken:
    """A connection whose first statement fails."""

    def __init__(self, conn: Any) -> None:
        self._conn = conn
        self.broken = False

    def execute(self, *asked: Any) -> Any:
        if not self.broken:
            self.broken = True
            raise error("SQLITE_IOERR_READ")
        return self._conn.execute(*asked)

    def close(self) -> None:
        self._conn.close()


class OnlyWoken(SystemClock):
    """Long waits end when something is seen, never by themselves: no heartbeat hides that the watch has ended."""

    async def wait(self, event: asyncio.Event, ms: int) -> None:
        if ms < LONG_MS:
            await super().wait(event, ms)
        else:
            await event.wait()


@pytest.mark.rule("O4", "O6")
async def test_a_read_error_does_not_end_the_watch_for_what_others_write(tmp_path: Path) -> None:
    with CountingProvider({"job-1": ["ok"]}) as provider:
        home = tmp_path / "home"
        lay_out(home, provider.url)
        backend = MemoryBackend()
        async with open_core(home, kind="run", backend=backend, clock=OnlyWoken()) as core:
            stop = asyncio.Event()
            running = asyncio.create_task(core.controller().run(stop))

            def break_it(reader: Any) -> OnceBroken:
                reader.feed = OnceBroken(reader.feed)
                return reader.feed

            feed = await asyncio.wrap_future(core.store._reader.call(break_it))
            async with asyncio.timeout(LIMIT_S):
                while not feed.broken:
                    await asyncio.sleep(0.02)
            async with open_core(home, kind="cli", backend=backend) as other:
                await other.actions.submit(job())
            ended = await until(core, lambda o: o.status is Status.SUCCEEDED)
            stop.set()
            await running
    assert ended is not None


@pytest.mark.rule("O6")
async def test_a_read_error_does_not_end_a_run_until_idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembled, "ThreadedStore", Inline)
    lay_out(tmp_path / "home", "http://127.0.0.1:9")
    play = Play(tmp_path / "home")
    left = ["SQLITE_IOERR_READ"]
    async with play.core() as core:
        play.wrap(core, lambda n, sql: left.pop() if left and sql.startswith("SELECT status, count(*)") else None)
        await play.poll(core)
        play.unwrap(core)
    assert left == []
    assert play.died == []


@pytest.mark.rule("O6")
async def test_a_rollback_that_failed_does_not_block_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembled, "ThreadedStore", Inline)
    lay_out(tmp_path / "home", "http://127.0.0.1:9")
    play = Play(tmp_path / "home")
    left = ["SQLITE_BUSY"]
    async with play.core() as core:
        await core.actions.submit(spec("patient"))
        play.wrap(core, lambda n, sql: left.pop() if left and sql == "ROLLBACK" else None)
        await play.poll(core)
        play.unwrap(core)
    assert left == []
    assert not any("within a transaction" in text for text in play.told)


@pytest.mark.rule("O6", "A4")
def test_a_start_that_was_killed_while_it_wrote_the_key_file_does_not_spoil_the_home(tmp_path: Path) -> None:
    """The file as a kill between its creation and its first byte leaves it; no public key was stored yet."""
    home = tmp_path / "home"
    lay_out(home, "http://127.0.0.1:9")
    kill = (
        "import os, signal, sys; from pathlib import Path; real = os.write\n"
        "from pollcore.adapters import reading_key\n"
        "class Dies:\n"
        "    def __call__(self, *a, **k): os.kill(os.getpid(), signal.SIGKILL)\n"
        "os.fdopen = Dies()\n"
        f"reading_key.write_key_file(Path({str(home / 'reading.key')!r}), 'text')\n"
    )
    killed = subprocess.run([PROGRAM[0], "-c", kill], env=environment(), timeout=LIMIT_S, check=False)
    assert killed.returncode == -9
    again = subprocess.run(
        [*PROGRAM, "run", "--home", str(home), "--until-idle"],
        env=environment(),
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (again.returncode, b"cannot be used" in again.stderr) == (0, False)
