"""A provider that answers by script, job by job, and counts: requests, secrets, how many at once; its port closes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from pollcore.facts import Instant
from tests.cases.world import JumpingClock, Provider, _raw

LOST = {"transport_error": "close"}
"""The connection ends without an answer."""


def says(state: str, /, status: int = 200, headers: dict[str, str] | None = None, **body: Any) -> dict[str, Any]:
    """One answer whose body names the job's state."""
    return {"status": status, "headers": headers or {}, "body": {"status": state, **body}}


def refuses(status: int, headers: dict[str, str] | None = None, **body: Any) -> dict[str, Any]:
    """One answer that is no 200."""
    return {"status": status, "headers": headers or {}, "body": body}


DONE = says("done", result={"url": "https://files.example.test/r/1?sig=SIGNED"})
RUNNING = says("running")


async def _nothing() -> None:
    pass


class Seen(msgspec.Struct, frozen=True):
    """One request as it arrived."""

    method: str
    path: str
    at: Instant
    boot: int
    secret: str | None
    headers: dict[str, str]
    body: bytes

    @property
    def job(self) -> str:
        return self.path.partition("?")[0].rpartition("/")[2]


class Bank(Provider):
    """`scripts`: job -> answers, the last one repeats. Everything that is no status request has one answer each."""

    def __init__(self, clock: JumpingClock) -> None:
        super().__init__(clock, {})
        self.scripts: dict[str, list[dict[str, Any]]] = {}
        self.requests: list[Seen] = []
        self.status_seen: list[Seen] = []
        self.created: list[dict[str, Any]] = [says("queued", status=201, id="job-new")]
        self.submissions: list[Seen] = []
        self.file: dict[str, Any] = {"status": 200, "headers": {}, "body": "the result"}
        self.fetches = 0
        self.forces = 0
        self.force_answer: dict[str, Any] | None = None
        self.on_force: Callable[[], Awaitable[None]] = _nothing
        """Awaited before a force-cancel is answered."""
        self.gate: asyncio.Event | None = None
        """While set and not open, no request is answered."""
        self.by_secret: Callable[[str | None], dict[str, Any] | None] = lambda _: None
        self.overlap_s = 0.0
        """Real seconds that each status answer takes, so that requests sent together are seen together."""
        self.at_once = 0
        self.most_at_once = 0
        self._writers: set[asyncio.StreamWriter] = set()

    async def close_port(self) -> None:
        """Connections are refused from now on, and the open ones end."""
        self._server.close()
        for writer in self._writers:
            writer.close()
        await asyncio.sleep(0.01)

    async def open_port(self) -> None:
        self._server = await asyncio.start_server(self._one, "127.0.0.1", self.port)

    def job(self, job: str) -> list[Seen]:
        """The status requests for *job*."""
        return [seen for seen in self.status_seen if seen.job == job]

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while line := await reader.readline():
                headers: dict[str, str] = {}
                while (raw := await reader.readline()).strip():
                    name, _, value = raw.decode("latin-1").partition(":")
                    headers[name.strip().lower()] = value.strip()
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                method, path, _ = line.decode().split()
                now = self._clock.now()
                seen = Seen(method, path, now.wall, now.boot, headers.get("authorization"), headers, body)
                self.requests.append(seen)
                answer = await self._answer_to(seen)
                if answer.get("transport_error"):
                    break
                writer.write(_raw(answer))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer_to(self, seen: Seen) -> dict[str, Any]:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if seen.path.endswith("/cancel"):
                self.cancels += 1
                return self.cancel_answer or refuses(202)
            if seen.path.endswith("/force-cancel"):
                self.forces += 1
                await self.on_force()
                return self.force_answer or refuses(202)
            if seen.method == "POST":
                self.submissions.append(seen)
                return self.created[min(len(self.submissions), len(self.created)) - 1]
            if seen.path.startswith("/files/"):
                self.fetches += 1
                return self.file
            self.status_seen.append(seen)
            n = len(self.job(seen.job))
            self.before_answer(n)
            await asyncio.sleep(self.overlap_s)
            if self.gate is not None:
                await self.gate.wait()
            if (answer := self.by_secret(seen.secret)) is not None:
                return answer
            script = self.scripts[seen.job]
            return script[min(n, len(script)) - 1]
        finally:
            self.at_once -= 1
            self.after_answer(len(self.status_seen))
