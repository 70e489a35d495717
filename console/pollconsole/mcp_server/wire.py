"""Lines of a client on standard input -> messages; messages -> lines on standard output; both within limits.

Job: the transport of the protocol, for a client that floods, never reads or leaves. Must not know: tools, the core.
The library's own transport takes requests without a limit and cannot end while standard output is blocked. Here reading
stops while MAX_UNANSWERED requests want their answer, one answer at a time waits for the client, and the threads that
may hang in a read or a write are left behind when the client is gone. Source: spec G5 (an agent is not trusted).
"""

from __future__ import annotations

import asyncio
import os
import queue
import select
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import asynccontextmanager, contextmanager, suppress
from time import monotonic
from typing import Any, Final

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import ServerMessageMetadata, SessionMessage

from pollconsole.mcp_server import answers, tools
from pollconsole.safe import safe

MAX_UNANSWERED: Final = tools.MAX_WAITS + 28
"""Requests whose answers are not written yet; then nothing is read. More than waits: those alone stop nothing."""
MAX_LINE: Final = 262_144
"""Bytes of one line; a longer one is skipped and told."""
MAX_ID: Final = 200
"""Characters of a request's id; it comes back with the answer."""
MAX_NAMED: Final = 100
"""Characters of a client's own text that an error names."""
CHUNK: Final = 8_192
POLL_MS: Final = 100
STALL_S: Final = 0.75
"""Seconds without a step after the client closed its side; then what it still wants is dropped."""

In = MemoryObjectReceiveStream[SessionMessage | Exception]
Out = MemoryObjectSendStream[SessionMessage]
_GONE: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


@asynccontextmanager
async def standard() -> AsyncIterator[tuple[In, Out]]:
    """Messages over standard input and output; meanwhile stray output goes to standard error."""
    with _claimed() as (source, sink):
        async with over(source, sink) as streams:
            yield streams


@asynccontextmanager
async def over(source: int, sink: int) -> AsyncIterator[tuple[In, Out]]:
    """Messages over two descriptors, which stay open."""
    wire = _Wire(source, sink)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.write_all)
        threading.Thread(target=wire.read_all, name="mcp-read", daemon=True).start()
        try:
            yield wire.read, wire.write
        finally:
            wire.stop()
            with anyio.move_on_after(STALL_S, shield=True):
                await wire.flushed.wait()
            tasks.cancel_scope.cancel()


class _Wire:
    """Two threads that may block, and the loop between them. Made inside the loop."""

    def __init__(self, source: int, sink: int) -> None:
        self._source, self._sink = source, sink
        self._loop = asyncio.get_running_loop()
        self._deliver, self.read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self.write, self._taken = anyio.create_memory_object_stream[SessionMessage](0)
        self._own = self.write.clone()
        self._room = asyncio.Semaphore(MAX_UNANSWERED)
        self._lines: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = queue.SimpleQueue()
        self.stopped = threading.Event()
        self.flushed = anyio.Event()

    def stop(self) -> None:
        """Nothing more is read; what was taken may still be written."""
        self.stopped.set()
        self._own.close()

    # --- reading, in a thread -----------------------------------------------------------------------------------------

    def read_all(self) -> None:
        """Until the client closes its side, or we stopped."""
        stalled = False
        try:
            for line in self._split():
                if not self._handed(line):
                    stalled = True
                    break
        finally:
            with suppress(RuntimeError):  # the loop is over
                asyncio.run_coroutine_threadsafe(self._ended(0 if stalled else STALL_S), self._loop)

    def _split(self) -> Iterator[bytes | None]:
        """Lines; None for one that is too long. No more than a line and a chunk is held."""
        poller, held, skipping = select.poll(), b"", False
        poller.register(self._source, select.POLLIN)
        while not self.stopped.is_set():
            if not poller.poll(POLL_MS):
                continue
            try:
                chunk = os.read(self._source, CHUNK)
            except OSError:
                return
            if not chunk:
                if held and not skipping:
                    yield held
                return
            *whole, held = (held + chunk).split(b"\n")
            for line in whole:
                if skipping:
                    skipping = False
                else:
                    yield line if len(line) <= MAX_LINE else None
            if skipping or len(held) > MAX_LINE:
                if not skipping:
                    yield None
                held, skipping = b"", True

    def _handed(self, line: bytes | None) -> bool:
        """False: nothing takes it any more, or the client left and nothing moves."""
        poller, left_at = select.poll(), None
        poller.register(
            self._source, getattr(select, "POLLRDHUP", 0)
        )  # reports the hang-up behind what is not read yet
        try:
            job: Future[None] = asyncio.run_coroutine_threadsafe(self._take(line), self._loop)
        except RuntimeError:
            return False
        while True:
            try:
                job.result(POLL_MS / 1000)
                return True
            except TimeoutError:
                if left_at is None and poller.poll(0):
                    left_at = monotonic()
                if self.stopped.is_set() or (left_at is not None and monotonic() - left_at > STALL_S):
                    job.cancel()
                    return False
            except (*_GONE, CancelledError):
                return False

    # --- in the loop --------------------------------------------------------------------------------------------------

    async def _take(self, line: bytes | None) -> None:
        if line is None:
            await self._refuse(f"a line is longer than {MAX_LINE} bytes and was skipped; send less in one message")
            return
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            await self._deliver.send(ValueError("a line is no message of the protocol"))
            return
        if not isinstance(message, types.JSONRPCRequest):
            await self._deliver.send(SessionMessage(message))
            return
        if len(str(message.id)) > MAX_ID:
            await self._refuse(f"an id is longer than {MAX_ID} characters; send a shorter one")
            return
        await self._room.acquire()
        try:
            metadata = ServerMessageMetadata(on_request_unanswered=self._unanswered)
            await self._deliver.send(SessionMessage(message, metadata=metadata))
        except BaseException:
            self._room.release()
            raise

    async def _unanswered(self) -> None:
        """The client took a request back; no answer of it will be written."""
        self._room.release()

    async def _refuse(self, why: str) -> None:
        error = types.ErrorData(code=types.INVALID_REQUEST, message=why)
        await self._own.send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=None, error=error)))

    async def _ended(self, patience: float) -> None:
        """The client closed its side: what is under way may end within *patience* seconds."""
        self._deliver.close()
        self._own.close()
        with anyio.move_on_after(patience):
            await self.flushed.wait()
        self._taken.close()
        self.flushed.set()  # or given up: the writer may hang in its thread

    async def write_all(self) -> None:
        """One message after the other, each written before the next is taken."""
        threading.Thread(target=self._put_all, name="mcp-write", daemon=True).start()
        try:
            async for item in self._taken:
                written: asyncio.Future[None] = self._loop.create_future()
                self._lines.put((encoded(item.message), written))
                await written
                if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError) and item.message.id is not None:
                    self._room.release()
        except _GONE:
            pass
        finally:
            self._lines.put(None)
            self._deliver.close()  # a client that takes no answer asks no more
            self._taken.close()
            self.flushed.set()

    # --- writing, in a thread -----------------------------------------------------------------------------------------

    def _put_all(self) -> None:
        while (item := self._lines.get()) is not None:
            left, written = memoryview(item[0]), item[1]
            failed: OSError | None = None
            try:
                while left:
                    left = left[os.write(self._sink, left) :]
            except OSError as error:
                failed = error
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_settle, written, failed)


def _settle(written: asyncio.Future[None], failed: OSError | None) -> None:
    if written.done():
        return
    if failed is None:
        written.set_result(None)
    else:
        written.set_exception(failed)


def encoded(message: types.JSONRPCMessage) -> bytes:
    """One line. An error is made harmless and short: the library puts a client's own words into it whole."""
    if isinstance(message, types.JSONRPCError):
        message = message.model_copy(update={"error": _bounded(message.error)})
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


def _bounded(error: types.ErrorData) -> types.ErrorData:
    given: dict[str, Any] = {"code": error.code, "message": safe(error.message, answers.MAX_TEXT)}
    if error.data is not None:
        named = isinstance(error.data, str)
        given["data"] = safe(error.data, MAX_NAMED) if named else answers.bounded(error.data)
    return types.ErrorData(**given)


@contextmanager
def _claimed() -> Iterator[tuple[int, int]]:
    """Copies of descriptors 0 and 1; those lead to nothing and to standard error meanwhile."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        yield source, sink
    finally:
        # the copies stay open: a thread may hang in one of them, and its number must not lead elsewhere
        os.dup2(source, 0)
        os.dup2(sink, 1)
