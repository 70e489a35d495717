"""The story: events of one operation, or of all, as documents and as lines.

Job: read events page by page, hand them to the core's story. Must not know: output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pollconsole.safe import safe
from pollcore.facts import AuditEvent

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


def _harmless(text: str) -> str:
    return safe(text, MAX_STORY_LINE)
