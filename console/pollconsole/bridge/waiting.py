"""Waiting for the end of operations: what the core concludes of a record, and what was written since.

Job: the names of the core's waiting (pure and quick to import), and reads for waiters. Must not know: commands, output.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from pollcore.facts import Operation
from pollcore.waiting import (
    CODES,
    ENDS,
    LOOK_S,
    SILENT_AFTER_MS,
    START_GRACE_MS,
    WORST_FIRST,
    Beat,
    WaitEnd,
    core_silence,
    is_running,
    next_step,
    wait_end,
    worst,
)

if TYPE_CHECKING:
    from pollcore.assembly import Core
    from pollcore.client import Feed

__all__ = [
    "CODES",
    "ENDS",
    "LOOK_S",
    "SILENT_AFTER_MS",
    "START_GRACE_MS",
    "WORST_FIRST",
    "Beat",
    "WaitEnd",
    "changed",
    "core_silence",
    "feed",
    "is_running",
    "listed_as",
    "next_step",
    "silence_of",
    "wait_end",
    "worst",
]


async def silence_of(core: Core) -> int | None:
    """ms since a polling core last gave a sign of life; one that has ended counts as silent at once; None: never."""
    return core_silence(await core.store.workers(), core.clock.now(), core.is_gone)


async def changed(core: Core, after: int, ids: Collection[str]) -> Sequence[Operation]:
    """Operations of *ids* that were written after change number *after*. Raises StoreUnusable."""
    from pollcore.client import changed as written

    return await written(core.store, after, frozenset(ids))


def feed(core: Core) -> Feed:
    """One look at the store for all waiters of this process."""
    from pollcore.client import Feed as Shared

    return Shared(core.store, core.clock, core.is_gone)


async def listed_as(core: Core, operation: Operation, state: str) -> str | None:
    """How the table of the operation's contract lists *state*, a verdict's word; None: it does not list that text.

    The contract's rules may look at more than this text. Raises ContractError: the stored contract cannot be read.
    """
    contract = await core.snapshots.of(operation.contract_digest)
    meaning = contract.table.texts.get(state)
    return None if meaning is None else meaning.verdict.value
