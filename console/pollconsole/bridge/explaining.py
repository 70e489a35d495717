"""How a saved answer reads under a contract, what would be decided, what an operator would be shown.

Job: (contract, answer) -> document. Must not know: output, files, the store; it sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pollconsole import documents
from pollconsole.bridge import saved
from pollconsole.bridge.submission_view import submission_view
from pollcore.facts import FORCE, Answer, Decision, Escalate, Fault, Memory, Moment, Observation, Refused, StopDetail

if TYPE_CHECKING:
    from pollcore.assembly import Core
    from pollcore.contract import Contract
    from pollcore.facts import Operation
    from pollcore.reading import Explanation


EXAMPLE_CHILD: Final = "example-child"
EXAMPLE_JOB: Final = "example-job"
CANCEL: Final = "cancel"
FORCE_CANCEL: Final = "cancel.force"
SUBMISSION: Final = "submission"
"""Not steps of a chain: what the answer belongs to (`explain`)."""
_UNREAD: Final[dict[str, Any]] = {"rule": None, "read": [], "body_fault": None, "observation": None}
"""Of a fault, and of an answer that is none to a status request."""


def explain(
    core: Core,
    name: str,
    text: str | None,
    answer: Answer,
    job_id: str | None,
    params: Mapping[str, str],
    step: str | None = None,
    state: str | None = None,
    others: int = 0,
    response_url: str | None = None,
) -> dict[str, Any]:
    """How *answer* would be taken and read by a contract and decided, for a fresh operation just under way.

    Args:
        text: the contract's text when *name* is a file.
        job_id: None: `EXAMPLE_JOB`.
        step: which step of the chain *answer* belongs to; None: the status request. A child of `each` is the only one.
            Where no step is called so: `submission`, it answers the submission, as for `submit --from-response`;
            `cancel` or `cancel.force`, it answers the documented cancel, or force-cancel, and nothing is decided.
        state: the job was seen in it before; None: it was never seen.
        others: so many other jobs were asked for in the same request (`[status.batch]`).
        response_url: what the submission was sent to, as for `submit`.

    Raises NotFound, ContractError; Refused: the contract has no such step, cancel or parameter.
    """
    from pollcore.contract import parse
    from pollcore.contract.requests import check_params

    contract = core.contracts.find(name) if text is None else parse(text, name)
    given = check_params(contract, dict(params), complete=False)
    now = core.clock.now()
    timed = saved.complete_at(answer, now.wall)
    beside = step if all(one.name != step for one in contract.steps) else None
    if beside == SUBMISSION:
        return {"contract": contract.name, **_submitted(contract, timed, now, job_id, given, response_url)}
    if response_url is not None:
        raise Refused("--response-url belongs to the answer to a submission: --step submission", code="usage")
    if beside in (CANCEL, FORCE_CANCEL):
        cancel = saved.cancel_view(contract, timed, now.wall, FORCE if step == FORCE_CANCEL else None)
        return {"contract": contract.name, **_UNREAD, "fault": None, "cancel": cancel, "decision": None, "card": None}
    operation = documents.example_operation(contract, now, job_id or EXAMPLE_JOB, given)
    if step is not None:
        operation = msgspec.structs.replace(operation, memory=_at_step(contract, step))
    if state is not None:
        seen = {"first_seen_at": now.wall, "polls": 1, "last_state": state, "in_a_row": 1}
        memory = msgspec.structs.replace(operation.memory, **seen)
        operation = msgspec.structs.replace(operation, memory=memory, last_known_state=state)
    return {"contract": contract.name, **_decided(contract, operation, timed, now, job_id is None, others)}


def _submitted(
    contract: Contract, answer: Answer, now: Moment, job_id: str | None, params: Mapping[str, Any], url: str | None
) -> dict[str, Any]:
    """What `submit --from-response` would make of it; a job that has ended already is decided with 0 requests (H1)."""
    from pollcore import decide, outcome
    from pollcore.facts import Succeed

    view, operation, handover = submission_view(contract, answer, now, job_id, params, url)
    view = {**_UNREAD, **view, "decision": None, "card": None}
    seen = None if handover is None else handover.observation
    if operation is None or seen is None:
        return view
    decision = decide.decide(operation, seen, policy=contract.policy, now=now, draw=0.5, counted=False)
    if isinstance(decision, Succeed | Escalate):
        memory, policy = operation.memory, contract.policy
        after = outcome.after_reading(operation, seen, memory, decision, policy=policy, now=now, counted=False)
        view["submission"] |= {"status": after.status.value, "first_request": None, "why": None}
    return view | {
        "observation": observed(seen),
        "decision": documents.decision(decision, now.wall),
        "card": card_of(contract, operation, seen, operation.memory, decision, now),
    }


def _decided(
    contract: Contract, operation: Operation, answer: Answer, now: Moment, example: bool, others: int = 0
) -> dict[str, Any]:
    from pollcore import decide, reading

    step = next((one for one in contract.steps if one.name == operation.memory.step), contract.steps[0])
    taken = saved.received(step.request.method, answer, now.wall)
    why, memory = _UNREAD, operation.memory
    seen: Observation | Fault
    if isinstance(taken, Fault):
        seen = msgspec.structs.replace(taken, apart=others > 0 and taken.kind in decide.INTEGRATION_FAULTS)
    else:
        read = reading.explain(contract, operation, taken, _asked(contract, operation), others)
        why, seen, memory = explained(read), read.observation, read.memory
    decision = decide.decide(operation, seen, policy=contract.policy, now=now, draw=0.5)
    view = {
        **why,
        "fault": saved.fault_view(taken if isinstance(taken, Fault) else None),
        "decision": documents.decision(decision, now.wall),
        "card": card_of(contract, operation, seen, memory, decision, now),
    }
    if isinstance(seen, Fault):
        view["hint"] = "saved with curl -i --compressed, it counts as what it is after decompression"
    elif example and (seen.detail is StopDetail.WRONG_JOB or (seen.detail is StopDetail.NOT_FOUND and step.item)):
        view["hint"] = f"{EXAMPLE_JOB} stands for the job that was asked for: give --job-id with the id in the answer"
    return view


def explained(read: Explanation) -> dict[str, Any]:
    """Which rule decided, what it looked at, what was read of the answer."""
    return {
        "rule": read.rule,
        "read": [f"{path}: {value}" for path, value in read.read],
        "body_fault": read.body_fault,
        "observation": observed(read.observation),
    }


def observed(seen: Observation) -> dict[str, Any]:
    """An observation; of a success its result, links without their query."""
    from pollcore.views import result_view

    view = documents.observation(seen)
    if seen.result is not None:
        view["result"] = result_view(seen.result, reveal=False)
    return view


def card_of(
    contract: Contract,
    operation: Operation,
    seen: Observation | Fault,
    memory: Memory,
    decision: Decision,
    now: Moment,
) -> list[str] | None:
    """The lines of the card that an operator would get after *decision* on *operation*; None: nobody is asked.

    What only a real operation has (its keyring, its cool-downs) is taken as not there.
    """
    from pollcore import escalation, grants, outcome
    from pollcore.card import card
    from pollcore.contract import requests

    if not isinstance(decision, Escalate) or not decision.asks:
        return None
    after = outcome.after_reading(operation, seen, memory, decision, policy=contract.policy, now=now)
    question = grants.open_question(
        after,
        new_id="esc-example",
        reason=decision.reason,
        detail=None if decision.detail is None else decision.detail.value,
        now=now,
        cause=decision.cause,
    )
    facts = escalation.Circumstances(
        unvalidated_result=after.result is not None and not after.result.validated,
        console_url=requests.console_url(contract, after.submitted),
        near_match=seen.near_match if isinstance(seen, Observation) else None,
        allow_http=contract.allow_http,
    )
    choices = escalation.choices(after, question, policy=contract.policy, now=now, circumstances=facts)
    return list(card(after, question, choices, now=now, circumstances=facts).text())


def _at_step(contract: Contract, step: str) -> Memory:
    """Raises Refused: the contract has no such step."""
    from pollcore.contract.near import did_you_mean
    from pollcore.contract.requests import CHILDREN, EACH

    known = [one.name for one in contract.steps]
    if step not in known:
        documented = contract.cancel
        also = {
            SUBMISSION: contract.submission is not None,
            CANCEL: documented is not None,
            FORCE_CANCEL: documented is not None and documented.force is not None,
        }
        every = [*known, *(name for name, there in also.items() if there and name not in known)]
        raise Refused(f"{contract.name}: no step {step!r}{did_you_mean(step, every)}", code="usage")
    return Memory(step=step, values={EACH: EXAMPLE_CHILD, CHILDREN: [{"id": EXAMPLE_CHILD}]})


def _asked(contract: Contract, operation: Operation) -> str:
    """The URL that would have been asked: relative links of the answer resolve against it, as in the core."""
    from pollcore.contract import requests

    try:
        return requests.status_request(contract, operation, None).url
    except Refused:
        return contract.base_url or next(iter(contract.request_origins), "")
