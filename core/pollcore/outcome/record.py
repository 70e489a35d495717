"""The record after a decision: every field that one step changes, in one place.

Job: (record, reading, decision) -> record. Must not know: how the decision was chosen, SQL, leases, grants.
`version` is raised when status, limits or question change, not by polls in a wait that goes on (G4); `change`, `epoch`
and the lease belong to the store.
Source: spec S1, S9, S10, B2, B4, T5, T9, X8, E7, O2.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pollcore import schedule
from pollcore.decide import LimitPassed, charge_of, decide, open_until, settling_after, unsettled
from pollcore.facts import (
    TRANSITIONS,
    AuditEvent,
    Decision,
    Escalate,
    Fault,
    Instant,
    Memory,
    Moment,
    Observation,
    Operation,
    Policy,
    Status,
    StopDetail,
    Succeed,
    Verdict,
    Wait,
)
from pollcore.outcome.events import limit_events

MEAN_DRAW: Final = 0.5
"""For decisions that nothing is scheduled by: the middle of the spread."""
_STATE_OF_THE_JOB = frozenset(
    {
        Verdict.WAITING,
        Verdict.SUCCEEDED,
        Verdict.FAILED,
        Verdict.CANCELLED,
        Verdict.EXPIRED,
        Verdict.NEEDS_HUMAN,
        Verdict.UNKNOWN,
    }
)
_INTEGRATION_ABOUT_THE_JOB = frozenset(
    {
        StopDetail.SUCCEEDED_WITHOUT_RESULT,
        StopDetail.SUCCESS_CONTRADICTED,
        StopDetail.WAITING_PAST_PROVIDER_EXPIRY,
        StopDetail.TERMINAL_CONTRADICTION,
    }
)
"""Details under which the state that was read is this job's own; under the others it may be another's (S6)."""


def after_reading(
    operation: Operation,
    reading: Observation | Fault,
    memory: Memory,
    decision: Decision,
    *,
    policy: Policy,
    now: Moment,
    counted: bool = True,
) -> Operation:
    """The record after a reading and the decision made of it.

    A record that has reached an end meanwhile is returned as it is: nothing comes after an end (O2, I9). A record that
    is held or escalated stays so unless the answer ends the job or stops it anew.

    Args:
        memory: What `reading.read` returned; for a fault, the record's own.
        counted: As for `decide`.
    """
    if operation.status.is_end:
        return operation
    charge = charge_of(operation, reading, counted=counted)
    changes: dict[str, Any] = {
        "completed_polls": charge.completed_polls,
        "transport_failures_used": charge.transport_failures_used,
        "rate_limited_used": charge.rate_limited_used,
        "rate_limited_in_a_row": charge.rate_limited_in_a_row,
        "memory": _memory(operation, reading, memory, decision, policy),
        "check_once": operation.check_once and _continues(reading),
    }
    if isinstance(reading, Fault):
        changes["last_fault"] = reading.kind.value
        changes["last_fault_at"] = reading.at
        changes["last_fault_may_have_been_sent"] = reading.may_have_been_sent
        until = None
    else:
        until = open_until(operation, reading, policy, now)
        changes |= _seen(reading)
    if not counted:
        until = _later(until, operation.guidance_until)
    changes["guidance_until"] = until
    if isinstance(decision, Wait):
        return _waits(operation, decision, changes, now)
    return _ends(operation, decision, changes, now)


def decide_again(operation: Operation, reading: Observation, *, policy: Policy, now: Moment) -> Decision:
    """adopt_contract: what the stored last answer, read anew, decides. It spends nothing and brings no new word (S8).

    A check that was granted, and is still to be sent, is not used up by it.
    """
    asked = msgspec.structs.replace(unsettled(operation, reading), check_once=False)
    return decide(asked, reading, policy=policy, now=now, draw=MEAN_DRAW, counted=False)


def after_deciding_again(
    operation: Operation, reading: Observation, memory: Memory, decision: Decision, *, policy: Policy, now: Moment
) -> Operation:
    """The record after `decide_again`. After a wait, plan and stop are as they were: a grant says what becomes of them.

    Exchange, counters and guidance stay: nothing was asked (S1, B2).
    """
    if operation.status.is_end:
        return operation
    before = unsettled(operation, reading)
    changes: dict[str, Any] = _own(reading) | {"memory": _memory(before, reading, memory, decision, policy)}
    if isinstance(decision, Wait):
        return msgspec.structs.replace(operation, **changes)
    return _ends(operation, decision, changes | {"check_once": False}, now)


def after_stop(operation: Operation, stop: Escalate, *, now: Moment) -> Operation:
    """The record after a stop that no request brought: a limit, a credential, a contract, an approval that is wanted.

    For `awaiting_approval` the wait is not over: plan and earlier stop stay as they are.
    """
    if operation.status.is_end:
        return operation
    if stop.status is Status.AWAITING_APPROVAL:
        asked = msgspec.structs.replace(operation, status=Status.AWAITING_APPROVAL, version=operation.version + 1)
        return msgspec.structs.replace(asked, due_boot=schedule.due_boot(asked, now))
    return _ends(operation, stop, {"check_once": False}, now)


def after_schedule(operation: Operation, wait: Wait, *, now: Moment) -> Operation:
    """The record after its next request was moved without one having been sent (T8, T11, caps): same version."""
    if operation.status.is_end:
        return operation
    until = operation.guidance_until if wait.guidance_until is None else wait.guidance_until
    return _waits(operation, wait, {"guidance_until": until}, now)


def after_limit(operation: Operation, passed: LimitPassed, *, now: Moment) -> tuple[Operation, tuple[AuditEvent, ...]]:
    """E7: the record after a limit passed while its question was open: a new version, and nothing else."""
    due = schedule.due_boot(operation, now)
    after = msgspec.structs.replace(operation, version=operation.version + 1, due_boot=due)
    return after, limit_events(operation, after, passed, now=now)


def after_rearm(operation: Operation, *, now: Moment) -> Operation:
    """The record with `due_boot` worked out anew (T9); nothing else changes, nothing is told."""
    return msgspec.structs.replace(operation, due_boot=schedule.due_boot(operation, now))


# --- parts ------------------------------------------------------------------------------------------------------------


def _waits(operation: Operation, wait: Wait, changes: dict[str, Any], now: Moment) -> Operation:
    """Carry a wait into the record. Held and escalated records keep their status: a poll's wait ends neither."""
    if operation.status is Status.ESCALATED:
        return msgspec.structs.replace(operation, **changes)
    changes["next_poll_at"] = wait.next_poll_at
    changes["delay_source"] = wait.source
    if operation.stop_reason is not None and operation.status is Status.WAITING and not changes.get("check_once"):
        # a granted check beyond a stop that went on: the stop is over
        changes |= {"stop_reason": None, "stop_detail": None, "stop_explanation": None, "result": None}
        changes["version"] = operation.version + 1
    after = msgspec.structs.replace(operation, **changes)
    due = schedule.due_boot(after, now)
    # a hold runs on as it was set: its end is not carried over to the boot clock a second time
    if operation.status is Status.HELD:
        due = operation.due_boot if operation.boot_id == now.boot_id else due
    return msgspec.structs.replace(after, due_boot=due)


def _ends(operation: Operation, decision: Succeed | Escalate, changes: dict[str, Any], now: Moment) -> Operation:
    """Carry a success or a stop into the record, along the allowed ways only."""
    wanted = Status.SUCCEEDED if isinstance(decision, Succeed) else decision.status
    status = wanted
    if wanted is not operation.status and wanted not in TRANSITIONS[operation.status]:
        # only a request that was answered while a call waits for approval can lead here: a human looks at it
        status = Status.ESCALATED
    changes |= {"status": status, "version": operation.version + 1, "next_poll_at": None, "hold_until": None}
    if isinstance(decision, Succeed):
        changes |= {"stop_reason": None, "stop_detail": None, "stop_explanation": None, "result": decision.result}
    else:
        changes |= {
            "stop_reason": decision.reason,
            "stop_detail": decision.detail,
            "stop_explanation": decision.explanation,
            "result": decision.result,
        }
    after = msgspec.structs.replace(operation, **changes)
    return msgspec.structs.replace(after, due_boot=schedule.due_boot(after, now))


def _memory(
    operation: Operation, reading: Observation | Fault, memory: Memory, decision: Decision, policy: Policy
) -> Memory:
    settling = settling_after(operation, reading, decision, policy)
    return memory if memory.settling == settling else msgspec.structs.replace(memory, settling=settling)


def _seen(reading: Observation) -> dict[str, Any]:
    """What an answer tells of exchange and job, kept apart (S1)."""
    return {
        "last_http": reading.http,
        "last_fault": None,
        "last_fault_at": None,
        "last_fault_may_have_been_sent": False,
    } | _own(reading)


def _own(reading: Observation) -> dict[str, Any]:
    """What an answer tells of the job; a wrong job's state is not this job's (S6)."""
    seen: dict[str, Any] = {}
    own = reading.verdict in _STATE_OF_THE_JOB or (
        reading.verdict is Verdict.INTEGRATION and reading.detail in _INTEGRATION_ABOUT_THE_JOB
    )
    if own and reading.state is not None and not reading.continues:
        seen["last_known_state"] = reading.state
    if own and reading.provider_expires_at is not None:
        seen["provider_expires_at"] = reading.provider_expires_at
    return seen


def _continues(reading: Observation | Fault) -> bool:
    return isinstance(reading, Observation) and reading.continues and reading.verdict is Verdict.WAITING


def _later(one: Instant | None, other: Instant | None) -> Instant | None:
    if one is None or other is None:
        return one if other is None else other
    return max(one, other)
