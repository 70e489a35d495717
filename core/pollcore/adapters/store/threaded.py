"""The store on threads of its own: one writes, one reads; no event loop ever waits for a disk.

Job: bounded queues, a bounded close, answers to whichever loop asked. Must not know: SQL, what a call does.
Daemon threads: a disk that never answers does not keep the program from ending.
Source: design "Store port", "Clock of the screen"; reliability section 12 (thread that never returns).
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, TypeVar

from pollcore.adapters import places
from pollcore.adapters.store import connecting
from pollcore.adapters.store.errors import unusable
from pollcore.adapters.store.face import StoreFace
from pollcore.adapters.store.library import sqlite3
from pollcore.adapters.store.reads import Reads
from pollcore.adapters.store.turns import SqliteTurns
from pollcore.facts import StoreUnusable
from pollcore.ports import AuditLog, Sealer

T = TypeVar("T")
MAX_WAITING: Final = 1_000
"""Calls that may wait for one thread; more is refused at once rather than kept for ever."""
CLOSE_S: Final = 15.0
"""Longer than SQLite waits for a lock."""
OPEN_S: Final = 60.0
"""Longer than a migration's wait for a lock, and its backup."""


class _Room:
    """One thread with one thing that only it touches."""

    def __init__(self, name: str, make: Callable[[], Any], end: Callable[[Any], None], where: str) -> None:
        self._calls: queue.Queue[tuple[Future[Any], Callable[[Any], Any]] | None] = queue.Queue(MAX_WAITING)
        self._where = where
        self._make = make
        self._end = end
        self._closing = False
        self.ready: Future[None] = Future()
        self.ended: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name=f"pollcore-store-{name}", daemon=True)
        self._thread.start()

    def call(self, work: Callable[[Any], T]) -> Future[T]:
        """Raises StoreUnusable: closed, or too much is waiting already."""
        if self._closing:
            raise StoreUnusable(f"store {self._where}: it was closed")
        future: Future[T] = Future()
        try:
            self._calls.put_nowait((future, work))
        except queue.Full:
            raise StoreUnusable(
                f"store {self._where}: {MAX_WAITING} calls wait for the disk already: check that it answers"
            ) from None
        if self.ended.done():  # it was put behind the thread's end
            self._refuse_rest()
        return future

    def close(self) -> None:
        """Ask the thread to end after what waits now; `ended` tells when."""
        if not self._closing:
            self._closing = True
            try:
                self._calls.put_nowait(None)
            except queue.Full:
                pass  # the thread sees the flag after its present call

    def _run(self) -> None:
        try:
            thing = self._make()
        except BaseException as error:
            self.ready.set_exception(error)
            self.ended.set_result(None)
            return
        self.ready.set_result(None)
        try:
            while (job := self._calls.get()) is not None:
                self._do(job, thing)
                if self._closing and self._calls.empty():
                    break
        finally:
            try:
                self._end(thing)
            finally:
                self.ended.set_result(None)
                self._refuse_rest()

    def _refuse_rest(self) -> None:
        while True:
            try:
                job = self._calls.get_nowait()
            except queue.Empty:
                return
            if job is not None and job[0].set_running_or_notify_cancel():
                job[0].set_exception(StoreUnusable(f"store {self._where}: it was closed"))

    def _do(self, job: tuple[Future[Any], Callable[[Any], Any]], thing: Any) -> None:
        future, work = job
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = work(thing)
        except sqlite3.Error as error:
            told = unusable(error, self._where, "reading it")
            told.__cause__ = error
            future.set_exception(told)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)


class _Reader:
    """The reading thread's two connections: one for records, one that only watches `data_version`."""

    def __init__(self, path: str, sealer: Sealer) -> None:
        self.reads = Reads(connecting.connect(path, read_only=True), sealer)
        self.feed = connecting.connect(path, read_only=True)

    def close(self) -> None:
        self.reads.conn.close()
        self.feed.close()


class ThreadedStore(StoreFace):
    """ports.Store for real use. Made by `open`; may be used from several event loops."""

    def __init__(self, path: str, writer: _Room, reader: _Room, *, is_still: bool = False) -> None:
        self.path = path
        self._is_still = is_still
        self._writer = writer
        self._reader = reader

    @classmethod
    async def open(
        cls,
        path: str,
        sealer: Sealer,
        audit: AuditLog,
        is_dead: Callable[[str], bool] = lambda _: False,
        *,
        when_full: bool = False,
    ) -> ThreadedStore:
        """Open the file (not `:memory:`), migrate it, start the threads. *when_full*: as `SqliteTurns`.

        Raises StoreUnusable.
        """
        if path == connecting.MEMORY:
            raise StoreUnusable("store :memory:: threads need a file: use InlineStore")

        def turns() -> SqliteTurns:
            return SqliteTurns(path, sealer, audit, is_dead, when_full=when_full)

        writer = _Room("writer", turns, SqliteTurns.close, path)
        await _within(writer.ready, OPEN_S, path)
        reader = _Room("reader", lambda: _Reader(path, sealer), _Reader.close, path)
        try:
            await _within(reader.ready, OPEN_S, path)
            is_still = when_full and await asyncio.wrap_future(writer.call(lambda turns: bool(turns.is_still)))
        except BaseException:
            writer.close()
            raise
        return cls(path, writer, reader, is_still=is_still)

    async def _write(self, call: Callable[[SqliteTurns], T]) -> T:
        self._refuse_old()
        return await asyncio.wrap_future(self._writer.call(call))

    async def _read(self, call: Callable[[Reads], T]) -> T:
        self._refuse_old()
        return await asyncio.wrap_future(self._reader.call(lambda r: call(r.reads)))

    def _refuse_old(self) -> None:
        """What was read while the disk was full may be old as soon as there is room. Raises StoreUnusable."""
        if self._is_still and not places.is_full(Path(self.path).parent):
            raise StoreUnusable(f"store {self.path}: the disk was full and has room again: start this command again")

    async def _version(self) -> int:
        self._refuse_old()
        work = self._reader.call(lambda r: int(r.feed.execute("PRAGMA data_version").fetchone()[0]))
        return await asyncio.wrap_future(work)

    async def close(self) -> None:
        """Finish what waits, close the file. Raises StoreUnusable if the disk does not let the threads end in time."""
        self._reader.close()
        self._writer.close()
        await _within(self._reader.ended, CLOSE_S, self.path)
        await _within(self._writer.ended, CLOSE_S, self.path)


async def _within(future: Future[None], seconds: float, where: str) -> None:
    try:
        async with asyncio.timeout(seconds):
            # shielded: giving up the wait must not cancel what the thread still does
            await asyncio.shield(asyncio.wrap_future(future))
    except TimeoutError:
        raise StoreUnusable(f"store {where}: the disk did not answer within {seconds:.0f} s: check it") from None
