"""The effect of each kind of choice on the record.

Job: one small function a kind: record before -> record after and what follows. Must not know: whether the choice may be
taken (that was checked), how it is told or stored.
Source: spec, table of group E and the paragraphs below it; E4-E8, T5, B5, X7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from pollcore import decide, outcome, schedule
from pollcore.escalation import added_by, end_of_wait, first_check_at, raise_limits
from pollcore.escalation.credentials import OBSERVATION
from pollcore.facts import (
    FORCE,
    ActionKind,
    Choice,
    ChoiceKind,
    ContractUse,
    DelaySource,
    Escalation,
    Instant,
    Memory,
    Moment,
    Observation,
    Operation,
    Policy,
    Status,
    StopDetail,
    StopReason,
    Succeed,
    Wait,
)
from pollcore.grants.asking import raised

_NO_STOP: Final[dict[str, Any]] = {"stop_reason": None, "stop_detail": None, "stop_explanation": None}
_NOTHING_DUE: Final[dict[str, Any]] = {"next_poll_at": None, "delay_source": None, "hold_until": None}


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What an effect may read."""

    operation: Operation
    question: Escalation
    choice: Choice
    policy: Policy
    now: Moment
    observation: Observation | None = None
    memory: Memory | None = None

    @property
    def running(self) -> bool:
        """The question left the wait going."""
        return self.operation.status is Status.WAITING

    @property
    def first_limits(self) -> bool:
        """B2: the grant is the operation's first authority, no extension."""
        return self.question.detail == StopDetail.SECOND_SUBMISSION


class Effected(msgspec.Struct, frozen=True, kw_only=True):
    """The record after, and what follows from it."""

    after: Operation
    ask: StopReason | None = None
    """The reason of the question that opens now."""
    ask_detail: str | None = None
    cause: str | None = None
    action: ActionKind | None = None
    approves: ChoiceKind | None = None
    use: ContractUse | None = None


def resume(case: Case, **changes: Any) -> Operation:
    """The wait goes on with what the choice adds; its first check by T5. Counters and every other limit stay."""
    op, choice, now = case.operation, case.choice, case.now
    limits = raise_limits(op, added_by(choice), now)
    extends = choice.minutes > 0 and choice.kind is not ChoiceKind.CANCEL_AT_PROVIDER
    extends = (extends or choice.kind is ChoiceKind.EXTEND) and not case.first_limits
    fields: dict[str, Any] = {
        "status": Status.WAITING,
        "hold_until": None,
        "next_poll_at": first_check_at(limits, now, case.policy.schedule),
        "delay_source": DelaySource.MANUAL_EXTENSION,
        "extensions_used": op.extensions_used + (1 if extends else 0),
        "check_once": False,
        # what a stop left (its reason, a result that nobody accepted) is over when the wait goes on
        "result": None,
        **_NO_STOP,
        **changes,
    }
    return raised(limits, now, **fields)


def extend(case: Case) -> Effected:
    return Effected(after=resume(case))


def check_once(case: Case) -> Effected:
    # the stop is kept: it is what comes back when the answer is not known, and what the record says meanwhile
    op = case.operation
    kept = {"stop_reason": op.stop_reason, "stop_detail": op.stop_detail, "stop_explanation": op.stop_explanation}
    return Effected(after=resume(case, check_once=True, **kept))


def use_other_credential(case: Case) -> Effected:
    return Effected(after=resume(case, credential=case.choice.credential))


def cancel_at_provider(case: Case) -> Effected:
    action = ActionKind.FORCE_CANCEL if case.choice.step == FORCE else ActionKind.CANCEL
    limits = raise_limits(case.operation, added_by(case.choice), case.now)
    if limits.guidance_until is None or limits.guidance_until < end_of_wait(limits, case.now):
        return Effected(after=resume(case, cancel_granted=True), action=action)
    # T4: no check may go out before the new end; that is not slept into, and the cancel is sent all the same
    stopped = decide.stop(limits, StopReason.GUIDANCE_BEYOND_DEADLINE)
    granted = msgspec.structs.replace(schedule.reanchor(limits, case.now), cancel_granted=True)
    after = outcome.after_stop(granted, stopped, now=case.now)
    return Effected(after=after, ask=stopped.reason, cause=stopped.cause, action=action)


def ask_again(case: Case) -> Effected:
    after = resume(case, status=Status.AWAITING_APPROVAL)
    return Effected(after=after, ask=StopReason.CALL_APPROVAL)


def hold(case: Case) -> Effected:
    """No request until then; a stop's reason stays in the record, because its question returns."""
    op, now = case.operation, case.now
    until = Instant(min(now.wall + case.policy.hold, end_of_wait(op, now)))
    after = raised(op, now, status=Status.HELD, hold_until=until, holds_used=op.holds_used + 1)
    stop = None if case.running else case.question.cause
    return Effected(after=after, ask=StopReason.OPERATOR_REQUEST, cause=stop)


def _goes_on(case: Case, **changes: Any) -> Operation:
    """The wait goes on as it was; a time that was missed meanwhile is not made up for (T6)."""
    op, now = case.operation, case.now
    if op.status is Status.AWAITING_APPROVAL:
        planned = op.next_poll_at if op.next_poll_at is not None else now.wall
        changes.update(status=Status.WAITING, next_poll_at=Instant(max(planned, now.wall)))
    return raised(op, now, **changes)


def reject(case: Case) -> Effected:
    if case.first_limits or case.question.reason is StopReason.FIRST_USE:
        return close(case)
    return Effected(after=raised(case.operation, case.now))


def deny(case: Case) -> Effected:
    """The stop of its own (E table); the denied fetch of an end settles its card and nothing else."""
    if case.operation.status.is_end:
        return Effected(after=raised(case.operation, case.now))
    after = raised(
        case.operation,
        case.now,
        status=Status.ESCALATED,
        stop_reason=StopReason.APPROVAL_DENIED,
        stop_detail=None,
        stop_explanation=None,
        **_NOTHING_DUE,
    )
    return Effected(after=after, ask=StopReason.APPROVAL_DENIED)


def close(case: Case) -> Effected:
    """We stop watching; an end keeps its status (E8)."""
    status = case.operation.status if case.operation.status.is_end else Status.CLOSED
    return Effected(after=raised(case.operation, case.now, status=status, check_once=False, **_NOTHING_DUE))


def resubmit(case: Case) -> Effected:
    """E6: the old operation; the new one is the shell's `submit` in the same transaction."""
    return msgspec.structs.replace(close(case), action=ActionKind.RESUBMIT)


def accept_unvalidated_result(case: Case) -> Effected:
    result = case.operation.result
    if result is not None:
        result = msgspec.structs.replace(result, validated=False)
    after = raised(case.operation, case.now, status=Status.SUCCEEDED, result=result, **_NOTHING_DUE, **_NO_STOP)
    return Effected(after=after)


def approve_call(case: Case) -> Effected:
    return Effected(after=_goes_on(case), approves=case.choice.kind)


def approve(case: Case) -> Effected:
    """first_use: the wait goes on; what was said of the contract is stored with it (X7)."""
    said = next(effect.after for effect in case.choice.effects if effect.what == OBSERVATION)
    return Effected(after=_goes_on(case), use=ContractUse(str(said)))


def adopt_contract(case: Case) -> Effected:
    """Limits stay; the stored answer decides, without one it is a check_once (a running wait just goes on)."""
    adopted: dict[str, Any] = {"contract_digest": case.choice.contract_digest}
    seen = case.observation
    if seen is None:
        if case.running:
            return Effected(after=raised(case.operation, case.now, **adopted))
        return Effected(after=resume(case, check_once=True, **adopted))
    decision = outcome.decide_again(case.operation, seen, policy=case.policy, now=case.now)
    memory = case.operation.memory if case.memory is None else case.memory
    after = outcome.after_deciding_again(case.operation, seen, memory, decision, policy=case.policy, now=case.now)
    if isinstance(decision, Wait):
        return _adopted_and_waiting(case, after, decision, adopted)
    after = msgspec.structs.replace(after, **adopted)
    if isinstance(decision, Succeed) or not decision.asks:
        return Effected(after=after)
    detail = decision.detail.value if decision.detail else None
    return Effected(after=after, ask=decision.reason, ask_detail=detail, cause=decision.cause)


def _adopted_and_waiting(case: Case, after: Operation, wait: Wait, adopted: dict[str, Any]) -> Effected:
    """The plan stays, or is a granted wait's (T5); an end that is to be confirmed is asked for in its time (X8)."""
    adopted |= {"memory": after.memory, "last_known_state": after.last_known_state}
    adopted["provider_expires_at"] = after.provider_expires_at
    settles = after.memory.settling is not None and after.memory.settling != case.operation.memory.settling
    if case.running:
        if settles:
            adopted |= {"next_poll_at": wait.next_poll_at, "delay_source": wait.source}
        return Effected(after=raised(case.operation, case.now, **adopted))
    if settles:
        first = first_check_at(case.operation, case.now, case.policy.schedule)
        adopted["next_poll_at"] = Instant(max(first, wait.next_poll_at))
    return Effected(after=resume(case, **adopted))


EFFECTS: Final[dict[ChoiceKind, Callable[[Case], Effected]]] = {
    ChoiceKind.EXTEND: extend,
    ChoiceKind.CHECK_ONCE: check_once,
    ChoiceKind.CHECK_ONCE_WITH_ROTATED_CREDENTIAL: check_once,
    ChoiceKind.CHECK_AGAIN: extend,
    ChoiceKind.USE_OTHER_CREDENTIAL: use_other_credential,
    ChoiceKind.CANCEL_AT_PROVIDER: cancel_at_provider,
    ChoiceKind.ASK_AGAIN: ask_again,
    ChoiceKind.HOLD: hold,
    ChoiceKind.REJECT: reject,
    ChoiceKind.DENY: deny,
    ChoiceKind.CLOSE: close,
    ChoiceKind.RESUBMIT: resubmit,
    ChoiceKind.ACCEPT_UNVALIDATED_RESULT: accept_unvalidated_result,
    ChoiceKind.ADOPT_CONTRACT: adopt_contract,
    ChoiceKind.APPROVE_ONCE: approve_call,
    ChoiceKind.APPROVE_SESSION: approve_call,
    ChoiceKind.APPROVE: approve,
}
"""end_hold is `asking.end_of_hold`, inspect has none."""
