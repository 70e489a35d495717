"""One decision, carried out once.

Job: check that what was shown still holds, apply its effect, settle the question, tell it. Must not know: keys and
screens (G3 is guarded where the keys are), storage.
Source: spec E7, G4; invariants.md I3, I11, I12, I27.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore.escalation import added_by, can_check, deadline_passed, end_of_wait, permitted, raise_limits
from pollcore.facts import (
    MINUTE,
    TRANSITIONS,
    Choice,
    ChoiceKind,
    CredentialMode,
    Escalation,
    EventName,
    Memory,
    Moment,
    Observation,
    Operation,
    Operator,
    Policy,
    Refused,
    Stale,
    Status,
    StopDetail,
    StopReason,
)
from pollcore.grants.applied import Applied, asked_event, decided, event_of
from pollcore.grants.asking import end_of_hold, open_question
from pollcore.grants.effects import EFFECTS, Case, Effected

_NEEDS_A_CHECK: Final = frozenset(
    {
        ChoiceKind.EXTEND,
        ChoiceKind.CHECK_ONCE,
        ChoiceKind.CHECK_ONCE_WITH_ROTATED_CREDENTIAL,
        ChoiceKind.CHECK_AGAIN,
        ChoiceKind.USE_OTHER_CREDENTIAL,
        ChoiceKind.ASK_AGAIN,
    }
)
_NEEDS_TIME: Final = frozenset({ChoiceKind.HOLD, ChoiceKind.APPROVE_ONCE, ChoiceKind.APPROVE_SESSION})


def apply(
    operation: Operation | None,
    question: Escalation,
    choice: Choice,
    *,
    policy: Policy,
    adopts: Policy | None = None,
    now: Moment,
    operator: Operator | str,
    because: str | None,
    new_id: str,
    shown_version: int | None = None,
    observation: Observation | None = None,
    memory: Memory | None = None,
    notes: tuple[str, ...] = (),
) -> Applied:
    """The whole effect of *choice*, to be stored in one transaction. Limits change only by what the choice says (I3).

    Args:
        operation: As loaded now; None only for `mode_change`.
        choice: One of `escalation.choices` for exactly this record, as it was shown.
        new_id: Id for the question that may open (made by the caller's chance).
        policy: What the card was drawn under: its sizes and maxima count.
        adopts: adopt_contract alone: the policy of the contract that is adopted; what follows goes by it.
        shown_version: The version that the card showed; None: the one that the question was asked under.
        observation: adopt_contract alone: what the stored answer reads as under the new contract; None: none.
        memory: adopt_contract alone: the memory that this reading leaves.
        notes: What the audit keeps beside the limits: the card's digest, what the key guard measured.

    Raises:
        Stale: version or question moved, already decided, or a limit passed since the card was drawn. Nothing is done.
        Refused: the choice is not one of this question's, is unavailable, or decides nothing.
    """
    who = str(operator)
    _still_open(operation, question, shown_version)
    _may_be_taken(operation, question, choice)
    if operation is None:
        return _credential_decision(question, choice, now, who, because, notes)
    _still_as_shown(operation, question, choice, policy, now, observation)
    if choice.kind is ChoiceKind.END_HOLD:
        return end_of_hold(
            operation, question, now=now, new_id=new_id, by=who, because=because, decision=choice.kind.value
        )
    case = Case(
        operation=operation,
        question=question,
        choice=choice,
        policy=adopts or policy,
        now=now,
        observation=observation,
        memory=memory,
    )
    effected = EFFECTS[choice.kind](case)
    _allowed_way(operation.status, effected.after.status)
    return _carried_out(case, effected, who, because, new_id, notes)


def _carried_out(
    case: Case, effected: Effected, who: str, because: str | None, new_id: str, notes: tuple[str, ...]
) -> Applied:
    """The effect with what is told of it: the question settled, the one that it opens, the events of both."""
    now, question = case.now, case.question
    opened = _opened(effected, now, new_id)
    told = event_of(
        case.choice,
        before=case.operation,
        after=effected.after,
        question=question,
        now=now,
        operator=who,
        because=because,
        notes=notes,
    )
    asked = () if opened is None else (asked_event(effected.after, opened, now, _asked_name(effected)),)
    return Applied(
        operation=effected.after,
        closed=decided(question, case.choice, now, who, because),
        opened=opened,
        events=(told, *asked),
        action=effected.action,
        approves=effected.approves,
        use=effected.use,
        settled=opened is None,
    )


def _still_open(operation: Operation | None, question: Escalation, shown_version: int | None) -> None:
    if question.decided_at is not None:
        by = question.operator or question.decision or "a stop"
        what = f"{question.escalation_id} is already decided ({question.decision}, {by})"
        raise Stale(f"question {what}; nothing was done")
    if operation is None:
        return
    if question.operation_id != operation.operation_id:
        owner = question.operation_id
        raise Stale(f"question {question.escalation_id} belongs to {owner}, not to {operation.operation_id}")
    shown = question.version if shown_version is None else shown_version
    if shown != operation.version:
        raise Stale(
            f"{operation.operation_id} has changed since the card was drawn (version {shown}, now "
            f"{operation.version}); nothing was done, look at the card again"
        )


def _may_be_taken(operation: Operation | None, question: Escalation, choice: Choice) -> None:
    status = operation.status if operation else None
    if operation is None and question.reason is not StopReason.MODE_CHANGE:
        raise Refused(f"a question with the reason {question.reason.value} is decided on an operation")
    kinds = permitted(question.reason, status)
    if choice.kind not in kinds:
        names = ", ".join(kind.value for kind in kinds)
        raise Refused(f"{question.reason.value} does not permit {choice.kind.value}; it permits: {names}")
    if choice.kind is ChoiceKind.INSPECT:
        raise Refused("inspect decides nothing (E9); open the record instead")
    if choice.unavailable is not None:
        raise Refused(f"{choice.label} cannot be chosen: {choice.unavailable}")


def _still_as_shown(
    op: Operation,
    question: Escalation,
    choice: Choice,
    policy: Policy,
    now: Moment,
    observation: Observation | None,
) -> None:
    """E7, G4: a limit that passed since the card was drawn makes another card; it is not granted around."""
    moved = f"{op.operation_id}: a limit has passed since the card was drawn; nothing was done, look at the card again"
    added = added_by(choice)
    needs_check = choice.kind in _NEEDS_A_CHECK or (
        choice.kind is ChoiceKind.ADOPT_CONTRACT and observation is None and op.status is not Status.WAITING
    )
    if needs_check and not can_check(raise_limits(op, added, now), now, policy.schedule):
        raise Stale(moved)
    # a fetch is no part of the wait: its leave needs none of the wait's time
    if choice.kind in _NEEDS_TIME and not op.status.is_end and end_of_wait(op, now) <= now.wall:
        raise Stale(moved)
    if added.minutes and deadline_passed(op, now):
        # the card promised a time counted from the old deadline; counted from now it would be later than shown
        firm = op.deadline_at + added.minutes * MINUTE
        shown = next((effect.after for effect in choice.effects if effect.what == "deadline"), None)
        if shown == firm and now.wall > op.deadline_at:
            raise Stale(moved)
    if choice.kind is ChoiceKind.EXTEND or (added.minutes and choice.kind is not ChoiceKind.CANCEL_AT_PROVIDER):
        listed = {(size.minutes, size.checks) for size in policy.extend}
        asked = (question.minutes, question.checks)
        first = question.detail == StopDetail.SECOND_SUBMISSION and (added.minutes, added.checks) == asked
        if (added.minutes, added.checks) not in listed and not first:
            raise Refused(f"{added.minutes} min / {added.checks} checks is no size of the contract (limits.extend)")
        if op.extensions_used >= policy.max_extensions and not first:
            raise Refused(f"{op.operation_id}: all {policy.max_extensions} extensions are used (max_extensions)")
    if choice.kind is ChoiceKind.HOLD and op.holds_used >= policy.max_holds:
        raise Refused(f"{op.operation_id}: all {policy.max_holds} holds are used")


def _allowed_way(before: Status, after: Status) -> None:
    if after is not before and after not in TRANSITIONS[before]:
        raise Refused(f"there is no way from {before.value} to {after.value}; look at the operation again")


def _opened(effected: Effected, now: Moment, new_id: str) -> Escalation | None:
    if effected.ask is None:
        return None
    return open_question(
        effected.after,
        new_id=new_id,
        reason=effected.ask,
        detail=effected.ask_detail,
        now=now,
        cause=effected.cause,
    )


def _asked_name(effected: Effected) -> EventName:
    stops = effected.after.stop_reason is not None and effected.ask is effected.after.stop_reason
    return EventName.ESCALATED if stops else EventName.QUESTION_OPENED


def _credential_decision(
    question: Escalation, choice: Choice, now: Moment, who: str, because: str | None, notes: tuple[str, ...]
) -> Applied:
    """mode_change: the mode that was shown, or nothing."""
    mode = None
    if choice.kind is ChoiceKind.APPROVE:
        shown = next((effect.after for effect in choice.effects if effect.what == "credential"), None)
        mode = CredentialMode(str(shown))
    told = event_of(
        choice, before=None, after=None, question=question, now=now, operator=who, because=because, notes=notes
    )
    told = msgspec.structs.replace(told, operation_id=question.operation_id or None)
    closed = decided(question, choice, now, who, because)
    return Applied(operation=None, closed=closed, events=(told,), mode=mode, settled=True)
