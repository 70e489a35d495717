"""Every statement of a whole story fails once, with every kind of error: nothing is lost, nothing is sent uncounted."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from pollcore.actions import SubmitSpec
from pollcore.adapters.keyring_store import MemoryBackend
from pollcore.adapters.store.turns import SqliteTurns
from pollcore.assembly import Core, open_core
from pollcore.assembly import parts as assembled
from pollcore.facts import EventName, Status
from pollcore.ports import Filter
from tests.adapters.store.failing import NAMES
from tests.adapters.store.laws import broken
from tests.processes.herd import lay_out
from tests.processes.provider import CountingProvider
from tests.processes.scenario import COOLED_MS, STORY, Breaks, Inline, Play, spec
from tests.processes.verdict import QUERIES

CHARGE: Final = (
    "BEGIN IMMEDIATE",
    "UPDATE operation SET epoch=epoch+1",
    "INSERT INTO request",
    "INSERT INTO intent",
    "INSERT INTO event",
    "INSERT INTO audit",
    "UPDATE meta",
    "COMMIT",
)
"""The statements of a charge: lease and counter, request, intent, event, its audit link, numbers, the end."""
REFUSED_MS: Final = 20_000
LIMIT_S: Final = 90
KINDS: Final = ("SQLITE_BUSY", "SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_CORRUPT", "SQLITE_READONLY")
FAST_STEP: Final = 17
MAX_STATEMENTS: Final = 3_000
MEMORY: Final = Path("/dev/shm")
"""A file system in memory, where there is a roomy one: nothing here rests on a disk's own durability."""
ROOM_BYTES: Final = 256 << 20
ENDS: Final = {
    "op-cooled": (Status.SUCCEEDED, 3, 9),
    "op-extended": (Status.SUCCEEDED, 3, 1 + 3),
    "op-closed": (Status.CLOSED, 1, 9),
    "op-patient": (Status.SUCCEEDED, 5, 9),
}
"""(status, requests counted, requests allowed) at the end, whatever failed on the way."""


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[object], Path]]:
    """Gives fresh homes with the contract laid out, on a quick file system."""
    monkeypatch.setattr(assembled, "ThreadedStore", Inline)
    roomy = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM_BYTES
    base = MEMORY / f"pollconsole-nth-{os.getpid()}" if roomy else tmp_path

    def make(name: object) -> Path:
        home = base / f"home-{name}"
        lay_out(home, "http://127.0.0.1:9")
        return home

    yield make
    if roomy:
        shutil.rmtree(base, ignore_errors=True)


async def played(home: Path, breaks: Breaks, *, after: bool = False) -> tuple[Play, list[str]]:
    """The story with one fault; what it broke, in words."""
    play, found = Play(home), list[str]()
    async with play.core() as core:
        play.wrap(core, breaks, after=after)
        try:
            await play.act(core)
        except Exception as error:
            found = [f"the story broke off: {type(error).__name__}: {error}"]
        play.unwrap(core)
        found += await verdict(core, play)
    shutil.rmtree(home)
    return play, found


async def verdict(core: Core, play: Play) -> list[str]:
    """I1-I5, I9-I11, I28 and the ends of all four operations."""
    conn = core.store.turns.conn  # type: ignore[attr-defined]
    found = [*play.witness.uncharged, *await core.store.check(), *broken(conn)]
    ask = conn.execute
    found += [f"{what}: {rows}" for what, query in QUERIES.items() if (rows := ask(query).fetchall())]
    operations = {o.operation_id: o for o in await core.store.operations(Filter())}
    for name, wanted in ENDS.items():
        o = operations.get(name)
        got = None if o is None else (o.status, o.status_requests_used, o.max_status_requests)
        if got != wanted:
            found.append(f"{name}: {got} instead of {wanted}")
        elif o is not None and play.witness.sent[o.submitted.job_id] != o.status_requests_used:
            found.append(f"{name}: {play.witness.sent[o.submitted.job_id]} left, {o.status_requests_used} are counted")
    if (grants := ask('SELECT count(*) FROM "grant"').fetchone()[0]) != 1:
        found.append(f"I12: {grants} grants were used, one was given")
    told = [event.event for _, event in await core.store.events()]
    for event in (EventName.GRANTED, EventName.CLOSED):
        if told.count(event) != 1:
            found.append(f"{told.count(event)} events {event.value}")
    found += [f"the loop ended by itself: {why}" for why in play.died]
    return found


def cooled(play: Play) -> list[str]:
    """T8: nobody of that account asks while the provider's 30 seconds last."""
    asked = [at for job, at in play.witness.at if job == "cooled"]
    if len(asked) < 2:
        return ["T8: the provider was never asked so often that it said 429"]
    waits = [(job, at - asked[1]) for job, at in play.witness.at]
    return [f"T8: {job} was asked {ms} ms into the cool-down" for job, ms in waits if 0 < ms < COOLED_MS]


def once(n: int, name: str) -> Breaks:
    """The n-th statement fails with *name*."""
    return lambda at, sql: name if at == n else None


async def statements(homes: Callable[[object], Path]) -> list[str]:
    """The statements of the story when nothing fails; the story itself is right."""
    play, found = await played(homes("count"), lambda at, sql: None)
    assert found == []
    assert cooled(play) == []
    assert play.witness.sent == {job: len(steps) for job, steps in STORY.items()}
    said: list[str] = play.conn.said
    assert 100 < len(said) < MAX_STATEMENTS
    return said


def places(said: list[str], step: int = 1) -> list[int]:
    """Every *step*-th statement, from the first."""
    return list(range(1, len(said) + 1, step))


async def loop(homes: Callable[[object], Path], at: list[int], *, after: bool = False) -> list[str]:
    """The story once for each place, kinds of errors in turn; all that went wrong."""
    wrong: list[str] = []
    for turn, n in enumerate(at):
        name = KINDS[turn % len(KINDS)]
        play, found = await played(homes(n), once(n, name), after=after)
        if len(play.conn.broken) != 1:
            found.append("the fault never came")
        wrong += [f"statement {n}, {name}, {play.conn.broken[:1]}: {what}" for what in (*found, *cooled(play))]
    return wrong


@pytest.mark.rule("B3", "O1", "O6", "S9")
async def test_any_17th_statement_may_fail_and_nothing_is_lost_or_sent_uncounted(homes: Any) -> None:
    """I1-I5, I9-I12, I28; the fast part of the test of every statement."""
    said = await statements(homes)
    assert await loop(homes, places(said, FAST_STEP)) == []


@pytest.mark.slow
@pytest.mark.rule("B2", "B3", "E7", "G4", "O1", "O6", "S9", "T8")
async def test_every_statement_may_fail_and_nothing_is_lost_or_sent_uncounted(homes: Any) -> None:
    """I1-I5, I9-I12, I28."""
    said = await statements(homes)
    assert await loop(homes, places(said)) == []


@pytest.mark.slow
@pytest.mark.rule("B3", "E7", "G4", "O1", "O6")
async def test_every_commit_may_succeed_and_lose_its_answer(homes: Any) -> None:
    """I4, I12, I27: what happened is asked of the store, never done again."""
    said = await statements(homes)
    commits = [n for n, sql in enumerate(said, 1) if sql == "COMMIT"]
    assert len(commits) > 15
    assert await loop(homes, commits, after=True) == []


def refusing(needle: str, name: str) -> Breaks:
    """Every statement that begins with *needle* fails with *name*."""
    return lambda at, sql: name if sql.startswith(needle) else None


@pytest.mark.rule("B3", "O1", "O6", "A3")
@pytest.mark.parametrize("needle", CHARGE)
async def test_no_byte_leaves_while_any_part_of_a_charge_cannot_be_written(needle: str, homes: Any) -> None:
    """I28, for every SQLite error; when it can be written again, the job ends as if nothing had been."""
    for name in NAMES:
        play = Play(homes(name))
        async with play.core() as core:
            await core.actions.submit(spec("patient"))
            broken_now = play.wrap(core, refusing(needle, name))
            await play.poll(core, REFUSED_MS)
            assert broken_now.broken, "nothing was tried"
            assert play.witness.sent == {}
            assert any(word in text for text in play.told for word in ("while recording a turn", "refused"))
            play.unwrap(core)
            assert [o.status_requests_used for o in await core.store.operations(Filter())] == [0]
            await play.poll(core)
            (o,) = await core.store.operations(Filter())
            assert (o.status, o.status_requests_used) == (Status.SUCCEEDED, len(STORY["patient"]))
            assert play.witness.uncharged == []
            assert broken(core.store.turns.conn) == []  # type: ignore[attr-defined]


class Mute:
    """An audit log that cannot write."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def links(self, *_: object) -> Any:
        raise RuntimeError("no room for the audit")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


TRIGGERS: Final = {
    "event": "BEFORE INSERT ON main.event",
    "intent": "BEFORE INSERT ON main.intent",
    "request": "BEFORE INSERT ON main.request",
    "counter": "BEFORE UPDATE OF status_requests_used ON main.operation WHEN NEW.status_requests_used > 0",
}


def refuse(turns: SqliteTurns, what: str) -> None:
    """From now on the store refuses that part of a charge, as a damaged table or a full audit would."""
    if what == "audit":
        turns.writer.audit = Mute(turns.writer.audit)
    else:
        sql = f"CREATE TEMP TRIGGER refuse {TRIGGERS[what]} BEGIN SELECT RAISE(ABORT, 'refused'); END"
        turns.conn.execute(sql)


def mend(turns: SqliteTurns, what: str) -> None:
    """It takes it again."""
    if what == "audit":
        turns.writer.audit = turns.writer.audit.real  # type: ignore[attr-defined]
    else:
        turns.conn.execute("DROP TRIGGER refuse")


@pytest.mark.rule("B3", "O6", "A3")
@pytest.mark.parametrize("what", ["audit", *TRIGGERS])
async def test_no_connection_is_made_while_the_real_store_refuses_a_charge(what: str, tmp_path: Path) -> None:
    """I28 over real threads and sockets: the provider counts connections, and there are none."""
    with CountingProvider({"job-1": ["wait", "ok"]}) as provider:
        lay_out(tmp_path / "home", provider.url)
        async with open_core(tmp_path / "home", kind="run", backend=MemoryBackend()) as core:
            await core.actions.submit(SubmitSpec(provider="lab", job_id="job-1", operation_id="op-1", account="one"))
            await core.store._write(lambda turns: refuse(turns, what))
            stop = asyncio.Event()
            controller = core.controller()
            running = asyncio.create_task(controller.run(stop))
            async with asyncio.timeout(LIMIT_S):
                while controller.health is None:
                    await asyncio.sleep(0.02)
            assert ("audit row cannot be written" if what == "audit" else "refused a statement") in controller.health
            assert (provider.connections, dict(provider.seen)) == (0, {})
            await core.store._write(lambda turns: mend(turns, what))
            async with asyncio.timeout(LIMIT_S):
                while (o := await core.store.operation("op-1")) is not None and o.status is not Status.SUCCEEDED:
                    await asyncio.sleep(0.02)
            stop.set()
            await running
            assert o is not None
            assert o.status_requests_used == provider.seen["job-1"] == 2
            assert list(await core.store.check()) == []
