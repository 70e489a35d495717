"""What a row looks like right now, inside the transaction: everything that a conditional write is checked against.

Job: load the guards of many operations in one statement. Must not know: what is done when one does not hold.
Source: spec O2, O3; reliability L1, L2.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from pollcore.adapters.store.memory import Known

_SQL: Final = (
    "SELECT o.id, o.op, o.change, o.epoch, o.version, o.status, o.lease_owner, o.lease_until, o.renewed, o.boot, "
    "o.contract, o.status_requests_used, o.last_event "
    "FROM json_each(?) j CROSS JOIN operation o ON o.op = j.value"
)


_INTENTS: Final = (
    "SELECT i.operation, i.n, i.id, o.intent IS NOT NULL FROM json_each(?) j "
    "CROSS JOIN intent i ON i.operation=j.value->>0 AND i.n=j.value->>1 LEFT JOIN observation o ON o.intent=i.id"
)


class Fence(msgspec.Struct):
    """The guards of one operation; kept up to date while a turn changes the row."""

    operation_id: str
    op: int
    change: int
    epoch: int
    version: int
    status: str
    lease_owner: int | None
    lease_until: int | None
    renewed: int
    boot: int
    contract: int
    used: int
    last: int | None
    """The newest event (the field that Transaction.record moves on)."""
    pending: bool = False
    """An update of this row is gathered but not yet executed."""


def load(conn: Any, known: Known, operation_ids: Iterable[str]) -> dict[str, Fence]:
    """The guards of every operation that exists."""
    numbers = [op for op in map(known.op, operation_ids) if op is not None]
    if not numbers:
        return {}
    found = conn.execute(_SQL, (json.dumps(numbers),)).fetchall()
    return {row[0]: Fence(*row) for row in found}


def load_intents(conn: Any, pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], tuple[int, bool]]:
    """(operation, n) -> (id of the intent, whether it has its observation) for every intent that exists."""
    if not pairs:
        return {}
    found = conn.execute(_INTENTS, (json.dumps(pairs),)).fetchall()
    return {(op, n): (intent, bool(seen)) for op, n, intent, seen in found}
