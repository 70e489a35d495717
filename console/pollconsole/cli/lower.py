"""`close`, `hold`, `reject`, `deny`, `request-extension`: what anyone may do, as it lowers authority or asks.

Job: one call to the core each; print the operation after it. Must not know: how to grant anything (no code here can).
Source: spec G5.
"""

from __future__ import annotations

from typing import Any

import click

from pollconsole import bridge
from pollconsole.cli import calls, out, present
from pollconsole.cli.base import Command, Common, command, pass_common
from pollconsole.cli.values import MAX_BECAUSE, Count, OperationId, Text, caller_option
from pollcore.facts import ChoiceKind, Status


def _lowering(kind: ChoiceKind, summary: str, text: str, because: str) -> Command:
    """One command; *because*: a reason that fits it, for the example."""
    name = kind.value

    @command(name, f"pollconsole {name} op-1f2e3d4c --because '{because}'", help=text, short_help=summary)
    @click.argument("op", type=OperationId())
    @click.option("--because", type=Text(MAX_BECAUSE), required=True, metavar="TEXT", help="Why; goes into the audit.")
    @caller_option
    @pass_common
    def run(common: Common, op: str, because: str, caller: str | None) -> None:
        async def body(core: bridge.Core) -> dict[str, Any]:
            by = bridge.operator_name(core, caller)
            if kind is ChoiceKind.REJECT and await core.store.operation(op) is None:
                question = await bridge.reject_question(core, op, because, by)
                if question is not None:
                    return question
            await bridge.find(core, op)
            await core.actions.lower(op, kind, because, by)
            return await bridge.whole(core, op)

        _tell(common, calls.with_core(common, body), kind)

    return run


def _tell(common: Common, view: dict[str, Any], kind: ChoiceKind | None = None) -> None:
    if common.json:
        out.document(view)
    elif view.get("credential") and not view.get("operation_id"):
        out.text(f"{view['id']}: {view['decision']}; the credential {view['credential']} keeps its mode")
    else:
        # an end stays what it is: what was settled is the question about it
        settled = kind is ChoiceKind.CLOSE and view["status"] != Status.CLOSED and not view.get("escalation")
        out.text(present.one_line(view) + ("; its card is settled: nobody is asked any more" if settled else ""))


close = _lowering(
    ChoiceKind.CLOSE,
    "Stop watching an operation.",
    "Stop watching an operation, for good.\n\nThis says nothing about the provider's job, which may go on.",
    "the report is not needed any more",
)
hold = _lowering(
    ChoiceKind.HOLD,
    "Send nothing for a bounded time.",
    "Send nothing for a bounded time, never past the deadline; the contract says how long and how often.\n\n"
    "Then the wait goes on, or its question returns. Waiting ends it, or an operator in the console; no command does.",
    "the provider is under maintenance",
)
reject = _lowering(
    ChoiceKind.REJECT,
    "Refuse what an open question asks for.",
    "Refuse what an open question asks for, such as an extension.\n\nThe wait goes on as it was; a second submission, "
    "which never was granted, is closed, and so is an operation that waits for the first use of its contract. "
    "OP may be the id of the question instead (pollconsole escalations): a credential's looser mode has no operation.",
    "asked for by mistake",
)
deny = _lowering(
    ChoiceKind.DENY,
    "Deny the use of a credential.",
    "Deny the use of a credential that an open question asks for, for a call or a session.\n\n"
    "An operator may ask again.",
    "nobody here started this call",
)


@command(
    "request-extension",
    "pollconsole provider show acme                      # the sizes, under 'extend'",
    "pollconsole request-extension op-1f2e3d4c --minutes 15 --checks 4 --because 'the batch is larger than usual'",
    short_help="Ask for more time and status requests.",
)
@click.argument("op", type=OperationId())
@click.option("--minutes", type=Count(), required=True, metavar="N", help="Minutes of one of the contract's sizes.")
@click.option("--checks", type=Count(), required=True, metavar="N", help="Status requests of the same size.")
@click.option("--because", type=Text(MAX_BECAUSE), required=True, metavar="TEXT", help="Why; shown to the operator.")
@caller_option
@pass_common
def request_extension(
    common: Common, op: str, minutes: int, checks: int, because: str, caller: str | None
) -> None:  # fmt: skip
    """Ask for more time and status requests, in one of the contract's sizes.

    'pollconsole provider show NAME' lists the sizes under 'extend'; another size is refused with the list. Only a
    question comes of it: an operator decides in the console, and the wait goes on inside its limits meanwhile.
    """

    async def body(core: bridge.Core) -> dict[str, Any]:
        await bridge.find(core, op)
        await core.actions.request_extension(op, minutes, checks, because, bridge.operator_name(core, caller))
        return await bridge.whole(core, op)

    _tell(common, calls.with_core(common, body))
    out.note("asked; an operator decides in the console")
