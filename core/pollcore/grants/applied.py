"""What came of a decision, and the audit events that tell it.

Job: the result struct and its events. Must not know: which choice does what.
Source: spec A1 (for every human decision), G8.
"""

from __future__ import annotations

import msgspec

from pollcore.facts import (
    EFFECT_TIMES,
    ActionKind,
    AuditEvent,
    Choice,
    ChoiceKind,
    ContractUse,
    CredentialMode,
    Escalation,
    EventName,
    Instant,
    Moment,
    Operation,
    iso,
)


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that belongs into the one transaction that uses the grant up (G4)."""

    operation: Operation | None
    """After; its version is raised. None: the question belonged to a credential (mode_change)."""
    closed: Escalation | None = None
    """The question, decided; None: nothing was open (asking)."""
    opened: Escalation | None = None
    events: tuple[AuditEvent, ...] = ()
    action: ActionKind | None = None
    """What the shell runs after the commit (O5)."""
    approves: ChoiceKind | None = None
    """`approve_once` or `approve_session`: the shell stores the approval with the request that was shown."""
    use: ContractUse | None = None
    """first_use: what the operator says of this contract digest, stored with the grant; None: nothing."""
    mode: CredentialMode | None = None
    """mode_change: the mode that the shell stores now; None: unchanged."""
    settled: bool = False
    """The question is closed and no other took its place."""


def decided(
    question: Escalation, choice: Choice, now: Moment, operator: str, because: str | None, *, label: bool = False
) -> Escalation:
    """The question with its one decision (E7)."""
    return msgspec.structs.replace(
        question,
        decided_at=now.wall,
        decision=choice.kind.value,
        operator=operator,
        # the kind alone does not tell which cancel was granted
        decision_text=because or (choice.label if label or choice.step is not None else None),
    )


_EVENT: dict[ChoiceKind, EventName] = {
    ChoiceKind.REJECT: EventName.REJECTED,
    ChoiceKind.DENY: EventName.REJECTED,
    ChoiceKind.CLOSE: EventName.CLOSED,
    ChoiceKind.HOLD: EventName.HELD,
    ChoiceKind.END_HOLD: EventName.HOLD_ENDED,
}


def limits_note(choice: Choice) -> tuple[str, ...]:
    """What was shown, as notes: each limit before and after."""
    return tuple(
        f"{effect.what} {_shown(effect.what, effect.before)} -> {_shown(effect.what, effect.after)}"
        for effect in choice.effects
    )


def _shown(what: str, value: int | str | None) -> str:
    """A limit as people read it: times in UTC, none as `none`."""
    if value is None:
        return "none"
    return iso(Instant(value)) if what in EFFECT_TIMES and isinstance(value, int) else str(value)


def event_of(
    choice: Choice,
    *,
    before: Operation | None,
    after: Operation | None,
    question: Escalation | None,
    now: Moment,
    operator: str,
    because: str | None,
    notes: tuple[str, ...],
) -> AuditEvent:
    """A1: what was shown and granted, by whom, when, why."""
    return AuditEvent(
        at=now.wall,
        event=_EVENT.get(choice.kind, EventName.GRANTED),
        operation_id=after.operation_id if after else None,
        state_before=before.last_known_state if before else None,
        state=after.last_known_state if after else None,
        delay_source=after.delay_source if after and after.next_poll_at else None,
        next_poll_at=_next(after),
        requests_used=after.status_requests_used if after else None,
        max_requests=after.max_status_requests if after else None,
        deadline_at=after.deadline_at if after else None,
        decision=choice.kind.value,
        reason=question.reason.value if question else None,
        detail=choice.label,
        operator=operator,
        text=because,
        notes=(*limits_note(choice), *notes),
    )


def _next(after: Operation | None) -> Instant | None:
    if after is None:
        return None
    return after.hold_until if after.hold_until is not None else after.next_poll_at


def asked_event(operation: Operation, question: Escalation, now: Moment, name: EventName) -> AuditEvent:
    """A question was opened: asked of a human, by whom, why."""
    return AuditEvent(
        at=now.wall,
        event=name,
        operation_id=operation.operation_id,
        state=operation.last_known_state,
        requests_used=operation.status_requests_used,
        max_requests=operation.max_status_requests,
        deadline_at=operation.deadline_at,
        reason=question.reason.value,
        detail=question.detail,
        caller=question.asked_by,
        text=question.because,
    )


def refused_event(
    operation: Operation, question: Escalation | None, choice: Choice, now: Moment, operator: str, why: str
) -> AuditEvent:
    """G8: a stale or impossible grant is an audit event like an approval; nothing else happens."""
    return AuditEvent(
        at=now.wall,
        event=EventName.GRANT_REFUSED,
        operation_id=operation.operation_id,
        decision=choice.kind.value,
        reason=question.reason.value if question else None,
        detail=choice.label,
        operator=operator,
        text=why,
    )
