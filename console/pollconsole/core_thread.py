"""The core on a thread of its own, with a loop of its own, so that no screen can stop it.

Job: open the core there, poll (or attach to another process that polls), hand newest rows to the mailbox, run what the
screen asks for under a time limit, end within bounds. Must not know: widgets, keys, words. The core never calls
the screen:
a terminal that stops reading stops the screen's loop, and must not stop a poll.

Source: spec V3, O4, O8; a blocked screen was measured to stand still for a minute while this thread missed no beat.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec

from pollconsole.core_log import CoreLog
from pollconsole.mailbox import Beat, CoreRole, Delta, Mailbox, SessionLeft, Trouble
from pollcore.facts import Escalation, Moment, Operation, PollconsoleError, Status, StoreUnusable

if TYPE_CHECKING:
    from pollconsole import bridge

T = TypeVar("T")

ASK_LIMIT_S: Final = 10.0
"""How long a screen waits for an answer of the core before it says so."""
END_LIMIT_S: Final = 15.0
"""How long quitting waits for requests in flight to be answered and recorded."""
FEED_WAIT_S: Final = 2.0
"""One wait for a change; heartbeats and health are read at least so often."""
FEED_REST_S: Final = 0.1
"""Between two reads of the store, however fast it changes."""
FEED_RETRY_S: Final = 2.0
"""Pause after the store could not be read."""
MAX_ROWS: Final = 100_000
"""Live operations that a screen holds."""
FIRST_ROWS: Final = 200
"""Rows handed over before all the others are read."""
MAX_ENDED: Final = 1_000
"""Ended operations loaded at start."""
OPEN_REST_S: Final = 0.02
"""Between two looks whether the core is open."""
PAINT_LIMIT_S: Final = 3.0
"""How long polling waits for the first rows to be painted (httpx is imported only then)."""
ANCHOR_EVERY_S: Final = 30.0
"""While another process polls: how often the audit's anchor is compared here, so that its state is no memory."""
OTHER_SILENT_MS: Final = 35_000
"""A core of another process beats every 10 s; silent for longer it is gone, and this one takes over."""
OTHER_LOOK_S: Final = 1.0
"""Between two looks whether it still is there: one that ended, or was killed, on this machine has left its lock."""


class CoreGone(PollconsoleError):
    """The core's thread does not answer: not started, ended, or too slow."""


class TooSlow(CoreGone):
    """No answer within the limit. What was asked may still happen."""


class AnyController(Protocol):
    """What polls."""

    health: str | None

    async def run(self, stop: asyncio.Event) -> object: ...

    def wake(self) -> None: ...


class AnyClock(Protocol):
    """What tells the time; read from the screen's thread, too."""

    def now(self) -> Moment: ...


Glancer = Callable[[], "tuple[tuple[Sequence[Operation], Sequence[Escalation]], AnyClock] | None"]
"""Gives the first rows with the open questions and a clock, or None; raises nothing."""
CoreJob = Callable[[Any], Awaitable[None]]
CoreRunner = Callable[[CoreJob], object]
"""Opens a core, runs the job with it on a loop of its own, closes it, all in the calling thread:
`lambda job: bridge.with_core(home, job, kind="console")`."""


class CoreThread:
    """One core, one daemon thread. `start` and `stop` are called once; the rest from the screen's thread at any
    time."""

    def __init__(self, runner: CoreRunner, *, read_only: bool = False, glance: Glancer | None = None) -> None:
        """*glance*: gives the first rows before the core is imported and opened, and the clock until then."""
        self.read_only = read_only
        self.mailbox = Mailbox()
        self.log = CoreLog()
        """What this thread says of itself, for the log screen."""
        self.crash: BaseException | None = None
        """What ended the thread, if not `stop`: for the file of the crash, never for a screen."""
        self._runner = runner
        self._thread = threading.Thread(target=self._run, name="pollconsole-core", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._core: bridge.Core | None = None
        self._clock: AnyClock | None = None
        self._stop: asyncio.Event | None = None
        self._painted: asyncio.Event | None = None
        self._stopping = threading.Event()
        self._glance = glance
        self._seen = threading.Event()
        """The first rows were painted, or nobody waits for them any more."""
        self._opens = False
        """The thread was started, and the core is not open yet."""
        self._is_ready = False
        """Keys, audit log and anchor were looked at."""
        self._controller: AnyController | None = None
        self._reloading: asyncio.Future[int] | None = None

    # --- for the screen -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Take the first rows if they were looked for, then open the core; returns at once."""
        self._first_rows()
        self._opens = True
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def take(self) -> Delta:
        """What is new; never blocks."""
        return self.mailbox.take()

    def now(self) -> Moment | None:
        """The core's clock, which may be compressed, also after the core has ended; None before it is open."""
        clock = self._clock
        return None if clock is None else clock.now()

    def first_rows_painted(self) -> None:
        """The screen shows rows: polling may begin."""
        self._seen.set()
        self._call(lambda: self._painted.set() if self._painted is not None else None)

    def reload(self) -> None:
        """Hand over everything anew, for a screen that begins again."""

        def again() -> None:
            if self._core is not None:
                self._reloading = asyncio.ensure_future(self._load(self._core))
                self._reloading.add_done_callback(_swallow)

        self._call(again)

    def stop(self, limit_s: float = END_LIMIT_S) -> bool:
        """End: no new request, those in flight are recorded. False: not within *limit_s* (the store loses nothing)."""
        self._stopping.set()
        self._seen.set()
        self._call(self._end)
        if self._thread.ident is not None:
            self._thread.join(limit_s)
        return not self._thread.is_alive()

    async def ask(self, what: Callable[[Any], Awaitable[T]], *, limit_s: float = ASK_LIMIT_S, keep: bool = False) -> T:
        """Run *what* with the core on its thread and await it here, without blocking this loop.

        Args:
            keep: let it finish when the time is over (a decision under way is not torn off).

        Raises:
            CoreGone: the core is not open. TooSlow: no answer in time. And whatever *what* raises.
        """
        began = time.monotonic()
        # rows stand there already, from the glance; the core opens on its own thread
        while self._core is None and self._opens and time.monotonic() - began < limit_s:  # noqa: ASYNC110
            await asyncio.sleep(OPEN_REST_S)
        loop, core = self._loop, self._core
        if loop is None or core is None or not self.alive:
            raise CoreGone("the polling core is not open; the status line says why")

        async def body() -> T:
            return await what(core)

        asked: concurrent.futures.Future[T] = asyncio.run_coroutine_threadsafe(body(), loop)
        waiting = asyncio.wrap_future(asked)
        done, _ = await asyncio.wait({waiting}, timeout=limit_s)
        if done:
            return waiting.result()
        if keep:
            waiting.add_done_callback(_swallow)
        else:
            asked.cancel()
        raise TooSlow(f"the core did not answer within {limit_s:g} s")

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        for event in (self._stop, self._painted):
            if event is not None:
                event.set()

    def _call(self, what: Callable[[], object]) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            with contextlib.suppress(RuntimeError):  # closed between the two lines
                loop.call_soon_threadsafe(what)

    def _run(self) -> None:
        try:
            if self.mailbox.loaded:
                self._seen.wait(PAINT_LIMIT_S)  # importing the rest would hold up the painting of the first rows
            self._runner(self._main)
        except PollconsoleError as error:
            self._failed(error, str(error))
        except BaseException as error:
            self._failed(error, f"the core ended ({type(error).__name__}); nothing is lost: quit and start again")
        finally:
            self._core = None
            self._opens = False

    def _first_rows(self) -> None:
        found = None if self._glance is None else self._glance()
        if found is None:
            return
        (operations, questions), self._clock = found
        self.mailbox.put(operations, questions=tuple(questions), loaded=True)

    def _failed(self, error: BaseException, text: str) -> None:
        self.crash = error
        self.mailbox.health(text)
        self.mailbox.put(role=CoreRole.FAILED, loaded=True)
        self._note("role", f"the core ended: {text}", "danger")

    def _note(self, what: str, text: str, role: str = "text") -> None:
        """One line of the log, unless the last one about *what* said the same."""
        now = self.now()
        self.log.changed(what, None if now is None else now.wall, text, role)

    def _role(self, role: CoreRole, text: str) -> None:
        self.mailbox.put(role=role)
        self._note("role", text)

    async def _main(self, core: bridge.Core) -> None:
        self._stop, self._painted = asyncio.Event(), asyncio.Event()
        self._loop = asyncio.get_running_loop()
        if self._stopping.is_set():
            return
        self._core, self._clock = core, core.clock
        if self._seen.is_set():
            self._painted.set()
        self._note("open", f"the store is open, process {os.getpid()}")
        seen = await self._load(core)
        polling = asyncio.create_task(self._poll(core))
        feeding = asyncio.create_task(self._feed(core, seen))
        ended = asyncio.create_task(self._stop.wait())
        try:
            done, _ = await asyncio.wait({polling, feeding, ended}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            self._role(CoreRole.ENDING, "ending: no new request; answers under way are recorded")
            await polling
        finally:
            self._stop.set()
            for task in (polling, feeding, ended):
                task.cancel()
            await asyncio.gather(polling, feeding, ended, return_exceptions=True)

    # --- rows ---------------------------------------------------------------------------------------------------------

    async def _load(self, core: bridge.Core) -> int:
        """All live operations, those with an open question, and the newest ends."""
        from pollconsole import bridge

        change = await core.store.change()
        live = tuple(status for status in Status if not status.is_end)
        ended = tuple(status for status in Status if status.is_end)
        pairs = await core.store.asked()
        questions = (*(question for _, question in pairs), *await core.store.credential_questions())
        rows = list(await bridge.operations(core, statuses=live, limit=FIRST_ROWS))
        more = len(rows) == FIRST_ROWS
        rows += await bridge.operations(core, statuses=ended, limit=MAX_ENDED)
        known = {row.operation_id for row in rows}
        rows += [operation for operation, _ in pairs if operation.operation_id not in known]
        self._tell_audit(core)
        beats, read_s = await self._beats(core), time.monotonic()
        self.mailbox.put(rows, questions=questions, beats=beats, change=change, loaded=True, read_s=read_s)
        self.mailbox.sessions(await self._sessions(core))
        if more:  # a screen full is there already: nothing competes with its painting
            await self._until_painted()
            self.mailbox.put(await bridge.operations(core, statuses=live, limit=MAX_ROWS))
        return change

    async def _feed(self, core: bridge.Core, seen: int) -> None:
        """Hand over what changes, newest only, until cancelled."""
        while True:
            try:
                change = await core.store.wait_for_change(seen, FEED_WAIT_S)
                if change > seen:
                    await self._changes(core, seen, change)
                    seen = change
                self.mailbox.put(beats=await self._beats(core), read_s=time.monotonic())
                self.mailbox.sessions(await self._sessions(core))
                await self._present(core)
                self._tell_health(None)
                self._tell_audit(core)
                await asyncio.sleep(FEED_REST_S)
            except StoreUnusable as error:
                self._tell_health(str(error))
                await asyncio.sleep(FEED_RETRY_S)

    async def _present(self, core: bridge.Core) -> None:
        """G7: a console is open on the store, whoever polls it: the time of questions runs. Who polls tells trouble."""
        if not self.read_only:
            with contextlib.suppress(StoreUnusable):
                await core.actions.present()

    async def _changes(self, core: bridge.Core, seen: int, change: int) -> None:
        from pollconsole import bridge

        rows = await bridge.operations(core, changed_since=seen, limit=MAX_ROWS)
        questions = (*await core.store.questions(), *await core.store.credential_questions())
        self.mailbox.put(rows, questions=questions, change=change)

    def _tell_health(self, reading: str | None) -> None:
        sending = self._controller.health if self._controller is not None else None
        said = sending or reading
        self.mailbox.health(said)
        self._note("health", f"nothing is sent: {said}" if said else "the store is read", "danger" if said else "text")

    def _tell_audit(self, core: bridge.Core) -> None:
        from pollconsole import bridge

        if not self._is_ready:
            return
        found = bridge.audit_trouble(core)
        self.mailbox.audit(None if found is None else Trouble(*found))
        if found is None:
            self._note("audit", "the audit is anchored")
        else:
            self._note("audit", f"the audit is not anchored: {found[0]}", "danger" if found[1] else "attention")

    @staticmethod
    async def _sessions(core: bridge.Core) -> tuple[SessionLeft, ...]:
        """Sessions that can still be used; their counts move with each request that goes out under them."""
        return tuple(
            SessionLeft(s.session_id, s.credential, s.owner, s.until, s.calls, s.calls_left)
            for s in await core.actions.sessions()
        )

    @staticmethod
    async def _beats(core: bridge.Core) -> tuple[Beat, ...]:
        now, here = core.clock.now(), (os.getpid(), socket.gethostname())
        beats = []
        for w in await core.store.workers():
            beat = Beat(w.owner, w.pid, w.kind, w.beat_at, w.beat_boot, w.boot_id, w.host, mine=(w.pid, w.host) == here)
            gone = beat_age_ms(beat, now) < OTHER_SILENT_MS and core.is_gone(w.owner, w.host)
            beats.append(msgspec.structs.replace(beat, gone=True) if gone else beat)
        return tuple(beats)

    # --- polling ------------------------------------------------------------------------------------------------------

    async def _poll(self, core: bridge.Core) -> None:
        """Poll until `stop`, unless another process does or this console only reads."""
        from pollconsole import bridge

        assert self._stop is not None
        if self.read_only:
            self._role(CoreRole.READ_ONLY, "started to look: nothing is polled from here")
        await self._until_painted()
        if self._stop.is_set():
            return
        await core.ready()
        self._is_ready = True
        for notice in core.notices:
            self._note("notice", notice, "held")
        self._tell_audit(core)
        if self.read_only:
            await self._stop.wait()
            return
        compared = time.monotonic()
        while not self._stop.is_set() and await self._another_runs(core):
            self._role(CoreRole.ATTACHED, "another process polls this store; this one shows it")
            if time.monotonic() - compared > ANCHOR_EVERY_S:
                compared = time.monotonic()
                await bridge.compare_anchor(core)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), OTHER_LOOK_S)
        if self._stop.is_set():
            return
        self._controller = core.controller()
        self._role(CoreRole.OWN, "this process polls")
        beside = bridge.beside(core, self._controller, lambda text: self._note("outside", text, "held"))
        try:
            await self._controller.run(self._stop)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    async def _until_painted(self) -> None:
        """Keys, HTTP and the rest of the rows come after the first picture."""
        assert self._painted is not None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._painted.wait(), PAINT_LIMIT_S)

    async def _another_runs(self, core: bridge.Core) -> bool:
        """Whether a process without a screen polls this store (a heartbeat of kind `run`, not silent)."""
        now = core.clock.now()
        try:
            beats = await self._beats(core)
        except StoreUnusable:
            return True
        return any(beat.kind == "run" and is_alive(beat, now) for beat in beats)


def is_alive(beat: Beat, now: Moment) -> bool:
    """Whether that core polls as far as is known: it beat lately and is not proved to have ended."""
    return not beat.gone and beat_age_ms(beat, now) < OTHER_SILENT_MS


def other_core(beats: Sequence[Beat], now: Moment) -> Beat | None:
    """The newest sign of life of a core of another process that polls this store; None: there is none."""
    others = [beat for beat in beats if not beat.mine and is_alive(beat, now)]
    return min(others, key=lambda beat: beat_age_ms(beat, now), default=None)


def is_polled(latest: Delta, now: Moment) -> bool:
    """Whether some core polls what is shown; while this one starts nobody knows yet, and it counts as polled."""
    if latest.role in (CoreRole.STARTING, CoreRole.OWN):
        return True
    return any(is_alive(beat, now) for beat in latest.beats)


def beat_age_ms(beat: Beat, now: Moment) -> int:
    """ms since *beat*, by the clock that never steps where both belong to one boot."""
    age = now.boot - beat.beat_boot if beat.boot_id == now.boot_id else now.wall - beat.beat_at
    return max(0, age)


def _swallow(future: asyncio.Future[Any]) -> None:
    """A kept request that ended after its asker had left: its outcome is in the store."""
    if not future.cancelled():
        future.exception()
