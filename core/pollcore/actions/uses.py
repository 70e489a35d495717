"""What a request would let out: the facts of G7, rendered from the very request that would be sent.

Job: (contract, record, question, credentials) -> what a card shows and a leave is bound to; the leave that a grant
makes. Must not know: secrets, keys, who may grant.
Source: spec G2, G4, G6, G7, K4; invariants.md I14.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pollcore.contract import Contract, requests
from pollcore.escalation import Approval, Circumstances, CredentialUse, approval_needed, call_digest, session_digest
from pollcore.escalation.approvals import CANCEL, FETCH, FORCE_CANCEL, RESUBMIT, STATUS, grant_ends, stricter
from pollcore.facts import (
    FORCE,
    MINUTE,
    BootMs,
    CallGrant,
    Choice,
    ChoiceKind,
    CredentialMode,
    Escalation,
    Grant,
    Instant,
    Moment,
    Operation,
    Refused,
    Request,
    Session,
    StopReason,
)
from pollcore.ports import CredentialInfo

NO_KEY: Final = "-"
"""Stands for the idempotency key in what a leave to resubmit is bound to: the real one may be made after the grant."""
_WORDS: Final = {
    FETCH: "fetch of the result",
    CANCEL: "cancel request",
    FORCE_CANCEL: "force-cancel request",
    RESUBMIT: "resubmission",
}


def request_for(contract: Contract, operation: Operation, purpose: str) -> Request:
    """The request of *purpose* as it would be sent now. Raises Refused."""
    if purpose == STATUS:
        return requests.status_request(contract, operation, operation.credential)
    if purpose == FETCH:
        return requests.result_request(contract, operation, operation.credential)
    if purpose in (CANCEL, FORCE_CANCEL):
        step = FORCE if purpose == FORCE_CANCEL else None
        return requests.cancel_request(contract, operation, operation.credential, step)
    return requests.submit_request(contract, operation.submitted, NO_KEY, operation.credential)


def use_of(
    contract: Contract, operation: Operation, question: Escalation, known: Mapping[str, CredentialInfo]
) -> CredentialUse | None:
    """What the open question is about; None: no use of a credential."""
    if question.reason is StopReason.CALL_APPROVAL:
        return _use(contract, operation, FETCH if question.detail == FETCH else STATUS, known)
    if question.reason is not StopReason.SESSION_APPROVAL:
        return None
    return _use(contract, operation, STATUS, known, owner=question.asked_by)


def action_use(
    contract: Contract, operation: Operation, purpose: str, known: Mapping[str, CredentialInfo]
) -> CredentialUse | None:
    """What a cancel or a resubmit lets out; None: nothing that needs leave of its own."""
    info = known.get(operation.credential or "")
    if info is None:  # nothing is sent without its secret
        return None
    if approval_needed(info.mode, contract.policy.least_mode, None, purpose) is Approval.NONE:
        return None
    use = _use(contract, operation, purpose, known)
    return use if use.request is None or use.request.slot is not None else None


def _use(
    contract: Contract,
    operation: Operation,
    purpose: str,
    known: Mapping[str, CredentialInfo],
    owner: str | None = None,
) -> CredentialUse:
    op, policy = operation, contract.policy
    info = known.get(op.credential or "")
    problem, request = None, None
    try:
        request = request_for(contract, op, purpose)
    except Refused as error:
        problem = str(error)
    sends = request is not None and request.slot is not None
    if sends and info is None:
        problem = f"no credential {op.credential} is stored"
    binding = info.binding if sends and info is not None else None
    digest = None
    if problem is None and request is not None:
        digest = call_digest(op, request, purpose=purpose, binding=binding)
        if owner is not None:
            bounds = (policy.session_minutes, policy.session_calls)
            digest = session_digest(op.credential or "", binding or "", owner, *bounds)
    return CredentialUse(
        request=request,
        purpose=_purpose(op, purpose),
        reveals=contract.reveals or _reveals(contract, purpose),
        scope=", ".join(info.origins) if info is not None else None,
        session_minutes=policy.session_minutes,
        session_calls=policy.session_calls,
        for_purpose=purpose,
        mode=_mode(info, contract) if sends else None,
        credential=op.credential if sends else None,
        number=op.status_requests_used + (purpose == STATUS),
        of=op.max_status_requests,
        digest=digest,
        binding=binding,
        owner=owner,
        problem=problem,
    )


def _mode(info: CredentialInfo | None, contract: Contract) -> CredentialMode | None:
    return None if info is None else stricter(info.mode, contract.policy.least_mode)


def _purpose(op: Operation, purpose: str) -> str:
    if purpose == STATUS:
        return "status request" if op.memory.step is None else f"status request, step {op.memory.step}"
    return _WORDS[purpose]


def _reveals(contract: Contract, purpose: str) -> str:
    """Where the contract does not say it: what its own rules read of the answer."""
    if purpose == FETCH:
        return "the job's result, whole"
    if purpose in (CANCEL, FORCE_CANCEL):
        return "the provider's answer to the cancel"
    if purpose == RESUBMIT:
        return "the stored submission to the provider, its answer to us"
    fields = ", ".join(required.name for required in contract.success.requires)
    return "the job's state" + (f", and of a success: {fields}" if fields else "")


# --- leaves -----------------------------------------------------------------------------------------------------------


def expired(question: Escalation, now: Moment) -> bool:
    """I14: nothing is granted on a question whose time is over, whether or not anybody has written that down yet."""
    return question.expires_at is not None and question.expires_at <= now.wall


def leaves(
    facts: Circumstances, choice: Choice, grant: Grant, after: Operation, now: Moment, session_id: str
) -> tuple[CallGrant | None, Session | None]:
    """What *grant* of *choice* makes: the leave for one call, or a session; neither for most choices.

    Raises Refused: what is to be approved cannot be shown.
    """
    if choice.kind is ChoiceKind.APPROVE_ONCE:
        use = _shown(facts, choice)
        ends, ends_boot = grant_ends(after, now, use.for_purpose)
        return _call(use.for_purpose, use.number, use.credential, choice, grant, now, ends, ends_boot), None
    if choice.kind is ChoiceKind.APPROVE_SESSION:
        use = _shown(facts, choice)
        span = choice.minutes * MINUTE
        return None, Session(
            session_id=session_id,
            credential=use.credential or "",
            owner=use.owner or "",
            binding=use.binding or "",
            started_at=now.wall,
            until=Instant(now.wall + span),
            boot_id=now.boot_id,
            until_boot=BootMs(now.boot + span),
            calls=choice.checks,
            granted_by=str(grant.operator),
            grant_id=grant.grant_id,
        )
    return None, None


def action_leave(
    choice: Choice, grant: Grant, operation: Operation, now: Moment, action_id: str, purpose: str
) -> CallGrant | None:
    """G2: the grant of a cancel or resubmit whose card showed the credential's use is the approval of that one call.

    It is stored as used up by the action whose intent is stored in the same transaction. None: it needs none.
    """
    if choice.call is None:
        return None
    used = operation.status_requests_used
    return _call(purpose, used, operation.credential, choice, grant, now, now.wall, now.boot, action_id)


def _shown(facts: Circumstances, choice: Choice) -> CredentialUse:
    use = facts.use
    if use is None or choice.call is None or use.digest != choice.call:
        raise Refused(f"{choice.label}: the request that would be approved cannot be shown", code="unavailable")
    return use


def _call(
    purpose: str,
    number: int,
    credential: str | None,
    choice: Choice,
    grant: Grant,
    now: Moment,
    ends: Instant,
    ends_boot: BootMs,
    used_for: str | None = None,
) -> CallGrant:
    return CallGrant(
        grant_id=grant.grant_id,
        operation_id=grant.operation_id,
        digest=choice.call or "",
        number=number,
        purpose=purpose,
        credential=credential,
        granted_at=now.wall,
        expires_at=ends,
        boot_id=now.boot_id,
        expires_boot=ends_boot,
        used_at=None if used_for is None else now.wall,
        used_for=used_for,
    )
