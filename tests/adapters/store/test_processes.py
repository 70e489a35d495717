"""Several real processes on one file, one of them killed in the middle: never a request too many, no law broken."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.store import claimer
from tests.adapters.store.builders import NoAudit, Seal, submit
from tests.adapters.store.laws import broken

from pollcore.adapters import places
from pollcore.adapters.store import InlineStore, ThreadedStore
from pollcore.facts import Status
from pollcore.ports import Filter

ROOT = Path(__file__).resolve().parents[3]
OPERATIONS = 4
BUDGET = 60
SECONDS = 90
LIMIT_S = 120


def start(home: Path, owner: str, seconds: float = SECONDS) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "core")])
    command = [sys.executable, "-m", "tests.adapters.store.claimer", str(home), owner, str(seconds)]
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


async def prepared(tmp_path: Path) -> places.Places:
    home = places.prepare(places.find(str(tmp_path / "home")))
    store = InlineStore(Seal(), NoAudit(), str(home.database))
    now = claimer.now()
    for k in range(OPERATIONS):
        await submit(store, f"op-{k}", now, max_status_requests=BUDGET)
    await store.close()
    return home


def sent(*outputs: str) -> Counter[str]:
    """What each operation was pretended to be sent, as the processes said it before the send."""
    lines = [line.split() for text in outputs for line in text.splitlines()]
    return Counter(line[0] for line in lines for _ in line[1:])


@pytest.mark.rule("B2", "B3", "O2", "O4", "O6")
async def test_two_processes_and_a_killed_third_never_send_more_than_the_budget(tmp_path: Path) -> None:
    home = await prepared(tmp_path)
    victim = start(home.home, "victim")
    assert victim.stdout is not None
    first = victim.stdout.readline() + victim.stdout.readline()
    # stopped wherever it is, perhaps inside a transaction: killed only when the others are there to see it
    os.kill(victim.pid, signal.SIGSTOP)
    others = [start(home.home, "w-1"), start(home.home, "w-2")]
    os.kill(victim.pid, signal.SIGKILL)
    outputs = [first + victim.communicate(timeout=LIMIT_S)[0]]
    outputs += [p.communicate(timeout=LIMIT_S)[0] for p in others]
    assert [p.returncode for p in (victim, *others)] == [-signal.SIGKILL, 0, 0]
    seen = sent(*outputs)
    assert max(seen.values()) <= BUDGET
    store = InlineStore(Seal(), NoAudit(), str(home.database))
    for o in await store.operations(Filter()):
        assert o.status is Status.ESCALATED
        assert seen[o.operation_id] <= o.status_requests_used == BUDGET
        assert o.lease_owner is None
        assert len({i.n for i in await store.intents(o.operation_id)}) == BUDGET
    assert broken(store.turns.conn) == []
    assert list(await store.check()) == []
    await store.close()


@pytest.mark.rule("O4")
async def test_a_waiter_is_woken_by_another_process(tmp_path: Path) -> None:
    home = await prepared(tmp_path)
    store = await ThreadedStore.open(str(home.database), Seal(), NoAudit())
    before = await store.change()
    waiting = asyncio.create_task(store.wait_for_change(before, LIMIT_S))
    process = await asyncio.to_thread(start, home.home, "w-1")
    try:
        assert await waiting > before
    finally:
        process.kill()
        await asyncio.to_thread(process.communicate, timeout=LIMIT_S)
    await store.close()


@pytest.mark.rule("O2")
def test_a_killed_worker_frees_its_lock_and_a_stopped_one_keeps_it(tmp_path: Path) -> None:
    from pollcore.adapters.worker_lock import Deaths

    home = places.prepare(places.find(str(tmp_path / "home")))
    asyncio.run(empty(home))
    process = start(home.home, "w-1")
    dead = Deaths(home.workers)
    try:
        os.kill(process.pid, signal.SIGSTOP)
        assert not dead("w-1")
    finally:
        os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=LIMIT_S)
    assert wait_for(lambda: dead("w-1"))


async def empty(home: places.Places) -> None:
    """A store with one operation that is not due soon."""
    store = InlineStore(Seal(), NoAudit(), str(home.database))
    now = claimer.now()
    await submit(store, "op-1", now, due_boot=now.boot + 10_000_000)
    await store.close()


def wait_for(condition: Any) -> bool:
    end = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


STARTS = 6
OPENERS = 6
OPENER = """
import pathlib, sys, time
from pollcore.adapters.store import opening
go = pathlib.Path(sys.argv[2])
print("ready", flush=True)
while not go.exists():
    pass
opening.open_writer(sys.argv[1]).close()
"""


@pytest.mark.rule("O6", "O4")
def test_processes_that_make_one_new_store_at_the_same_moment_all_get_it(tmp_path: Path) -> None:
    for number in range(STARTS):
        go, path = tmp_path / f"go-{number}", tmp_path / f"{number}.db"
        command = [sys.executable, "-c", OPENER, str(path), str(go)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "core")}
        pipe = subprocess.PIPE
        openers = [
            subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) for _ in range(OPENERS)
        ]
        assert all(one.stdout is not None and one.stdout.readline() == "ready\n" for one in openers)
        go.touch()
        ended = [(one.communicate(timeout=LIMIT_S)[1], one.returncode) for one in openers]
        assert ended == [("", 0)] * OPENERS
