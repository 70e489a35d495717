#!/usr/bin/env python3
"""Ceiling: a bare httpx.AsyncClient loop that remembers nothing. Requirements: httpx (uvloop for --uvloop).

C worker coroutines take jobs from a deque and poll each until it succeeded; JSON decoded per poll.
--clients N shares the workers among N AsyncClients (httpcore's pool scans all its connections for each request).
"""

import asyncio
import collections
import json

import httpx
from _common import Meter, args_for, job_ids, run_async, versions


async def main(a):
    todo = collections.deque(job_ids(a.jobs))
    counters, results = dict.fromkeys(todo, 0), {}
    per = -(-a.concurrency // a.clients)
    clients = [
        httpx.AsyncClient(
            limits=httpx.Limits(max_connections=per, max_keepalive_connections=per), timeout=60, trust_env=False
        )
        for _ in range(a.clients)
    ]

    async def worker(c):
        while todo:
            job = todo.popleft()
            url = f"{a.base_url}/jobs/{job}"
            while True:
                counters[job] += 1
                r = await c.get(url)
                if r.status_code != 200:
                    raise SystemExit(f"status {r.status_code}")
                d = json.loads(r.content)
                if d["status"] == "succeeded":
                    results[job] = d["result_url"]
                    break

    m = Meter("httpx", a)
    m.start()
    await asyncio.gather(*(worker(clients[i % a.clients]) for i in range(min(a.concurrency, a.jobs))))
    m.stop()
    for c in clients:
        await c.aclose()
    m.report(
        sum(counters.values()),
        succeeded=len(results),
        versions=versions("httpx", "httpcore", "h11", "anyio"),
        uvloop=a.uvloop,
        clients=a.clients,
    )


if __name__ == "__main__":
    a = args_for("peer_httpx", 32, clients=1)
    run_async(main(a), a.uvloop)
