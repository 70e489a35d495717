"""A story of four operations on one store whose statements can be made to fail, with a transport that is a witness.

The witness looks into the store through a connection of its own before it lets a byte leave: a request that has no
committed charge is a violation (B3, I28). It knows the public face of the core, not how a turn is made.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from pollcore.actions import SubmitSpec
from pollcore.adapters.keyring_store import MemoryBackend
from pollcore.adapters.store import InlineStore, connecting
from pollcore.adapters.store.errors import unusable
from pollcore.adapters.store.library import sqlite3
from pollcore.adapters.store.turns import SqliteTurns
from pollcore.adapters.system import SystemChance
from pollcore.assembly import Core, open_core
from pollcore.facts import Answer, ChoiceKind, Fault, Instant, Operator, Refused, Request, Secret, StoreUnusable
from tests.adapters.store.failing import ROLLS_BACK, error
from tests.cases.world import JumpingClock

T = TypeVar("T")
Breaks = Callable[[int, str], str | None]
"""(number of the statement, its text) -> SQLite's name of the error, or nothing."""
START: Final = Instant(1_800_000_000_000)
OPERATOR: Final = Operator("ops", "here", "pty")
TRIES: Final = 3
RUN_MS: Final = 3_600_000
COOLED_MS: Final = 30_000
STORY: Final[Mapping[str, Sequence[str]]] = {
    "cooled": ("wait", "429", "ok"),
    "extended": ("wait", "wait", "ok"),
    "closed": ("odd",),
    "patient": ("wait", "wait", "wait", "wait", "ok"),
}
"""What the provider answers, by job; `extended` may ask once and gets four more, `closed` is given up by a person."""
BODIES: Final = {
    "wait": {"status": "running"},
    "ok": {"status": "done", "result": "http://127.0.0.1/results/1"},
    "odd": {"status": "Somewhere"},
    "429": {"error": "later"},
}


class Breaking:
    """A connection whose statements fail when *breaks* says so: before they take effect, or (*after*) answer lost.

    *breaks* gets the number of the statement, from 1, and its text; it names SQLite's error, or nothing.
    """

    def __init__(self, conn: Any, breaks: Breaks, *, after: bool = False) -> None:
        self._conn = conn
        self._breaks = breaks
        self._after = after
        self.said: list[str] = []
        self.broken: list[str] = []

    def execute(self, sql: str, *values: Any) -> Any:
        return self._run(sql, lambda: self._conn.execute(sql, *values))

    def executemany(self, sql: str, values: Any) -> Any:
        return self._run(sql, lambda: self._conn.executemany(sql, values))

    def _run(self, sql: str, call: Callable[[], Any]) -> Any:
        self.said.append(sql)
        name = self._breaks(len(self.said), sql)
        if name is None:
            return call()
        self.broken.append(sql)
        if self._after:
            call()
        elif name.startswith(ROLLS_BACK) and self._conn.in_transaction:
            self._conn.execute("ROLLBACK")
        raise error(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._conn, name)


class Inline(InlineStore):
    """In the place of ThreadedStore in the assembly: the same store, one connection, one thread, errors told alike."""

    @classmethod
    async def open(cls, path: str, sealer: Any, audit: Any, is_dead: Any, *, when_full: bool = False) -> Inline:
        assert not when_full, "a core that polls opens no store that it cannot write"
        return cls(sealer, audit, path, is_dead)

    async def _write(self, call: Callable[[SqliteTurns], T]) -> T:
        try:
            return await super()._write(call)
        except sqlite3.Error as trouble:
            raise unusable(trouble, self.path, "reading it") from trouble


class Steady(SystemChance):
    """Every draw is the same, so that every run of the story has the same statements."""

    def draw(self) -> float:
        return 0.5


class Witness:
    """The transport: answers by script, and counts what would have left, with its committed charge looked up."""

    def __init__(self, clock: JumpingClock, database: Path) -> None:
        self._clock = clock
        self._path = str(database)
        self._eye: Any = None
        self.sent: Counter[str] = Counter()
        self.at: list[tuple[str, Instant]] = []
        self.uncharged: list[str] = []

    async def send(self, request: Request, secret: Secret | None) -> Answer | Fault:
        job = request.url.rpartition("/")[2]
        self.sent[job] += 1
        now = self._clock.now().wall
        self.at.append((job, now))
        if self._eye is None:
            self._eye = connecting.connect(self._path, read_only=True)
        charged = self._eye.execute(
            "SELECT count(*) FROM intent i JOIN operation o ON o.op = i.operation WHERE o.job_id = ?", (job,)
        ).fetchone()[0]
        if self.sent[job] > charged:
            self.uncharged.append(f"{job}: request {self.sent[job]} left, {charged} are charged")
        steps = STORY[job]
        step = steps[min(self.sent[job], len(steps)) - 1]
        headers = (("retry-after", "30"),) if step == "429" else ()
        body = msgspec.json.encode({"id": job, **BODIES[step]})
        return Answer(429 if step == "429" else 200, headers, body, now, now)

    async def aclose(self) -> None:
        if self._eye is not None:
            self._eye.close()


class Play:
    """The story on one home. `died`: how often the loop itself ended with an error; `told`: health texts seen."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.clock = JumpingClock(START)
        self.witness = Witness(self.clock, home / "pollconsole.db")
        self.conn: Any = None
        self.died: list[str] = []
        self.told: set[str] = set()

    def core(self) -> Core:
        """To be entered; the assembly must have been given `Inline`."""
        return open_core(
            self.home,
            kind="run",
            clock=self.clock,
            chance=Steady(),
            transport=self.witness,
            backend=MemoryBackend(),
        )

    def wrap(self, core: Core, breaks: Breaks, *, after: bool = False) -> Breaking:
        """From now on every statement of the store passes *breaks*."""
        turns = core.store.turns  # type: ignore[attr-defined]
        made = Breaking(turns.conn, breaks, after=after)
        for holder in (turns, turns.reads, turns.writer):
            holder.conn = made
        turns.known._conn = made
        self.conn = made
        return made

    def unwrap(self, core: Core) -> None:
        """The sound connection again."""
        turns = core.store.turns  # type: ignore[attr-defined]
        for holder in (turns, turns.reads, turns.writer):
            holder.conn = self.conn._conn
        turns.known._conn = self.conn._conn

    async def act(self, core: Core) -> None:
        """Submit four, poll until nothing waits, extend one, close one, poll to the end."""
        for job in STORY:
            await self._again(partial(core.actions.submit, spec(job)))
        await self.poll(core)
        await self._decide(core, "op-extended", self._extend)
        await self._decide(core, "op-closed", self._close)
        await self.poll(core)

    async def poll(self, core: Core, for_ms: int = RUN_MS) -> None:
        """Run a worker until nothing waits, *for_ms* at most; another one takes over if it dies."""
        for _ in range(TRIES):
            controller = core.controller()
            watch = asyncio.create_task(self._listen(controller))
            try:
                await controller.run(asyncio.Event(), until_idle=True, for_ms=for_ms, watch=False)
                return
            except StoreUnusable as trouble:
                self.died.append(str(trouble))
            finally:
                watch.cancel()
                assert core._lock is not None
                core._lock.release()

    async def _listen(self, controller: Any) -> None:
        while True:
            if controller.health:
                self.told.add(controller.health)
            await asyncio.sleep(0)

    async def _again(self, action: Callable[[], Awaitable[T]]) -> T:
        """What a caller does who was told that the store could not be used: the same once more."""
        for _ in range(TRIES - 1):
            try:
                return await action()
            except StoreUnusable as trouble:
                self.told.add(str(trouble))
        return await action()

    async def _decide(self, core: Core, name: str, how: Callable[[Core, str], Awaitable[object]]) -> None:
        async def once() -> None:
            # an operator who was told of a fault looks again before deciding again
            if await core.store.questions(name):
                try:
                    await how(core, name)
                except Refused as refused:
                    if refused.code != "no_question":
                        raise

        await self._again(once)

    @staticmethod
    async def _extend(core: Core, name: str) -> None:
        shown = await core.actions.card(name)
        choice = next(c for c in shown.choices if c.kind is ChoiceKind.EXTEND)
        await core.actions.decide(
            name, shown.question.escalation_id, choice.key, shown.digest, {"kind": "test"}, OPERATOR
        )

    @staticmethod
    async def _close(core: Core, name: str) -> None:
        await core.actions.lower(name, ChoiceKind.CLOSE, "not wanted any more", "ops")


def spec(job: str) -> SubmitSpec:
    """The hand-over of one job of the story."""
    return SubmitSpec(
        provider="lab",
        job_id=job,
        operation_id=f"op-{job}",
        account="one",
        deadline_ms=45_000,
        max_status_requests={"extended": 1}.get(job, 9),
    )
