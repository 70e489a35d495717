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
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from pollconsole.mailbox import Beat, CoreRole, Delta, Mailbox
from pollcore.facts import Moment, PollconsoleError, Status, StoreUnusable

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
PAINT_LIMIT_S: Final = 3.0
"""How long polling waits for the first rows to be painted (httpx is imported only then)."""
OTHER_SILENT_MS: Final = 35_000
"""A core of another process beats every 10 s; silent for longer it is gone, and this one takes over."""


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


CoreJob = Callable[[Any], Awaitable[None]]
CoreRunner = Callable[[CoreJob], object]
"""Opens a core, runs the job with it on a loop of its own, closes it, all in the calling thread:
`lambda job: bridge.with_core(home, job, kind="console")`."""


class CoreThread:
    """One core, one daemon thread. `start` and `stop` are called once; the rest from the screen's thread at any
    time."""

    def __init__(self, runner: CoreRunner, *, read_only: bool = False) -> None:
        self.read_only = read_only
        self.mailbox = Mailbox()
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
        self._ready = threading.Event()
        self._controller: AnyController | None = None
        self._reloading: asyncio.Future[int] | None = None

    # --- for the screen -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Open the core; returns at once."""
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
        self._call(lambda: self._stop.set() if self._stop is not None else None)
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

    def _call(self, what: Callable[[], object]) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            with contextlib.suppress(RuntimeError):  # closed between the two lines
                loop.call_soon_threadsafe(what)

    def _run(self) -> None:
        try:
            self._runner(self._main)
        except PollconsoleError as error:
            self._failed(error, str(error))
        except BaseException as error:
            self._failed(error, f"the core ended ({type(error).__name__}); nothing is lost: quit and start again")
        finally:
            self._core = None

    def _failed(self, error: BaseException, text: str) -> None:
        self.crash = error
        self.mailbox.health(text)
        self.mailbox.put(role=CoreRole.FAILED, loaded=True)

    async def _main(self, core: bridge.Core) -> None:
        self._stop, self._painted = asyncio.Event(), asyncio.Event()
        self._loop = asyncio.get_running_loop()
        if self._stopping.is_set():
            return
        self._core, self._clock = core, core.clock
        seen = await self._load(core)
        polling = asyncio.create_task(self._poll(core))
        feeding = asyncio.create_task(self._feed(core, seen))
        ended = asyncio.create_task(self._stop.wait())
        try:
            done, _ = await asyncio.wait({polling, feeding, ended}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            self.mailbox.put(role=CoreRole.ENDING)
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
        questions = tuple(question for _, question in pairs)
        rows = list(await bridge.operations(core, statuses=live, limit=FIRST_ROWS))
        more = len(rows) == FIRST_ROWS
        rows += await bridge.operations(core, statuses=ended, limit=MAX_ENDED)
        known = {row.operation_id for row in rows}
        rows += [operation for operation, _ in pairs if operation.operation_id not in known]
        self.mailbox.put(rows, questions=questions, beats=await self._beats(core), change=change, loaded=True)
        if more:  # a screen full is there already
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
                self.mailbox.put(beats=await self._beats(core))
                self._tell_health(None)
                await asyncio.sleep(FEED_REST_S)
            except StoreUnusable as error:
                self._tell_health(str(error))
                await asyncio.sleep(FEED_RETRY_S)

    async def _changes(self, core: bridge.Core, seen: int, change: int) -> None:
        from pollconsole import bridge

        rows = await bridge.operations(core, changed_since=seen, limit=MAX_ROWS)
        self.mailbox.put(rows, questions=tuple(await core.store.questions()), change=change)

    def _tell_health(self, reading: str | None) -> None:
        sending = self._controller.health if self._controller is not None else None
        self.mailbox.health(sending or reading)

    @staticmethod
    async def _beats(core: bridge.Core) -> tuple[Beat, ...]:
        workers = await core.store.workers()
        return tuple(Beat(w.owner, w.pid, w.kind, w.beat_at, w.beat_boot, w.boot_id) for w in workers)

    # --- polling ------------------------------------------------------------------------------------------------------

    async def _poll(self, core: bridge.Core) -> None:
        """Poll until `stop`, unless another process does or this console only reads."""
        assert self._stop is not None
        assert self._painted is not None
        if self.read_only:
            self.mailbox.put(role=CoreRole.READ_ONLY)
            await self._stop.wait()
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._painted.wait(), PAINT_LIMIT_S)
        while not self._stop.is_set() and await self._another_runs(core):
            self.mailbox.put(role=CoreRole.ATTACHED)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), FEED_WAIT_S)
        if self._stop.is_set():
            return
        self._controller = core.controller()
        self.mailbox.put(role=CoreRole.OWN)
        await self._controller.run(self._stop)

    async def _another_runs(self, core: bridge.Core) -> bool:
        """Whether a process without a screen polls this store (a heartbeat of kind `run`, not silent)."""
        now = core.clock.now()
        try:
            beats = await self._beats(core)
        except StoreUnusable:
            return True
        return any(beat.kind == "run" and beat_age_ms(beat, now) < OTHER_SILENT_MS for beat in beats)


def beat_age_ms(beat: Beat, now: Moment) -> int:
    """ms since *beat*, by the clock that never steps where both belong to one boot."""
    age = now.boot - beat.beat_boot if beat.boot_id == now.boot_id else now.wall - beat.beat_at
    return max(0, age)


def _swallow(future: asyncio.Future[Any]) -> None:
    """A kept request that ended after its asker had left: its outcome is in the store."""
    if not future.cancelled():
        future.exception()
