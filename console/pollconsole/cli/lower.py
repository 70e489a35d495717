"""`close`, `hold`, `reject`, `deny`, `pause`, `request-extension`: what anyone may do, as it lowers authority or asks.

Job: one call to the core each; print the operation after it. Must not know: how to grant anything (no code here can).
Source: spec G5.
"""

from __future__ import annotations

from typing import Any

import click

from pollconsole import bridge, words
from pollconsole.cli import calls, out, present
from pollconsole.cli.base import Command, Common, command, pass_common
from pollconsole.cli.values import MAX_BECAUSE, Count, OperationId, ProviderName, Text, When
from pollcore.facts import MAX_SPAN, ChoiceKind, Instant, Refused, iso


def _lowering(kind: ChoiceKind, summary: str, text: str) -> Command:
    name = kind.value

    @command(name, f"pollconsole {name} op-1f2e3d4c --because 'no longer needed'", help=text, short_help=summary)
    @click.argument("op", type=OperationId())
    @click.option("--because", type=Text(MAX_BECAUSE), required=True, metavar="TEXT", help="Why; goes into the audit.")
    @pass_common
    def run(common: Common, op: str, because: str) -> None:
        async def body(core: bridge.Core) -> dict[str, Any]:
            await bridge.find(core, op)
            await core.actions.lower(op, kind, because, bridge.operator_name(core))
            return await bridge.whole(core, op)

        _tell(common, calls.with_core(common, body))

    return run


def _tell(common: Common, view: dict[str, Any]) -> None:
    if common.json:
        out.document(view)
    else:
        out.text(present.one_line(view))


close = _lowering(
    ChoiceKind.CLOSE,
    "Stop watching an operation.",
    "Stop watching an operation. This says nothing about the provider's job, which may go on.",
)
hold = _lowering(
    ChoiceKind.HOLD,
    "Send nothing for a bounded time.",
    "Send nothing for a bounded time; never past the deadline. The contract says how long and how often.",
)
reject = _lowering(
    ChoiceKind.REJECT,
    "Refuse what is asked for.",
    "Refuse what an open question asks for. The wait goes on as it was; what was never granted is closed.",
)
deny = _lowering(
    ChoiceKind.DENY,
    "Deny a call or session.",
    "Deny the use of a credential that a call or session asks for.",
)


@command(
    "pause",
    "pollconsole pause --provider acme --until 2h",
    "pollconsole pause --provider acme --account team-4 --until 2026-03-02T18:00:00Z",
    short_help="Send nothing to a provider for a while.",
)
@click.option("--provider", type=ProviderName(), required=True, metavar="NAME", help="The provider to leave alone.")
@click.option("--account", type=Text(), metavar="A", help="Only this account of it.")
@click.option("--until", type=When(), required=True, metavar="SPAN|TIME", help="40m from now, or an ISO time.")
@pass_common
def pause(common: Common, provider: str, account: str | None, until: tuple[int | None, Instant | None]) -> None:
    """Send nothing to a provider until a time. Deadlines run on; nothing is decided."""

    async def body(core: bridge.Core) -> Instant:
        now = core.clock.now().wall
        at = _future(until, now)
        await core.actions.pause(provider, account, at, bridge.operator_name(core))
        return at

    at = calls.with_core(common, body)
    if common.json:
        out.document({"pause": {"provider": provider, "account": account, "until": iso(at)}})
    else:
        whom = provider if account is None else f"{provider}, account {account}"
        out.text(f"nothing is sent to {whom} before {words.instant(at)}")


def _future(until: tuple[int | None, Instant | None], now: Instant) -> Instant:
    span, instant = until
    at = instant if instant is not None else Instant(now + (span or 0))
    if at <= now:
        raise Refused(f"--until: {iso(at)} is in the past", code="usage")
    if at - now > MAX_SPAN:
        raise Refused("--until: more than 366 days ahead", code="usage")
    return at


@command(
    "request-extension",
    "pollconsole request-extension op-1f2e3d4c --minutes 15 --checks 4 --because 'the batch is larger than usual'",
    short_help="Ask an operator for more time and checks.",
)
@click.argument("op", type=OperationId())
@click.option("--minutes", type=Count(), required=True, metavar="N", help="One of the contract's sizes.")
@click.option("--checks", type=Count(), required=True, metavar="N", help="Its number of checks.")
@click.option("--because", type=Text(MAX_BECAUSE), required=True, metavar="TEXT", help="Why; shown on the card.")
@pass_common
def request_extension(common: Common, op: str, minutes: int, checks: int, because: str) -> None:
    """Ask for more time and checks, in one of the contract's sizes. Only a card comes of it: an operator decides."""

    async def body(core: bridge.Core) -> dict[str, Any]:
        await bridge.find(core, op)
        await core.actions.request_extension(op, minutes, checks, because, bridge.operator_name(core))
        return await bridge.whole(core, op)

    _tell(common, calls.with_core(common, body))
    out.note("asked; an operator decides in the console")
