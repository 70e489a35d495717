"""A provider of jobs on loopback HTTP that misbehaves as its cases say: an origin for each dialect, one thread.

Job: bytes in, bytes out: read one request, ask `Jobs` what it gets, write the answer with all its faults. Must not
know: which case is which, our operations. It listens on 127.0.0.1 alone, reads bounded requests, and ends with `stop`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from email.utils import formatdate
from typing import Final

from pollconsole.demo.dialects import DIALECTS
from pollconsole.demo.jobs import Jobs, body_of
from pollconsole.demo.lives import Reply
from pollcore.facts import Instant

HOST: Final = "127.0.0.1"
MAX_HEAD: Final = 16 * 1024
MAX_BODY: Final = 64 * 1024
IDLE_S: Final = 60.0
"""Real time: a connection that asks nothing for so long is closed."""
MAX_CONNECTIONS: Final = 500
START_LIMIT_S: Final = 10.0
STOP_LIMIT_S: Final = 5.0
JSON: Final = "application/json"
REASONS: Final = {200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 302: "Found", 503: "Unavailable"}


class _Asked:
    """One request as read."""

    def __init__(self, head: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        self.method, target, _ = first.split(" ", 2)
        self.path = target.partition("?")[0]
        pairs = (line.partition(":") for line in lines if line)
        self.headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        kind, _, secret = self.headers.get("authorization", "").partition(" ")
        self.token = digest(secret) if kind == "Bearer" else None


class Provider:
    """The server. `start` and `stop` from any thread, once each."""

    def __init__(self, jobs: Jobs, now: Callable[[], Instant]) -> None:
        self.jobs = jobs
        self._now = now
        self._urls: dict[str, str] = {}
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._failed: BaseException | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._run, name="demo-provider", daemon=True)

    @property
    def urls(self) -> Mapping[str, str]:
        """{provider: base URL}, once started."""
        return self._urls

    def start(self) -> None:
        """Listen. Raises OSError: no port; TimeoutError: not within START_LIMIT_S."""
        self._thread.start()
        if not self._ready.wait(START_LIMIT_S):
            raise TimeoutError("the demo's provider did not start")
        if self._failed is not None:
            raise self._failed

    def stop(self) -> None:
        """Close every connection and end the thread, within STOP_LIMIT_S."""
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(stop.set)
            self._thread.join(STOP_LIMIT_S)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._failed = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        servers = []
        try:
            for name in DIALECTS:
                server = await asyncio.start_server(self._connection(name), HOST, 0, limit=MAX_HEAD)
                servers.append(server)
                self._urls[name] = f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
            self._ready.set()
            await self._stop.wait()
        finally:
            for server in servers:
                server.close()
            for writer in tuple(self._open):
                writer.transport.abort()

    def _connection(self, provider: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if len(self._open) >= MAX_CONNECTIONS:
                writer.transport.abort()
                return
            self._open.add(writer)
            try:
                while await self._exchange(provider, reader, writer):
                    pass
            except (OSError, EOFError, ValueError, TimeoutError, asyncio.LimitOverrunError):
                pass  # whoever sent that gets no answer
            finally:
                self._open.discard(writer)
                writer.close()

        return serve

    async def _exchange(self, provider: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; False: the connection ends."""
        async with asyncio.timeout(IDLE_S):
            head = await reader.readuntil(b"\r\n\r\n")
            asked = _Asked(head[:-4])
            length = int(asked.headers.get("content-length", "0"))
            if not 0 <= length <= MAX_BODY:
                return False
            await reader.readexactly(length)
        reply, body, request_id = self._answer(provider, asked)
        if reply.slow_s:
            await asyncio.sleep(reply.slow_s)
        if reply.not_http:
            writer.write(b"220 files ready\r\n\r\n")
            await writer.drain()
            return False
        head = self._head(reply, len(body), request_id)
        writer.write(head + (body[: len(body) // 2] if reply.cut else body))
        await writer.drain()
        return not reply.cut

    def _answer(self, provider: str, asked: _Asked) -> tuple[Reply, bytes, str]:
        """The reply, its body and the request's id."""
        parts = asked.path.strip("/").split("/")
        now, base = self._now(), self._urls[provider]
        if parts[0] == "results":
            return Reply(), b'{"rows": []}', f"req-result-{parts[-1]}"
        if asked.method == "POST" and parts[-1] == "jobs":
            reply, job_id = self.jobs.submit(provider, asked.headers.get("idempotency-key"), asked.token, now)
            return reply, self._body(provider, job_id, reply, None, base, now), f"req-submit-{job_id}"
        if asked.method == "DELETE" or parts[-1] == "cancel":
            job_id = parts[-2] if parts[-1] == "cancel" else parts[-1]
            reply = self.jobs.cancel(provider, job_id, asked.token, now)
            return reply, self._body(provider, job_id, reply, None, base, now), f"req-cancel-{job_id}"
        job_id = parts[-1]
        reply, progress, number = self.jobs.status(provider, job_id, asked.token, now)
        return reply, self._body(provider, job_id, reply, progress, base, now), f"req-{job_id}-{number}"

    @staticmethod
    def _body(provider: str, job_id: str, reply: Reply, progress: int | None, base: str, now: Instant) -> bytes:
        if reply.raw is not None:
            return reply.raw.encode("utf-8", "surrogatepass")
        if reply.status == 204:
            return b""
        return json.dumps(body_of(provider, job_id, reply, progress, base, now)).encode()

    def _head(self, reply: Reply, length: int, request_id: str) -> bytes:
        now_s = self._now() / 1_000
        lines = {
            "Date": formatdate(int(now_s + reply.date_off), usegmt=True),
            "Content-Type": reply.media,
            "X-Request-Id": request_id,
            **reply.headers,
        }
        if reply.retry_date is not None:
            lines["Retry-After"] = formatdate(int(now_s + reply.date_off + reply.retry_date), usegmt=True)
        if reply.status != 204:
            lines["Content-Length"] = str(length)
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"HTTP/1.1 {reply.status} {REASONS.get(reply.status, 'Demo')}\r\n{text}\r\n".encode("latin-1")


def digest(secret: str) -> str:
    """By which the provider knows a token."""
    return hashlib.sha256(secret.encode()).hexdigest()
