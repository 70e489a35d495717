"""An outage: thousands of operations that one dead origin stopped, with some that differ, written in one go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from pollcore.adapters.keyring_store import MemoryBackend
from pollcore.adapters.store import submitting
from pollcore.assembly import open_core
from pollcore.facts import MINUTE, SECOND, HttpFact, Instant, Moment, StopReason
from tests.console.seed import Seeded, operation, stopped, write_config

CAUSE = "origin_down:http://127.0.0.1:9"
OUTLIERS = 40
PLAIN = 0x10000
"""Number of the first operation."""


def outage(now: Moment, count: int = 3_000, outliers: int = OUTLIERS) -> list[Seeded]:
    """*count* operations under one cause; the last *outliers* of them differ, a quarter each in another way."""
    rows = []
    for n in range(count):
        changes: dict[str, Any] = {
            "transport_failures_used": 3,
            "status_requests_used": 3 + n % 7,
            "last_fault": "timeout",
            "last_fault_at": Instant(now.wall - 4 * MINUTE),
            "last_http": HttpFact(200, Instant(now.wall - 9 * MINUTE), Instant(now.wall - 9 * MINUTE)),
            "deadline_at": Instant(now.wall + 20 * MINUTE + (n % 600) * SECOND),
            "asked_ago": 4 * MINUTE - n % 60 * SECOND,
            "cause": CAUSE,
            "label": f"nightly export {n}",
        }
        reason = StopReason.PROVIDER_FAILURE
        left = count - n
        if left <= outliers:
            way = left % 4
            if way == 0:
                changes |= {"last_known_state": "finishing"}
            elif way == 1:
                changes |= {"account": "team-b"}
            elif way == 2:
                changes |= {"extensions_used": 3}
            else:
                reason = StopReason.DEADLINE_EXCEEDED
                changes |= {"deadline_at": Instant(now.wall - MINUTE), "last_http": None}
        rows.append(stopped(PLAIN + n, reason, now=now, **changes))
    return rows


def others(now: Moment) -> list[Seeded]:
    """What else waits that night, each for a cause of its own; and a wait that runs."""
    return [
        stopped(0x20, StopReason.UNKNOWN_STATE, now=now, last_known_state="compiling", cause="unknown_state:acme:c"),
        stopped(0x21, StopReason.REQUEST_BUDGET_EXHAUSTED, now=now, status_requests_used=12),
        Seeded(operation(0x22, now=now)),
    ]


async def seed(core: Any, rows: Sequence[Seeded]) -> None:
    """Write *rows* in one transaction; their credential stays only if it is another than the builders' own."""
    await core.prepare()
    now = core.clock.now()
    snapshot = core.contracts.find("acme").snapshot
    await core.store.turn(_first_turn(now))

    def write(turns: Any) -> None:
        def work(tx: Any) -> None:
            for each in rows:
                named = each.operation.credential
                row = msgspec.structs.replace(
                    each.operation,
                    contract_digest=snapshot.digest,
                    credential=None if named == "acme-prod" else named,
                )
                submitting.insert(tx, turns.reads, row, snapshot, each.events, each.question)

        turns.writer.run(now, "seeding", work)

    await core.store._write(write)


def _first_turn(now: Moment) -> Any:
    """A heartbeat: the store learns which boot this is."""
    from pollcore.facts import BootMs
    from pollcore.ports import Turn, Worker

    beat = Worker(
        owner="seed",
        pid=1,
        host="h",
        kind="cli",
        started_at=now.wall,
        beat_at=now.wall,
        beat_boot=BootMs(now.boot),
        boot_id=now.boot_id,
    )
    return Turn(now=now, owner="seed", beat=beat)


@asynccontextmanager
async def opened(home: Path, **overrides: Any) -> AsyncIterator[Any]:
    """A core over the home, keyring in memory."""
    async with open_core(home, kind="console", **{"backend": MemoryBackend(), **overrides}) as core:
        yield core


def home_in(folder: Path) -> Path:
    """A home whose provider answers nowhere; its reading key lies in a file, for processes without a keyring."""
    home = folder / "home"
    write_config(home)
    with (home / "config.toml").open("a") as file:
        file.write(f'\n[audit]\nkey_file = "{home.resolve()}/reading.key"\n')
    return home
