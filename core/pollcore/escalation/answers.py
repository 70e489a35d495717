"""Choices about what an answer means or what ends the matter: adopt, accept, resubmit, reject, inspect, close.

Job: build them with costs and consequences. Must not know: which reason permits them, how they are carried out.
Source: spec E6, E8, E9, S8, and the paragraph below the table of group E.
"""

from __future__ import annotations

import msgspec

from pollcore import outcome
from pollcore.escalation.circumstances import ChangedContract
from pollcore.escalation.situation import Situation, span_words
from pollcore.escalation.waits import is_second_submission, one_check, use_words
from pollcore.facts import (
    Choice,
    ChoiceKind,
    Effect,
    Escalate,
    Limits,
    Observation,
    Status,
    StopReason,
    Succeed,
)


def adopt_contract(s: Situation) -> list[Choice]:
    """Only if the file has changed; for an unknown state only if it now knows it. Limits stay as they are."""
    changed = s.facts.changed_contract
    if changed is None or changed.digest == s.operation.contract_digest:
        return []
    if s.reason in (StopReason.UNKNOWN_STATE, StopReason.NEEDS_HUMAN) and not changed.knows_state:
        return []
    warnings = [f"sends to further origins: {', '.join(changed.origins_added)}"] if changed.origins_added else []
    if s.facts.contract_unseen:
        warnings.append("no operator has looked at this contract file yet")
    effect = Effect(what="contract", before=s.operation.contract_digest, after=changed.digest)
    if not changed.has_stored_answer and s.reason is not StopReason.OPERATOR_REQUEST:
        found = one_check(
            s,
            ChoiceKind.ADOPT_CONTRACT,
            "adopt the changed contract and check once",
            leads_to="The changed contract is adopted; no answer is stored whole, so one counted "
            "status request goes out",
            contract_digest=changed.digest,
            warnings=tuple(warnings),
        )
        return [_with_effect(choice, effect) for choice in found]
    return [
        Choice(
            key="",
            kind=ChoiceKind.ADOPT_CONTRACT,
            label="adopt the changed contract",
            grants=True,
            contract_digest=changed.digest,
            effects=(effect,),
            leads_to=(
                "The wait goes on under the changed contract; limits stay as they are."
                if changed.reads_as is None
                else f"The stored last answer is read again under the changed contract; it now reads as "
                f"{changed.reads_as.verdict.value}: {_follows(s, changed, changed.reads_as)}. "
                "No request goes out for it, limits stay as they are."
            ),
            warnings=tuple(warnings),
        )
    ]


def _follows(s: Situation, changed: ChangedContract, seen: Observation) -> str:
    """What the stored answer decides under the changed contract, by the very table that the grant goes by."""
    decision = outcome.decide_again(s.operation, seen, policy=changed.policy or s.policy, now=s.now)
    if isinstance(decision, Succeed):
        return f"the operation ends {Status.SUCCEEDED.value}"
    if isinstance(decision, Escalate):
        stops = f"the operation ends {decision.status.value}" if decision.status.is_end else "it stops"
        asks = "" if not decision.asks else ", and a new question follows"
        return f"{stops}, {decision.reason.value}{asks}"
    if seen.verdict.is_final:
        return "a second answer is to confirm it, the wait goes on"
    return "the wait goes on"


def _with_effect(choice: Choice, effect: Effect) -> Choice:
    return msgspec.structs.replace(choice, effects=(effect, *choice.effects))


def accept_unvalidated_result(s: Situation) -> list[Choice]:
    """Only if there is a result that failed validation; the card shows what failed."""
    pointer = s.operation.result
    if not (s.facts.unvalidated_result and pointer is not None and not pointer.validated):
        return []
    failed = s.operation.stop_explanation or (s.operation.stop_detail.value if s.operation.stop_detail else "unknown")
    return [
        Choice(
            key="",
            kind=ChoiceKind.ACCEPT_UNVALIDATED_RESULT,
            label="accept the unvalidated result",
            grants=True,
            leads_to="The operation ends succeeded with result.validated false; no request goes out.",
            warnings=(f"validation failed: {failed}",),
        )
    ]


def resubmit(s: Situation) -> list[Choice]:
    """E6: only with an idempotency key, a template and a fingerprint that matches the stored one."""
    stored = s.operation.submitted.request_fingerprint is not None
    if not (s.policy.can_resubmit and s.facts.resubmit_possible and s.facts.fingerprint_matches and stored):
        return []
    final = s.operation.status.is_end
    key = "a new idempotency key, stored first" if final else "the same idempotency key"
    old = f"stays {s.operation.status.value}" if final else "becomes closed"
    limits = s.facts.resubmit_limits or s.policy.default
    return [
        Choice(
            key="",
            kind=ChoiceKind.RESUBMIT,
            label="resubmit",
            grants=True,
            call=s.facts.resubmit_use.digest if s.facts.resubmit_use is not None else None,
            leads_to=(
                f"The stored submission is sent again with {key}, as a new operation linked to this one, which {old}. "
                f"Limits of the new one: {limits_words(limits)}. If the provider returns the same job id, the counters "
                "go on and this grant is their authority."
            ),
            warnings=(
                *(
                    ()
                    if final
                    else (
                        "the first job may still be running: only the idempotency key keeps it from being done twice",
                    )
                ),
                *use_words(s.facts.resubmit_use),
            ),
        )
    ]


def limits_words(limits: Limits) -> str:
    """`deadline 40 minutes, 12 requests, 3 transport failures, 3 rate-limit answers`; what is not stated is absent."""
    parts = [f"deadline {span_words(limits.deadline)}" if limits.deadline is not None else None]
    for count, word in (
        (limits.max_status_requests, "requests"),
        (limits.max_transport_failures, "transport failures"),
        (limits.max_rate_limited, "rate-limit answers"),
    ):
        parts.append(f"{count} {word}" if count is not None else None)
    return ", ".join(part for part in parts if part) or "the contract's defaults"


def reject(s: Situation) -> list[Choice]:
    """Lowers authority: nothing is given."""
    if s.reason is StopReason.FIRST_USE:
        label = "reject"
        sentence = (
            "The operation becomes closed and is not asked about any more; the job at the provider may go on. Nothing "
            "is decided of the contract: a later submission asks again."
        )
    elif is_second_submission(s):
        label = "reject"
        sentence = "The operation becomes closed; nothing was sent for it."
    else:
        label = "reject"
        sentence = "The wait goes on as it was, inside its present limits."
    return [Choice(key="", kind=ChoiceKind.REJECT, label=label, leads_to=sentence)]


def inspect(s: Situation) -> list[Choice]:
    """E9: decides nothing and sends nothing."""
    where = f", and the provider's console: {s.facts.console_url}" if s.facts.console_url else ""
    sentence = f"Shows record, story and contract{where}; decides nothing, sends nothing."
    return [Choice(key="", kind=ChoiceKind.INSPECT, label="inspect", decides=False, leads_to=sentence)]


def close(s: Situation) -> list[Choice]:
    """E8: says that the job may go on."""
    status = s.operation.status
    sentence = (
        f"This card is settled; the operation stays {status.value}."
        if status.is_end
        else "We stop watching and the operation becomes closed; the job at the provider may go on."
    )
    return [Choice(key="", kind=ChoiceKind.CLOSE, label="close", leads_to=sentence)]
