"""`archive`: what ended long ago goes from the store into a file that anybody can verify.

Job: arguments, sizes for people, the document. Must not know: what may leave, how it is proved.
"""

from __future__ import annotations

from typing import Any

import click

from pollconsole import bridge, words
from pollconsole.bridge.archive import archive as move
from pollconsole.cli import calls, files, out
from pollconsole.cli.base import Common, command, pass_common
from pollconsole.cli.upkeep import since_instant
from pollconsole.cli.values import File, When, caller_option
from pollcore.facts import Instant


@command(
    "archive",
    "pollconsole archive --before 90d --dry-run",
    "pollconsole archive --before 90d --to /mnt/evidence/2026-q1.jsonl",
    short_help="Move what ended long ago into a verifiable file.",
)
@click.option(
    "--before",
    type=When(),
    required=True,
    metavar="SPAN|TIME",
    help="What ended so long ago, or before; at least 1h.",
)
@click.option("--to", "target", type=File(), metavar="FILE", help="A new file [default: the home's folder archives].")
@click.option("--dry-run", is_flag=True, help="Say what would leave; write and remove nothing.")
@caller_option
@pass_common
def archive(
    common: Common,
    before: tuple[int | None, Instant | None],
    target: str | None,
    dry_run: bool,
    caller: str | None,
) -> None:
    """Move requests, answers and whole key epochs of operations that have ended into one file, and remove them here.

    Operations themselves stay, with identity, counters, final state and result, so a later submission of the same job
    goes on with their counters. The file is written, made durable and verified before anything is removed; a call that
    is cut off loses nothing, and the same call again goes on. Links of the audit leave by whole epochs that are over,
    when every event in them is as old and of operations that leave ('audit new-keys' ends the present epoch).

    Needs the audit's keys. Prove the file with 'audit verify FILE', all of it with 'audit verify --archive FILE'.
    """
    place = None if target is None else files.target_folder(target)

    async def body(core: bridge.Core) -> dict[str, Any]:
        limit = since_instant(before, core.clock.now().wall)
        return await move(core, limit, place, dry_run=dry_run, operator=bridge.operator_name(core, caller))

    made = calls.with_core(common, body)
    if common.json:
        out.document(made)
    else:
        out.text("\n".join(_told(made)))


def _told(made: dict[str, Any]) -> list[str]:
    amount = (
        f"{words.counted(made['requests'], 'request')} of {words.counted(made['operations'], 'operation')}, "
        f"{words.counted(made['links'], 'link')} of {words.counted(made['epochs'], 'epoch')}, "
        f"{words.counted(made['events'], 'event')} of the story"
    )
    if made["archive"] is None:
        some = made["operations"] or made["links"]
        lines = [f"would leave: {amount}, {words.size(made['bytes'])}" if some else "nothing to archive"]
    else:
        lines = [
            f"archive {made['archive']}: {amount}",
            f"{made['file']}: {words.size(made['bytes'])}, sha256 {made['sha256']}",
            f"verify it with: pollconsole audit verify FILE --key {made['key']}",
            f"the store keeps its size of {words.size(made['store_bytes'])}; what was removed makes room in it",
        ]
    if made["resumed"]:
        lines.append("the file was there already, written by a call that was cut off")
    if made["held_by"] is not None:
        lines.append(f"a further epoch that is over stays: {made['held_by']} is younger, or not over")
    elif not made["epochs_over"] and made["operations"]:
        lines.append("the audit's links stay: no key epoch is over ('pollconsole audit new-keys' ends one)")
    if made["more"]:
        lines.append("there is more: run it again")
    return lines
