"""Reading what was answered, page by page: the operations of one contract, and every answer of one of them in order.

Job: two statements whose cost is that of the page. Must not know: what the answers are read again for.
Source: design "Records" (sealed envelopes); spec S8.
"""

from __future__ import annotations

from typing import Final

from pollcore.adapters.store import rows
from pollcore.adapters.store.reads import ANSWER, ANSWERED, MAX_ROWS, Reads
from pollcore.facts import Instant, Operation
from pollcore.ports import Stored

_ANSWERED_SINCE: Final = (
    f"{rows.SELECT} WHERE op>? AND contract IN (SELECT no FROM contract WHERE name=?) "
    "AND max(coalesce(http_answered_at, 0), coalesce(last_fault_at, 0))>=? ORDER BY op LIMIT ?"
)
_ANSWERS: Final = f"SELECT {ANSWER} FROM intent i {ANSWERED} WHERE i.operation=? AND i.n>? ORDER BY i.n LIMIT ?"


def answered_under(reads: Reads, contract: str, since: Instant, after: str | None, limit: int) -> tuple[Operation, ...]:
    """Operations under any text of the contract *contract* with an answer at or after *since*, in the order stored.

    *after*: the last operation of the page before.
    """
    last = 0 if after is None else reads.known.op(after) or 0
    found = reads.conn.execute(_ANSWERED_SINCE, (last, contract, since, max(0, min(limit, MAX_ROWS)))).fetchall()
    return reads.records(found)


def answers(reads: Reads, operation_id: str, after: int, limit: int) -> tuple[Stored, ...]:
    """Answers of one operation with their envelopes, by number from *after* on. Raises SealedUnreadable."""
    op = reads.known.op(operation_id)
    if op is None:
        return ()
    found = reads.conn.execute(_ANSWERS, (op, after, max(0, min(limit, MAX_ROWS)))).fetchall()
    return tuple(reads.stored(operation_id, row) for row in found)
