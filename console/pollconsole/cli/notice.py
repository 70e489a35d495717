"""`notice set|list|remove|test`: where notices are sent; the address passes through once.

Job: take an address from a hidden prompt or stdin, never from an argument or the environment; print what may be known.
Must not know: the keyring, services, when anything is sent. Source: spec K1, G5.
"""

from __future__ import annotations

from typing import Any

import click

from pollconsole import bridge, words
from pollconsole.cli import calls, out
from pollconsole.cli.base import Common, LazyGroup, command, pass_common
from pollconsole.cli.credential import MAX_SECRET, Name, read_secret
from pollconsole.cli.values import caller_option


@click.group(
    "notice",
    cls=LazyGroup,
    short_help="Where new cards and ends are told outside.",
    examples=("pollconsole notice set on-call", "pollconsole notice test on-call"),
)
def notice() -> None:
    """Addresses of notices: kept in the OS keyring, never shown. What is told, and when, says [notices] in config.toml.

    A notice tells that something waits; it cannot answer. The answer is given in the console.
    """


@command(
    "set",
    "pollconsole notice set on-call",
    "pass show on-call-address | pollconsole notice set on-call",
    short_help="Store or replace an address.",
)
@click.argument("name", type=Name())
@caller_option
@pass_common
def set_(common: Common, name: str, caller: str | None) -> None:
    """Store an address, as apprise writes it: SERVICE://WHERE, of mailto, slack, jsons and the like.

    It is asked for without echo, or read as the one line of standard input, because it holds tokens. Nothing is sent:
    'notice test' does that.
    """
    calls.harden(common)
    address = read_secret(1, MAX_SECRET)

    async def body(core: bridge.Core) -> dict[str, Any]:
        return await bridge.set_notice_address(core, name, address, bridge.operator_name(core, caller))

    view = calls.with_core(common, body, makes=True)
    if common.json:
        out.document({"address": view})
    else:
        out.text(f"{view['name']}: {view['service']}://... is in the keyring")


@command("list", "pollconsole notice list", short_help="Names and services; never an address.")
@pass_common
def list_(common: Common) -> None:
    """List addresses by name, what came of sending to each last, and whether anything is told at all."""
    view = calls.with_core(common, bridge.notice_addresses)
    if common.json:
        out.document(view)
        return
    if view["addresses"]:
        rows = [
            (
                one["name"],
                f"{one['service']}://...",
                "yes" if one["used"] else "no",
                one["sent_at"] or words.NOTHING,
                f"{one['failed_at']}: {one['why']}" if one["failed_at"] else words.NOTHING,
            )
            for one in view["addresses"]
        ]
        out.text(
            words.table(("ADDRESS", "SERVICE", "USED", "LAST SENT", "LAST FAILURE"), rows, limits=(64, 40, 0, 0, 160))
        )
    else:
        out.note("no addresses; 'pollconsole notice set NAME' stores one")
    if not view["events"]:
        out.note("nothing is told: [notices] events in config.toml names no event")
    else:
        who = "a running core sends" if view["sender"] else "no core that sends is running"
        waits = f"{view['waiting']} wait to be told, {view['under_way']} messages are under way"
        out.note(f"told: {', '.join(view['events'])}; {who}; {waits}")


@command("remove", "pollconsole notice remove on-call", short_help="Forget an address.")
@click.argument("name", type=Name())
@caller_option
@pass_common
def remove(common: Common, name: str, caller: str | None) -> None:
    """Remove an address from the keyring."""

    async def body(core: bridge.Core) -> None:
        await bridge.remove_notice_address(core, name, bridge.operator_name(core, caller))

    calls.with_core(common, body)
    if common.json:
        out.document({"removed": name})
    else:
        out.text(f"{name}: removed from the keyring")


@command(
    "test",
    "pollconsole notice test on-call",
    short_help="Send one message now.",
    exits={1: "it was not taken, or a fault on our side"},
)
@click.argument("name", type=Name())
@pass_common
@click.pass_context
def test(ctx: click.Context, common: Common, name: str) -> None:
    """Send one message to an address now, whatever [notices] says."""
    calls.harden(common)

    async def body(core: bridge.Core) -> str | None:
        return await bridge.test_notice_address(core, name)

    why = calls.with_core(common, body)
    if common.json:
        out.document({"name": name, "sent": why is None, "why": why})
    elif why is None:
        out.text(f"{name}: the service took it")
    else:
        out.note(f"{name}: not sent: {why}")
    if why is not None:
        ctx.exit(1)


for _command in (set_, list_, remove, test):
    notice.add_command(_command)
