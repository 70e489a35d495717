"""What became of the cancels of one operation, for the card: the ordinary one and the stronger one (R35).

Job: action records, contract and last answer -> the fields of Circumstances that speak of cancels. Must not know: what
is offered on them, how they are sent.
Source: spec E5, O5; contract need R35.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pollcore import reading
from pollcore.actions import uses
from pollcore.contract import Contract
from pollcore.escalation.approvals import CANCEL, FORCE_CANCEL
from pollcore.facts import ActionKind, ActionOutcome, ActionRecord, Instant, Operation
from pollcore.ports import CredentialInfo, Stored


def facts_of(
    contract: Contract,
    operation: Operation,
    records: Sequence[ActionRecord],
    last: Stored | None,
    infos: Mapping[str, CredentialInfo],
) -> dict[str, Any]:
    """The fields of Circumstances, by name. *last*: the last answer, where `needs_answer`."""
    sent = [one for one in records if one.kind is ActionKind.CANCEL and _may_have_left(one)]
    forced = [one for one in records if one.kind is ActionKind.FORCE_CANCEL and _may_have_left(one)]
    taken = tuple((one.at, _outcome(one)) for one in sent if one.outcome is not ActionOutcome.REFUSED)
    cancels, may_force = contract.policy.cancel is not None, contract.policy.force_cancel is not None and bool(taken)
    return {
        "cancel_use": uses.action_use(contract, operation, CANCEL, infos) if cancels else None,
        "cancel_sent_at": sent[-1].at if sent else None,
        "cancel_outcome": _outcome(sent[-1]) if sent else None,
        "cancels_taken": taken,
        "force_use": uses.action_use(contract, operation, FORCE_CANCEL, infos) if may_force else None,
        "force_sent_at": forced[-1].at if forced else None,
        "force_outcome": _outcome(forced[-1]) if forced else None,
        "force_available_at": _available_at(contract, operation, last) if may_force else None,
    }


def needs_answer(contract: Contract | None, operation: Operation) -> bool:
    """R35: whether the last answer is wanted: a cancel was granted, and answers name the time of a stronger one."""
    force = contract.policy.force_cancel if contract is not None else None
    return operation.cancel_granted and force is not None and force.names_time


def _available_at(contract: Contract, operation: Operation, last: Stored | None) -> Instant | None:
    if last is None or not last.envelope:
        return None
    return reading.force_available_at(contract, operation, last.envelope)


def _may_have_left(action: ActionRecord) -> bool:
    """Refused without an answer: no credential, no address, no connection; nothing was sent."""
    return action.outcome is not ActionOutcome.REFUSED or action.http_code is not None


def _outcome(action: ActionRecord) -> str:
    """An intent whose answer nobody wrote down is `unknown`: the request may have left (O5)."""
    return (ActionOutcome.UNKNOWN if action.outcome is ActionOutcome.INTENDED else action.outcome).value
