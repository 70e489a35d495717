"""Small builders of the records that the store tests use, and the plain fakes of its two ports."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from pollcore.adapters.store import InlineStore
from pollcore.facts import (
    AuditEvent,
    BootMs,
    Escalation,
    EventName,
    Instant,
    Memory,
    Moment,
    Operation,
    SealedUnreadable,
    Snapshot,
    Status,
    StopReason,
    Submitted,
)
from pollcore.ports import AuditLink, AuditTip, Claim, Claimed, Stored, Turn, Write

WALL = Instant(1_772_445_600_000)  # 2026-03-02T10:00:00Z
SNAPSHOT = Snapshot(digest="d" * 64, name="acme", text="[contract]\n", instance={"base_url": "https://acme.example"})
ORIGIN = "https://acme.example:443"


def at(ms: int = 0, boot_id: str = "boot-1", step: int = 0) -> Moment:
    """The moment *ms* after the tests' beginning; *step*: how far the wall clock was moved beside the boot clock."""
    return Moment(Instant(WALL + ms + step), BootMs(1_000_000 + ms), boot_id)


class Seal:
    """Seals by a visible rule; `readable = False`: the reading key is not at hand."""

    def __init__(self) -> None:
        self.readable = True

    def seal(self, purpose: str, plain: bytes) -> bytes:
        return purpose.encode() + b"\x00" + bytes(b ^ 0x5A for b in plain)

    def open(self, purpose: str, sealed: bytes) -> bytes:
        head, _, body = sealed.partition(b"\x00")
        if not self.readable or head != purpose.encode():
            raise SealedUnreadable("no reading key")
        return bytes(b ^ 0x5A for b in body)


class Chain:
    """A hash chain in the clear; `fails`: raised in place of the next links."""

    def __init__(self) -> None:
        self.fails: Exception | None = None

    def links(self, tip: AuditTip | None, events: Sequence[AuditEvent]) -> Sequence[AuditLink]:
        if self.fails is not None:
            raise self.fails
        number, head = (tip.seq, tip.hash) if tip else (0, b"")
        made = []
        for event in events:
            blob = msgspec.json.encode(event)
            head = hashlib.sha256(head + blob).digest()
            number += 1
            made.append(AuditLink(number, blob, head))
        return made


class NoAudit:
    """Writes no links."""

    def links(self, tip: AuditTip | None, events: Sequence[AuditEvent]) -> Sequence[AuditLink]:
        return ()


def operation(name: str = "op-1", now: Moment | None = None, **changes: Any) -> Operation:
    """A waiting operation that is due at once, with a deadline in 40 minutes and 12 requests."""
    now = now or at()
    submitted = changes.pop("submitted", None) or Submitted(provider="acme", account="team", job_id=f"job-{name}")
    fields: dict[str, Any] = {
        "operation_id": name,
        "submitted": submitted,
        "status": Status.WAITING,
        "contract_digest": SNAPSHOT.digest,
        "credential": "acme-key",
        "started_at": now.wall,
        "submitted_at": now.wall,
        "boot_id": now.boot_id,
        "deadline_at": Instant(now.wall + 2_400_000),
        "deadline_boot": BootMs(now.boot + 2_400_000),
        "max_status_requests": 12,
        "max_transport_failures": 4,
        "max_rate_limited": 4,
        "next_poll_at": now.wall,
        "due_boot": now.boot,
    }
    return Operation(**{**fields, **changes})


def event(name: str, now: Moment, kind: EventName = EventName.SUBMITTED, **fields: Any) -> AuditEvent:
    """An event of one operation."""
    return AuditEvent(at=now.wall, event=kind, operation_id=name, **fields)


async def submit(store: Any, name: str = "op-1", now: Moment | None = None, **changes: Any) -> Operation:
    """Store `operation(...)`."""
    now = now or at()
    made: Operation = await store.submit(now, operation(name, now, **changes), SNAPSHOT, [event(name, now)])
    return made


def claim(o: Operation, now: Moment, **fields: Any) -> Claim:
    """A wish to send the next status request of *o*."""
    sent = event(
        o.operation_id,
        now,
        EventName.SENT,
        planned_at=o.next_poll_at,
        requests_used=o.status_requests_used + 1,
        max_requests=o.max_status_requests,
        deadline_at=o.deadline_at,
    )
    return Claim(operation=o, step="status", origin=ORIGIN, method="GET", event=sent, **fields)


def result(
    o: Operation,
    n: int,
    now: Moment,
    *,
    delay: int = 10_000,
    state: str = "running",
    envelope: bytes = b"",
    **changes: Any,
) -> Write:
    """The write of a lease owner whose request *n* was answered: still waiting, unless *changes* say otherwise."""
    wait = {
        "completed_polls": o.completed_polls + 1,
        "next_poll_at": Instant(now.wall + delay),
        "due_boot": BootMs(now.boot + delay),
        "last_known_state": state,
        "memory": Memory(first_seen_at=o.submitted_at, polls=n, last_state=state),
    }
    after = msgspec.structs.replace(o, **{**wait, **changes})
    polled = event(
        o.operation_id,
        now,
        EventName.POLLED,
        state_before=o.last_known_state,
        state=state,
        http=200,
        next_poll_at=after.next_poll_at,
        requests_used=n,
        max_requests=o.max_status_requests,
        deadline_at=o.deadline_at,
        decision="wait",
    )
    stored = Stored(
        operation_id=o.operation_id,
        n=n,
        answered_at=now.wall,
        http_code=200,
        fault=None,
        state=state,
        verdict="waiting",
        decision="wait",
        envelope=envelope,
    )
    return Write(after=after, fence_epoch=o.epoch, events=(polled,), stored=stored)


def question(
    o: Operation, now: Moment, name: str = "q-1", reason: StopReason = StopReason.DEADLINE_EXCEEDED
) -> Escalation:
    """An open question about *o*."""
    return Escalation(
        escalation_id=name,
        operation_id=o.operation_id,
        reason=reason,
        detail=None,
        cause=f"{reason.value}:{o.operation_id}",
        asked_at=now.wall,
        version=o.version,
    )


async def take(store: Any, o: Operation, now: Moment, owner: str = "w-1", **fields: Any) -> Claimed | None:
    """One claim in a turn of its own."""
    out = await store.turn(Turn(now=now, owner=owner, claims=(claim(o, now, **fields),)))
    return out.claimed[0]


def inline(**fields: Any) -> InlineStore:
    """A fresh store in memory."""
    return InlineStore(fields.pop("sealer", Seal()), fields.pop("audit", Chain()), **fields)
