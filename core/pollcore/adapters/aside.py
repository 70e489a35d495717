"""Runs calls that may hang, aside.

Job: one call on a daemon thread, its result or TimeoutError within a limit; a thread that hangs is left behind and
never holds the exit (a pool's threads would: measured). Must not know: what is called.
Source: spec K2; reliability notes, section 6.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

T = TypeVar("T")

MAX_LEFT_BEHIND: Final = 4
"""Threads that hang at the same time; one more call then fails at once instead of adding a thread."""

IDLE_S: Final = 10.0
"""A thread without work ends after this."""

_Job = tuple[Callable[[], Any], "Future[Any]"]


class Aside:
    """Calls in turn on one daemon thread; a fresh thread takes over when a call exceeds its limit.

    May be used from any thread and any event loop.
    """

    def __init__(self, name: str, threads: int = 1) -> None:
        """*threads*: how many calls may run at once."""
        self._name = name
        self._threads = threads
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._alive = 0
        self._open = 0
        """Calls that are neither done nor given up."""
        self._hung: set[Future[Any]] = set()

    def call(self, function: Callable[[], T], limit_s: float) -> T:
        """Run *function* and wait for it. Raises TimeoutError, or what it raised. Blocks the calling thread."""
        future = self._submit(function)
        try:
            return future.result(limit_s)
        except TimeoutError:
            self._leave_behind(future)
            raise

    async def acall(self, function: Callable[[], T], limit_s: float) -> T:
        """Run *function* without blocking the loop. Raises TimeoutError, or what it raised."""
        future = self._submit(function)
        try:
            async with asyncio.timeout(limit_s):
                return await asyncio.wrap_future(future)
        except (TimeoutError, asyncio.CancelledError):
            self._leave_behind(future)
            raise

    def _submit(self, function: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        future.add_done_callback(self._done)
        with self._lock:
            if len(self._hung) >= MAX_LEFT_BEHIND:
                raise TimeoutError(f"{len(self._hung)} earlier calls still hang")
            self._open += 1
            self._jobs.put((function, future))
            at_work = self._alive - len(self._hung)
            if self._open > at_work and at_work < self._threads:
                self._alive += 1
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
        return future

    def _leave_behind(self, future: Future[Any]) -> None:
        """The caller stopped waiting: a call that waits is struck out, one that runs no longer counts as at work."""
        if future.cancel():
            return
        with self._lock:
            if not future.done():
                self._hung.add(future)
                self._open -= 1

    def _done(self, future: Future[Any]) -> None:
        with self._lock:
            if future in self._hung:
                self._hung.remove(future)
            else:
                self._open -= 1

    def _work(self) -> None:
        while True:
            try:
                function, future = self._jobs.get(timeout=IDLE_S)
            except queue.Empty:
                with self._lock:
                    if self._jobs.empty():
                        self._alive -= 1
                        return
                continue
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function())
                except BaseException as error:
                    future.set_exception(error)
            # locals keep no secret alive while the thread waits
            del function, future
