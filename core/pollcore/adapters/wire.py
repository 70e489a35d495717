"""The connection under httpcore: asyncio, counted.

Job: dial, speak TLS, and know for certain what an HTTP library hides: whether any byte of the request left, whether an
idle connection died before that, how much came in, whether it ended. Built on httpcore's own extension point
(`AsyncNetworkBackend`). Must not know: HTTP, contracts, secrets.
Source: spec B4 ("sent" and "answered" are facts), H7; RFC 9112 section 9.3.1 (a closing race on an idle connection).
"""

# the signatures are httpcore's: one limit bounds the whole exchange, its own are not used
# ruff: noqa: ARG002

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterable
from typing import Any, Final

import httpcore

from pollcore.adapters.dial import CONNECT_S, Pipe, WireFault, dial, poller, tls_fault
from pollcore.facts import FaultKind, Instant

MAX_HEAD_WIRE: Final = 96 * 1024
"""Bytes before the head of the answer is complete: bounds endless 1xx answers and header floods."""
MAX_ALL_WIRE: Final = 512 * 1024
"""Bytes of one answer, framing included: bounds endless chunk extensions and trailers."""


class DeadConnection(Exception):
    """The idle connection had ended (or spoken unasked) before the first byte of the request: nothing was written."""


class Meter:
    """What is certain about one exchange."""

    __slots__ = ("clock", "ended", "head_done", "received", "reused", "secure", "sent_at", "written")

    def __init__(self, clock: Callable[[], Instant], *, reused: bool, secure: bool) -> None:
        self.clock = clock
        self.reused = reused
        self.secure = secure
        """The request goes out over TLS: what is written before that is a proxy's CONNECT."""
        self.written = False
        """A byte of the request may have left."""
        self.sent_at: Instant | None = None
        self.received = 0
        self.head_done = False
        self.ended = False
        """The peer ended the connection."""

    def take(self, count: int) -> None:
        """Count *count* bytes. Raises WireFault: more than one answer may have."""
        self.received += count
        if self.received > (MAX_ALL_WIRE if self.head_done else MAX_HEAD_WIRE):
            what = "the answer" if self.head_done else "the head of the answer"
            limit = MAX_ALL_WIRE if self.head_done else MAX_HEAD_WIRE
            raise WireFault(FaultKind.TOO_LARGE, f"{what} is larger than {limit} bytes on the wire")


class Line:
    """One connection's seat: the meter of the exchange that runs on it, and the wire itself once it is up."""

    __slots__ = ("meter", "wire")

    def __init__(self) -> None:
        self.meter: Meter | None = None
        self.wire: Wire | None = None

    @property
    def is_fresh(self) -> bool:
        """A connection is up, nothing came in since the last answer, and it has not ended."""
        return self.wire is not None and not self.wire.has_news

    def cut(self) -> None:
        """End the connection now, without waiting for anything: safe while being cancelled."""
        if self.wire is not None:
            self.wire.cut()


class Wire(httpcore.AsyncNetworkStream):
    """One connection as httpcore sees it. Its own time limits are ignored: one limit bounds the whole exchange."""

    def __init__(self, line: Line, pipe: Pipe, transport: asyncio.Transport, *, secure: bool) -> None:
        self._line = line
        self._pipe = pipe
        self._transport = transport
        self._secure = secure
        self._poll = poller(transport)

    @property
    def has_news(self) -> bool:
        """Bytes that nobody asked for, or the end."""
        return bool(self._pipe.chunks) or self._pipe.ended or self._transport.is_closing()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        pipe, meter = self._pipe, self._line.meter
        while not pipe.chunks:
            if pipe.lost:
                raise WireFault(FaultKind.RESET, "the provider reset the connection")
            if pipe.ended:
                if meter is not None:
                    meter.ended = True
                return b""
            await pipe.wait()
        data = pipe.take(max_bytes)
        if meter is not None:
            meter.take(len(data))
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        meter, pipe = self._line.meter, self._pipe
        if not buffer:
            return
        if meter is not None and not meter.written and (self._secure or not meter.secure):
            # the last moment at which "nothing was written" can still be known
            if self.has_news or (meter.reused and self._poll()):
                raise DeadConnection
            meter.written = True
            meter.sent_at = meter.clock()
        elif pipe.ended:
            # the provider may have answered early and closed: let the reader see it
            return
        self._transport.write(buffer)
        while not pipe.writable:
            await pipe.wait()

    async def aclose(self) -> None:
        self.cut()

    def cut(self) -> None:
        """End the connection at once."""
        self._pipe.ended = True
        self._transport.abort()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        if self._pipe.chunks:
            # plain bytes before the handshake must never be read as if TLS had carried them
            self.cut()
            raise WireFault(FaultKind.TLS, "the provider spoke before the TLS handshake")
        if self._line.meter is not None:
            # TLS inside TLS: what went to the proxy was its CONNECT, none of it the request
            self._line.meter.written = False
        try:
            async with asyncio.timeout(CONNECT_S):
                transport = await asyncio.get_running_loop().start_tls(
                    self._transport, self._pipe, ssl_context, server_hostname=server_hostname
                )
        except BaseException as error:
            self.cut()
            if not isinstance(error, Exception):
                raise
            fault = tls_fault(error)
        else:
            if transport is None:
                raise WireFault(FaultKind.RESET, "the provider reset the connection during the TLS handshake")
            self._pipe.transport = transport
            transport.set_write_buffer_limits(0)
            self._line.wire = Wire(self._line, self._pipe, transport, secure=True)
            return self._line.wire
        raise fault

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":
            return self.has_news
        return self._transport.get_extra_info({"ssl_object": "ssl_object", "socket": "socket"}.get(info, info))


class LineBackend(httpcore.AsyncNetworkBackend):
    """Dials for one line."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        fault: WireFault
        try:
            async with asyncio.timeout(CONNECT_S):
                transport, pipe = await dial(host, port)
        except TimeoutError:
            fault = WireFault(FaultKind.CONNECT_TIMEOUT, f"no connection within {CONNECT_S:.0f} s")
        except WireFault as error:
            fault = WireFault(error.kind, error.text)
        else:
            self._line.wire = Wire(self._line, pipe, transport, secure=False)
            return self._line.wire
        raise fault

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        raise WireFault(FaultKind.PROTOCOL, "no requests over local sockets")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
