"""`provider new|try|impact`: a contract file begun, tried with one request, held against what is stored.

Job: flags -> one call, print. Must not know: the contract language, how answers are judged, what a new file holds.
"""

from __future__ import annotations

from typing import Any, Final

import click

from pollconsole import bridge, words
from pollconsole.cli import calls, out
from pollconsole.cli.base import Common, command, pass_common
from pollconsole.cli.errors import DOUBTFUL
from pollconsole.cli.provider import settings, show_reading, text_of
from pollconsole.cli.submit import fields_of, specification
from pollconsole.cli.upkeep import since_instant
from pollconsole.cli.values import MAX_URL, File, Pair, ProviderName, Text, When, caller_option
from pollcore.facts import DAY, Instant

DEFAULT_SINCE_MS: Final = 30 * DAY
SHOWN: Final = 50
"""Differences that are printed as text; `--json` lists more."""


@command(
    "try",
    "pollconsole provider try acme --job-id job-7",
    "pollconsole provider try acme --job-id job-7 --credential acme --param region=eu --json",
    short_help="One counted request, explained.",
)
@click.argument("name", type=ProviderName())
@click.option("--job-id", type=Text(), required=True, metavar="ID", help="A job that nobody waits for yet.")
@click.option("--param", type=Pair(), multiple=True, metavar="K=V", help="A parameter of the contract; repeat.")
@click.option("--status-url", type=Text(MAX_URL), metavar="URL", help="Where the provider said to ask.")
@click.option("--credential", type=Text(), metavar="NAME", help="Name of a stored credential; never a secret.")
@click.option("--account", type=Text(), metavar="TEXT", help="The provider's account or project.")
@caller_option
@pass_common
def try_(common: Common, /, name: str, **flags: Any) -> None:
    """Send one status request for a job, count it, show the answer and explain it as 'provider explain' does.

    The job must have no operation; the request is stored with one of its own, which is closed at once. A wait that is
    submitted for the job afterwards goes on with its count and asks nobody for leave. What the gate wants before a
    request (a per_call credential, a first use that nobody decided) is told, and nothing is sent.
    """
    handed = fields_of({**_NOTHING, **flags, "provider": name})

    async def body(core: bridge.Core) -> dict[str, Any]:
        if handed.credential is not None:
            await bridge.check_credential(core, name, handed.credential)
        return await bridge.try_provider(core, specification(handed))

    if not bridge.store_path(common.home).exists():
        bridge.refuse_untriable(settings(common), specification(handed))
    found = calls.with_core(common, body)
    if common.json:
        out.document(found)
        return
    show_reading(found)
    out.note("one request was sent and is counted; nobody waits for this job")


_NOTHING: Final[dict[str, Any]] = {
    "deadline": None, "max_requests": None, "max_transport_failures": None, "max_rate_limited": None,
    "useful_until": None, "id_": None, "label": None, "request_fingerprint": None, "idempotency_key": None,
    "started_at": None, "expected_state": (), "response_url": None,
}  # fmt: skip


@command(
    "impact",
    "pollconsole provider impact ./acme.toml --since 30d",
    "pollconsole provider impact ./acme.toml --fail-on-difference --json",
    short_help="What a changed contract makes of stored answers.",
    exits={DOUBTFUL: "with --fail-on-difference: a decision would differ"},
)
@click.argument("file", type=File())
@click.option("--since", type=When(), metavar="SPAN|TIME", help="Answers from when on [default: 30d].")
@click.option("--fail-on-difference", is_flag=True, help=f"Exit {DOUBTFUL} if any decision would differ.")
@pass_common
def impact(
    common: Common, file: str, since: tuple[int | None, Instant | None] | None, fail_on_difference: bool
) -> None:
    """Read stored answers of operations under this contract's name again, under FILE, and list what would differ.

    Nothing is sent, nothing is written. The reading key of the home opens the answers.
    """
    text = text_of(file)

    async def body(core: bridge.Core) -> dict[str, Any]:
        start = since_instant(since or (DEFAULT_SINCE_MS, None), core.clock.now().wall)
        return await bridge.impact(core, text, file, start)

    found = calls.with_core(common, body)
    if common.json:
        out.document(found)
    else:
        _show_impact(file, found)
    if fail_on_difference and found["differences"]:
        raise click.exceptions.Exit(DOUBTFUL)


def _show_impact(file: str, found: dict[str, Any]) -> None:
    name = found["contract"]
    if not found["operations"]:
        out.text(f"no operation under contract {name} was answered since {found['since']}: nothing to compare with")
        return
    read = found["answers"] - found["unreadable"]
    out.text(
        f"{found['differences']} of {read} stored answers of {found['operations']} operations would be decided "
        f"otherwise under {file}, in {found['operations_that_differ']} operations, since {found['since']}"
    )
    if found["unreadable"]:
        out.text(
            f"{found['unreadable']} answers cannot be read again: not kept, kept in part alone, or of a step that the "
            "file does not have"
        )
    if found["skipped"]:
        out.text(f"{found['skipped']} operations are left out: the contract that they ran under cannot be read")
    rows = [_row(one) for one in found["listed"][:SHOWN]]
    if rows:
        head = ("OPERATION", "REQUEST", "AT", "STATE", "WAS", "WOULD BE", "BY", "NOTE")
        out.text(words.table(head, rows, limits=(64, 0, 0, 40, 40, 60, 80, 60)))
    if found["more"] or len(found["listed"]) > SHOWN:
        out.text(f"{found['differences'] - len(rows)} more; --json lists up to {len(found['listed'])}")


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    detail = f" ({one['would_be_detail']})" if one["would_be_detail"] else ""
    notes = []
    if one["not_asked"]:
        notes.append(f"later requests that would not have gone out: {one['not_asked']}")
    if not one["whole"]:
        notes.append("read from a part of the answer")
    state = one["was_state"] or words.NOTHING
    if one["state"] != one["was_state"]:
        state = f"{state} -> {one['state'] or words.NOTHING}"
    return (
        one["operation_id"], str(one["n"]), one["at"], state, one["was"], f"{one['would_be']}{detail}", one["rule"],
        "; ".join(notes),
    )  # fmt: skip
