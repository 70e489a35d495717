"""Dials: from a host name to a connection, and what went wrong in words.

Job: resolve aside, try addresses in turn, all within CONNECT_S; the pipe between asyncio's callbacks and one coroutine.
Must not know: HTTP, requests, secrets.
Source: spec B4, H7.
"""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
from collections import deque
from collections.abc import Callable
from typing import Final

from pollcore.adapters.address import is_loopback
from pollcore.adapters.aside import Aside
from pollcore.facts import FaultKind

CONNECT_S: Final = 5.0
"""Name and connection together; the TLS handshake has as long again."""
MAX_ADDRESSES: Final = 4
_HIGH_WATER: Final = 64 * 1024
_RESOLVER: Final = Aside("resolve", threads=16)

_VERIFY: Final = {
    10: "its certificate has expired",
    9: "its certificate is not valid yet",
    18: "its certificate is self-signed",
    19: "a self-signed certificate is in its chain",
    20: "its issuer is not known here",
    21: "its certificate cannot be verified",
    62: "its certificate is for another host name",
    64: "its certificate is for another address",
}


class WireFault(Exception):
    """The connection failed. *kind* says how, *text* is ours: no peer bytes, no address."""

    def __init__(self, kind: FaultKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


class Pipe(asyncio.Protocol):
    """Bytes between the loop's callbacks and the one coroutine that reads and writes."""

    __slots__ = ("chunks", "ended", "held", "lost", "size", "transport", "waiter", "writable")

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.chunks: deque[bytes] = deque()
        self.size = 0
        self.held = False
        self.ended = False
        self.lost = False
        self.writable = True
        self.waiter: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(0)

    def data_received(self, data: bytes) -> None:
        self.chunks.append(data)
        self.size += len(data)
        if self.size > _HIGH_WATER and not self.held and self.transport is not None:
            self.held = True
            self.transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self.ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = self.lost or exc is not None
        self.ended = True
        self.writable = True
        self._wake()

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        self._wake()

    async def wait(self) -> None:
        """Until something changed."""
        self.waiter = asyncio.get_running_loop().create_future()
        try:
            await self.waiter
        finally:
            self.waiter = None

    def take(self, size: int) -> bytes:
        chunk = self.chunks.popleft()
        if len(chunk) > size:
            self.chunks.appendleft(chunk[size:])
            chunk = chunk[:size]
        self.size -= len(chunk)
        if self.held and self.size <= _HIGH_WATER and self.transport is not None and not self.transport.is_closing():
            self.held = False
            self.transport.resume_reading()
        return chunk

    def _wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)


async def dial(host: str, port: int) -> tuple[asyncio.Transport, Pipe]:
    """Try each address of *host* in the resolver's order, each with a fair share of the time left."""
    loop = asyncio.get_running_loop()
    end = loop.time() + CONNECT_S
    addresses = await _resolve(host, port)
    why = "the connection was refused"
    for left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
        try:
            async with asyncio.timeout(max(0.2, (end - loop.time()) / left)):
                transport, pipe = await loop.create_connection(Pipe, address, port)
                return transport, pipe
        except TimeoutError:
            if left == 1:
                raise
        except OSError as error:
            why = "the connection was refused" if isinstance(error, ConnectionRefusedError) else "no way to the host"
    raise WireFault(FaultKind.CONNECTION_REFUSED, why)


async def _resolve(host: str, port: int) -> list[str]:
    """Addresses of *host*, aside: the loop's own pool is small, and would hold the exit while a resolver hangs."""
    if ":" in host or (host != "localhost" and is_loopback(host)):
        return [host]
    try:
        found = await _RESOLVER.acall(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), CONNECT_S)
    except (OSError, UnicodeError) as error:
        if isinstance(error, TimeoutError):
            raise
        found = []
    addresses = list(dict.fromkeys(str(info[4][0]) for info in found))[:MAX_ADDRESSES]
    if not addresses:
        raise WireFault(FaultKind.DNS, "the host name was not resolved")
    return addresses


def tls_fault(error: Exception) -> WireFault:
    if isinstance(error, TimeoutError):
        return WireFault(FaultKind.CONNECT_TIMEOUT, f"no TLS handshake within {CONNECT_S:.0f} s")
    if isinstance(error, ssl.SSLCertVerificationError):
        why = _VERIFY.get(error.verify_code, f"verification error {error.verify_code}")
        return WireFault(FaultKind.TLS, f"the provider's identity is not proved: {why}; own roots: [network] ca_file")
    if isinstance(error, ssl.SSLError):
        return WireFault(FaultKind.TLS, "the TLS handshake failed")
    return WireFault(FaultKind.RESET, "the connection ended during the TLS handshake")


def poller(transport: asyncio.Transport) -> Callable[[], bool]:
    """Ask the system whether the socket has something to read or has ended: sees what the loop has not yet read."""
    sock = transport.get_extra_info("socket")
    if sock is None or not hasattr(select, "poll"):
        return lambda: False
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)
    return lambda: bool(poll.poll(0))
