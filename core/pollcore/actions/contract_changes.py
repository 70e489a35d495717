"""The contract files of today beside the snapshots that operations were submitted under.

Job: where the two differ, and in what. Must not know: what a changed contract makes of an answer, who adopts it.
Source: spec S8, G4.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

import msgspec

from pollcore.actions.desk import Desk
from pollcore.contract import Contract
from pollcore.facts import Operation, Refused


class ContractChange(msgspec.Struct, frozen=True):
    """The contract file of today beside the snapshot in force; the same for all operations under that snapshot."""

    today: Contract
    diff: str
    origins_added: tuple[str, ...]


async def changes_of(
    desk: Desk, operations: Iterable[Operation], contracts: Mapping[str, Contract]
) -> dict[tuple[str, str], ContractChange]:
    """Where the file of today differs from what is in force: each file is read once, each difference made once."""
    today: dict[str, Contract | None] = {}
    found = {}
    for provider, digest in sorted({(op.submitted.provider, op.contract_digest) for op in operations}):
        if provider not in today:
            try:
                today[provider] = desk.contracts.find(provider)
            except Refused:
                today[provider] = None
        file = today[provider]
        if file is None or file.digest == digest or digest not in contracts:
            continue
        before = await desk.store.snapshot(digest)
        if before is None:
            continue
        added = tuple(sorted(set(file.origins) - set(contracts[digest].origins)))
        found[provider, digest] = ContractChange(file, text_difference(before.text, file.snapshot.text), added)
    return found


def text_difference(before: str, after: str) -> str:
    """The changed lines, whole (G4: nothing is cut silently)."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "in force", "file", lineterm="", n=1)
    return "\n".join(lines)
