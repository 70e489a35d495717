"""The core on a thread of its own, with a loop of its own, so that no screen can stop it.

Job: open the core there, let it poll and feed the mailbox, run what the screen asks for under a time limit, end within
bounds. Must not know: widgets, keys, words, what is read or polled there. The core never calls the screen: a terminal
that stops reading stops the screen's loop, and must not stop a poll.

Source: spec V3, O4; a blocked screen was measured to stand still for a minute while this thread missed no beat.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from pollconsole.core_told import Told
from pollconsole.mailbox import CoreRole, Delta
from pollcore.facts import Escalation, Moment, Operation, PollconsoleError

if TYPE_CHECKING:
    from pollconsole import bridge
    from pollconsole.core_feed import Feed

T = TypeVar("T")

ASK_LIMIT_S: Final = 10.0
"""How long a screen waits for an answer of the core before it says so."""
END_LIMIT_S: Final = 15.0
"""How long quitting waits for requests in flight to be answered and recorded."""
OPEN_REST_S: Final = 0.02
"""Between two looks whether the core is open."""
PAINT_LIMIT_S: Final = 3.0
"""How long polling waits for the first rows to be painted (httpx is imported only then)."""


class CoreGone(PollconsoleError):
    """The core's thread does not answer: not started, ended, or too slow."""


class TooSlow(CoreGone):
    """No answer within the limit. What was asked may still happen."""


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
        self._told = Told(self.now)
        self.mailbox = self._told.mailbox
        self.log = self._told.log
        """What this thread says of itself, for the log screen."""
        self.crash: BaseException | None = None
        """What ended the thread, if not `stop`: for the file of the crash, never for a screen."""
        self._runner = runner
        self._thread = threading.Thread(target=self._run, name="pollconsole-core", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._core: bridge.Core | None = None
        self._clock: AnyClock | None = None
        self._feed: Feed | None = None
        self._stop: asyncio.Event | None = None
        self._painted: asyncio.Event | None = None
        self._stopping = threading.Event()
        self._glance = glance
        self._seen = threading.Event()
        """The first rows were painted, or nobody waits for them any more."""
        self._opens = False
        """The thread was started, and the core is not open yet."""
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
            if self._core is not None and self._feed is not None:
                self._reloading = asyncio.ensure_future(self._feed.load(self._until_painted))
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

    def _first_rows(self) -> None:
        found = None if self._glance is None else self._glance()
        if found is None:
            return
        (operations, questions), self._clock = found
        self.mailbox.put(operations, questions=tuple(questions), loaded=True)

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

    def _failed(self, error: BaseException, text: str) -> None:
        self.crash = error
        self._told.failed(text)

    async def _main(self, core: bridge.Core) -> None:
        self._stop, self._painted = asyncio.Event(), asyncio.Event()
        self._loop = asyncio.get_running_loop()
        if self._stopping.is_set():
            return
        self._core, self._clock = core, core.clock
        if self._seen.is_set():
            self._painted.set()
        from pollconsole.core_feed import Feed  # not before the first rows
        from pollconsole.core_polling import Polling

        self._told.note("open", f"the store is open, process {os.getpid()}")
        polled = Polling(core, self._told, self._stop, read_only=self.read_only)
        self._feed = Feed(core, self._told, polled, read_only=self.read_only)
        seen = await self._feed.load(self._until_painted)
        polling = asyncio.create_task(polled.run(self._until_painted))
        feeding = asyncio.create_task(self._feed.run(seen))
        ended = asyncio.create_task(self._stop.wait())
        try:
            done, _ = await asyncio.wait({polling, feeding, ended}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            self._told.role(CoreRole.ENDING, "ending: no new request; answers under way are recorded")
            await polling
        finally:
            self._stop.set()
            for task in (polling, feeding, ended):
                task.cancel()
            await asyncio.gather(polling, feeding, ended, return_exceptions=True)

    async def _until_painted(self) -> None:
        """Keys, HTTP and the rest of the rows come after the first picture."""
        assert self._painted is not None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._painted.wait(), PAINT_LIMIT_S)


def _swallow(future: asyncio.Future[Any]) -> None:
    """A kept request that ended after its asker had left: its outcome is in the store."""
    if not future.cancelled():
        future.exception()
