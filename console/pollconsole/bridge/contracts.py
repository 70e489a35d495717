"""Contracts and configured instances: list, show, check, explain.

Job: contracts -> documents. Must not know: output; it sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pollconsole import documents, words
from pollconsole.bridge import saved
from pollcore.facts import FORCE, Answer, Decision, Escalate, Fault, Memory, Moment, Observation, Refused, StopDetail

if TYPE_CHECKING:
    from pollcore.assembly import Core
    from pollcore.contract import Contract
    from pollcore.facts import Operation
    from pollcore.ports import ContractKnown
    from pollcore.reading import Explanation


EXAMPLE_CHILD: Final = "example-child"
EXAMPLE_JOB: Final = "example-job"
CANCEL: Final = "cancel"
FORCE_CANCEL: Final = "cancel.force"
"""Not steps of a chain: what the answer belongs to (`explain`)."""
_UNREAD: Final[dict[str, Any]] = {"rule": None, "read": [], "body_fault": None, "observation": None}
"""Of a fault, and of an answer that is none to a status request."""
Known = Mapping[str, "ContractKnown"]
"""By digest: what operators said and saw of contracts."""


async def contracts_known(core: Core) -> Known:
    """What operators said and saw of every contract that can be used, from the store."""
    digests = []
    for name in core.contracts.names():
        try:
            digests.append(core.contracts.find(name).digest)
        except Refused:
            continue
    return await core.store.contracts_known(digests)


def providers(core: Core, known: Known | None = None) -> list[dict[str, Any]]:
    """Contracts and configured instances by name; an instance covers a contract of its name.

    *source*: a path, `shipped` or `config.toml`. *shadows*: a shipped contract of that name is not used. *error*: why
    it cannot be used. *marks*: tried, seen and decided, by *known*; without it, as far as the contract itself tells.
    """
    found: dict[str, dict[str, Any]] = {}
    for file in core.contracts.listing():
        view = {"name": file.name, "contract": file.name, "source": file.source, "shadows": file.shadows}
        found[file.name] = {**view, **_usable(core, file.name, known)}
    for name, instance in core.config.providers.items():
        view = {"name": name, "contract": instance.contract, "source": "config.toml", "shadows": False}
        found[name] = {**view, **_usable(core, name, known)}
    return [found[name] for name in sorted(found)]


def _usable(core: Core, name: str, known: Known | None) -> dict[str, Any]:
    try:
        contract = core.contracts.find(name)
    except Refused as error:
        return {
            "title": None,
            "base_url": None,
            "allow_http": False,
            "error": words.sentence(str(error)),
            "marks": None,
        }
    return {
        "title": contract.title,
        "base_url": contract.base_url,
        "allow_http": contract.allow_http,
        "error": None,
        "marks": marks(contract, known),
    }


def marks(contract: Contract, known: Known | None) -> dict[str, Any]:
    """X7, G5: who tried the contract, who looked at it, what its status requests are and who said so."""
    from pollcore.adapters.contract_files import is_shipped

    said = None if known is None else known.get(contract.digest)
    use = said.use if said is not None else None
    view = documents.marks(contract, said)
    if use is not None:
        view["first_use"] = use.value
    elif contract.asks_first_use:
        view["first_use"] = None if known is None else "undecided"
    else:
        view["first_use"] = "action" if contract.observation == "action" else "not_asked"
    view["shipped"] = is_shipped(contract.snapshot_text)
    view["seen"] = None if known is None else view["seen_at"] is not None
    return view


def provider(core: Core, name: str, known: Known | None = None) -> dict[str, Any]:
    """One contract under the settings of its instance. Raises NotFound, ContractError."""
    contract = core.contracts.find(name)
    view = {"name": name, **_document(contract), "marks": marks(contract, known)}
    return {**view, "text": contract.snapshot_text}


def _document(contract: Contract) -> dict[str, Any]:
    from pollcore.contract.digest import digest_of

    return documents.contract(contract, digest_of(contract.snapshot_text, {}))


def check_contract(text: str, filename: str) -> dict[str, Any]:
    """A contract's text: what it says, and what is doubtful in it. Raises ContractError with file, line and key."""
    from pollcore.contract import check, parse

    contract = parse(text, filename)
    found = check(contract)
    return {
        "file": filename,
        "findings": [words.sentence(f"{filename}:{'' if finding.line else ' '}{finding}") for finding in found],
        "found": [msgspec.structs.asdict(finding) for finding in found],
        "warnings": sum(finding.level == "warning" for finding in found),
        **_document(contract),
    }


def contract_schema() -> dict[str, Any]:
    """JSON Schema of contract files, for editors."""
    from pollcore.contract import json_schema

    return json_schema()


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
) -> dict[str, Any]:
    """How *answer* would be taken and read by a contract and decided, for a fresh operation just under way.

    Args:
        text: the contract's text when *name* is a file.
        job_id: None: `EXAMPLE_JOB`.
        step: which step of the chain *answer* belongs to; None: the status request. A child of `each` is the only one.
            `cancel`, where no step is called so, or `cancel.force`: it answers the documented cancel, or force-cancel,
            and nothing is decided.
        state: the job was seen in it before; None: it was never seen.
        others: so many other jobs were asked for in the same request (`[status.batch]`).

    Raises NotFound, ContractError; Refused: the contract has no such step, cancel or parameter.
    """
    from pollcore.contract import parse
    from pollcore.contract.requests import check_params

    contract = core.contracts.find(name) if text is None else parse(text, name)
    given = check_params(contract, dict(params), complete=False)
    now = core.clock.now()
    timed = msgspec.structs.replace(answer, sent_at=now.wall, answered_at=now.wall)
    if step in (CANCEL, FORCE_CANCEL) and all(one.name != step for one in contract.steps):
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
        read = reading.explain(contract, operation, taken, now, _asked(contract, operation), others)
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
    from pollcore.views import result_view

    seen = read.observation
    view = documents.observation(seen)
    if seen.result is not None:
        view["result"] = result_view(seen.result, reveal=False)
    return {
        "rule": read.rule,
        "read": [f"{path}: {value}" for path, value in read.read],
        "body_fault": read.body_fault,
        "observation": view,
    }


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
        raise Refused(f"{contract.name}: no step {step!r}{did_you_mean(step, known)}", code="usage")
    return Memory(step=step, values={EACH: EXAMPLE_CHILD, CHILDREN: [{"id": EXAMPLE_CHILD}]})


def _asked(contract: Contract, operation: Operation) -> str:
    """The URL that would have been asked: relative links of the answer resolve against it, as in the core."""
    from pollcore.contract import requests

    try:
        return requests.status_request(contract, operation, None).url
    except Refused:
        return contract.base_url or next(iter(contract.request_origins), "")
