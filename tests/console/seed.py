"""Operations in every state, for screens: as plain records, and as rows of a real store.

`seeded(now)` gives records with their questions and events; `fill(store, clock, ...)` writes them through the
store's port.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from pollcore.facts import (
    MINUTE,
    SECOND,
    AuditEvent,
    BootMs,
    DelaySource,
    Escalation,
    EventName,
    HttpFact,
    Instant,
    Memory,
    Moment,
    Operation,
    ResultPointer,
    Snapshot,
    Status,
    StopDetail,
    StopReason,
    Submitted,
)

HOSTILE = "\x1b]52;c;cm0gLXJmIH4=\x07\x1b[2J\u202egnitpmet[@click=app.quit]x[/]\x00\u009b1mA[/]B"
DIGEST = "5f1d" * 16
NOW = Instant(1_767_265_200_000)
"""2026-01-01T11:00:00Z."""
MOMENT = Moment(NOW, BootMs(50_000_000), "boot-1")


class Seeded(msgspec.Struct, frozen=True):
    """One record with what belongs to it."""

    operation: Operation
    question: Escalation | None = None
    events: tuple[AuditEvent, ...] = ()


def operation(number: int, status: Status = Status.WAITING, *, now: Moment = MOMENT, **changes: Any) -> Operation:
    """A live wait, ten minutes old, half an hour left, four of twelve requests used; *changes* override any field."""
    given: dict[str, Any] = {
        "provider": "acme",
        "account": "team-a",
        "job_id": f"exp_{number:03x}",
        "label": None,
        "caller": "nightly",
        "os_user": "agent",
    }
    given |= {key: changes.pop(key) for key in list(changes) if key in given}
    started = Instant(now.wall - 10 * MINUTE)
    deadline = changes.pop("deadline_at", Instant(now.wall + 30 * MINUTE))
    next_poll_at = Instant(now.wall + 48 * SECOND) if status is Status.WAITING else None
    next_poll_at = changes.pop("next_poll_at", next_poll_at)
    due = changes.get("hold_until") or next_poll_at
    fields: dict[str, Any] = {
        "operation_id": f"op-{number:08x}",
        "submitted": Submitted(**given),
        "status": status,
        "contract_digest": DIGEST,
        "credential": "acme-prod",
        "started_at": started,
        "submitted_at": started,
        "boot_id": now.boot_id,
        "deadline_at": deadline,
        "deadline_boot": BootMs(now.boot + deadline - now.wall),
        "max_status_requests": 12,
        "status_requests_used": 4,
        "max_transport_failures": 3,
        "max_rate_limited": 3,
        "completed_polls": 4,
        "last_known_state": "running",
        "last_http": HttpFact(200, Instant(now.wall - 62 * SECOND), Instant(now.wall - 61 * SECOND), "req-81"),
        "next_poll_at": next_poll_at,
        "due_boot": None if due is None else BootMs(now.boot + due - now.wall),
        "delay_source": DelaySource.LOCAL_BACKOFF,
        "memory": Memory(first_seen_at=started, changed_at=Instant(now.wall - 3 * MINUTE)),
    }
    return Operation(**{**fields, **changes})


def stopped(number: int, reason: StopReason, status: Status = Status.ESCALATED, **changes: Any) -> Seeded:
    """An operation that stopped for *reason*, with its open question."""
    now = changes.pop("now", MOMENT)
    asked = Instant(now.wall - changes.pop("asked_ago", 4 * MINUTE))
    cause = changes.pop("cause", f"{reason.value}:op-{number:08x}")
    row = operation(number, status, now=now, stop_reason=reason, next_poll_at=None, **changes)
    question = Escalation(
        escalation_id=f"esc-{number:08x}",
        operation_id=row.operation_id,
        reason=reason,
        detail=row.stop_detail.value if row.stop_detail is not None else None,
        cause=cause,
        asked_at=asked,
        version=row.version,
    )
    return Seeded(row, question, story_events(row))


def story_events(row: Operation) -> tuple[AuditEvent, ...]:
    """A short story that leads to where *row* stands."""
    at, oid = row.started_at, row.operation_id
    told = [
        AuditEvent(
            at=at,
            event=EventName.SUBMITTED,
            operation_id=oid,
            text=row.submitted.job_id,
            deadline_at=row.deadline_at,
            max_requests=row.max_status_requests,
        ),
        AuditEvent(
            at=Instant(at + 5 * SECOND),
            event=EventName.POLLED,
            operation_id=oid,
            state="queued",
            http=200,
            next_poll_at=Instant(at + 14 * SECOND),
            delay_source=DelaySource.LOCAL_BACKOFF,
            requests_used=1,
            max_requests=row.max_status_requests,
        ),
        AuditEvent(
            at=Instant(at + 31 * SECOND),
            event=EventName.FAULTED,
            operation_id=oid,
            http=503,
            retry_after="Retry-After 120",
            next_poll_at=Instant(at + 151 * SECOND),
            delay_source=DelaySource.PROVIDER_RETRY_AFTER,
        ),
    ]
    if row.stop_reason is not None:
        told.append(
            AuditEvent(
                at=Instant(at + 9 * MINUTE),
                event=EventName.POLLED,
                operation_id=oid,
                state=row.last_known_state,
                http=200,
                reason=row.stop_reason.value,
                decision="escalate",
            )
        )
    return tuple(told)


def seeded(now: Moment = MOMENT) -> list[Seeded]:
    """One of everything, the hostile provider included."""
    wall = now.wall
    running = [
        operation(1, now=now, label="nightly export"),
        operation(2, now=now, provider="bolt", next_poll_at=Instant(wall + 9 * SECOND), last_known_state="queued"),
        operation(3, now=now, deadline_at=Instant(wall + 100 * SECOND), label="about to run out of time"),
        operation(4, now=now, status_requests_used=118, max_status_requests=120, label="few requests left"),
        operation(
            5,
            now=now,
            provider="bolt",
            delay_source=DelaySource.PROVIDER_RETRY_AFTER,
            next_poll_at=Instant(wall + 119 * SECOND),
            rate_limited_used=2,
            last_http=HttpFact(429, Instant(wall - 5 * SECOND), Instant(wall - 4 * SECOND)),
        ),
        operation(
            6, now=now, transport_failures_used=1, last_fault="timeout", last_fault_at=Instant(wall - 9 * SECOND)
        ),
        operation(7, Status.HELD, now=now, hold_until=Instant(wall + 20 * MINUTE), holds_used=1),
        operation(8, now=now, job_id=HOSTILE, label=HOSTILE, last_known_state=HOSTILE, provider="hostile"),
        operation(9, now=now, label="导出报告", last_known_state="обработка"),
    ]
    ends = [
        operation(
            20,
            Status.SUCCEEDED,
            now=now,
            last_known_state="done",
            result=ResultPointer({"url": "https://x/"}),
            change=20,
        ),
        operation(21, Status.CLOSED, now=now, stop_reason=StopReason.DEADLINE_EXCEEDED),
        operation(22, Status.CANCELLED, now=now, stop_reason=StopReason.JOB_CANCELLED, last_known_state="cancelled"),
    ]
    asked = [
        stopped(
            10,
            StopReason.REQUEST_BUDGET_EXHAUSTED,
            now=now,
            status_requests_used=12,
            label="quarter close",
            asked_ago=4 * MINUTE + 10 * SECOND,
        ),
        stopped(
            11,
            StopReason.UNKNOWN_STATE,
            now=now,
            last_known_state="compiling",
            stop_explanation="the contract does not list this state",
            asked_ago=70 * SECOND,
        ),
        stopped(
            12,
            StopReason.INTEGRATION_FAILURE,
            now=now,
            stop_detail=StopDetail.STATE_MISSING,
            asked_ago=30 * SECOND,
            provider="bolt",
        ),
        stopped(13, StopReason.JOB_FAILED, Status.FAILED, now=now, last_known_state="failed", asked_ago=20 * SECOND),
    ]
    return [Seeded(row, None, story_events(row)) for row in (*running, *ends)] + asked


def many(count: int, now: Moment = MOMENT) -> list[Seeded]:
    """*count* live waits with spread times."""
    return [
        Seeded(operation(1_000 + n, now=now, next_poll_at=Instant(now.wall + (n % 120) * SECOND))) for n in range(count)
    ]


async def fill(store: Any, now: Moment, snapshot: Snapshot, rows: Sequence[Seeded] | None = None) -> None:
    """Write *rows* (default: one of everything) through the store's port, under *snapshot*'s contract."""
    for each in seeded(now) if rows is None else rows:
        row = msgspec.structs.replace(each.operation, contract_digest=snapshot.digest, credential=None)
        await store.submit(now, row, snapshot, each.events, each.question)


CONFIG = """
[providers.acme]
contract = "example-jobs"
base_url = "http://127.0.0.1:9"
account = "team-a"

[providers.bolt]
contract = "example-jobs"
base_url = "http://127.0.0.1:9"
account = "team-a"
"""


def write_config(home: Path) -> None:
    """A home whose providers answer at a port where nothing listens."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / "config.toml").write_text(CONFIG)


async def fill_core(core: Any, rows: Sequence[Seeded] | None = None) -> None:
    """Fill an open core's store, its clock giving the times."""
    now = core.clock.now()
    await core.prepare()
    await fill(core.store, now, core.contracts.find("acme").snapshot, seeded(now) if rows is None else rows)


def main() -> None:
    """`python -m tests.console.seed HOME [COUNT]`: a home to look at, with COUNT more live waits."""
    from pollconsole import bridge

    home = Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    write_config(home)
    with (home / "config.toml").open("a") as file:
        file.write(f'\n[audit]\nkey_file = "{home.resolve()}/reading.key"\n')

    async def job(core: Any) -> None:
        now = core.clock.now()
        await fill_core(core, seeded(now) + many(count, now))

    bridge.with_core(home, job, kind="console")


if __name__ == "__main__":
    main()
