"""`audit show`: the story of one operation, or of all, filtered, to its end or as it goes on.

Job: arguments -> what is wanted; lines or documents, page by page. Must not know: where events come from, how a
sentence is made.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import click

from pollconsole import bridge
from pollconsole.bridge import event_pages
from pollconsole.cli import calls, out
from pollconsole.cli.base import Common, command, pass_common
from pollconsole.cli.upkeep import since_instant
from pollconsole.cli.values import OperationId, ProviderName, Text, When
from pollcore.facts import AuditEvent, EventName, Instant

At = tuple[int | None, Instant | None]


@command(
    "show",
    "pollconsole audit show op-1f2e3d4c",
    "pollconsole audit show --since 1d --decided --operator ana",
    "pollconsole audit show --provider acme --reason rate_limited --json",
    "pollconsole audit show --follow",
    short_help="The story of one operation, or of all.",
)
@click.argument("op", type=OperationId(), required=False)
@click.option("--event", "names", type=click.Choice([n.value for n in EventName]), multiple=True, metavar="E",
              help="Only events of this name (docs/reference.md lists them); repeat for more.")  # fmt: skip
@click.option("--decided", is_flag=True, help="Only what people decided, refused or let expire.")
@click.option(
    "--decision", "decisions", type=Text(), multiple=True, metavar="D", help="Only this decision: extend, wait."
)
@click.option("--reason", "reasons", type=Text(), multiple=True, metavar="R", help="Only this reason or detail.")
@click.option("--operator", "who", type=Text(), metavar="TEXT", help="In the name of the operator or caller.")
@click.option("--provider", type=ProviderName(), metavar="P", help="Only operations of this provider.")
@click.option("--text", type=Text(), metavar="TEXT", help="Anywhere in the event's texts, letter case aside.")
@click.option("--since", type=When(), metavar="SPAN|TIME", help="At or after: 1d ago, or an ISO time.")
@click.option("--until", type=When(), metavar="SPAN|TIME", help="Before: 1h ago, or an ISO time.")
@click.option("--follow", is_flag=True, help="Go on with new events until interrupted; with --json one a line.")
@pass_common
def show(
    common: Common,
    op: str | None,
    names: tuple[str, ...],
    decided: bool,
    decisions: tuple[str, ...],
    reasons: tuple[str, ...],
    who: str | None,
    provider: str | None,
    text: str | None,
    since: At | None,
    until: At | None,
    follow: bool,
) -> None:
    """Tell the story, one line an event, times in UTC.

    Filters are all to hold; the same one repeated: one of them. Refused grants, denials and approvals that expired
    are told like grants. It ends with the newest event, or, with --follow, when it is interrupted.
    """
    chosen = frozenset(map(EventName, names)) | (event_pages.DECISIONS if decided else frozenset())

    async def body(core: bridge.Core) -> str | None:
        if op is not None:
            await bridge.find(core, op)
        now = core.clock.now().wall
        wanted = event_pages.Wanted(
            names=chosen,
            decisions=frozenset(decisions),
            reasons=frozenset(reasons),
            who=who,
            provider=provider,
            text=text,
            since=None if since is None else since_instant(since, now),
            until=None if until is None else since_instant(until, now),
        )
        found = event_pages.pages(core, op, wanted, follow=follow)
        if common.json and follow:
            await _as_lines(found)
        elif common.json:
            await _as_document(found)
        elif not await _as_story(found, named=op is None):
            out.note("no events" if wanted == event_pages.Wanted() else "no events like that")
        return await bridge.archived_before(core, op)

    gone = calls.with_core(common, body)
    if gone is not None:
        out.note(gone)


async def _as_story(found: AsyncIterator[list[AuditEvent]], *, named: bool) -> bool:
    """Print lines; whether there was one."""
    after: Instant | None = None
    some = False
    async for page in found:
        lines = bridge.story_lines(page, after=after, named=named)
        if lines:
            some = True
            out.text("\n".join(lines))
        told = [event for event in page if event.event is not EventName.SENT]
        after = told[-1].at if told else after
    return some


async def _as_document(found: AsyncIterator[list[AuditEvent]]) -> None:
    """`{"events": [...]}`, written as it is read."""

    async def views() -> AsyncIterator[dict[str, Any]]:
        async for page in found:
            for event in page:
                yield bridge.event_view(event)

    await out.long_document("events", views())


async def _as_lines(found: AsyncIterator[list[AuditEvent]]) -> None:
    async for page in found:
        for event in page:
            out.json_line(bridge.event_view(event))
