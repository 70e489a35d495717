"""`audit new-keys`, `forget`, `move-keys`, `accept-loss`: what changes rarely, and is itself on record.

Job: arguments, the confirmation, lines for people. Must not know: where keys lie, how a chain goes on.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from pollconsole import bridge
from pollconsole.bridge import proof
from pollconsole.cli import calls, out
from pollconsole.cli.base import Common, command, pass_common, raise_missing
from pollconsole.cli.upkeep import since_instant
from pollconsole.cli.values import MAX_BECAUSE, Text, When, caller_option
from pollcore.facts import Instant, Refused, parse_instant


@command("new-keys", "pollconsole audit new-keys", short_help="Begin a new key epoch.")
@pass_common
def new_keys(common: Common) -> None:
    """Make new keys for sealing and signing; the old signing key is deleted, what was sealed stays readable."""

    async def body(core: bridge.Core) -> dict[str, Any]:
        return await proof.new_keys(core, "on demand")

    made = calls.with_core(common, body)
    if common.json:
        out.document(made)
    else:
        out.text(f"epoch {made['epoch']} begins; links from here on are sealed and signed with its keys")


@command(
    "forget",
    "pollconsole audit forget --before 400d --because 'kept as long as the policy asks'",
    "pollconsole audit forget 0 --because 'asked for by the data subject' --yes",
    short_help="Make old epochs' content unreadable for good.",
)
@click.argument("epoch", type=click.IntRange(0, 1 << 30), required=False)
@click.option("--before", type=When(), metavar="SPAN|TIME", help="Every epoch that was over so long ago, or before.")
@click.option("--because", type=Text(MAX_BECAUSE), metavar="TEXT", help="Why; it is recorded.  [required]")
@click.option("--yes", is_flag=True, help="Do not ask; without a terminal nothing is done unless this is given.")
@caller_option
@pass_common
def forget(
    common: Common,
    epoch: int | None,
    before: tuple[int | None, Instant | None] | None,
    because: str | None,
    yes: bool,
    caller: str | None,
) -> None:
    """Delete the reading keys of epochs that are over: their sealed content is lost, the chain stays provable.

    EPOCH, or --before. What was sealed under these keys cannot be read again anywhere, in exports and archives neither.
    It is on record before a key is gone. On a terminal the epochs must be typed to confirm.
    """
    missing = ["EPOCH, or --before SPAN|TIME"] if epoch is None and before is None else []
    raise_missing([*missing, *(["--because TEXT"] if because is None else [])])
    assert because is not None
    if epoch is not None and before is not None:
        raise Refused("name one EPOCH, or --before; not both", code="usage")

    async def find(core: bridge.Core) -> list[int]:
        if epoch is not None:
            return [epoch]
        limit = since_instant(before or (0, None), core.clock.now().wall)
        over = [one for one in await proof.epochs(core) if one["readable"] and one["until"] is not None]
        return [one["epoch"] for one in over if parse_instant(one["until"]) < limit]

    chosen = calls.with_core(common, find)
    if chosen:
        _confirm(chosen, yes=yes)

    async def body(core: bridge.Core) -> None:
        if chosen:
            await proof.forget_epochs(core, chosen, because, bridge.operator_name(core, caller))

    calls.with_core(common, body)
    if common.json:
        out.document({"forgotten": chosen})
    elif chosen:
        out.text(f"deleted here: the reading keys of {_named(chosen)}; copies in backups of the keyring are yours")
    else:
        out.note("no epoch was over by then, or its key is gone already")


def _named(epochs: Sequence[int]) -> str:
    return f"epoch{'s' if len(epochs) > 1 else ''} {', '.join(map(str, epochs))}"


def _confirm(epochs: Sequence[int], *, yes: bool) -> None:
    """Raises Refused: nobody confirmed."""
    if yes:
        return
    typed = " ".join(map(str, epochs))
    if not sys.stdin.isatty():
        raise Refused(
            f"what {_named(epochs)} sealed would be unreadable for good: give --yes where no terminal is", code="usage"
        )
    out.note(f"what {_named(epochs)} sealed cannot be read again after this, by anybody, anywhere")
    if click.prompt(f"type {typed} to confirm", default="", show_default=False, err=True).split() != typed.split():
        raise Refused("not confirmed; nothing was deleted", code="not_confirmed")


@command("move-keys", "pollconsole audit move-keys", short_help="Keys out of the home's files, into the keyring.")
@caller_option
@pass_common
def move_keys(common: Common, caller: str | None) -> None:
    """Move reading key, audit keys and anchor to the keyring, or to the file that [audit] key_file names.

    For a home that was begun on a host without a keyring. Stop its core first. New keys follow at once, because every
    program of this user could read the old ones.
    """

    async def body(core: bridge.Core) -> dict[str, Any]:
        return await proof.move_keys(core, bridge.operator_name(core, caller))

    made = calls.with_core(common, body)
    if common.json:
        out.document(made)
    else:
        out.text(f"keys and anchor lie in {made['keys_in']} now; epoch {made['epoch']} begins with keys made there")


@command(
    "accept-loss",
    "pollconsole audit accept-loss --because 'backup of Monday put back'",
    short_help="Go on after a loss, on record.",
)
@click.option(
    "--because",
    type=Text(MAX_BECAUSE),
    required=True,
    metavar="TEXT",
    help="What happened; everybody who verifies the log reads it.",
)
@pass_common
def accept_loss(common: Common, because: str) -> None:
    """Go on although the anchor knows links that are gone (a backup was put back).

    The chain keeps a record of it.
    """

    async def body(core: bridge.Core) -> None:
        await proof.accept_loss(core, because)

    calls.with_core(common, body)
    if common.json:
        out.document({"accepted": True})
    else:
        out.text("recorded; running cores go on when they are started again")
