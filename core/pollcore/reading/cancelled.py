"""The answer to a cancel request: was it taken, refused, or is that unknown.

Job: contract need R35. Must not know: the job's state (a cancel that was sent is not a cancelled job, E5).
"""

from __future__ import annotations

from pollcore.contract.model import Contract
from pollcore.facts import FORCE, ActionOutcome, Answer, Exchange, Fault, Instant, Submitted, Verdict
from pollcore.reading.draft import Draft
from pollcore.reading.guards import read_error
from pollcore.reading.handover import fault_outcome
from pollcore.reading.look import Look, RuleFailed, Seen


def read_cancel(
    contract: Contract, brought: Answer | Fault, step: str | None = None
) -> tuple[ActionOutcome, str | None]:
    """(outcome, detail for people) of the cancel, with *step* `force` of the stronger one.

    What cannot be told is `unknown` and is never repeated by itself (O5).
    """
    if isinstance(brought, Fault):
        return fault_outcome(brought)
    plan = contract.cancel
    if step == FORCE and plan is not None:
        plan = plan.force
    code = brought.status
    if plan is None:
        return ActionOutcome.UNKNOWN, f"HTTP {code}: the contract documents no cancel"
    # the job is not known here; expressions over the cancel's answer read http and body alone
    nobody = Submitted(provider=contract.name, account="", job_id="")
    seen = Seen(submitted=nobody, started_at=Instant(0))
    look = Look(contract, seen, Exchange("cancel", "", brought), contract.steps[0], form=plan.request.format)
    told = Draft(Verdict.UNKNOWN)
    try:
        if plan.refused_when is not None and look.holds(plan.refused_when, f"{plan.request.key}.refused_when"):
            read_error(look, told)
            return ActionOutcome.REFUSED, told.provider_error or f"HTTP {code}: {plan.refused_when.source}"
        if plan.done_when is not None and code in plan.done_statuses:
            if look.holds(plan.done_when, f"{plan.request.key}.done_when"):
                return ActionOutcome.DONE, f"HTTP {code}"
            return ActionOutcome.UNKNOWN, f"HTTP {code}, but {plan.done_when.source} does not hold"
    except RuleFailed as failed:
        return ActionOutcome.UNKNOWN, f"HTTP {code}: {failed}"
    if code in plan.done_statuses:
        return ActionOutcome.DONE, f"HTTP {code}"
    if code in plan.refused_statuses or code == 401:
        read_error(look, told)
        return ActionOutcome.REFUSED, f"HTTP {code}" + (f": {told.provider_error}" if told.provider_error else "")
    return ActionOutcome.UNKNOWN, f"HTTP {code}"
