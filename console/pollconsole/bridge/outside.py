"""What goes on beside a polling core: notices, health and metrics; and the addresses of notices.

Job: start them with what the settings say, hand addresses through. Must not know: output, how any of these work.
Source: spec G5, K1, O8.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pollcore.facts import NotFound, PollconsoleError, Refused, Secret, iso

if TYPE_CHECKING:
    from pollcore.adapters.config import Config
    from pollcore.assembly import Core
    from pollcore.controller import Controller

TEST_TITLE = "pollconsole: a test"
TEST_BODY = "This message was asked for by 'pollconsole notice test'. Nothing has happened."


def beside(
    core: Core, controller: Controller, say: Callable[[str], None], *, listen: tuple[str, int] | None = None
) -> list[asyncio.Task[None]]:
    """Tasks for what the settings ask for, on the running loop; to be cancelled at the end.

    Args:
        say: one line for the log of this process.
        listen: where metrics are told, whatever the settings say.

    Raises Refused, code `metrics`: *listen* cannot be listened on. An address of the settings that cannot be is said.
    """
    tasks: list[asyncio.Task[None]] = []
    asked = listen or core.config.metrics
    if asked is not None:
        try:
            address, tell = core.metrics(controller, asked)
        except Refused as error:
            if listen is not None:
                raise
            say(f"{error}; polling goes on without")
        else:
            say(f"health and figures: http://{address}/healthz and http://{address}/metrics")
            tasks.append(asyncio.create_task(_guarded(tell(), "metrics", say)))
    tasks.append(asyncio.create_task(_guarded(core.send_notices(say), "notices", say)))
    return tasks


def missing_extras(config: Config) -> list[tuple[str, str]]:
    """What the settings ask for and this Python cannot do: (table, how to mend it)."""
    from importlib.util import find_spec

    from pollcore.adapters import metrics_http, notice_sender

    found = []
    if config.notices.events and find_spec("apprise") is None:
        found.append(("notices", notice_sender.INSTALL))
    if config.metrics is not None and find_spec("prometheus_client") is None:
        found.append(("metrics", metrics_http.INSTALL))
    return found


async def _guarded(job: Any, name: str, say: Callable[[str], None]) -> None:
    """What ends by a fault of ours is said; it ends nothing else."""
    try:
        await job
    except PollconsoleError as error:
        say(f"{name}: {error}")
    except Exception as error:
        say(f"{name} ended by a fault of ours ({type(error).__name__}); polling goes on")


async def notice_addresses(core: Core) -> dict[str, Any]:
    """What `notice list` tells: addresses without the address, rules, what waits, which process sends."""
    import msgspec

    from pollcore.adapters.notice_claim import NAME
    from pollcore.adapters.worker_lock import Deaths
    from pollcore.controller.notifier import KIND, LEDGER
    from pollcore.notices import Ledger, Outcome

    rules = core.config.notices
    raw = await core.store.document(KIND, LEDGER)
    ledger = None if raw is None else msgspec.json.decode(raw, type=Ledger)
    views = []
    for name, info in (await core.notice_addresses.infos()).items():
        outcome = Outcome() if ledger is None else ledger.outcomes.get(name, Outcome())
        views.append(
            {
                "name": name,
                "service": info.service,
                "used": bool(rules.events) and (not rules.to or name in rules.to),
                "set_at": iso(info.set_at),
                "sent_at": None if outcome.sent_at is None else iso(outcome.sent_at),
                "failed_at": None if outcome.failed_at is None else iso(outcome.failed_at),
                "why": outcome.why,
                "gave_up": outcome.gave_up,
            }
        )
    waiting = 0 if ledger is None else len(ledger.items) + ledger.more
    return {
        "addresses": views,
        "events": [event.value for event in rules.events],
        "waiting": waiting,
        "under_way": 0 if ledger is None else len(ledger.deliveries),
        "sender": not Deaths(core.home.workers)(NAME),
    }


async def set_notice_address(core: Core, name: str, address: Secret, by: str) -> dict[str, Any]:
    """Store an address or replace it. Raises Refused, CredentialUnavailable."""
    info = await core.notice_addresses.set(name, address, by)
    return {"name": info.name, "service": info.service, "set_at": iso(info.set_at)}


async def remove_notice_address(core: Core, name: str, by: str) -> None:
    """Forget an address. Raises NotFound, CredentialUnavailable."""
    await core.notice_addresses.remove(name, by)


async def test_notice_address(core: Core, name: str) -> str | None:
    """Send one message now; None: it was taken, else why not. Raises NotFound, CredentialUnavailable."""
    try:
        return await core.notice_addresses.send(name, TEST_TITLE, TEST_BODY)
    except LookupError:
        raise NotFound(f"no address {name!r}; 'pollconsole notice list' shows all") from None
