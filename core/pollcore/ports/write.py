"""One conditional change of one operation, with all that belongs to the same moment.

Job: the record after it, the fence it is taken under, and what is stored beside it. Must not know: how a decision was
reached, how a row is kept.
"""

from __future__ import annotations

import msgspec

from pollcore.facts import (
    ActionRecord,
    AuditEvent,
    CallGrant,
    ContractUse,
    Escalation,
    Grant,
    Instant,
    Operation,
    Session,
)


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """One observation row: clear figures plus the sealed envelope. One per intent at most."""

    operation_id: str
    n: int
    answered_at: Instant
    http_code: int | None
    fault: str | None
    state: str | None
    verdict: str
    decision: str
    """`wait`, `succeed`, or a StopReason."""
    envelope: bytes = b""
    last_body: bytes | None = None
    """Up to 16 KiB, kept once per operation (the newest), only when the envelope does not hold all of it."""
    draw: float | None = None
    """The chance that went into the decision, so that a stored reading replays to the same one."""


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """One conditional change of one operation, with everything that belongs to the same moment.

    Taken only if the row still has `fence`: an epoch (a lease owner recording its answer) or a change number (everyone
    else). The store raises `change`; it refuses a status transition that TRANSITIONS does not list.
    """

    after: Operation
    fence_epoch: int | None = None
    fence_change: int | None = None
    fence_version: int | None = None
    """For grants: the version that was shown (G4)."""
    release_lease: bool = True
    events: tuple[AuditEvent, ...] = ()
    stored: Stored | None = None
    open_question: Escalation | None = None
    close_question: Escalation | None = None
    """The open one, with decided_at, decision and operator filled."""
    grant: Grant | None = None
    """Used up by this write; a second use is refused by a unique key."""
    contract_use: ContractUse | None = None
    """X7: what *grant* says of the contract in force, stored with it; refused where another answer is stored."""
    action: ActionRecord | None = None
    approval: CallGrant | None = None
    """G7: stored with the grant that it comes of; it takes the place of an earlier unused one of the operation."""
    session: Session | None = None
    """G6: stored with its grant; the same session again (one answer for many, E10) is stored once."""
    uses: CallGrant | None = None
    """I14: used up by this write (its `used_at`, `used_for` are filled), or the write is refused."""
