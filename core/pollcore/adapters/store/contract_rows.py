"""What operators did with a contract digest: said once what its status requests are, looked at its text.

Job: two small tables. Must not know: contracts, who may decide (that is the grant beside it).
Source: spec X7, G5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from pollcore.adapters.store import encoding
from pollcore.adapters.store.transaction import Transaction
from pollcore.facts import AuditEvent, ContractUse, EventName, Grant, Instant
from pollcore.ports import ContractKnown

_KNOWN: Final = (
    "SELECT j.value, u.use, u.decided_at, u.operator, s.seen_at, s.operator FROM json_each(?) j "
    "LEFT JOIN contract_use u ON u.digest=j.value LEFT JOIN contract_seen s ON s.digest=j.value"
)


def known(conn: Any, digests: Sequence[str]) -> Mapping[str, ContractKnown]:
    """What is kept of each; every digest is there. Whoever said what it is has looked at it (G5, X7)."""
    wanted = msgspec.json.encode(list(dict.fromkeys(digests))).decode()
    return {row[0]: _record(row) for row in conn.execute(_KNOWN, (wanted,)).fetchall()}


def _record(row: tuple[Any, ...]) -> ContractKnown:
    digest, use, decided_at, decided_by, seen_at, seen_by = row
    return ContractKnown(
        digest=digest,
        use=None if use is None else ContractUse(use),
        decided_at=decided_at,
        decided_by=decided_by,
        seen_at=decided_at if seen_at is None else seen_at,
        seen_by=decided_by if seen_at is None else seen_by,
    )


def refusal(conn: Any, digest: str, use: ContractUse, grant: Grant | None) -> str | None:
    """Why *use* cannot be stored for *digest*; None: it can, or it is what is stored already."""
    if grant is None:
        return "what a contract's requests are is decided by a grant alone"
    row = conn.execute("SELECT use FROM contract_use WHERE digest=?", (digest,)).fetchone()
    return None if row is None or row[0] == use.value else f"the contract was decided already: {row[0]}"


def save_use(tx: Transaction, digest: str, use: ContractUse, grant: Grant) -> AuditEvent | None:
    """Keep the first answer, and what tells it; the same answer again, for another operation, changes nothing."""
    done = tx.conn.execute(
        "INSERT OR IGNORE INTO contract_use(digest, use, decided_at, operator, grant_id) VALUES(?,?,?,?,?)",
        (digest, use.value, grant.granted_at, encoding.text(str(grant.operator)), grant.grant_id),
    ).rowcount
    if not done:
        return None
    return AuditEvent(
        at=grant.granted_at,
        event=EventName.CONTRACT_DECIDED,
        operation_id=grant.operation_id,
        decision=use.value,
        operator=str(grant.operator),
        text=digest,
        notes=(f"grant {grant.grant_id}",),
    )


def save_seen(tx: Transaction, digest: str, at: Instant, operator: str) -> bool:
    """Keep who saw it first; False: that was known."""
    done = tx.conn.execute(
        "INSERT OR IGNORE INTO contract_seen(digest, seen_at, operator) VALUES(?,?,?)",
        (digest, at, encoding.text(operator)),
    ).rowcount
    return bool(done)
