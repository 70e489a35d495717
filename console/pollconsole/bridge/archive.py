"""Archiving for the command line.

Job: call the core, hand its outcome back as a document. Must not know: output, files, what may leave.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pollcore.facts import EventName, Instant, iso

if TYPE_CHECKING:
    from pollcore.assembly import Core


async def archived_before(core: Core, operation_id: str | None) -> str | None:
    """Where the beginning of a story is that went into an archive; None: all of it is here."""
    first = await core.store.events(operation_id, limit=1)
    begins = first and (first[0][1].event is EventName.SUBMITTED if operation_id is not None else first[0][0] == 1)
    found = None if begins else await core.store.archived(operation_id)
    return None if found is None else f"earlier events are in archive {found[0]}, {found[1]}"


async def archive(core: Core, before: Instant, target: Path | None, *, dry_run: bool, operator: str) -> dict[str, Any]:
    """Move what ended before *before* into a file. Raises Refused, CredentialUnavailable, StoreUnusable, Stale.

    `archive` is its number, null where nothing was removed; sizes are in bytes.
    """
    from pollcore.adapters.audit_archive import archive_ended

    made = await archive_ended(
        core.audit,
        core.store,
        core.home.database,
        core.clock.now(),
        before=before,
        target=target,
        dry_run=dry_run,
        operator=operator,
    )
    health = await core.store.health()
    return {
        "archive": made.no,
        "before": iso(before),
        "file": made.file,
        "bytes": made.size,
        "sha256": made.sha256 or None,
        "operations": made.operations,
        "requests": made.requests,
        "events": made.events,
        "links": made.links,
        "epochs": made.epochs,
        "epochs_over": made.epochs_over,
        "held_by": made.held_by,
        "more": made.more,
        "resumed": made.resumed,
        "dry_run": dry_run,
        "store_bytes": health.file_bytes,
        "key": core.audit.state.key,
    }
