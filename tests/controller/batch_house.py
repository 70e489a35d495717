"""A provider that answers about several jobs in one request, and a house whose contract asks it so."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pollcore.adapters.store.library import sqlite3
from tests.controller.bank import Bank, Seen
from tests.controller.house import House

STATUS = """
item = { entries = "body.jobs", job_id = "item.id" }
[status.batch]
max = MOST
gather = "GATHER"
url = "BASE/v1/jobs"
query = { ids = "{job_ids}" }
[state]
value = "item.status"
"""


class Registry(Bank):
    """Answers `/v1/jobs?ids=a,b` and `/v1/jobs/a` with a list of entries; *scripts* as the bank's, job by job."""

    def __init__(self, clock: Any) -> None:
        super().__init__(clock)
        self.asked: list[tuple[str, ...]] = []
        """The ids of every status request, in order."""
        self.asked_at: list[int] = []
        """Boot times of the same."""
        self.whole: Callable[[tuple[str, ...]], dict[str, Any] | None] = lambda _: None
        """An answer that is about no single job; None: the entries."""
        self._times: dict[str, int] = {}

    async def _answer_to(self, seen: Seen) -> dict[str, Any]:
        url = urlsplit(seen.path)
        if seen.method != "GET" or not url.path.startswith("/v1/jobs"):
            return await super()._answer_to(seen)
        named = parse_qs(url.query).get("ids", [url.path.rpartition("/")[2]])[0]
        ids = tuple(named.split(","))
        self.asked.append(ids)
        self.asked_at.append(seen.boot)
        self.status_seen.append(seen)
        self.before_answer(len(self.asked))
        if self.gate is not None:
            await self.gate.wait()
        answer = self.whole(ids)
        if answer is None:
            entries = [self._entry(one) for one in ids if one in self.scripts]
            answer = {"status": 200, "headers": {}, "body": {"jobs": entries}}
        self.after_answer(len(self.asked))
        return answer

    def _entry(self, job: str) -> dict[str, Any]:
        self._times[job] = n = self._times.get(job, 0) + 1
        script = self.scripts[job]
        return {"id": job, **script[min(n, len(script)) - 1]["body"]}


@contextlib.asynccontextmanager
async def shared_house(
    tmp_path: Path, *changes: tuple[str, str], most: int = 100, gather: str = "10s", config: str = "", seed: int = 1
) -> AsyncIterator[House]:
    """A house whose contract has `[status.batch]`; `h.bank` is a Registry.

    Operations that are submitted together are due 5 to 10 s later, each by its own draw: with *gather* as long as that
    their first request is one.
    """
    made = House(tmp_path / "home", seed)
    made.bank = Registry(made.clock)
    async with made.bank:
        status = STATUS.replace("MOST", str(most)).replace("GATHER", gather).replace("BASE", made.bank.url)
        made.write_contract(
            ('\n[state]\nvalue = "body.status"\n', status), ('"body.result.url"', '"item.result.url"'), *changes
        )
        if config:
            made.write_config(config)
        async with made.open() as made.core:
            await made.credential()
            yield made


def registry(h: House) -> Registry:
    """The provider of a shared house."""
    assert isinstance(h.bank, Registry)
    return h.bank


def rows(h: House, sql: str) -> list[Any]:
    """What the store's file holds."""
    (path,) = h.home.glob("*.db")
    conn = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return list(conn.execute(sql).fetchall())
    finally:
        conn.close()
