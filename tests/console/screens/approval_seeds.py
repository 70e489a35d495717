"""One approval of each kind, for screens over a core in memory."""

from __future__ import annotations

import msgspec
from tests.console.screens.fakes import FakeCore
from tests.console.seed import DIGEST, NOW, Seeded, stopped

from pollcore.escalation import Circumstances, CredentialUse, FirstUse
from pollcore.facts import MINUTE, SECOND, CredentialMode, Escalation, Instant, Request, Slot, Status, StopReason

CALL = "op-0000002a"
CALL_SOON = "op-0000002b"
SESSIONS = ("op-0000002c", "op-0000002d")
FIRST_USE = "op-0000002e"
MODE = "esc-mode"
ORIGIN = "https://api.acme.test:443"
OWNER = "run-4711-1f2e3d4c"


def asking(core: FakeCore) -> FakeCore:
    """Put a call of each age, a session of two operations, a first use and a looser mode into *core*."""
    for each in (
        _call(42, left_s=90, asked_s=30),
        _call(43, left_s=20, asked_s=100),
        *(_session(number) for number in (44, 45)),
        _first_use(),
    ):
        core.store.put(each.operation, each.question, each.events)
        core.actions.facts[each.operation.operation_id] = facts(each)
    core.store.aside = [mode_question()]
    return core


def mode_question() -> Escalation:
    """As `credential mode NAME standing` asks it."""
    return Escalation(
        escalation_id=MODE, operation_id="", reason=StopReason.MODE_CHANGE, detail="per_call to standing",
        cause="mode_change:acme-night", asked_at=Instant(NOW - 9 * MINUTE), version=0, asked_by="agent on ops1",
        because="the nightly batch asks too often",
    )  # fmt: skip


def asked_anew(core: FakeCore, operation_id: str) -> Escalation:
    """What the core does when a question expires: the old one is over, a new one is open."""
    row, now = core.store.rows[operation_id], core.clock.now().wall
    question = msgspec.structs.replace(
        core.store.open[operation_id], escalation_id=f"esc-anew-{core.store.number}", asked_at=now,
        expires_at=Instant(now + 120 * SECOND), seen_at=None, version=row.version + 1,
    )  # fmt: skip
    core.store.put(msgspec.structs.replace(row, version=row.version + 1), question)
    return question


def facts(each: Seeded) -> Circumstances:
    """What its card is drawn from besides the record."""
    row, question = each.operation, each.question
    assert question is not None
    if question.reason is StopReason.FIRST_USE:
        said = FirstUse(
            observation="read_only", evidence="docs.acme.test, read 2026-01-01", tested_live=None,
            sources=("docs.acme.test",), asks_by=f"GET {ORIGIN}/v1/jobs/7",
        )  # fmt: skip
        return Circumstances(first_use=said, contract_unseen=True)
    session = question.reason is StopReason.SESSION_APPROVAL
    request = Request(
        method="GET", url=f"https://api.acme.test/v1/jobs/{row.submitted.job_id}?sig=SIGNATURE",
        origins=(ORIGIN,), slot=Slot(credential="acme-prod", kind="bearer", names=()),
    )  # fmt: skip
    use = CredentialUse(
        request=request, reveals="the job's state, and of a success: url", scope=ORIGIN, credential="acme-prod",
        mode=CredentialMode.PER_SESSION if session else CredentialMode.PER_CALL, number=5, of=12, digest="d" * 64,
        owner=OWNER if session else None, session_minutes=480, session_calls=200,
    )  # fmt: skip
    return Circumstances(use=use)


def _call(number: int, *, left_s: int, asked_s: int) -> Seeded:
    made = stopped(
        number, StopReason.CALL_APPROVAL, Status.AWAITING_APPROVAL, asked_ago=asked_s * SECOND,
        label=f"payroll, sheet {number}",
    )  # fmt: skip
    assert made.question is not None
    ends = Instant(NOW + left_s * SECOND)
    return msgspec.structs.replace(made, question=msgspec.structs.replace(made.question, expires_at=ends))


def _session(number: int) -> Seeded:
    made = stopped(
        number, StopReason.SESSION_APPROVAL, Status.AWAITING_APPROVAL, cause=f"session_approval:acme-prod:{OWNER}"
    )
    assert made.question is not None
    return msgspec.structs.replace(made, question=msgspec.structs.replace(made.question, asked_by=OWNER))


def _first_use() -> Seeded:
    return stopped(
        46, StopReason.FIRST_USE, Status.AWAITING_APPROVAL, cause=f"first_use:{DIGEST}", last_known_state=None,
        last_http=None, status_requests_used=0,
    )  # fmt: skip
