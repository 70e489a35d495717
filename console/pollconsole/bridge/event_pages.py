"""Events of the audit page by page, those that are wanted: whatever the length of the log, one page is in memory.

Job: what is wanted of events, pages from the store, new ones as they come. Must not know: output, sentences.
Source: spec A1, A2, A5.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from pollcore.facts import AuditEvent, EventName, Instant

if TYPE_CHECKING:
    from pollcore.assembly import Core

PAGE: Final = 10_000
FOLLOW_S: Final = 1.0
"""The longest pause between two looks for new events."""
MAX_KNOWN: Final = 50_000
"""Operations whose provider is remembered."""
DECISIONS: Final = frozenset(
    {
        EventName.GRANTED,
        EventName.GRANT_REFUSED,
        EventName.REJECTED,
        EventName.CLOSED,
        EventName.TRIED,
        EventName.HELD,
        EventName.HOLD_ENDED,
        EventName.PAUSED,
        EventName.APPROVAL_EXPIRED,
        EventName.SESSION_ENDED,
        EventName.CONTRACT_DECIDED,
    }
)
"""What people decided, refused and left unanswered."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What an event must be; empty: anything. Texts are looked for anywhere in the field, letter case aside."""

    names: frozenset[EventName] = frozenset()
    decisions: frozenset[str] = frozenset()
    reasons: frozenset[str] = frozenset()
    """Reason or detail."""
    who: str | None = None
    """In operator or caller."""
    provider: str | None = None
    text: str | None = None
    """In any text of the event, notes included."""
    since: Instant | None = None
    until: Instant | None = None
    """Before it."""

    def takes(self, event: AuditEvent) -> bool:
        """Whether *event* is wanted, but for its provider."""
        return (
            (not self.names or event.event in self.names)
            and (not self.decisions or event.decision in self.decisions)
            and (not self.reasons or event.reason in self.reasons or event.detail in self.reasons)
            and (self.since is None or event.at >= self.since)
            and (self.until is None or event.at < self.until)
            and (self.who is None or _holds((event.operator, event.caller), self.who))
            and (self.text is None or _holds(_texts(event), self.text))
        )


def _texts(event: AuditEvent) -> Sequence[str | None]:
    return (
        *(event.operation_id, event.state, event.state_before, event.fault, event.request_id, event.decision),
        *(event.reason, event.detail, event.operator, event.caller, event.text, event.retry_after, *event.notes),
    )


def _holds(texts: Sequence[str | None], wanted: str) -> bool:
    low = wanted.lower()
    return any(text is not None and low in text.lower() for text in texts)


async def pages(
    core: Core, operation_id: str | None, wanted: Wanted, *, follow: bool = False
) -> AsyncIterator[list[AuditEvent]]:
    """The wanted events in the order written; *follow*: then those that come, until the caller ends.

    A page may be empty: that is a breath, not the end.
    """
    providers: dict[str, str | None] = {}
    last, change = 0, -1
    while True:
        while page := await core.store.events(operation_id, after=last, limit=PAGE):
            found = [event for _, event in page if wanted.takes(event)]
            if wanted.provider is not None:
                found = [event for event in found if await _provider(core, providers, event) == wanted.provider]
            last = page[-1][0]
            yield found
        if not follow:
            return
        change = await core.store.wait_for_change(change, FOLLOW_S)


async def _provider(core: Core, known: dict[str, str | None], event: AuditEvent) -> str | None:
    name = event.operation_id
    if name is None:
        return None
    if name not in known:
        if len(known) >= MAX_KNOWN:
            known.clear()
        operation = await core.store.operation(name)
        known[name] = None if operation is None else operation.submitted.provider
    return known[name]
