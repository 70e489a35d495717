"""Every statement of a whole story fails once, with every kind of error: nothing is lost, nothing is sent uncounted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from tests.adapters.store.laws import broken
from tests.processes.herd import lay_out
from tests.processes.scenario import COOLED_MS, STORY, Inline, Play
from tests.processes.verdict import QUERIES

from pollcore import assembly
from pollcore.assembly import Core
from pollcore.facts import EventName, Status
from pollcore.ports import Filter

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
    monkeypatch.setattr(assembly, "ThreadedStore", Inline)
    roomy = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM_BYTES
    base = MEMORY / f"pollconsole-nth-{os.getpid()}" if roomy else tmp_path

    def make(name: object) -> Path:
        home = base / f"home-{name}"
        lay_out(home, "http://127.0.0.1:9")
        return home

    yield make
    if roomy:
        shutil.rmtree(base, ignore_errors=True)


async def played(home: Path, breaks: Callable[[int, str], str | None], *, after: bool = False) -> tuple[Play, list[str]]:
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
    found = [*play.witness.uncharged, *await core.store.check(), *broken(core.store.turns.conn)]
    ask = core.store.turns.conn.execute
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
    began = [at for job, at in play.witness.at if job == "cooled"][1]
    return [f"T8: {job} was asked {at - began} ms into the cool-down" for job, at in play.witness.at if 0 < at - began < COOLED_MS]


def once(n: int, name: str) -> Callable[[int, str], str | None]:
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


async def loop(homes: Callable[[object], Path], places: range | list[int], kind: Callable[[int], str], **how: Any) -> list[str]:
    """The story once for each place; all that went wrong. A place behind the end of the story would prove nothing."""
    wrong: list[str] = []
    for n in places:
        name = kind(n)
        play, found = await played(homes(n), once(n, name), **how)
        if len(play.conn.broken) != 1:
            found.append("the fault never came")
        at = play.conn.broken[:1]
        wrong += [f"statement {n}, {name}, {at}: {what}" for what in (*found, *cooled(play))]
    return wrong


@pytest.mark.rule("B3", "O1", "O6", "S9")
async def test_any_17th_statement_may_fail_and_nothing_is_lost_or_sent_uncounted(homes: Any) -> None:
    """I1-I5, I9-I12, I28; the fast part of the test of every statement."""
    count = len(await statements(homes))
    assert await loop(homes, range(1, count + 1, FAST_STEP), lambda n: KINDS[n // FAST_STEP % len(KINDS)]) == []


@pytest.mark.slow
@pytest.mark.rule("B2", "B3", "E7", "G4", "O1", "O6", "S9", "T8")
async def test_every_statement_may_fail_and_nothing_is_lost_or_sent_uncounted(homes: Any) -> None:
    """I1-I5, I9-I12, I28."""
    count = len(await statements(homes))
    assert await loop(homes, range(1, count + 1), lambda n: KINDS[n % len(KINDS)]) == []


@pytest.mark.slow
@pytest.mark.rule("B3", "E7", "G4", "O1", "O6")
async def test_every_commit_may_succeed_and_lose_its_answer(homes: Any) -> None:
    """I4, I12, I27: what happened is asked of the store, never done again."""
    said = await statements(homes)
    commits = [n for n, sql in enumerate(said, 1) if sql == "COMMIT"]
    assert len(commits) > 15
    assert await loop(homes, commits, lambda n: KINDS[n % len(KINDS)], after=True) == []
