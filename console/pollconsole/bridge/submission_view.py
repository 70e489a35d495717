"""A saved answer to a submission: what is read of it, and what `submit --from-response` would store.

Job: (contract, answer) -> document. Must not know: output, files, the store; it sends and stores nothing.
Source: spec H1, R16 of the contract needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from pollconsole import documents
from pollconsole.bridge import saved
from pollcore.facts import Answer, Fault, Moment, Operation, Refused, Status, Submitted, iso

if TYPE_CHECKING:
    from pollcore.contract import Contract
    from pollcore.reading import Handover


def submission_view(
    contract: Contract, answer: Answer, now: Moment, job_id: str | None, params: Mapping[str, Any], url: str | None
) -> tuple[dict[str, Any], Operation | None, Handover | None]:
    """`read`, `fault` and `submission` of the document; the record that would be begun; what the answer said.

    Args:
        job_id: as for `submit`: None, or the one that the answer must give.
        url: what the submission was sent to; None: the contract's base URL.
    """
    from pollcore import reading

    plan = contract.submission.request if contract.submission is not None else None
    method = plan.method if plan is not None else "POST"
    taken = saved.received(method, answer, now.wall)
    if isinstance(taken, Fault):
        fault = saved.fault_view(taken)
        return {"read": [], "fault": fault, "submission": _refused("fault", taken.text or "")}, None, None
    given = Submitted(
        provider=contract.name, account=contract.account or "-", job_id=job_id or "", base_url=contract.base_url,
        params=dict(params), expected_states=contract.final_states,
    )  # fmt: skip
    handover, read = reading.explain_response(contract, given, taken, url or contract.base_url or "")
    view = {"read": [f"{path}: {value}" for path, value in read], "fault": None}
    try:
        if isinstance(handover, Refused):
            raise handover
        operation = _begun(contract, given, handover, now)
    except Refused as error:
        return {**view, "submission": _refused(error.code, str(error))}, None, None
    return {**view, "submission": _accepted(contract, operation, handover)}, operation, handover


def _begun(contract: Contract, given: Submitted, handover: Handover, now: Moment) -> Operation:
    """The record that `submit` would begin with the contract's default limits. Raises Refused as `submit` does."""
    from pollcore.actions import given as checks
    from pollcore.actions.submit import given_by
    from pollcore.contract import requests

    known = given_by(given, handover)
    requests.check_answered_params(contract, known.params)
    checks.check_job_id(known.job_id)
    example = documents.example_operation(contract, now, known.job_id, {})
    return msgspec.structs.replace(
        example,
        submitted=known,
        status_requests_used=0,
        started_at=handover.started_at,
        last_known_state=handover.state,
    )


def _accepted(contract: Contract, operation: Operation, handover: Handover) -> dict[str, Any]:
    from pollcore.actions import masked

    given = operation.submitted
    return {
        "accepted": True,
        "job_id": given.job_id,
        "status_url": masked(given.status_url),
        "status_url_is": handover.status_url_is if handover.status_url is not None else None,
        "params": masked(dict(given.params)),
        "started_at": iso(handover.started_at),
        "last_known_state": handover.state,
        "status": Status.WAITING.value,
        **_first(contract, operation),
    }


def _first(contract: Contract, operation: Operation) -> dict[str, Any]:
    """Where the first status request would go, its query masked; or why it could go nowhere."""
    from pollcore.contract import requests
    from pollcore.facts import mask_url

    try:
        request = requests.status_request(contract, operation, None)
    except Refused as error:
        return {"first_request": None, "why": str(error)}
    return {"first_request": f"{request.method} {mask_url(request.url)}", "why": None}


def _refused(code: str, why: str) -> dict[str, Any]:
    return {"accepted": False, "code": code, "why": why}
