"""Which pause holds for a provider, and whether anything of that name is there to be paused.

Job: names and pauses, read from contracts, operations and the record of events. Must not know: output; how a pause
keeps the loop from sending. Source: spec G5.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pollconsole.bridge.story_views import every_event
from pollcore.facts import EventName, Instant, NotFound, Status, iso

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


class Paused(msgspec.Struct, frozen=True):
    """One pause that holds now. *account* None: every account. *by*: who asked for it, None: not on record."""

    provider: str
    account: str | None
    until: Instant
    by: str | None

    def holds_for(self, provider: str, account: str | None) -> bool:
        """A pause of the whole provider holds for each of its accounts, not the other way round."""
        return self.provider == provider and self.account in (None, account)

    @property
    def text(self) -> str:
        """`acme, account team-4, until 2026-03-02T18:00:00Z, by ann@desk (pts/1)`."""
        whom = self.provider if self.account is None else f"{self.provider}, account {self.account}"
        return f"{whom}, until {iso(self.until)}" + (f", by {self.by}" if self.by else "")

    @property
    def document(self) -> dict[str, Any]:
        """The pause in `--json`."""
        return {"provider": self.provider, "account": self.account, "until": iso(self.until), "by": self.by}


async def pauses(core: Core) -> list[Paused]:
    """All pauses that hold now, by provider and account; the story is read only where there are some."""
    now = core.clock.now().wall
    held = [(p, a, Instant(until)) for p, a, until in (await core.store.health()).pauses if until > now]
    if not held:
        return []
    asked = {
        (event.text, event.next_poll_at): event.caller
        for event in await every_event(core)
        if event.event is EventName.PAUSED
    }
    return [
        Paused(p, a, until, asked.get((p if a is None else f"{p} {a}", until)))
        for p, a, until in sorted(held, key=lambda one: (one[0], one[1] or ""))
    ]


async def stopped_by(core: Core, provider: str, account: str | None) -> int:
    """How many operations that would send are kept from it by a pause of *provider* (and *account*)."""
    from pollcore.ports import Filter

    found = await core.store.operations(Filter(statuses=(Status.WAITING,), provider=provider, limit=MAX_COUNTED))
    return sum(account in (None, operation.submitted.account) for operation in found)
