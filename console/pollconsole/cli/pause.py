"""`pause`: nothing is sent to a provider for a while.

Job: name and time -> one call to the core; say until when it really holds. Must not know: how a pause works, how to
end one (nothing but time does). Source: spec G5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import click

from pollconsole import bridge, words
from pollconsole.cli import calls, out
from pollconsole.cli.base import Common, command, pass_common
from pollconsole.cli.values import ProviderName, Text, When, caller_option
from pollcore.facts import DAY, Instant, Refused, iso

MAX_DAYS: Final = 7
"""Nothing ends a pause early: a slip of the finger must not last for months."""


@dataclass(frozen=True)
class Held:
    """What holds after the call. *before*: a pause that is no shorter held already, and nothing was added to it."""

    asked: Instant
    until: Instant
    before: bool
    by: str | None
    operations: int


@command(
    "pause",
    "pollconsole pause --provider acme --until 2h",
    "pollconsole pause --provider acme --account team-4 --until 2026-03-02T18:00:00Z",
    short_help="Send nothing to a provider for a while.",
)
@click.option("--provider", type=ProviderName(), required=True, metavar="NAME", help="The provider to leave alone.")
@click.option("--account", type=Text(), metavar="A", help="Only this account of it.")
@click.option(
    "--until", type=When(), required=True, metavar="SPAN|TIME", help="40m from now, or an ISO time; at most 7 days."
)
@caller_option
@pass_common
def pause(
    common: Common,
    provider: str,
    account: str | None,
    until: tuple[int | None, Instant | None],
    caller: str | None,
) -> None:
    """Send nothing to a provider until a time.

    Deadlines run on; nothing is decided. A pause is final until its time: a longer one replaces it, a shorter one
    changes nothing, and neither a command nor the console ends it early. Begin with a short one; more than 7 days
    are refused.
    """

    async def body(core: bridge.Core) -> Held:
        asked = _future(until, core.clock.now().wall)
        await bridge.known_provider(core, provider)
        found = [one for one in await bridge.pauses(core) if one.holds_for(provider, account)]
        longest = max(found, key=lambda one: one.until, default=None)
        count = await bridge.stopped_by(core, provider, account)
        if longest is not None and longest.until >= asked:
            return Held(asked, longest.until, True, longest.by, count)
        by = bridge.operator_name(core, caller)
        await core.actions.pause(provider, account, asked, by)
        return Held(asked, asked, False, by, count)

    held = calls.with_core(common, body)
    if common.json:
        view = {
            "provider": provider,
            "account": account,
            "until": iso(held.until),
            "asked_until": iso(held.asked),
            "already_paused": held.before,
            "by": held.by,
            "waiting_operations": held.operations,
        }
        out.document({"pause": view})
        return
    whom = provider if account is None else f"{provider}, account {account}"
    if held.before:
        who = f" by {held.by}" if held.by else ""
        out.text(
            f"{whom}: already paused until {words.instant(held.until)}{who}; a pause is not shortened, and only time "
            "ends it"
        )
    else:
        out.text(f"nothing is sent to {whom} before {words.instant(held.until)}")
    if held.operations:
        out.note(f"operations that wait for it meanwhile: {held.operations}; their deadlines run on")
    else:
        out.note("no operation is kept waiting by it now")


def _future(until: tuple[int | None, Instant | None], now: Instant) -> Instant:
    span, instant = until
    at = instant if instant is not None else Instant(now + (span or 0))
    if at <= now:
        raise Refused(f"--until: {iso(at)} is in the past", code="usage")
    if at - now > MAX_DAYS * DAY:
        raise Refused(
            f"--until: {iso(at)} is more than {MAX_DAYS} days ahead, and nothing ends a pause early: name a nearer "
            "time, and pause again before it is over",
            code="usage",
        )
    return at
