"""`audit show`, `limits`; `verify` and `export` are not there yet and say so.

Job: the story of one operation or all, as lines or events; what the record can and cannot promise.
Must not know: the chain.
"""

from __future__ import annotations

from typing import Any, Final

import click

from pollconsole import bridge
from pollconsole.cli import calls, out
from pollconsole.cli.base import Common, LazyGroup, command, pass_common
from pollconsole.cli.values import File, OperationId
from pollcore.facts import Refused

LIMITS: Final = (
    "Each event is stored in the same transaction as the counters that it explains; without it nothing happens.",
    "Not promised by this version: encryption of the events, a hash chain over them, signed checkpoints, an anchor in "
    "the keyring. Whoever can write the store's file can change the record without a trace.",
    "Sealed with a key are: URLs with a query, result pointers, idempotency keys, kept answers. Whoever has the "
    "reading key (keyring, or the key file that the settings name) can open them.",
    "An operator's name is that of the OS user, host and terminal, or the one in the settings: stated, not verified.",
    "The gate is advisory against programs that run as the same OS user as the console: they can write to the "
    "terminal, the store and the keyring of that user.",
)


@click.group(
    "audit",
    cls=LazyGroup,
    short_help="The story of decisions.",
    examples=("pollconsole audit show op-1f2e3d4c", "pollconsole audit limits"),
)
def audit() -> None:
    """What was decided, and why."""


@command(
    "show",
    "pollconsole audit show op-1f2e3d4c",
    "pollconsole audit show --json",
    short_help="The story of one operation, or of all.",
)
@click.argument("op", type=OperationId(), required=False)
@pass_common
def show(common: Common, op: str | None) -> None:
    """Tell the story, one line an event, times in UTC."""

    async def body(core: bridge.Core) -> tuple[list[dict[str, Any]], list[str]]:
        if op is not None:
            await bridge.find(core, op)
        return await bridge.story(core, op)

    events, lines = calls.with_core(common, body)
    if common.json:
        out.document({"events": events})
    elif lines:
        out.text("\n".join(lines))
    else:
        out.note("no events")


@command("verify", "pollconsole audit verify", short_help="Not in this version.")
@click.argument("file", type=File(), required=False)
@pass_common
def verify(common: Common, file: str | None) -> None:  # noqa: ARG001 - the interface stands, the function comes
    """Prove that the record is whole. Not in this version: see 'pollconsole audit limits'."""
    raise _missing("verify")


@command("export", "pollconsole audit export evidence.bin", short_help="Not in this version.")
@click.argument("file", type=File())
@pass_common
def export(common: Common, file: str) -> None:  # noqa: ARG001 - as above
    """Write an evidence file that another machine can verify. Not in this version: see 'pollconsole audit limits'."""
    raise _missing("export")


def _missing(name: str) -> Refused:
    return Refused(
        f"audit {name}: not in this version, its record has no hash chain; 'pollconsole audit limits' says what holds",
        code="not_in_this_version",
    )


@command("limits", "pollconsole audit limits", short_help="What the record can promise, and what it cannot.")
@pass_common
def limits(common: Common) -> None:
    """Say what the audit record of this version promises and what it does not."""
    if common.json:
        out.document({"limits": list(LIMITS)})
    else:
        out.text("\n".join(f"- {line}" for line in LIMITS))


for _command in (show, verify, export, limits):
    audit.add_command(_command)
