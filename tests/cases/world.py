"""A provider on real loopback HTTP and a clock that jumps over waits: what a case of tests/data/cases.json runs in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from pollcore.facts import BootMs, Instant, Moment

SLICE_MS = 15_000


class JumpingClock:
    """Wall and boot clock that stand still while a request is out, and jump over every wait of the loop."""

    def __init__(self, start: Instant) -> None:
        self._wall = int(start)
        self._boot = 10_000_000
        self.requests_out = 0
        self.frozen = False
        """Nothing more becomes due: a process dies in this moment."""
        self.at: list[tuple[int, Callable[[], None]]] = []
        """(boot time, what happens then): a step of the wall clock, a suspend."""

    def now(self) -> Moment:
        return Moment(Instant(self._wall), BootMs(self._boot), "boot-of-the-case")

    def jump(self, ms: int) -> None:
        """All clocks run on by *ms*."""
        self._wall += ms
        self._boot += ms
        for due in [one for one in self.at if one[0] <= self._boot]:
            self.at.remove(due)
            due[1]()

    def step(self, ms: int) -> None:
        """The wall clock alone is set."""
        self._wall += ms

    async def wait(self, event: asyncio.Event, ms: int) -> None:
        """Jump, unless a request is out: then its answer ends the wait in real time."""
        for _ in range(3):
            await asyncio.sleep(0)
        if event.is_set():
            return
        if self.requests_out or self.frozen:
            try:
                async with asyncio.timeout(0.05):
                    await event.wait()
            except TimeoutError:
                return
            return
        self.jump(max(1, min(ms, SLICE_MS, *(at - self._boot for at, _ in self.at))))


class Provider:
    """Answers by script, job by job; counts what it saw, and when."""

    def __init__(self, clock: JumpingClock, scripts: dict[str, list[dict[str, Any]]]) -> None:
        self._clock = clock
        self._scripts = scripts
        self.seen: list[tuple[str, Instant]] = []
        self.cancels = 0
        self.cancel_answer: dict[str, Any] | None = None
        self.headers: list[dict[str, str]] = []
        self.before_answer: Callable[[int], None] = lambda n: None
        self.after_answer: Callable[[int], None] = lambda n: None

    async def __aenter__(self) -> Provider:
        self._server = await asyncio.start_server(self._one, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    def of(self, job: str) -> list[Instant]:
        """When the status of *job* was asked."""
        return [at for seen, at in self.seen if seen == job]

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                headers: dict[str, str] = {}
                while (raw := await reader.readline()).strip():
                    name, _, value = raw.decode("latin-1").partition(":")
                    headers[name.strip().lower()] = value.strip()
                await reader.readexactly(int(headers.get("content-length", 0)))
                path = line.split()[1].decode()
                if not await self._answer(path, headers, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, path: str, headers: dict[str, str], writer: asyncio.StreamWriter) -> bool:
        if path.endswith("/cancel"):
            self.cancels += 1
            writer.write(_raw(self.cancel_answer or {"status": 404, "headers": {}, "body": {}}))
            return True
        job = path.rpartition("/")[2]
        self.seen.append((job, self._clock.now().wall))
        self.headers.append(headers)
        n = len(self.of(job))
        script = self._scripts[job]
        response = script[min(n, len(script)) - 1]
        self.before_answer(n)
        if fault := response.get("transport_error"):
            if fault.startswith("drip"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n")
                for _ in range(40):
                    writer.write(b"x")
                    await writer.drain()
                    await asyncio.sleep(0.09)
            return False
        writer.write(_raw(response))
        await writer.drain()
        self.after_answer(n)
        return True


def _raw(response: dict[str, Any]) -> bytes:
    body = response["body"]
    text = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", **response["headers"], "Content-Length": str(len(text))}
    if response["status"] == 304:
        del headers["Content-Length"]
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {response['status']} X\r\n{head}\r\n".encode() + text
