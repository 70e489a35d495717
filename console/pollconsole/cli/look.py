"""`list`, `show`, `escalations`: what there is.

Job: read, print. Must not know: where views come from, how anything is decided.
"""

from __future__ import annotations

from typing import Any, Final

import click

from pollconsole import bridge
from pollconsole.cli import calls, out, present
from pollconsole.cli.base import Common, command, pass_common
from pollconsole.cli.upkeep import since_instant
from pollconsole.cli.values import Count, OperationId, ProviderName, When
from pollcore.facts import Instant, NotFound, Refused, Status

DEFAULT_LIMIT: Final = 1_000
MAX_LIMIT: Final = 99_999
"""Of one answer; the store gives one more, so that it is known whether there are."""


@command(
    "list",
    "pollconsole list",
    "pollconsole list --status escalated --status awaiting_approval",
    "pollconsole list --provider acme --since 1d --json",
    short_help="Operations, newest change first.",
)
@click.option(
    "--status", "statuses", type=click.Choice([s.value for s in Status]), multiple=True, metavar="S",
    help=f"Only these; repeat: {', '.join(Status)}.",
)  # fmt: skip
@click.option("--provider", type=ProviderName(), metavar="P", help="Only this provider.")
@click.option("--since", type=When(), metavar="SPAN|TIME", help="Submitted since: 1d, or an ISO time.")
@click.option("--limit", type=Count(), default=DEFAULT_LIMIT, metavar="N", show_default=True,
    help=f"At most so many, up to {MAX_LIMIT:,}.",
)  # fmt: skip
@pass_common
def list_operations(
    common: Common,
    statuses: tuple[str, ...],
    provider: str | None,
    since: tuple[int | None, Instant | None] | None,
    limit: int,
) -> None:
    """List operations, newest change first."""

    if limit > MAX_LIMIT:
        raise Refused(
            f"--limit {limit}: one answer has at most {MAX_LIMIT}; --status, --provider and --since narrow it",
            code="limit", limit="MAX_LIMIT", asked=limit, allowed=MAX_LIMIT,
        )  # fmt: skip

    async def body(
        core: bridge.Core,
    ) -> tuple[list[dict[str, Any]], str, str | None, list[str], list[bridge.Paused], bool]:
        now = core.clock.now().wall
        found = await bridge.operations(
            core,
            statuses=tuple(Status(s) for s in statuses),
            provider=provider,
            since=None if since is None else since_instant(since, now),
            limit=limit + 1,
        )
        more, found = len(found) > limit, found[:limit]
        views = [bridge.row(operation) for operation in found]
        unknown = "" if found or provider is None else await _unknown(core, provider)
        said = [*([unknown] if unknown else []), *present.lost_notes(found)]
        held = [one for one in await bridge.pauses(core) if provider in (None, one.provider)]
        silence = await present.core_warning(core)
        return views, present.rows(found, core.clock.now(), polled=silence is None), silence, said, held, more

    store = bridge.store_path(common.home)
    begun = store.exists()  # before it is opened: that makes one
    views, lines, silence, said, held, more = calls.with_core(common, body)
    if common.json:
        out.document({"operations": views, "more": more, "pauses": [one.document for one in held]})
    elif views:
        out.text(lines)
    else:
        empty = "" if begun else f": {store.parent} held no store, so nothing was handed over there yet"
        out.note("no operations" + (" like that" if statuses or provider or since else "") + empty)
    for note in said:
        out.note(note)
    if more:
        out.note(f"there are more than these {limit:,}, whose change is the newest: --limit N, at most {MAX_LIMIT:,}")
    for one in held:
        out.note(f"paused: {one.text}; nothing is sent to it")
    if silence:
        out.note(silence)


async def _unknown(core: bridge.Core, provider: str) -> str:
    """Why nothing may be listed for *provider*: nothing has that name. Empty: something has."""
    try:
        await bridge.known_provider(core, provider)
    except NotFound as error:
        return str(error)
    return ""


@command("show", "pollconsole show op-1f2e", "pollconsole show op-1f2e --json", short_help="One operation, whole.")
@click.argument("op", type=OperationId())
@pass_common
def show(common: Common, op: str) -> None:
    """Show one operation: its limits and what is used of them, the last answer, the open question with its choices."""

    async def body(core: bridge.Core) -> tuple[dict[str, Any], list[str]]:
        return await bridge.whole_with_card(core, op)

    view, card = calls.with_core(common, body)
    if common.json:
        out.document(view)
    else:
        out.text(present.operation(view, card))


@command(
    "escalations",
    "pollconsole escalations",
    "pollconsole escalations --json",
    short_help="Open questions that an operator decides.",
)
@pass_common
def escalations(common: Common) -> None:
    """List the open questions, each as its card reads.

    They are decided by keypress in the console, nowhere else.
    """

    async def body(core: bridge.Core) -> tuple[list[dict[str, Any]], list[str]]:
        return await bridge.questions(core)

    views, cards = calls.with_core(common, body)
    if common.json:
        out.document({"escalations": views})
    elif cards:
        out.text("\n\n".join(cards))
        out.note("an operator decides in the console: 'pollconsole', key E, approvals key A")
    else:
        out.note("no open questions")
