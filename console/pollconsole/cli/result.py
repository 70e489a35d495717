"""`result` and `fetch`: the result pointer, and the one action that a success permits.

Job: call, print, exit code. Must not know: how results are fetched, what is masked (the core masks).
"""

from __future__ import annotations

from typing import Any, Final

import click
import msgspec

from pollconsole import bridge
from pollconsole.cli import calls, files, out, present
from pollconsole.cli.base import Common, command, pass_common
from pollconsole.cli.errors import DECISION_WANTED
from pollconsole.cli.values import File, OperationId, caller_option
from pollcore.facts import ActionOutcome, ActionRecord, iso

NOT_DONE: Final = 1
"""A fetch that was refused or whose outcome is unknown is no success for a script."""


@command(
    "result",
    "pollconsole result op-1f2e3d4c",
    "pollconsole result op-1f2e3d4c --reveal --json",
    short_help="The result pointer of a success.",
)
@click.argument("op", type=OperationId())
@click.option("--reveal", is_flag=True, help="Whole links instead of masked ones; the audit records it.")
@caller_option
@pass_common
def result(common: Common, op: str, reveal: bool, caller: str | None) -> None:
    """Show where the result of a succeeded operation is.

    Links may be pre-signed: they are masked unless revealed."""

    async def body(core: bridge.Core) -> dict[str, Any]:
        await bridge.find(core, op)
        found: dict[str, Any] = await core.actions.result(op, reveal, bridge.operator_name(core, caller))
        return {**found, "masked": not reveal}

    found = calls.with_core(common, body)
    if common.json:
        out.document(found)
    else:
        out.text(present.result(found))


@command(
    "fetch",
    "pollconsole fetch op-1f2e3d4c --to result.json",
    short_help="Fetch the result of a success, once.",
    exits={0: "fetched", NOT_DONE: "not fetched, or a fault on our side", DECISION_WANTED: "an operator was asked"},
)
@click.argument("op", type=OperationId())
@click.option("--to", type=File(), required=True, metavar="FILE", help="A new file; nothing is overwritten.")
@caller_option
@click.pass_context
@pass_common
def fetch(common: Common, ctx: click.Context, op: str, to: str, caller: str | None) -> None:
    """Carry out the action that the success permits: fetch the result, once, by the contract's result request.

    It has a record of its own and is no status request. An outcome that is unknown is not repeated by itself. With a
    credential of mode per_call or per_session it asks first: an operator approves this one fetch in the console, and
    the same command given again carries it out.
    """
    target = files.writable(to)

    async def body(core: bridge.Core) -> ActionRecord:
        await bridge.find(core, op)
        return await core.actions.fetch(op, target, bridge.operator_name(core, caller))

    record = calls.with_core(common, body)
    view = action_view(record)
    if common.json:
        out.document(view)
    else:
        what = str(target) if record.outcome is ActionOutcome.DONE else view.get("detail") or ""
        out.text(f"{view['outcome']}: {what}")
    if record.outcome is not ActionOutcome.DONE:
        out.note("the result was not fetched; see 'pollconsole audit show' for this operation")
        ctx.exit(NOT_DONE)


def action_view(record: ActionRecord) -> dict[str, Any]:
    """The record with ISO times."""
    view: dict[str, Any] = msgspec.to_builtins(record)
    view["at"] = iso(record.at)
    view["answered_at"] = None if record.answered_at is None else iso(record.answered_at)
    return view
