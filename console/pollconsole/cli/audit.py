"""`audit`: the story, the proof, the evidence file, what none of them can promise, and keys that change.

Job: arguments, lines for people, exit codes of the proof. Must not know: how a chain is made or verified.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import click

from pollconsole import bridge
from pollconsole.bridge import proof
from pollconsole.cli import calls, files, out
from pollconsole.cli.base import Common, LazyGroup, command, pass_common
from pollconsole.cli.values import File, OperationId
from pollcore.facts import Refused

PROGRESS_EVERY: Final = 250_000
"""Links between two lines of progress."""
SHOWN: Final = 20
"""Faults that people are shown; `--json` has up to 1,000."""
HEAD_HELP: Final = "A signed checkpoint that was kept elsewhere: its file, or NUMBER:HASH. May be given again."
LIMITS: Final = (
    "Each event is stored, sealed and chained in the same transaction as the counters that it explains; without its "
    "link nothing happens.",
    "'audit verify' proves without any secret that no link was changed, removed, moved or put in up to the last signed "
    "checkpoint, if the verification key is the one that you kept elsewhere (--key).",
    "After the last checkpoint and the last anchor, whoever can write the store's file can cut the tail or add links "
    "of his own: writing needs no secret. A console or run anchors every 10 s, at its end and before each grant.",
    "Store and keyring put back together to an old state are noticed only by a checkpoint that was kept elsewhere: "
    "post the head that 'audit verify' prints, or an export, off this host, and give it to --expect-head.",
    "Not promised: anything against a program that runs as you. It can read the keyring, type into the terminal, or "
    "lie before an event is sealed. A thief of the signing key can rewrite what no anchor or kept head covers.",
    "Not promised: that all that happened was recorded, or true times; a time is what this machine's clock said.",
    "Not promised: that deleted keys are gone. Backups, swap and the keyring's own file may still hold them.",
    "Links after the last anchor can be lost without a trace with a disk that lied about its writes in a power cut.",
    "The story's rows are clear, so that screens need no key; 'audit verify --with-key' holds them against the sealed "
    "copies. Forgetting an epoch's key makes the sealed copies unreadable wherever they are, not these rows.",
    "An operator's name is that of the OS user, host and terminal, or the one in the settings: stated, not verified.",
    "The gate is advisory against programs that run as the same OS user as the console.",
)


@click.group(
    "audit",
    cls=LazyGroup,
    short_help="The story of decisions, and its proof.",
    examples=("pollconsole audit show op-1f2e3d4c", "pollconsole audit verify", "pollconsole audit limits"),
)
def audit() -> None:
    """What was decided, and why; and the proof that the record is whole."""


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


@command(
    "verify",
    "pollconsole audit verify",
    "pollconsole audit verify evidence.jsonl --key pollconsole/... --expect-head head.txt",
    short_help="Prove that the record is whole; needs no secret.",
)
@click.argument("file", type=File(), required=False)
@click.option("--expect-head", "heads", multiple=True, metavar="HEAD", help=HEAD_HELP)
@click.option("--key", metavar="KEY", help="The log's verification key that was kept elsewhere.")
@click.option("--with-key", is_flag=True, help="Also hold the clear rows against their sealed copies.")
@click.pass_context
@pass_common
def verify(
    common: Common, ctx: click.Context, file: str | None, heads: tuple[str, ...], key: str | None, with_key: bool
) -> None:
    """Prove this home's record, or FILE (from 'audit export', or a backup of a store).

    Exit 0 intact, 20 altered, 21 removed or reordered, 22 truncated, 23 torn last write, 24 missing, 25 unsigned tail
    only, 26 another log.
    """
    if with_key and file is not None:
        raise Refused("--with-key holds the rows of this home's store against its chain; FILE has none", code="usage")
    report = proof.verify(common.home, file, heads=heads, key=key, progress=_progress())
    if with_key and report["verdict"] not in ("missing", "other_log"):
        report["story"] = compared = calls.with_core(common, proof.compare_story)
        if compared["differing_count"] and report["exit_code"] in (0, 22, 23, 25):
            report |= {"verdict": "altered", "exit_code": 20}
    if common.json:
        out.document(report)
    else:
        out.text("\n".join(_told(report)))
    if report["exit_code"]:
        ctx.exit(report["exit_code"])


def _progress() -> Any:
    due = PROGRESS_EVERY

    def tell(links: int) -> None:
        nonlocal due
        if links >= due and sys.stderr.isatty():
            out.note(f"{links:,} links verified ...")
            due = links + PROGRESS_EVERY

    return tell


def _told(report: dict[str, Any]) -> list[str]:
    lines = [f"{report['verdict'].replace('_', ' ')}: {report['links']:,} links, epoch {report['epoch']}"]
    if report["log"]:
        same = (
            "as you gave it" if report["key_compared"] else "compare it with the one that you kept, or give it as --key"
        )
        lines += [f"key {report['key']} ({same})", f"head {report['head']}"]
        lines.append(f"signed up to link {report['signed_to']:,} by {report['checkpoints']:,} checkpoints")
        lines.append(f"anchor: {report['anchor']}; confirmed up to link {report['confirmed_to']:,}")
    lines += [f"note: {text}" for text in report["remarks"]]
    for fault in report["faults"][:SHOWN]:
        at = "" if fault["link"] is None else f" at link {fault['link']:,}"
        lines.append(f"{fault['kind'].replace('_', ' ')}{at}: {fault['text']}")
    if report["fault_count"] > SHOWN:
        lines.append(f"... {report['fault_count']:,} faults in all; --json lists up to 1,000")
    story = report.get("story")
    if story is not None:
        lines.append(f"{story['events']:,} sealed events, {story['unreadable']:,} under keys that are not at hand")
        lines += [f"altered: {text}" for text in story["differing"][:SHOWN]]
    return lines


@command("export", "pollconsole audit export evidence.jsonl", short_help="One file that any machine can verify.")
@click.argument("file", type=File())
@pass_common
def export(common: Common, file: str) -> None:
    """Write the whole log as one file, to be verified with nothing but the file and the verification key."""
    target = files.writable(file)

    async def body(core: bridge.Core) -> dict[str, Any]:
        return await proof.export(core, target)

    made = calls.with_core(common, body)
    if common.json:
        out.document(made)
        return
    out.text(f"{made['links']:,} links in {made['file']}; verify with: audit verify FILE --key {made['key']}")
    if not made["signed"]:
        out.note(f"its last links are under no checkpoint: {made['why'] or 'the signing key is not at hand'}")


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


@command("forget", "pollconsole audit forget 0", short_help="Make an old epoch's content unreadable for good.")
@click.argument("epoch", type=click.IntRange(0, 1 << 30))
@click.option("--because", required=True, metavar="TEXT", help="Why; it is recorded.")
@pass_common
def forget(common: Common, epoch: int, because: str) -> None:
    """Delete the reading key of an epoch that is over: its sealed content is lost, its chain stays provable."""

    async def body(core: bridge.Core) -> None:
        await proof.forget(core, epoch, because)

    calls.with_core(common, body)
    if common.json:
        out.document({"forgotten": epoch})
    else:
        out.text(
            f"the reading key of epoch {epoch} is deleted here; copies in backups of the keyring are yours to delete"
        )


@command(
    "accept-loss",
    "pollconsole audit accept-loss --because 'backup of Monday put back'",
    short_help="Go on after a loss, on record.",
)
@click.option(
    "--because", required=True, metavar="TEXT", help="What happened; everybody who verifies the log reads it."
)
@pass_common
def accept_loss(common: Common, because: str) -> None:
    """Go on although the anchor knows links that are gone (a backup was put back). The chain keeps a record of it."""

    async def body(core: bridge.Core) -> None:
        await proof.accept_loss(core, because)

    calls.with_core(common, body)
    if common.json:
        out.document({"accepted": True})
    else:
        out.text("recorded; running cores go on when they are started again")


@command("limits", "pollconsole audit limits", short_help="What the record can promise, and what it cannot.")
@pass_common
def limits(common: Common) -> None:
    """Say what the audit record promises and what it does not."""
    if common.json:
        out.document({"limits": list(LIMITS)})
    else:
        out.text("\n".join(f"- {line}" for line in LIMITS))


for _command in (show, verify, export, new_keys, forget, accept_loss, limits):
    audit.add_command(_command)
