"""One decision on one operation, on its own card or on the card of many: what it changes, its grant, its write.

Job: carry a choice out on the record, and put what it changed, the grant that it uses up and the leave that it gives
into one conditional write. Must not know: how the card was drawn, keys; it commits nothing.
Source: spec G4, E10, X8.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pollcore import grants
from pollcore.actions.desk import Desk
from pollcore.escalation import Circumstances
from pollcore.facts import (
    ActionRecord,
    CallGrant,
    Choice,
    ChoiceKind,
    Escalation,
    Grant,
    Moment,
    Operation,
    Operator,
    Policy,
    Session,
)
from pollcore.grants import Applied
from pollcore.ports import Write


class Pressed(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator pressed, and on which card."""

    card_digest: str
    evidence: Mapping[str, str | int | float]
    """What the key guard measured."""
    operator: Operator
    because: str | None
    many: int | None = None
    """So many operations share this one answer (E10); None: it was pressed on the operation's own card."""

    @property
    def notes(self) -> tuple[str, ...]:
        """For the audit event: the card, and how its guard was passed."""
        shared = () if self.many is None else (f"one answer for {self.many} operations",)
        measured = (f"guard: {name} {value}" for name, value in self.evidence.items())
        return (f"card {self.card_digest[:16]}", *shared, *measured)


def carried_out(
    desk: Desk,
    operation: Operation,
    question: Escalation,
    choice: Choice,
    facts: Circumstances | None,
    policy: Policy,
    pressed: Pressed,
    *,
    now: Moment,
    shown_version: int,
) -> Applied:
    """What *choice* makes of the record. Raises Stale, Refused: as `grants.apply`."""
    changed = facts.changed_contract if facts is not None else None
    adopted = changed.policy if changed is not None and choice.kind is ChoiceKind.ADOPT_CONTRACT else None
    return grants.apply(
        operation,
        question,
        choice,
        policy=policy,
        # what is adopted is carried out under its own numbers (X8: does a failed answer want a second one?)
        adopts=adopted,
        now=now,
        operator=pressed.operator,
        because=pressed.because,
        new_id=f"esc-{desk.chance.token(6)}",
        shown_version=shown_version,
        observation=changed.reads_as if changed is not None else None,
        memory=changed.memory if changed is not None else None,
        notes=pressed.notes,
    )


def grant_of(
    desk: Desk,
    operation: Operation,
    question: Escalation,
    choice: Choice,
    pressed: Pressed,
    *,
    now: Moment,
    shown_version: int,
) -> Grant:
    """The grant of *choice* on one operation, used up with the write that carries it out."""
    return Grant(
        grant_id=f"grant-{desk.chance.token(8)}",
        operation_id=operation.operation_id,
        escalation_id=question.escalation_id,
        version=shown_version,
        choice=choice,
        card_digest=pressed.card_digest,
        evidence=dict(pressed.evidence),
        operator=pressed.operator,
        granted_at=now.wall,
        because=pressed.because,
    )


def decision_write(
    applied: Applied,
    before: Operation,
    shown_version: int,
    grant: Grant | None,
    call: CallGrant | None,
    session: Session | None,
    action: ActionRecord | None = None,
) -> Write:
    """Taken whole or not at all: only while *before* is unchanged and still has the version that was shown."""
    return Write(
        after=applied.operation or before,
        fence_change=before.change,
        fence_version=shown_version,
        release_lease=False,
        events=applied.events,
        open_question=applied.opened,
        close_question=applied.closed,
        grant=grant,
        contract_use=applied.use,
        action=action,
        approval=call,
        session=session,
    )
