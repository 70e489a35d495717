"""get() over single-connection httpx.AsyncClients, so that a peer does not pay for httpcore's pool scan, whose cost per
request grows with the number of connections in one client. Requirements: httpx.
"""

import asyncio

import httpx


class ClientPool:
    def __init__(self, n):
        self.all = [
            httpx.AsyncClient(
                limits=httpx.Limits(max_connections=1, max_keepalive_connections=1), timeout=60, trust_env=False
            )
            for _ in range(n)
        ]
        self.idle = list(self.all)
        self.sem = asyncio.Semaphore(n)

    async def get(self, url):
        async with self.sem:
            c = self.idle.pop()
            try:
                return await c.get(url)
            finally:
                self.idle.append(c)

    async def aclose(self):
        for c in self.all:
            await c.aclose()
