"""Contract and operation -> the exact request, but for the credential.

Job: render, check the origin, say which credential slot applies. Must not know: secrets, sockets, answers.
Source: spec S7, H2, K3, G4; contract needs R16-R23, R32, R35, R36.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from pollcore.contract.model import Contract
from pollcore.contract.near import did_you_mean
from pollcore.contract.origins import covers, normalise_origin
from pollcore.contract.parts import CancelPlan, RequestPlan
from pollcore.contract.templates import Fill, header_value, rendered
from pollcore.facts import FORCE, Operation, Refused, Request, Slot, Submitted

_NONE: Final[dict[str, Any]] = {}
EACH: Final = "each"
"""Where the memory keeps which child is asked next (R21)."""
CHILDREN: Final = "children"
"""Where the memory keeps what is known of each child."""

__all__ = [
    "cancel_plan",
    "cancel_request",
    "check_answered_params",
    "check_params",
    "console_url",
    "fingerprint",
    "normalise_origin",
    "origin_of",
    "result_request",
    "status_request",
    "submit_request",
]

origin_of = normalise_origin
"""`scheme://host:port` of a request's URL. Raises Refused, code `bad_url`."""


def status_request(contract: Contract, operation: Operation, credential: str | None) -> Request:
    """The next status request of *operation* (its step of the chain, its next URL).

    Raises:
        Refused: `address_missing`, `bad_parameter`, `bad_url`, or `foreign_origin`.
    """
    step = _step(contract, operation.memory.step)
    return _render(contract, step.request, operation, credential, next_url=operation.memory.next_url)


def cancel_request(
    contract: Contract, operation: Operation, credential: str | None, step: str | None = None
) -> Request:
    """The documented cancel (E5); with *step* `force` the stronger one (R35).

    Raises:
        Refused: `not_documented` where the contract has none.
    """
    found = cancel_plan(contract, step)
    return _render(contract, found.by_step.get(operation.memory.step or "", found.request), operation, credential)


def cancel_plan(contract: Contract, step: str | None = None) -> CancelPlan:
    """`[cancel]`, or with *step* `force` `[cancel.force]`. Raises Refused, `not_documented`: there is none."""
    found = contract.cancel
    if found is None:
        raise Refused(f"{contract.name}: the contract documents no cancel", code="not_documented")
    if step != FORCE:
        return found
    if found.force is None:
        raise Refused(
            f"{contract.name}: the contract documents no force-cancel ([cancel.force])", code="not_documented"
        )
    return found.force


def result_request(contract: Contract, operation: Operation, credential: str | None = None) -> Request:
    """The request that the success permits (R32), by default with the operation's own credential.

    Raises:
        Refused: `not_documented` where the contract has none.
    """
    if contract.result is None:
        raise Refused(f"{contract.name}: the contract documents no request for the result", code="not_documented")
    return _render(contract, contract.result, operation, credential or operation.credential)


def submit_request(contract: Contract, submitted: Submitted, key: str, credential: str | None = None) -> Request:
    """The original request again, under idempotency *key* (E6).

    Raises:
        Refused: `not_documented` without template or key; `bad_parameter` for a key that is too long.
    """
    submission = contract.submission
    if submission is None or submission.request is None or not submission.has_key:
        raise Refused(f"{contract.name}: the contract has no submission template with a key", code="not_documented")
    if submission.key_max_length is not None and len(key) > submission.key_max_length:
        raise Refused(f"the idempotency key is longer than {submission.key_max_length}", code="bad_parameter")
    fill = _fill(contract, submitted, {}, None, key)
    plan = submission.request
    url = _with_query(_url(plan, fill, submitted), plan, fill)
    if submission.key_query is not None:
        url += f"{'&' if '?' in url else '?'}{quote(submission.key_query, safe='')}={quote(key, safe='')}"
    request = _request(contract, plan, url, fill, credential)
    if submission.key_header is None:
        return request
    header = (submission.key_header, header_value(submission.key_header, key))
    return msgspec.structs.replace(request, headers=(*request.headers, header))


def fingerprint(contract: Contract, submitted: Submitted) -> str | None:
    """S7: SHA-256 of method, URL and body of the submission template, JSON keys sorted, without the idempotency key.

    None: the contract has no template, or a parameter that it needs was not handed over.
    """
    submission = contract.submission
    if submission is None or submission.request is None:
        return None
    plan = submission.request
    fill = _fill(contract, submitted, {}, None, "-")
    try:
        url = _with_query(_url(plan, fill, submitted), _without_key(plan), fill)
        body = plan.body.canonical(fill) if plan.body is not None else _form(_without_key(plan), fill) or b""
    except Refused:
        return None
    return hashlib.sha256(f"{plan.method}\n{url}\n".encode() + body).hexdigest()


def _without_key(plan: RequestPlan) -> RequestPlan:
    def kept(pairs: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
        return tuple(p for p in pairs if not any(getattr(part, "shown", "") == "key" for part in p[1].parts))

    return msgspec.structs.replace(plan, query=kept(plan.query), form=kept(plan.form))


def check_params(contract: Contract, params: dict[str, Any], *, complete: bool = True) -> dict[str, Any]:
    """The parameters of a submission, as the contract declares them, texts kept as texts.

    Args:
        complete: False: a required one may still come from the submission's answer.

    Raises:
        Refused: `bad_parameter` (unknown, not of the pattern), `address_missing` (a required one is absent).
    """
    known = {param.name: param for param in contract.params}
    for name, value in params.items():
        if name not in known:
            raise Refused(
                f"{contract.name}: unknown parameter {name!r}{did_you_mean(name, known)}", code="bad_parameter"
            )
        pattern = known[name].pattern
        if pattern is not None and not (isinstance(value, str) and pattern.matches(value)):
            raise Refused(f"{contract.name}: parameter {name} does not match {pattern.source}", code="bad_parameter")
    for name, param in known.items():
        if complete and param.required and params.get(name) in (None, ""):
            raise _param_missing(contract, name)
    return params


def check_answered_params(contract: Contract, params: dict[str, Any]) -> None:
    """The parameters of a submission after its answer gave some: nothing required is missing, patterns hold for what
    came from outside as well (a number by its text). Names that no parameter has are none of the template's.

    Raises:
        Refused: as `check_params`.
    """
    for param in contract.params:
        value = params.get(param.name)
        if value in (None, ""):
            if param.required:
                raise _param_missing(contract, param.name)
        elif param.pattern is not None and not param.pattern.matches(str(value)):
            why = f"parameter {param.name}, as the answer gives it, does not match {param.pattern.source}"
            raise Refused(f"{contract.name}: {why}", code="bad_parameter")


def _param_missing(contract: Contract, name: str) -> Refused:
    return Refused(f"{contract.name}: parameter {name} is missing: give --param {name}=...", code="address_missing")


def console_url(contract: Contract, submitted: Submitted) -> str | None:
    """E9: the provider's own page for this job, for people; None: the contract names none, or a value is missing."""
    if contract.console_url is None:
        return None
    try:
        return contract.console_url.render(_fill(contract, submitted, {}, None, None))
    except Refused:
        return None


def _step(contract: Contract, name: str | None) -> Any:
    if name is not None:
        for step in contract.steps:
            if step.name == name:
                return step
    return contract.steps[0]


def _render(
    contract: Contract,
    plan: RequestPlan,
    operation: Operation,
    credential: str | None,
    next_url: str | None = None,
) -> Request:
    fill = filled(contract, operation)
    if next_url is not None:
        # the provider's own next address already carries its query (R18)
        return _request(contract, plan, next_url, fill, credential)
    return render_plan(contract, plan, operation, credential, fill)


def render_plan(
    contract: Contract, plan: RequestPlan, operation: Operation, credential: str | None, fill: Fill
) -> Request:
    """*plan* with the values of *fill*. Raises Refused, as `status_request`."""
    url = _url(plan, fill, operation.submitted)
    return _request(contract, plan, _with_query(url, plan, fill) if plan.query else url, fill, credential)


def filled(contract: Contract, operation: Operation) -> Fill:
    """What the placeholders of a request of *operation* stand for."""
    submitted = operation.submitted
    result = operation.result.fields if operation.result is not None else _NONE
    return _fill(contract, submitted, operation.memory.values, result, submitted.idempotency_key)


def _fill(
    contract: Contract, submitted: Submitted, seen: dict[str, Any], result: dict[str, Any] | None, key: str | None
) -> Fill:
    single = {
        "job_id": submitted.job_id,
        "account": submitted.account,
        "base_url": contract.base_url or submitted.base_url,
        "status_url": submitted.status_url,
        "key": key,
        "each": seen.get(EACH),
    }
    params = submitted.params
    if contract.params:
        params = {p.name: params.get(p.name, p.default) for p in contract.params}
    return Fill(single, {"params": params, "seen": seen, "result": result or _NONE, "urls": contract.urls})


def _url(plan: RequestPlan, fill: Fill, submitted: Submitted) -> str:
    given = submitted.status_url
    if plan.use_provider_url != "never" and given is not None:
        return given
    if plan.use_provider_url == "require" or plan.url is None:
        raise Refused(
            f"{plan.key}: the contract asks the address that the provider gave, and none was handed over: "
            "give --status-url, or --from-response with the submission's answer",
            code="address_missing",
        )
    return plan.url.render(fill)


def _with_query(url: str, plan: RequestPlan, fill: Fill) -> str:
    if not plan.query:
        return url
    pairs = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in rendered(plan.query, fill))
    if not pairs:
        return url
    return f"{url}{'&' if '?' in url else '?'}{pairs}"


def _form(plan: RequestPlan, fill: Fill) -> bytes | None:
    return urlencode(list(rendered(plan.form, fill))).encode() if plan.form else None


def _request(contract: Contract, plan: RequestPlan, url: str, fill: Fill, credential: str | None) -> Request:
    origin = normalise_origin(url)
    origins = contract.request_origins
    if origin not in origins:
        if not any(covers(allowed, origin) for allowed in contract.origins):
            raise Refused(
                f"{plan.key}: {origin} is none of the contract's origins ({', '.join(contract.origins) or 'none'}); "
                "nothing is sent there",
                code="foreign_origin",
            )
        origins = (*origins, origin)
    headers = plan.fixed_headers
    if headers is None:
        headers = tuple((name, header_value(name, value)) for name, value in rendered(plan.headers, fill))
    return Request(
        method=plan.method,
        url=url,
        headers=headers,
        body=plan.body.render(fill) if plan.body is not None else _form(plan, fill),
        slot=_slot(contract, plan, origin, credential, fill),
        origins=origins,
        allow_http=contract.allow_http,
        total_ms=plan.total_ms,
    )


def _slot(contract: Contract, plan: RequestPlan, origin: str, credential: str | None, fill: Fill) -> Slot | None:
    if credential is None or contract.credential_kind == "none" or not plan.credential:
        return None
    if contract.bare_origins and any(covers(bare, origin) for bare in contract.bare_origins):
        return None
    names = contract.credential_names
    if contract.credential_kind == "sigv4":
        # the second name is the parameter that tells the region
        names = (names[0], str(fill.get("params", names[1])))
    return Slot(credential, contract.credential_kind, names)
