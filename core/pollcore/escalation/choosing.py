"""Reason and record -> choices with their digits.

Job: walk the table and number what the builders give. Must not know: how a choice is built or carried out.
Source: spec E2, E4, E7, E9; a card has digits 1-9 (invariants.md, the guard).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from pollcore.escalation import answers, cancels, credentials, waits
from pollcore.escalation.circumstances import Circumstances
from pollcore.escalation.situation import Situation
from pollcore.escalation.table import ALWAYS, permitted
from pollcore.facts import FORCE, Choice, ChoiceKind, Escalation, Moment, Operation, Policy, StopReason

MAX_CHOICES: Final = 9
"""One digit each."""

_BUILDERS: Final[dict[ChoiceKind, Callable[[Situation], list[Choice]]]] = {
    ChoiceKind.EXTEND: waits.extend,
    ChoiceKind.CHECK_ONCE: waits.check_once,
    ChoiceKind.HOLD: waits.hold,
    ChoiceKind.END_HOLD: waits.end_hold,
    ChoiceKind.CANCEL_AT_PROVIDER: cancels.cancel_at_provider,
    ChoiceKind.ADOPT_CONTRACT: answers.adopt_contract,
    ChoiceKind.ACCEPT_UNVALIDATED_RESULT: answers.accept_unvalidated_result,
    ChoiceKind.RESUBMIT: answers.resubmit,
    ChoiceKind.REJECT: answers.reject,
    ChoiceKind.INSPECT: answers.inspect,
    ChoiceKind.CLOSE: answers.close,
    ChoiceKind.USE_OTHER_CREDENTIAL: credentials.use_other_credential,
    ChoiceKind.CHECK_ONCE_WITH_ROTATED_CREDENTIAL: credentials.check_once_with_rotated_credential,
    ChoiceKind.CHECK_AGAIN: credentials.check_again,
    ChoiceKind.ASK_AGAIN: credentials.ask_again,
    ChoiceKind.APPROVE_ONCE: credentials.approve_once,
    ChoiceKind.APPROVE_SESSION: credentials.approve_session,
    ChoiceKind.APPROVE: credentials.approve,
    ChoiceKind.DENY: credentials.deny,
}


def choices(
    operation: Operation | None,
    question: Escalation | StopReason,
    *,
    policy: Policy,
    now: Moment,
    circumstances: Circumstances | None = None,
) -> tuple[Choice, ...]:
    """What an operator may choose, in the order of the digits; inspect and close are always the last two.

    A choice whose precondition is "only if" is absent when it does not hold; one that only has to wait, or has used up
    its number, is there with `unavailable` set. Pure: the same arguments give the same choices.

    Args:
        operation: None only for `mode_change`, which belongs to a credential.
        question: The open question, or a reason to look at the choices it would have.
        circumstances: None: nothing is known beside the record, so nothing more is offered.

    Raises:
        ValueError: *operation* is None for another reason than `mode_change`.
    """
    reason = question if isinstance(question, StopReason) else question.reason
    facts = circumstances or Circumstances()
    if operation is None:
        if reason is not StopReason.MODE_CHANGE:
            raise ValueError(f"a question with the reason {reason} belongs to an operation")
        found = credentials.mode_choices(facts.mode)
    else:
        situation = Situation(
            operation=operation,
            question=None if isinstance(question, StopReason) else question,
            reason=reason,
            policy=policy,
            now=now,
            facts=facts,
        )
        kinds = permitted(reason, operation.status)
        found = [choice for kind in kinds for choice in _BUILDERS[kind](situation)]
    found = _room_for_force(found)
    if len(found) > MAX_CHOICES:
        # only a long list of other credentials gets here; the builder has already said that more exist
        last = [choice for choice in found if choice.kind in ALWAYS]
        found = [choice for choice in found if choice.kind not in ALWAYS][: MAX_CHOICES - len(last)] + last
    return tuple(msgspec.structs.replace(choice, key=str(digit)) for digit, choice in enumerate(found, 1))


def _room_for_force(found: list[Choice]) -> list[Choice]:
    """R35: where both cancels are one digit too many, one stands for both: the stronger, once it can be chosen."""
    force = next((choice for choice in found if choice.step == FORCE), None)
    if force is None or len(found) <= MAX_CHOICES:
        return found
    plain = next(c for c in found if c.kind is ChoiceKind.CANCEL_AT_PROVIDER and c.step is None)
    stays, goes = (force, plain) if force.unavailable is None else (plain, force)
    said = msgspec.structs.replace(stays, warnings=(*stays.warnings, f"{goes.label} has no digit left on this card"))
    return [said if choice is stays else choice for choice in found if choice is not goes]
