"""Rows of the store that contradict the story beside them, in sentences for `doctor` and `audit verify --with-key`.

Job: what the store itself tells, and each record against its events, so many of the newest as are wanted. Must not
know: keys, output. Without a key this tells an edit of rows; who edited their events as well is told with the key.
Source: spec A5, E7, S8; docs/audit.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pollconsole.bridge.reports import MAX_REPORTED, stories, story

if TYPE_CHECKING:
    from pollcore.assembly import Core
    from pollcore.facts import AuditEvent, Operation

LOOKED_AT: Final = 1_000
"""Records that `doctor` holds against their events, those that changed last; `audit verify --with-key` takes more."""
MAX_TOLD: Final = 100
MEND: Final = (
    "somebody wrote into the store's file: stop all cores, keep it as evidence, put a backup in its place; "
    "'pollconsole audit verify --with-key' holds it against the sealed record"
)


async def told(core: Core, *, limit: int = MAX_REPORTED) -> list[str]:
    """A sentence for each contradiction, MAX_TOLD at most; empty: none that can be told. Raises StoreUnusable."""
    found = list(await core.store.contrary())
    async for operation, events in stories(core, limit):
        if _of(operation, events):
            found += await _again(core, operation.operation_id)
        if len(found) >= MAX_TOLD:
            break
    return found[:MAX_TOLD]


def _of(operation: Operation, events: list[AuditEvent]) -> list[str]:
    from pollcore.report import of_record

    return [f"operation {one.operation_id}: {one.text}" for one in of_record(operation, events)]


async def _again(core: Core, operation_id: str) -> list[str]:
    """What a suspect says when record and events are of one moment: a core that polls meanwhile is no foreign hand."""
    found = await story(core, operation_id)
    return [] if found is None else _of(*found)
