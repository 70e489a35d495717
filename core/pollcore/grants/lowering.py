"""Lowering authority: what anyone may do, also from the command line (G5).

Job: close, hold, end a hold, reject, deny, with or without an open question. Must not know: how to raise anything.
Source: spec G5, E8; design.md (`close`, `hold`, `reject`, `deny`).
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore.escalation import choices, permitted
from pollcore.facts import (
    LOWERS_AUTHORITY,
    ChoiceKind,
    Escalation,
    Moment,
    Operation,
    Policy,
    Refused,
    StopReason,
)
from pollcore.grants.applied import Applied
from pollcore.grants.applying import apply
from pollcore.grants.asking import open_operator_question

ALLOWED: Final = LOWERS_AUTHORITY | {ChoiceKind.END_HOLD}
"""Ending a hold gives nothing: a wait goes on inside its limits, a stop's question returns."""

_WITHOUT_A_QUESTION: Final = frozenset({ChoiceKind.CLOSE, ChoiceKind.HOLD})


def lower(
    operation: Operation,
    question: Escalation | None,
    kind: ChoiceKind,
    *,
    policy: Policy,
    now: Moment,
    by: str,
    because: str | None,
    new_id: str,
) -> Applied:
    """Carry out one choice that lowers authority, on what was loaded just now.

    Raises:
        Refused: *kind* raises authority, or the open question does not permit it (names what it permits).
        Stale: the question is already decided.
    """
    if kind not in ALLOWED:
        raise Refused(f"{kind.value} is new authority: only a keypress in the console gives it")
    if question is None:
        if operation.status.is_end:
            raise Refused(f"{operation.operation_id} has ended ({operation.status.value}) and has no open question")
        if kind not in _WITHOUT_A_QUESTION:
            raise Refused(f"{operation.operation_id} has no open question to {kind.value}")
        # asked and answered in one step: that question was never stored, so none is there to settle
        asked = open_operator_question(operation, None, operator=by, now=now, new_id=f"{new_id}-0")
        applied = _decide(asked.operation or operation, asked.opened, kind, policy, now, by, because, new_id)
        return msgspec.structs.replace(applied, closed=None)
    return _decide(operation, question, kind, policy, now, by, because, new_id)


def _decide(
    operation: Operation,
    question: Escalation | None,
    kind: ChoiceKind,
    policy: Policy,
    now: Moment,
    by: str,
    because: str | None,
    new_id: str,
) -> Applied:
    reason = question.reason if question else StopReason.OPERATOR_REQUEST
    found = next(
        (choice for choice in choices(operation, question or reason, policy=policy, now=now) if choice.kind is kind),
        None,
    )
    if found is None or question is None:
        may = [allowed.value for allowed in permitted(reason, operation.status) if allowed in ALLOWED]
        why = "a limit has passed" if kind.value in may else f"it permits: {', '.join(may)}"
        raise Refused(f"{operation.operation_id}: {kind.value} is not possible under {reason.value}; {why}")
    return apply(
        operation,
        question,
        found,
        policy=policy,
        now=now,
        operator=by,
        because=because,
        new_id=new_id,
        shown_version=operation.version,
    )
