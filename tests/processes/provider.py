"""A provider on loopback that counts every status request it has read, job by job, and misbehaves by a seeded script.

It knows HTTP and its own scripts, nothing of the product. It runs on a thread of its own, so that a stopped worker
never stops the count.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

LIMIT_S: Final = 30.0
SLOW_S: Final = 1.2
#: What goes wrong on the way, beside plain `wait`: four of ten answers.
TROUBLE: Final = ("429", "429-plain", "503", "500", "slow", "slow", "slow", "slow-ok", "reset", "cut")
MAX_HEAD: Final = 100
"""Header lines of one request that are read."""


def script(chance: random.Random, longest: int) -> list[str]:
    """Answers of one job: up to *longest* of waiting and trouble, then one end."""
    steps = [chance.choice(TROUBLE) if chance.random() < 0.4 else "wait" for _ in range(chance.randint(1, longest))]
    return [*steps, chance.choices(["ok", "failed", "unknown"], [8, 1, 1])[0]]


class CountingProvider:
    """`with CountingProvider(scripts) as provider:`; the last answer of a script is repeated for ever."""

    def __init__(self, scripts: Mapping[str, Sequence[str]]) -> None:
        self.scripts = dict(scripts)
        self.seen: Counter[str] = Counter()
        """Status requests read whole, by job id."""
        self.connections = 0
        self.hold_s: dict[str, float] = {}
        """Jobs whose next answer is kept back so long; used once."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="counting-provider", daemon=True)
        self._ready = threading.Event()

    def __enter__(self) -> CountingProvider:
        self._thread.start()
        assert self._ready.wait(LIMIT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LIMIT_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        self._loop.run_forever()
        server.close()
        pending = asyncio.all_tasks(self._loop)
        for task in pending:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while line := await reader.readline():
                for _ in range(MAX_HEAD):
                    if not (await reader.readline()).strip():
                        break
                if not await self._answer(line.split()[1].decode().rpartition("/")[2], writer):
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answer(self, job: str, writer: asyncio.StreamWriter) -> bool:
        """Count, then answer by the script; False: the connection ends."""
        self.seen[job] += 1
        steps = self.scripts[job]
        step = steps[min(self.seen[job], len(steps)) - 1]
        await asyncio.sleep(self.hold_s.pop(job, 0.0) or (SLOW_S if step.startswith("slow") else 0.0))
        if step == "reset":
            return False
        raw = reply(job, "ok" if step == "slow-ok" else step)
        if step == "cut":
            writer.write(raw[:-5])
            await writer.drain()
            return False
        writer.write(raw)
        await writer.drain()
        return True


def reply(job: str, step: str) -> bytes:
    """The bytes of one answer."""
    code, headers, body = 200, "", {"id": job, "status": "running"}
    match step:
        case "429" | "503":
            code, headers, body = int(step), "Retry-After: 1\r\n", {"error": "later"}
        case "429-plain" | "500":
            code, body = int(step[:3]), {"error": "trouble"}
        case "ok":
            body = {"id": job, "status": "done", "result": f"http://127.0.0.1/results/{job}"}
        case "failed":
            body = {"id": job, "status": "failed"}
        case "unknown":
            body = {"id": job, "status": "Somewhere"}
        case _:
            pass
    text = json.dumps(body).encode()
    head = f"HTTP/1.1 {code} X\r\nContent-Type: application/json\r\n{headers}Content-Length: {len(text)}\r\n\r\n"
    return head.encode() + text


CONTRACT: Final = """
schema = 1
name = "counted"
title = "counting provider of the tests"
sources = ["tests/processes/provider.py"]
tested_live = "this provider"
requires_base_url = true
[credential]
kind = "none"
[status]
url = "{base_url}/jobs/{job_id}"
observation = "read_only"
evidence = "the provider of the tests counts and answers"
total = "3s"
[state]
value = "body.status"
[states]
waiting = ["running"]
succeeded = ["done"]
failed = ["failed"]
[identity]
job_id = "body.id"
[[success.requires]]
path = "body.result"
format = "url"
[schedule]
base_delay = "300ms"
max_delay = "1s"
min_delay = "100ms"
rate_limit_max_delay = "2s"
[limits]
deadline_basis = "decide-by: the test ends"
extend = [{ minutes = 1, checks = 3 }]
[limits.default]
deadline = "60s"
max_status_requests = 12
max_transport_failures = 4
max_rate_limited = 3
[limits.max]
deadline = "1h"
max_status_requests = 100
max_transport_failures = 50
max_rate_limited = 50
"""
