"""Claims: lease, charge, intent and audit event of one request, in the transaction that goes before it.

Job: take a claim only if every condition of a send holds right now, in one conditional statement. Must not know: when
to claim, sockets.
Source: spec O2, O3, O7, B2, B3, T8, T9; reliability L1, L2, I2, I4, I6, I8.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pollcore.adapters.store import approvals, shared
from pollcore.adapters.store.fences import Fence
from pollcore.adapters.store.leases import LeaseWatch
from pollcore.adapters.store.memory import Known
from pollcore.adapters.store.pace import Pace
from pollcore.adapters.store.transaction import Transaction
from pollcore.adapters.store.writes import must
from pollcore.facts import MINUTE, Instant, Operation, Status
from pollcore.ports import Claim, Claimed

# All conditions once more, in the statement itself: the count is enforced by the store, not by the code before it.
_CLAIM: Final = (
    "UPDATE operation SET epoch=epoch+1, status_requests_used=status_requests_used+?1, lease_owner=?2, lease_until=?3, "
    "lease_ms=?4, renewed=0, change=?5, last_event=?6 WHERE op=?7 AND change=?8 AND epoch=?9 AND renewed=?10 "
    "AND (lease_owner IS NULL OR ?11) AND status='waiting' AND status_requests_used+?1<=max_status_requests "
    "AND deadline_at>?12 AND (useful_until IS NULL OR useful_until>?12) AND (boot<>?13 OR deadline_boot>?14)"
)
# One request may hold the leases of several operations: the newest charge of each says which request it went with.
_FLYING: Final = (
    "SELECT count(DISTINCT coalesce(i.request, -o.op)) FROM operation o INDEXED BY operation_leased "
    "LEFT JOIN intent i ON i.operation=o.op AND i.n=o.status_requests_used "
    "WHERE o.provider=? AND o.lease_owner IS NOT NULL"
)
_REQUEST: Final = "INSERT INTO request(id, boot, boot_no, provider, origin, method, owner) VALUES(?,?,?,?,?,?,?)"
_INTENT: Final = "INSERT INTO intent(operation, n, id, request, step, epoch, at, boot) VALUES(?,?,?,?,?,?,?,?)"


class Claims:
    """Claims of one turn, gathered and then executed together."""

    def __init__(self, tx: Transaction, known: Known, fences: dict[str, Fence], watch: LeaseWatch, owner: str) -> None:
        self._tx = tx
        self._known = known
        self._fences = fences
        self._watch = watch
        self._owner = owner
        self._shared = shared.in_force(tx.conn, tx.now)
        self._flying: dict[str, int] = {}
        self._pace = Pace(tx)
        self._minute: dict[str, int] = {}
        """Per provider, as counted in the store before this turn's claims."""
        self._new: dict[str, tuple[int, int]] = {}
        """Per provider: requests in flight, and requests, that this turn adds."""
        self._joined: dict[int, int] = {}
        """R39: group of claims -> the request that the first of it took."""
        self._request: int = tx.conn.execute("SELECT max(id) FROM request").fetchone()[0] or 0
        self._updates: list[list[Any]] = []
        self._requests: list[list[Any]] = []
        self._intents: list[list[Any]] = []
        self.lost: list[tuple[str, int]] = []
        """Intents of dead leases that were taken over: sent, answer never recorded (B4)."""

    def take(self, claim: Claim) -> Claimed | None:
        """The claim as taken, or None: not now."""
        fence = self._fences.get(claim.operation.operation_id)
        charges = 1 + claim.extra_charges
        if fence is None or not self._holds(claim, fence, charges):
            return None
        if claim.group not in self._joined and not self._has_room(claim, charges):
            return None
        if not self._leave(claim, fence, charges):
            return None
        if fence.lease_owner is not None:
            self.lost += [(fence.operation_id, n) for n in unanswered(self._tx.conn, fence.op, fence.epoch)]
        return self._gather(claim, fence, charges)

    def _holds(self, claim: Claim, fence: Fence, charges: int) -> bool:
        o, now = claim.operation, self._tx.now
        return (
            o.change == fence.change  # so everything below is what the row says
            and o.status is Status.WAITING
            and (fence.lease_owner is None or self._watch.is_dead(fence.op, fence.epoch, fence.renewed))
            and o.status_requests_used + charges <= o.max_status_requests
            and o.deadline_at > now.wall
            and (o.useful_until is None or o.useful_until > now.wall)
            and (o.boot_id != now.boot_id or o.deadline_boot > now.boot)
            and not self._shared.forbids(claim, now)
        )

    def _leave(self, claim: Claim, fence: Fence, charges: int) -> bool:
        """I14: the leave that the request needs is used up with its charge. Last of all checks: nothing undoes it."""
        if claim.approval is not None:
            return approvals.use(self._tx, fence.op, claim.approval, f"request {fence.used + 1}")
        return claim.session is None or approvals.count(self._tx, claim.session, self._owner, charges)

    def _has_room(self, claim: Claim, charges: int) -> bool:
        """Every cap has room for one more request; one that goes with others has room where the first of them had."""
        return self._room(claim, charges) and (not claim.scopes or self._pace.has_room(claim, charges))

    def _room(self, claim: Claim, charges: int) -> bool:
        """Caps per store: requests in flight, and requests of the last minute of this boot (T8)."""
        provider, ask, tx = claim.operation.submitted.provider, self._tx.conn.execute, self._tx
        flying, sent = self._new.get(provider, (0, 0))
        if claim.concurrency is not None:
            if provider not in self._flying:
                found = ask(_FLYING, (provider,)).fetchone()
                self._flying[provider] = found[0]
            if self._flying[provider] + flying >= claim.concurrency:
                return False
        if claim.per_minute is not None:
            if provider not in self._minute:
                found = ask(
                    "SELECT count(*) FROM request WHERE provider=? AND boot_no=? AND boot>?",
                    (self._known.number(provider), tx.boot, tx.now.boot - MINUTE),
                ).fetchone()
                self._minute[provider] = found[0]
            if self._minute[provider] + sent + charges > claim.per_minute:
                return False
        return True

    def _gather(self, claim: Claim, fence: Fence, charges: int) -> Claimed:
        tx, known, o = self._tx, self._known, claim.operation
        now, number = tx.now, known.number
        provider, owner = o.submitted.provider, number(self._owner)
        joined = self._joined.get(claim.group) if claim.group is not None else None
        if joined is None:
            flying, sent = self._new.get(provider, (0, 0))
            self._new[provider] = (flying + (fence.lease_owner is None), sent + charges)
            self._pace.count(claim, charges)
        change = tx.next_change(fence.op)
        tx.record(claim.event, fence)
        until = Instant(now.wall + claim.lease_ms)
        dead = fence.lease_owner is not None
        guard = (fence.op, fence.change, fence.epoch, fence.renewed, int(dead), now.wall, tx.boot, now.boot)
        self._updates.append([charges, owner, until, claim.lease_ms, change, fence.last, *guard])
        epoch, first = fence.epoch + 1, fence.used + 1
        for n in range(first, first + charges):
            tx.intents += 1
            request = self._new_request(claim, owner) if joined is None else joined
            self._intents.append([fence.op, n, tx.intents, request, claim.step, epoch, now.wall, now.boot])
        fence.change, fence.epoch, fence.used, fence.renewed = change, epoch, fence.used + charges, 0
        fence.lease_owner, fence.lease_until = owner, until
        after: Operation = msgspec.structs.replace(
            o,
            change=change,
            epoch=epoch,
            status_requests_used=fence.used,
            lease_owner=self._owner,
            lease_until=until,
        )
        return Claimed(after, tuple(range(first, first + charges)), now)

    def _new_request(self, claim: Claim, owner: int) -> int:
        tx, number = self._tx, self._known.number
        self._request += 1
        place = (number(claim.operation.submitted.provider), number(claim.origin), claim.method, owner)
        self._requests.append([self._request, tx.now.boot, tx.boot, *place])
        if claim.group is not None:
            self._joined[claim.group] = self._request
        return self._request

    def flush(self) -> None:
        """Execute what was gathered; a condition that does not hold in the store undoes the whole turn."""
        if self._updates:
            conn = self._tx.conn
            must(conn.executemany(_CLAIM, self._updates).rowcount, len(self._updates), "claims held in the store")
            conn.executemany(_REQUEST, self._requests)
            conn.executemany(_INTENT, self._intents)
            self._pace.flush()


def unanswered(conn: Any, op: int, epoch: int) -> list[int]:
    """Numbers of intents under this lease that have no observation."""
    found = conn.execute(
        "SELECT i.n FROM intent i LEFT JOIN observation o ON o.intent = i.id "
        "WHERE i.operation=? AND i.epoch=? AND o.intent IS NULL ORDER BY i.n",
        (op, epoch),
    ).fetchall()
    return [row[0] for row in found]
