"""The first look at a store: what stands on top of a list, before anything is opened for writing.

Job: a screen full of live operations and the open questions; imports so little that a screen shows rows while the rest
of the core is still to be imported. Must not know: keys (what is sealed comes as UNREADABLE), other processes, what a
screen does with it. Nothing is migrated, written or decided.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pollcore.adapters.store import connecting, rows, schema
from pollcore.adapters.store.library import sqlite3
from pollcore.adapters.store.reads import Reads
from pollcore.facts import Escalation, Operation, SealedUnreadable, StoreUnusable

MAX_FIRST: Final = 100
"""Operations of each kind: those that somebody is asked about, and those whose deadline is nearest."""
_ASKED: Final = "op IN (SELECT operation FROM escalation WHERE decided_at IS NULL)"


class _NoKeys:
    """A sealer that opens nothing."""

    def seal(self, purpose: str, plain: bytes) -> bytes:  # noqa: ARG002
        raise SealedUnreadable(f"{purpose}: a glance seals nothing")

    def open(self, purpose: str, sealed: bytes) -> bytes:  # noqa: ARG002
        raise SealedUnreadable(f"{purpose}: a glance has no keys")


def glance(path: Path) -> tuple[tuple[Operation, ...], tuple[Escalation, ...]] | None:
    """Operations that stand on top, and the open questions.

    None: there is no store yet, or opening it whole has something to say.

    The connection stays open: for a process that ends at once (`ahead` says why).
    """
    if not path.exists():
        return None
    try:
        conn = connecting.connect(str(path), read_only=True)
        if schema.version(conn, str(path)) != schema.SCHEMA:
            return None
        reads = Reads(conn, _NoKeys())
        found: dict[str, Operation] = {}
        for where, order in ((_ASKED, "change"), (schema.TIMED, "deadline_at")):
            few = conn.execute(f"{rows.SELECT} WHERE {where} ORDER BY {order} LIMIT {MAX_FIRST}").fetchall()
            found |= {operation.operation_id: operation for operation in reads.records(few)}
        return tuple(found.values()), reads.questions()
    except (sqlite3.Error, StoreUnusable, ValueError):
        return None
