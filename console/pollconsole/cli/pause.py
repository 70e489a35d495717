"""`pause`: nothing is sent to a provider for a while.

Job: name and time -> one call to the core; say until when it really holds. Must not know: how a pause works, how to
end one (nothing but time does). Source: spec G5.
"""

from __future__ import annotations

from dataclasses import dataclass

import click

from pollconsole import bridge, words
from pollconsole.cli import calls, out
from pollconsole.cli.base import Common, command, pass_common
from pollconsole.cli.values import ProviderName, Text, When, caller_option
from pollcore.facts import MAX_SPAN, Instant, Refused, iso


@dataclass(frozen=True)
class Held:
    """What holds after the call. *before*: a pause that is no shorter held already, and nothing was added to it."""

    asked: Instant
    until: Instant
    before: bool
    operations: int


@command(
    "pause",
    "pollconsole pause --provider acme --until 2h",
    "pollconsole pause --provider acme --account team-4 --until 2026-03-02T18:00:00Z",
    short_help="Send nothing to a provider for a while.",
)
@click.option("--provider", type=ProviderName(), required=True, metavar="NAME", help="The provider to leave alone.")
@click.option("--account", type=Text(), metavar="A", help="Only this account of it.")
@click.option("--until", type=When(), required=True, metavar="SPAN|TIME", help="40m from now, or an ISO time.")
@caller_option
@pass_common
def pause(
    common: Common,
    provider: str,
    account: str | None,
    until: tuple[int | None, Instant | None],
    caller: str | None,
) -> None:
    """Send nothing to a provider until a time. Deadlines run on; nothing is decided.

    A pause is final until its time: a longer one replaces it, a shorter one changes nothing, and neither a command nor
    the console ends it early. Begin with a short one.
    """

    async def body(core: bridge.Core) -> Held:
        asked = _future(until, core.clock.now().wall)
        await bridge.known_provider(core, provider)
        holds = await bridge.paused_until(core, provider, account)
        before = holds is not None and holds >= asked
        if not before:
            await core.actions.pause(provider, account, asked, bridge.operator_name(core, caller))
        count = await bridge.stopped_by(core, provider, account)
        return Held(asked, holds if holds is not None and before else asked, before, count)

    held = calls.with_core(common, body)
    if common.json:
        view = {
            "provider": provider,
            "account": account,
            "until": iso(held.until),
            "asked_until": iso(held.asked),
            "already_paused": held.before,
            "waiting_operations": held.operations,
        }
        out.document({"pause": view})
        return
    whom = provider if account is None else f"{provider}, account {account}"
    if held.before:
        out.text(f"{whom}: already paused until {words.instant(held.until)}; a pause is not shortened")
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
    if at - now > MAX_SPAN:
        raise Refused("--until: more than 366 days ahead", code="usage")
    return at
