"""Whose lease is dead: proved by the owner's free lock, or unchanged for its whole span by our own boot clock.

Job: watch leases and tell the dead ones; renew our own. Must not know: what happens to an operation whose lease died.
A wall time in a row is for people: it proves nothing.
Source: spec O2; reliability L3, L4, I16.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from pollcore.adapters.store.memory import Known
from pollcore.adapters.store.transaction import Transaction
from pollcore.facts import BootMs, Moment

TTL_MS: Final = 30_000
SCAN_EVERY_MS: Final = 1_000
MAX_WATCHED: Final = 100_000


class Watched(msgspec.Struct):
    """One lease as first seen in this form."""

    owner: int
    epoch: int
    renewed: int
    span: int
    since: BootMs | None
    """From when it is known to be so: the next scan. A turn's own time may be older than its look at the row
    (its process was stopped between), so it proves nothing yet."""


class LeaseWatch:
    """The watch of one process. *is_dead*: True only on proof (worker_lock.Deaths)."""

    def __init__(self, is_dead: Callable[[str], bool]) -> None:
        self._is_dead = is_dead
        self._seen: dict[int, Watched] = {}
        self._dead: dict[int, tuple[int, int]] = {}
        self._boot_id = ""
        self._last: int | None = None

    def scan(self, conn: Any, known: Known, now: Moment, me: str) -> None:
        """Look at all leases, once a second at most."""
        if now.boot_id != self._boot_id:  # boot times of another boot are not comparable
            self._seen, self._boot_id, self._last = {}, now.boot_id, None
        if self._last is not None and 0 <= now.boot - self._last < SCAN_EVERY_MS:
            return
        self._last = now.boot
        found = conn.execute(
            "SELECT op, lease_owner, epoch, renewed, coalesce(lease_ms, ?) FROM operation INDEXED BY operation_leased "
            "WHERE lease_owner IS NOT NULL LIMIT ?",
            (TTL_MS, MAX_WATCHED),
        ).fetchall()
        proved: dict[int, bool] = {}
        before, self._seen, self._dead = self._seen, {}, {}
        for op, owner, epoch, renewed, span in found:
            old = before.get(op)
            if old is None or (old.owner, old.epoch, old.renewed) != (owner, epoch, renewed):
                old = Watched(owner, epoch, renewed, span, None)
            elif old.since is None:
                old.since = now.boot
            self._seen[op] = old
            if owner not in proved:
                name = known.name(owner)
                proved[owner] = name != me and self._is_dead(name)
            if proved[owner] or (old.since is not None and now.boot - old.since >= max(TTL_MS, span)):
                self._dead[op] = (epoch, renewed)

    def is_dead(self, op: int, epoch: int, renewed: int) -> bool:
        """Whether exactly this lease was found dead at the last scan."""
        return self._dead.get(op) == (epoch, renewed)

    def dead(self) -> list[int]:
        """Row numbers of operations under a dead lease."""
        return list(self._dead)


def free_ended(tx: Transaction, op: int, watch: LeaseWatch) -> None:
    """End the dead lease of an operation that has ended: nobody has anything left to record under it."""
    row = tx.conn.execute(
        "SELECT epoch, renewed FROM operation WHERE op=? AND lease_owner IS NOT NULL AND status IN "
        "('succeeded', 'failed', 'cancelled', 'expired', 'closed')",
        (op,),
    ).fetchone()
    if row is not None and watch.is_dead(op, *row):
        tx.conn.execute("UPDATE operation SET lease_owner=NULL, lease_until=NULL WHERE op=?", (op,))
        tx.wrote = True


def renew(conn: Any, known: Known, now: Moment, me: str, epochs: Mapping[str, int]) -> list[str]:
    """One statement for all requests in flight; returns the operations whose lease is still ours.

    The row's `change` stays: a renewal changes nothing that a decision rests on.
    """
    pairs = [[op, epoch] for name, epoch in epochs.items() if (op := known.op(name)) is not None]
    renewed = conn.execute(
        "UPDATE operation SET renewed=renewed+1, lease_until=?1+coalesce(lease_ms, ?2) "
        "FROM (SELECT value->>0 AS op, value->>1 AS epoch FROM json_each(?3)) AS mine "
        "WHERE operation.op=mine.op AND operation.epoch=mine.epoch AND operation.lease_owner=?4 RETURNING id",
        (now.wall, TTL_MS, json.dumps(pairs), known.number(me)),
    ).fetchall()
    return [row[0] for row in renewed]
