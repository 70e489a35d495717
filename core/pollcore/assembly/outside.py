"""What a polling process tells outside beside its loop: notices, and figures for a metrics collector.

Job: put the parts of each together, and end them. Must not know: what a notice says, which figures there are, who asked
for them.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pollcore.adapters.config import Config
from pollcore.adapters.store import ThreadedStore
from pollcore.ports import Clock

if TYPE_CHECKING:
    from pollcore.adapters.audit_checkpoint import AuditKeeper
    from pollcore.adapters.notice_addresses import NoticeAddresses
    from pollcore.controller import Controller


async def send_notices(
    store: ThreadedStore,
    clock: Clock,
    config: Config,
    locks: Path,
    addresses: Callable[[], NoticeAddresses],
    say: Callable[[str], None],
) -> None:
    """Send notices until cancelled; returns at once where `[notices]` names no event.

    Of the processes that poll one store one sends: it holds the lock file `notices` in *locks*.
    """
    from pollcore.adapters.notice_claim import Claim, minute_in
    from pollcore.controller.notifier import Notifier, forget

    rules = config.notices
    if not rules.events:
        await forget(store, clock.now())
        return
    claim = Claim(locks)
    try:
        notifier = Notifier(
            store, addresses(), clock, rules, socket.gethostname(),
            claim=claim.take, minute=minute_in(rules.time_zone), say=say,
        )  # fmt: skip
        await notifier.run()
    finally:
        claim.release()


def metrics(
    store: ThreadedStore,
    clock: Clock,
    database: Path,
    keeper: Callable[[], AuditKeeper],
    controller: Controller,
    listen: tuple[str, int],
) -> tuple[str, Callable[[], Awaitable[None]]]:
    """Listen on a loopback address: where, and what takes the figures until it is cancelled, and then closes.

    Raises Refused, code `metrics`: it cannot listen there, or the library is not installed.
    """
    from pollcore.adapters.audit_overview import overview
    from pollcore.adapters.metrics_http import MetricsServer
    from pollcore.controller.measuring import AuditFigures, Measuring

    async def last_event() -> int:
        return (await asyncio.to_thread(overview, database)).events

    async def pauses() -> int:
        now = clock.now().wall
        return sum(until > now for _, _, until in (await store.health()).pauses)

    def audit() -> AuditFigures:
        state = keeper().state
        return AuditFigures(state.why is None, state.alarm, state.unanchored_since)

    def health() -> str | None:
        return controller.health

    taken = Measuring(store, clock, last_event=last_event, audit=audit, pauses=pauses, health=health)
    server = MetricsServer(*listen, lambda: taken.latest, clock.now)

    async def tell() -> None:
        try:
            await taken.run()
        finally:
            server.close()

    return server.address, tell
