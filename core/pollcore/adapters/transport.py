"""Sends one request, reads one bounded answer (port `Transport`).

Job: run one exchange inside its limits over one httpx connection, and say what is certain about it. It follows nothing,
retries nothing, keeps no cookies, logs nothing, reads nothing from the environment. The only file that imports httpx.
Must not know: contracts, decisions, keyrings.

One exception to "retries nothing": an idle connection that had ended before the first byte of the request was written
is replaced, at most MAX_DEAD times and then by a new one. `wire.Wire.write` is the only writer, refuses that first
write itself, and so proves that nothing left. Once a byte was written, a lost connection is a Fault with
`may_have_been_sent`, and nothing goes out again.

Source: spec H2, H7, K3, K4, B4; RFC 9112 sections 6.3, 9.3.1.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import certifi
import httpcore
import httpx

from pollcore.adapters.address import is_loopback, parse_address
from pollcore.adapters.body import BodyFault, read_head
from pollcore.adapters.dial import WireFault
from pollcore.adapters.fill import Filled, Unsendable, fill
from pollcore.adapters.pinned import scrubber_of
from pollcore.adapters.slots import IDLE_S, MAX_CONNECTIONS, Slots
from pollcore.adapters.user_files import read_plain
from pollcore.adapters.wire import DeadConnection, Line, LineBackend, Meter, Wire
from pollcore.facts import Answer, Fault, FaultKind, Refused, Request, Secret
from pollcore.ports import Clock

MAX_TOTAL_MS: Final = 600_000
"""No exchange lasts longer, whatever a contract asks of a long poll."""
MAX_CA_BYTES: Final = 16 << 20
"""Of a file of TLS roots."""
MAX_DEAD: Final = 3
_LIMITS: Final = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=None)


class HttpTransport:
    """The real `Transport`. For one event loop."""

    def __init__(
        self,
        clock: Clock,
        *,
        ca_file: Path | None = None,
        proxy: str | None = None,
        connections: int = MAX_CONNECTIONS,
        idle_s: float = IDLE_S,
    ) -> None:
        """*ca_file*: roots that replace the built-in ones. *proxy*: for everything but loopback; no user part.

        Raises:
            Refused: *ca_file* cannot be read, *proxy* is no plain http or https address.
        """
        self._now: Callable[[], Any] = lambda: clock.now().wall
        self._tls = tls_context(ca_file)
        self._proxy = _proxy_origin(proxy)
        self._slots: Slots[_Seat] = Slots(lambda origin: _Seat(origin, self._tls, self._proxy), connections, idle_s)
        self._closed = False

    @property
    def open_connections(self) -> int:
        """Connections that exist now, idle ones included."""
        return self._slots.open

    async def send(self, request: Request, secret: Secret | None) -> Answer | Fault:
        """One exchange. Never raises but for cancellation; ends within `request.total_ms`, at most MAX_TOTAL_MS."""
        exchange = _Exchange(self._slots, self._now)
        try:
            if self._closed:
                raise Unsendable(FaultKind.NOT_SENT, "the transport is closed; nothing was sent")
            async with asyncio.timeout(max(0, min(request.total_ms, MAX_TOTAL_MS)) / 1_000):
                answer = await exchange.run(fill(request, secret))
        except asyncio.CancelledError as cancelled:
            # frames below hold the filled request
            raise cancelled.with_traceback(None) from None
        except TimeoutError:
            return exchange.late(request.total_ms)
        except Exception as error:
            return exchange.failed(error)
        return _scrubbed(answer, secret)

    async def aclose(self) -> None:
        """Close all connections; exchanges that run end as faults."""
        self._closed = True
        self._slots.close()
        # the loop closes sockets in its next round
        await asyncio.sleep(0)


class _Seat:
    """One httpx transport that holds at most one connection, over a wire of ours."""

    def __init__(self, origin: str, tls: ssl.SSLContext, proxy: str | None) -> None:
        self.idle_since = 0.0
        self.line = Line()
        self.url = httpx.URL(origin)
        address = parse_address(origin)
        if (self.url.raw_scheme, self.url.raw_host) != (address.scheme.encode(), address.host.encode()):
            raise Unsendable(FaultKind.FOREIGN_ORIGIN, "the address is read in two ways; nothing was sent")
        self.http = httpx.AsyncHTTPTransport(verify=tls, trust_env=False, limits=_LIMITS)
        # httpx offers no way to hand in the network backend that httpcore documents, so the pool is replaced; that it
        # took effect is checked on every answer (`_Exchange._on_our_wire`), so a change in httpx fails closed
        self._proxy = None if is_loopback(address.host) else proxy
        self.http._pool = _pool(tls, self._proxy, LineBackend(self.line))

    def request(self, filled: Filled) -> httpx.Request:
        """The request with its target byte for byte, past httpx's own reading of addresses.

        Raises:
            Unsendable: through a proxy's tunnel httpcore would put a target of ours into the CONNECT as well, so there
                httpx's reading counts, and an address that it would change is refused.
        """
        url, extensions = self.url, {"target": filled.target}
        if self._proxy is not None and filled.address.scheme == "https":
            url, extensions = httpx.URL(filled.address.origin + filled.target.decode()), {}
            if url.raw_path != filled.target:
                raise Unsendable(
                    FaultKind.PROTOCOL, "the address cannot go through a proxy unchanged; nothing was sent"
                )
        elif self._proxy is not None:
            extensions = {"target": filled.address.origin.encode() + filled.target}
        return httpx.Request(
            filled.method, url, headers=filled.headers, stream=_Content(filled.body), extensions=extensions
        )

    @property
    def is_fresh(self) -> bool:
        return self.line.is_fresh

    def cut(self) -> None:
        self.line.cut()

    def has_leftover(self) -> bool:
        """Bytes after the answer are in the parser: they would be read as the answer to the next request.

        httpcore shows them nowhere; where they cannot be looked up, the connection is not used again.
        """
        found: Any = next(iter(self.http._pool.connections), None)
        for _ in range(3):
            state = getattr(found, "_h11_state", None)
            if state is not None:
                return bool(state.trailing_data[0])
            found = getattr(found, "_connection", None)
        return True


class _Exchange:
    """One request and its answer, with what is known if it fails."""

    def __init__(self, slots: Slots[_Seat], now: Callable[[], Any]) -> None:
        self._slots = slots
        self._now = now
        self._meter: Meter | None = None

    async def run(self, filled: Filled) -> Answer:
        """Raises what `failed` understands."""
        for dead in range(MAX_DEAD + 1):
            seat, reused = await self._slots.take(filled.address.origin, new=dead == MAX_DEAD)
            seat.line.meter = self._meter = Meter(self._now, reused=reused, secure=filled.address.scheme == "https")
            clean = False
            try:
                answer, clean = await self._one(seat, filled, self._meter)
                return answer
            except DeadConnection:
                if not reused:
                    raise
            finally:
                seat.line.meter = None
                self._slots.give(filled.address.origin, seat, clean=clean)
        raise DeadConnection

    async def _one(self, seat: _Seat, filled: Filled, meter: Meter) -> tuple[Answer, bool]:
        """The answer, and whether the connection may be used again."""
        response = await seat.http.handle_async_request(seat.request(filled))
        self._on_our_wire(seat, response)
        meter.head_done = True
        headers, body = read_head(filled.method, response.status_code, response.headers.raw)
        stream = response.stream
        assert isinstance(stream, httpx.AsyncByteStream)
        async for chunk in stream:
            if chunk:
                body.feed(chunk)
        await stream.aclose()
        content = body.finish()
        sent_at = meter.sent_at
        if sent_at is None:
            raise WireFault(FaultKind.PROTOCOL, "the provider answered before it was asked")
        status = response.status_code
        return Answer(status, headers, content, sent_at, self._now()), not seat.has_leftover()

    @staticmethod
    def _on_our_wire(seat: _Seat, response: httpx.Response) -> None:
        if not isinstance(response.extensions.get("network_stream"), Wire):
            seat.cut()
            raise WireFault(FaultKind.PROTOCOL, "this version of httpx bypasses our connection: not supported")

    def late(self, total_ms: int) -> Fault:
        """The time ran out."""
        if self._meter is None:
            return self._fault(FaultKind.NOT_SENT, f"no connection was free within {total_ms} ms; nothing was sent")
        if not self._meter.written:
            return self._fault(FaultKind.CONNECT_TIMEOUT, f"no connection within {total_ms} ms; nothing was sent")
        return self._fault(FaultKind.TIMEOUT, f"no complete answer within {total_ms} ms")

    def failed(self, error: Exception) -> Fault:
        """What *error* means. Its own text is never used: it may quote the provider or the address."""
        if isinstance(error, Unsendable | WireFault | BodyFault):
            return self._fault(error.kind, error.text)
        if isinstance(error, DeadConnection):
            return self._fault(FaultKind.RESET, "the connection ended before the request; nothing was sent")
        if isinstance(error, httpx.RemoteProtocolError):
            if self._meter is not None and self._meter.ended:
                return self._fault(FaultKind.CUT_OFF, "the connection ended before the answer was complete")
            return self._fault(FaultKind.PROTOCOL, "the answer is no valid HTTP")
        if isinstance(error, httpx.ProxyError):
            return self._fault(FaultKind.CONNECTION_REFUSED, "the configured proxy refused the connection")
        return self._fault(FaultKind.PROTOCOL, f"the exchange failed: {type(error).__name__}")

    def _fault(self, kind: FaultKind, text: str) -> Fault:
        return Fault(kind, self._meter is not None and self._meter.written, self._now(), text)


class _Content(httpx.AsyncByteStream):
    """The request's body, in one piece."""

    __slots__ = ("_body",)

    def __init__(self, body: bytes | None) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._body:
            yield self._body


def _scrubbed(answer: Answer, secret: Secret | None) -> Answer:
    """K4: our own secret is gone before anyone reads or stores the answer."""
    if secret is None:
        return answer
    scrubber = scrubber_of(secret)
    headers, body = scrubber.headers(answer.headers), scrubber.bytes(answer.body)
    if headers is answer.headers and body is answer.body:
        return answer
    return Answer(answer.status, headers, body, answer.sent_at, answer.answered_at)


def tls_context(ca_file: Path | None = None) -> ssl.SSLContext:
    """Roots from *ca_file*, else certifi's. Built by hand: `create_default_context` obeys SSLKEYLOGFILE.

    Raises:
        Refused: *ca_file* is missing, unreadable or holds no certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if ca_file is not None:
            read_plain(ca_file, MAX_CA_BYTES)  # a FIFO would hold up the TLS library
        context.load_verify_locations(cafile=str(ca_file or certifi.where()))
    except (OSError, ssl.SSLError):
        raise Refused(
            f"config.toml: network.ca_file: no readable certificates in {ca_file}; name a PEM file of roots, or "
            "leave it out for those that ship",
            code="config",
            key="network.ca_file",
        ) from None
    return context


def _proxy_origin(proxy: str | None) -> str | None:
    if proxy is None:
        return None
    try:
        return parse_address(proxy).origin
    except ValueError as error:
        why = str(error)
    raise Refused(f"config.toml: network.proxy: {why}", code="config", key="network.proxy")


def _pool(tls: ssl.SSLContext, proxy: str | None, backend: LineBackend) -> httpcore.AsyncConnectionPool:
    if proxy is None:
        return httpcore.AsyncConnectionPool(ssl_context=tls, max_connections=1, network_backend=backend)
    over_tls = tls if proxy.startswith("https:") else None
    return httpcore.AsyncHTTPProxy(
        proxy, ssl_context=tls, proxy_ssl_context=over_tls, max_connections=1, network_backend=backend
    )
