"""The core's thread: newest rows only, requests with a limit, an end within bounds, and no screen that can stop it."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.console.screens.conftest import RealCore
from tests.console.screens.fakes import FakeCore
from tests.console.seed import MOMENT, operation, seeded

from pollconsole.core_polling import OTHER_LOOK_S
from pollconsole.core_thread import CoreGone, CoreThread, TooSlow
from pollconsole.mailbox import CoreRole, Mailbox
from pollcore.adapters.worker_lock import WorkerLock
from pollcore.facts import BootMs, Refused, StoreUnusable
from pollcore.ports import Turn, Worker

LIMIT_S = 60.0


def until(condition: Callable[[], Any]) -> None:
    """Wait for *condition*, at most `LIMIT_S`."""
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


class Running:
    """A started thread and what its mailbox said last."""

    def __init__(self, link: CoreThread) -> None:
        self.link = link
        self.rows: dict[str, Any] = {}
        # the first rows may be there already
        self.last = self.look()

    def look(self) -> Any:
        self.last = self.link.take()
        self.rows |= {row.operation_id: row for row in self.last.operations}
        return self.last


def started(runner: Any, **options: Any) -> Running:
    link = CoreThread(runner, **options)
    link.start()
    running = Running(link)
    until(lambda: running.look().loaded)
    return running


def test_a_screen_that_looks_late_finds_the_newest_row_and_not_every_change() -> None:
    box = Mailbox()
    for change in range(1_000):
        box.put([operation(1, change=change), operation(2, change=change)], change=change)
    delta = box.take()
    assert [(row.operation_id, row.change) for row in delta.operations] == [("op-00000001", 999), ("op-00000002", 999)]
    assert box.take().operations == ()
    assert box.take().change == 999


def test_an_older_row_never_replaces_a_newer_one() -> None:
    box = Mailbox()
    box.put([operation(1, change=5)])
    box.put([operation(1, change=4)])
    assert [row.change for row in box.take().operations] == [5]


def test_a_full_mailbox_drops_ends_first_and_counts_what_it_dropped() -> None:
    box = Mailbox(limit=3)
    rows = seeded()
    ended = [each.operation for each in rows if each.operation.status.is_end]
    live = [each.operation for each in rows if not each.operation.status.is_end]
    box.put([*ended[:2], *live[:3]])
    delta = box.take()
    assert {row.operation_id for row in delta.operations} == {row.operation_id for row in live[:3]}
    assert delta.dropped == 2
    assert box.take().dropped == 0


@pytest.mark.rule("V3")
def test_the_core_goes_on_while_nobody_looks_and_ends_within_bounds(fake: FakeCore) -> None:
    running = started(fake.runner)
    running.link.first_rows_painted()
    until(lambda: fake.polling.turns > 5)
    turns = fake.polling.turns
    until(lambda: fake.polling.turns > turns + 20)
    assert running.link.stop()
    assert running.link.now() == fake.clock.now(), "countdowns of the last rows would jump"
    assert fake.polling.ended
    assert not running.link.alive


async def test_what_is_asked_runs_on_the_cores_thread_and_its_error_comes_back(fake: FakeCore) -> None:
    running = await asyncio.to_thread(started, fake.runner)

    async def where(core: Any) -> str:
        return threading.current_thread().name

    async def refuses(core: Any) -> None:
        raise Refused("no")

    assert await running.link.ask(where) == "pollconsole-core"
    with pytest.raises(Refused):
        await running.link.ask(refuses)
    assert await asyncio.to_thread(running.link.stop)
    with pytest.raises(CoreGone):
        await running.link.ask(where)


async def test_a_slow_answer_does_not_hold_the_screen_and_a_decision_is_not_torn_off(fake: FakeCore) -> None:
    running = await asyncio.to_thread(started, fake.runner)
    ends: list[str] = []
    go_on = threading.Event()

    async def slow(core: Any) -> None:
        try:
            while not go_on.is_set():
                await asyncio.sleep(0.01)
            ends.append("done")
        except asyncio.CancelledError:
            ends.append("torn off")
            raise

    for keep, end in ((True, "done"), (False, "torn off")):
        go_on.clear()
        with pytest.raises(TooSlow):
            await running.link.ask(slow, limit_s=0.05, keep=keep)
        if keep:
            go_on.set()
        await asyncio.to_thread(until, lambda end=end: end in ends)
    assert await asyncio.to_thread(running.link.stop)


@pytest.mark.rule("O4", "O8")
def test_while_another_process_runs_the_core_this_console_only_attaches_and_takes_over_when_it_is_silent(
    fake: FakeCore,
) -> None:
    other = Worker(
        owner="other", pid=9, host="h", kind="run", started_at=MOMENT.wall, beat_at=MOMENT.wall,
        beat_boot=BootMs(MOMENT.boot), boot_id=MOMENT.boot_id,
    )  # fmt: skip
    fake.store.beats = [other]
    running = started(fake.runner)
    running.link.first_rows_painted()
    until(lambda: running.look().role is CoreRole.ATTACHED)
    assert fake.polling.turns == 0
    fake.clock.forward(60_000)
    until(lambda: running.look().role is CoreRole.OWN)
    until(lambda: fake.polling.turns > 0)
    assert running.link.stop()


@pytest.mark.rule("O4", "O8")
def test_a_core_that_ended_cleanly_is_followed_at_once_and_one_that_lives_is_not(real: RealCore) -> None:
    """Its beat is young all the time; what tells is the lock that a living worker holds (reliability L4)."""
    real.fill()
    lock: list[WorkerLock] = []

    async def beats(core: Any) -> None:
        now = core.clock.now()
        lock.append(WorkerLock(core.home.workers, "run-1-abcd"))
        beat = Worker(
            owner="run-1-abcd", pid=1, host=socket.gethostname(), kind="run", started_at=now.wall, beat_at=now.wall,
            beat_boot=BootMs(now.boot), boot_id=now.boot_id,
        )  # fmt: skip
        await core.store.turn(Turn(now=now, owner=beat.owner, beat=beat))

    real.runner(beats)
    running = started(real.runner)
    running.link.first_rows_painted()
    until(lambda: running.look().role is CoreRole.ATTACHED)
    looked = running.last.read_s
    until(lambda: running.look().read_s > looked + 2 * OTHER_LOOK_S)
    assert running.last.role is CoreRole.ATTACHED
    lock[0].release()
    until(lambda: running.look().role is CoreRole.OWN)
    assert running.link.stop()


@pytest.mark.rule("V3")
def test_the_first_rows_are_those_of_the_glance_and_what_is_asked_meanwhile_waits_for_the_core(fake: FakeCore) -> None:
    """Rows stand there before the core is open: a key that wants the core then is not told that there is none."""
    glanced, opening = operation(77), threading.Event()

    def opens_late(job: Any) -> None:
        assert opening.wait(LIMIT_S)
        fake.runner(job)

    link = CoreThread(opens_late, glance=lambda: (((glanced,), ()), fake.clock))
    link.start()
    running = Running(link)
    assert set(running.rows) == {glanced.operation_id}
    assert running.last.loaded
    assert link.now() == MOMENT

    async def ask() -> str:
        async def body(core: Any) -> str:
            return "answered"

        asked = asyncio.ensure_future(link.ask(body))
        await asyncio.sleep(0)
        assert not asked.done()
        link.first_rows_painted()
        opening.set()
        return await asked

    assert asyncio.run(ask()) == "answered"
    until(lambda: running.look() and len(running.rows) > 1)
    assert link.stop()


@pytest.mark.rule("O6")
def test_a_store_that_cannot_be_read_is_told_and_read_again(fake: FakeCore) -> None:
    running = started(fake.runner)
    reads = fake.store.workers

    async def fails() -> Any:
        raise StoreUnusable("the disk is full")

    fake.store.workers = fails  # type: ignore[method-assign]
    until(lambda: running.look().health == "the disk is full")
    fake.store.workers = reads  # type: ignore[method-assign]
    until(lambda: running.look().health is None)
    assert running.link.stop()


@pytest.mark.rule("O6", "K1")
def test_a_core_that_cannot_be_opened_says_why_and_an_unexpected_end_shows_no_values(fake: FakeCore) -> None:
    def refused(job: Any) -> None:
        raise StoreUnusable("schema 9 is newer than this program")

    def breaks(job: Any) -> None:
        raise ValueError("token=canary")

    running = started(refused)
    assert running.last.role is CoreRole.FAILED
    assert running.link.now() is None
    assert running.last.health == "schema 9 is newer than this program"
    running = started(breaks)
    assert running.last.health is not None
    assert "ValueError" in running.last.health
    assert "canary" not in running.last.health


def test_a_screen_that_begins_again_gets_all_rows_again(fake: FakeCore) -> None:
    running = started(fake.runner)
    first = set(running.rows)
    running.rows.clear()
    running.link.reload()
    until(lambda: running.look() and set(running.rows) == first)
    assert running.link.stop()


def test_rows_changed_by_another_process_come_in(real: RealCore) -> None:
    real.fill()
    running = started(real.runner, read_only=True)
    before = running.rows["op-00000001"].change

    def writes() -> None:
        from pollconsole import bridge
        from pollcore.facts import ChoiceKind

        async def job(core: Any) -> None:
            await core.actions.lower("op-00000001", ChoiceKind.CLOSE, "test", "ana")

        bridge.with_core(real.home, job, backend=real.backend, transport=real.transport)

    other = threading.Thread(target=writes)
    other.start()
    other.join(LIMIT_S)
    until(lambda: running.look() and running.rows["op-00000001"].change > before)
    assert running.rows["op-00000001"].status.value == "closed"
    assert running.last.role is CoreRole.READ_ONLY
    assert running.link.stop()


LAZY = """
import sys, time
from pathlib import Path
from pollconsole import app, bridge
from pollconsole.core_thread import CoreThread
from pollcore.adapters.keyring_store import MemoryBackend

def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)

backend = MemoryBackend()
link = CoreThread(lambda job: bridge.with_core(Path(sys.argv[1]), job, kind="console", backend=backend))
link.start()
until(lambda: link.take().loaded)
print("httpx" in sys.modules)
link.first_rows_painted()
until(lambda: "httpx" in sys.modules)
print(link.stop())
"""


def test_httpx_is_imported_only_after_the_first_rows(real: RealCore) -> None:
    command = [sys.executable, "-c", LAZY, str(real.home)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_polling_waits_for_the_first_rows_to_be_painted(fake: FakeCore) -> None:
    running = started(fake.runner)
    until(lambda: running.look().beats == ())
    assert fake.polling.turns == 0
    running.link.first_rows_painted()
    until(lambda: fake.polling.turns > 0)
    assert running.link.stop()
    assert msgspec.structs.asdict(running.last)["loaded"]
