"""The story: events of one operation, or of all, as documents and as lines.

Job: read events page by page, hand them to the core's story. Must not know: output.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pollconsole.safe import safe
from pollcore.facts import AuditEvent, Instant

if TYPE_CHECKING:
    from pollcore.assembly import Core

MAX_STORY_LINE: Final = 1_000
EVENTS_A_PAGE: Final = 10_000


async def story(core: Core, operation_id: str | None) -> tuple[list[dict[str, Any]], list[str]]:
    """Events as documents, and the story's lines; over all operations each line names its own."""
    from pollcore.story import story as tell
    from pollcore.views import event_view

    events = await every_event(core, operation_id)
    lines = list(tell(events, harmless=_harmless, named=operation_id is None))
    return [event_view(event) for event in events], lines


async def every_event(core: Core, operation_id: str | None = None) -> list[AuditEvent]:
    """All events, page by page, in the order written."""
    events: list[AuditEvent] = []
    last = 0
    while page := await core.store.events(operation_id, after=last, limit=EVENTS_A_PAGE):
        events += [event for _, event in page]
        last = page[-1][0]
    return events


async def latest(core: Core, after: int | None, limit: int) -> tuple[int, list[tuple[Instant, str]]]:
    """The newest events over all operations: (number of the last one, (time, line without its clock)), *limit* at most.

    Args:
        after: the number that the last call returned; None: the first call.
    """
    from pollcore.adapters.audit_overview import overview
    from pollcore.story import story as tell

    if after is None:
        last = (await asyncio.to_thread(overview, core.home.database)).events
        after = max(0, last - limit)
    lines: list[tuple[Instant, str]] = []
    for number, event in await core.store.events(after=after, limit=limit):
        after = number
        for line in tell((event,), harmless=_harmless, named=True):
            lines.append((event.at, line.partition(" ")[2]))
    return after, lines


def story_lines(events: Sequence[AuditEvent], *, after: Instant | None, named: bool) -> list[str]:
    """The lines of *events*, which go on behind one told at *after*; see the core's story."""
    from pollcore.story import story as tell

    return list(tell(events, harmless=_harmless, after=after, named=named))


def event_view(event: AuditEvent) -> dict[str, Any]:
    """One event as a document of `audit show --json`."""
    from pollcore.views import event_view as view

    return view(event)


def _harmless(text: str) -> str:
    return safe(text, MAX_STORY_LINE)
