"""The look at the end of a turn: what is due, what comes next, whose answer was lost, what is in force.

Job: find due operations by index, at a cost that depends on how many are due, not on how many wait. Must not know: what
is done with them.
Source: spec T8, T9, B4; reliability L3.
"""

from __future__ import annotations

from typing import Any, Final

from pollcore.adapters.store import rows, shared
from pollcore.adapters.store.claims import unanswered
from pollcore.adapters.store.leases import LeaseWatch
from pollcore.adapters.store.reads import Reads
from pollcore.adapters.store.schema import TIMED
from pollcore.facts import BootMs, Instant, Moment
from pollcore.ports import Coming, TurnOutcome

MAX_LOST: Final = 1_000
"""Operations under dead leases that one look returns."""
MAX_COMING: Final = 1_000
"""Operations that are not due yet, of which one look tells."""

_DUE: Final = (
    f"{rows.SELECT} INDEXED BY operation_due WHERE due_boot IS NOT NULL AND lease_owner IS NULL "
    "ORDER BY due_boot LIMIT ?"
)
_OVERDUE: Final = (
    f"{rows.SELECT} INDEXED BY operation_deadline WHERE {TIMED} AND deadline_at<=? AND lease_owner IS NULL "
    "AND due_boot>? ORDER BY deadline_at LIMIT ?"
)
_NEXT_DEADLINE: Final = (
    f"SELECT deadline_at FROM operation INDEXED BY operation_deadline WHERE {TIMED} AND deadline_at>? "
    "AND due_boot IS NOT NULL ORDER BY deadline_at LIMIT 1"
)
_COMING: Final = (
    "SELECT provider, account, credential, contract, due_boot FROM operation INDEXED BY operation_due "
    "WHERE due_boot IS NOT NULL AND lease_owner IS NULL AND due_boot>? AND due_boot<=? AND status='waiting' "
    "ORDER BY due_boot LIMIT ?"
)
_DUE_AT: Final = rows.COLUMNS.index("due_boot")
_EPOCH_AT: Final = rows.COLUMNS.index("epoch")
_RENEWED: Final = f"{rows.SELECT.replace(' FROM', ', renewed FROM')} WHERE op=? AND lease_owner IS NOT NULL"


def look(reads: Reads, watch: LeaseWatch, now: Moment, limit: int, ahead: int = 0) -> TurnOutcome:
    """A TurnOutcome without writes and claims.

    Args:
        limit: operations to load, beside those under dead leases; 0: none.
        ahead: ms; of whom that becomes due so soon to tell as well; 0: nobody.
    """
    ask = reads.conn.execute
    found = ask(_DUE, (limit + 1,)).fetchall()
    due = [row for row in found[:limit] if row[_DUE_AT] <= now.boot]
    next_due = found[len(due)][_DUE_AT] if len(found) > len(due) else None
    overdue: list[Any] = []
    dead: list[Any] = []
    lost: list[tuple[str, int]] = []
    if len(due) < limit:
        overdue = ask(_OVERDUE, (now.wall, now.boot, limit - len(due))).fetchall()
    if limit:
        dead, lost = _dead(reads, watch)
    deadline = ask(_NEXT_DEADLINE, (now.wall,)).fetchone()
    holds = shared.in_force(reads.conn, now)
    return TurnOutcome(
        taken=(),
        claimed=(),
        due=reads.records([*dead, *overdue, *due]),
        coming=_coming(reads, now, ahead) if limit and ahead else (),
        next_due=None if next_due is None else BootMs(next_due),
        next_deadline=None if deadline is None else Instant(deadline[0]),
        cooldowns=holds.cooldowns,
        origins=holds.origins,
        denials=holds.denials,
        pauses=holds.pauses,
        answer_lost=tuple(lost),
    )


def _coming(reads: Reads, now: Moment, ahead: int) -> tuple[Coming, ...]:
    found = reads.conn.execute(_COMING, (now.boot, now.boot + ahead, MAX_COMING)).fetchall()
    return tuple(
        Coming(provider, account, credential, reads.known.contract(contract), BootMs(due))
        for provider, account, credential, contract, due in found
    )


def _dead(reads: Reads, watch: LeaseWatch) -> tuple[list[Any], list[tuple[str, int]]]:
    """Rows under dead leases, and their requests without an answer."""
    found, lost = [], []
    for op in watch.dead()[:MAX_LOST]:
        row = reads.conn.execute(_RENEWED, (op,)).fetchone()
        if row is not None and watch.is_dead(op, row[_EPOCH_AT], row[-1]):
            found.append(row[:-1])
            lost += [(row[1], n) for n in unanswered(reads.conn, op, row[_EPOCH_AT])]
    return found, lost
