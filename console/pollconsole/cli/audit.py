"""`audit`: the proof, the evidence file, what neither can promise. The story: audit_show; keys that change: audit_keys.

Job: arguments, lines for people, exit codes of the proof. Must not know: how a chain is made or verified.
"""

from __future__ import annotations

import shlex
import sys
from typing import Any, Final

import click

from pollconsole import bridge, proof_words
from pollconsole.bridge import proof
from pollconsole.cli import calls, files, out
from pollconsole.cli.audit_keys import accept_loss, forget, move_keys, new_keys
from pollconsole.cli.audit_show import show
from pollconsole.cli.base import Common, LazyGroup, command, pass_common
from pollconsole.cli.values import File
from pollcore.facts import Refused

PROGRESS_EVERY: Final = 250_000
"""Links between two lines of progress."""
ARCHIVE_HELP: Final = (
    "An archive file of this home, verified with what the store still has, as one. May be given again."
)
HEAD_HELP: Final = "A signed checkpoint that was kept elsewhere: its file, or NUMBER:HASH. May be given again."
LIMITS: Final = (
    "Each event is stored, sealed and chained in the same transaction as the counters that it explains; without its "
    "link nothing happens.",
    "'audit verify' proves without any secret that no link was changed, removed, moved or put in up to the last signed "
    "checkpoint, if the verification key is the one that you kept elsewhere (--key).",
    "After the last checkpoint and the last anchor, whoever can write the store's file can cut the tail or add links "
    "of his own: writing needs no secret. A console or run anchors every 10 s, at its end, before each grant, and "
    "right after the grant's own rows; a command that wrote anchors at its end, if the keyring answers in a second.",
    "A home begun on a machine without a keyring keeps keys and anchor in files beside the store: whoever puts the "
    "whole folder back to an old state puts the anchor back with it, and every program of the user can sign. "
    "'audit move-keys' moves them to a keyring, or to a file elsewhere that [audit] key_file names.",
    "Store and keyring put back together to an old state are noticed only by a checkpoint that was kept elsewhere: "
    "post the head that 'audit verify' prints, or an export, off this host, and give it to --expect-head.",
    "Not promised: anything against a program that runs as you. It can read the keyring, type into the terminal, or "
    "lie before an event is sealed. A thief of the signing key can rewrite what no anchor or kept head covers.",
    "Not promised: that all that happened was recorded, or true times; a time is what this machine's clock said.",
    "What 'archive' took out of the store is proved by its own file: the store keeps its sum and signature, the keys "
    "that were handed on, and where the links go on. Without the file that part cannot be shown; its removal is on "
    "record.",
    "Not promised: that deleted keys are gone. Backups, swap and the keyring's own file may still hold them.",
    "Links after the last anchor can be lost without a trace with a disk that lied about its writes in a power cut.",
    "The story's rows are clear, so that screens need no key; 'audit verify --with-key' holds them against the sealed "
    "copies. Forgetting an epoch's key makes the sealed copies unreadable wherever they are, not these rows.",
    "Rows of the store that are no links are told by what contradicts them: limits, ends, questions and grants by the "
    "events, contracts by their digest, foreign tables, views and indexes by 'doctor'; edited grants and events by "
    "'audit verify --with-key'. A foreign trigger keeps the store from being opened.",
    "Not told: an edit of what no event names, as when a job is asked next, cool-downs, denials, pauses, which of your "
    "credentials a wait uses, labels, fields of a result, what operators saw of contracts, or a contract changed "
    "together with its digest everywhere in the store.",
    "An operator's name is that of the OS user, host and terminal, or the one in the settings: stated, not verified.",
    "The gate is advisory against programs that run as the same OS user as the console.",
)


VERDICTS: Final = {
    0: "intact",
    20: "altered",
    21: "removed or reordered",
    22: "truncated",
    23: "torn last write",
    24: "missing",
    25: "only an unsigned tail",
    26: "of another log",
}
"""Exit codes of `audit verify`; fixed."""


@click.group(
    "audit",
    cls=LazyGroup,
    short_help="The story of decisions, and its proof.",
    examples=("pollconsole audit show op-1f2e3d4c", "pollconsole audit verify", "pollconsole audit limits"),
)
def audit() -> None:
    """What was decided, and why; and the proof that the record is whole."""


@command(
    "verify",
    "pollconsole audit verify",
    "pollconsole audit verify evidence.jsonl --key pollconsole/... --expect-head head.txt",
    short_help="Prove that the record is whole; needs no secret.",
    exits=VERDICTS,
)
@click.argument("file", type=File(), required=False)
@click.option("--expect-head", "heads", multiple=True, metavar="HEAD", help=HEAD_HELP)
@click.option("--key", metavar="KEY", help="The log's verification key that was kept elsewhere.")
@click.option("--archive", "archives", type=File(), multiple=True, metavar="FILE", help=ARCHIVE_HELP)
@click.option("--with-key", is_flag=True, help="Also hold the clear rows against their sealed copies.")
@click.pass_context
@pass_common
def verify(
    common: Common,
    ctx: click.Context,
    file: str | None,
    heads: tuple[str, ...],
    key: str | None,
    archives: tuple[str, ...],
    with_key: bool,
) -> None:
    """Prove this home's record, or FILE (from 'audit export' or 'archive', or a backup of a store).

    The exit code tells the gravest fault found.
    """
    if with_key and file is not None:
        raise Refused("--with-key holds the rows of this home's store against its chain; FILE has none", code="usage")
    if archives and file is not None:
        raise Refused("--archive goes with this home's store; verify a file alone by naming it", code="usage")
    report = proof.verify(common.home, file, heads=heads, key=key, archives=archives, progress=_progress())
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
    lines += [*proof_words.head_lines(report), *proof_words.finding_lines(report)]
    story = report.get("story")
    if story is not None:
        lines.append(f"{story['events']:,} sealed events, {story['unreadable']:,} under keys that are not at hand")
        lines += [f"altered: {text}" for text in story["differing"][: proof_words.SHOWN]]
    return lines


@command("export", "pollconsole audit export evidence.jsonl", short_help="One file that any machine can verify.")
@click.argument("file", type=File())
@pass_common
def export(common: Common, file: str) -> None:
    """Write the whole log as one file, to be verified with nothing but the file and the verification key.

    It is signed to its end where the signing key is at hand. A home that can only be read, as a copy that is evidence,
    is exported with the last checkpoint that it holds; which links that signs is said.
    """
    target = files.writable(file)

    async def body(core: bridge.Core) -> dict[str, Any]:
        return await proof.export(core, target)

    made = calls.with_core(common, body)
    if common.json:
        out.document(made)
        return
    again = f"pollconsole audit verify {shlex.quote(str(made['file']))} --key {made['key']}"
    out.text(f"{made['links']:,} links in {made['file']}; verify with: {again}")
    why = made["why"] or ("" if made["signed"] else "the signing key is not at hand")
    if why:
        out.note(f"{_signed(made)}: {why}")


def _signed(made: dict[str, Any]) -> str:
    """What stands in place of a new checkpoint over the last link."""
    last = made["last_link"]
    if made["signed"]:
        return f"no new checkpoint was made; the last stored one signs all of it, up to link {last:,}"
    if not made["signed_to"]:
        return f"no checkpoint is stored, its links up to {last:,} are signed by none"
    return f"the last stored checkpoint signs links up to {made['signed_to']:,}; those up to {last:,} are under none"


@command("limits", "pollconsole audit limits", short_help="What the record can promise, and what it cannot.")
@pass_common
def limits(common: Common) -> None:
    """Say what the audit record promises and what it does not."""
    if common.json:
        out.document({"limits": list(LIMITS)})
    else:
        out.text("\n".join(f"- {line}" for line in LIMITS))


for _command in (show, verify, export, new_keys, forget, move_keys, accept_loss, limits):
    audit.add_command(_command)
