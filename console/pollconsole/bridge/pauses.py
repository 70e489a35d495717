"""Which pause holds for a provider, and whether anything of that name is there to be paused.

Job: names and pauses, read from contracts, operations and the record of events. Must not know: output; how a pause
keeps the loop from sending. Source: spec G5.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from pollconsole.bridge.records import every_event
from pollcore.facts import EventName, Instant, NotFound, Status

if TYPE_CHECKING:
    from pollcore.assembly import Core

MAX_COUNTED: Final = 100_000
"""Operations that are counted as paused."""


async def known_provider(core: Core, name: str) -> None:
    """Raises NotFound with near names where *name* is no instance, no contract, and no operation's provider."""
    from pollcore.ports import Filter

    names = core.contracts.names()
    if name in names or await core.store.operations(Filter(provider=name, limit=1)):
        return
    near = get_close_matches(name, names, n=3)
    hint = f"did you mean {', '.join(near)}?" if near else "'pollconsole provider list' shows all"
    raise NotFound(f"no provider {name!r}; {hint}")


async def paused_until(core: Core, provider: str, account: str | None) -> Instant | None:
    """Until when nothing is sent to *provider* (and *account*) by a pause that holds now; None: none holds.

    A pause of the whole provider holds for each of its accounts. The longest counts: the store never shortens one.
    """
    holds = {provider} if account is None else {provider, f"{provider} {account}"}
    now = core.clock.now().wall
    ends = [
        event.next_poll_at
        for event in await every_event(core)
        if event.event is EventName.PAUSED and event.text in holds and event.next_poll_at is not None
    ]
    last = max(ends, default=None)
    return last if last is not None and last > now else None


async def stopped_by(core: Core, provider: str, account: str | None) -> int:
    """How many operations that would send are kept from it by a pause of *provider* (and *account*)."""
    from pollcore.ports import Filter

    found = await core.store.operations(Filter(statuses=(Status.WAITING,), provider=provider, limit=MAX_COUNTED))
    return sum(account in (None, operation.submitted.account) for operation in found)
