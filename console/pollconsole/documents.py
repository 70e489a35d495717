"""Documents of `--json` that the core has no view for: contracts, explained answers, credentials, approvals.

Job: records -> plain dicts, times as ISO 8601 Z. Must not know: the store, output, how text is made safe.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pollcore.facts import (
    HOUR,
    BootMs,
    Decision,
    Escalate,
    Escalation,
    Instant,
    Moment,
    Observation,
    Operation,
    Status,
    StopReason,
    Submitted,
    Succeed,
    Wait,
    iso,
)


def contract(read: Any) -> dict[str, Any]:
    """What an operator wants to know of a contract, without its rules."""
    policy = read.policy
    return {
        "contract": read.name,
        "title": read.title,
        "digest": read.digest,
        "origins": list(read.origins),
        "base_url": read.base_url,
        "allow_http": read.allow_http,
        "account": read.account,
        "credential": {"kind": read.credential_kind, "names": list(read.credential_names)},
        "params": [{"name": p.name, "required": p.required, "about": p.about} for p in read.params],
        "observation": read.observation,
        "evidence": read.evidence,
        "sources": list(read.sources),
        "deadline_basis": read.deadline_basis,
        "retention_ms": policy.retention,
        "limits_default": _limits(policy.default),
        "limits_max": _limits(policy.ceiling),
        "extend": [size.label for size in policy.extend],
        "max_extensions": policy.max_extensions,
        "cancel": policy.cancel is not None,
        "resubmit": policy.can_resubmit,
        "final_states": list(read.final_states),
    }


def _limits(limits: Any) -> dict[str, Any]:
    """Four limits; the deadline is a span, which its name says."""
    view: dict[str, Any] = msgspec.to_builtins(limits)
    return {"deadline_ms": view.pop("deadline"), **view}


def example_operation(contract: Any, now: Moment, job_id: str, params: Mapping[str, str]) -> Operation:
    """An operation in the middle of the contract's default limits: one request sent, nothing seen before."""
    limits = contract.policy.default
    span = limits.deadline or HOUR
    return Operation(
        operation_id="op-example",
        submitted=Submitted(
            provider=contract.name, account=contract.account or "-", job_id=job_id, base_url=contract.base_url,
            params=dict(params),
        ),
        status=Status.WAITING,
        contract_digest=contract.digest,
        started_at=now.wall,
        submitted_at=now.wall,
        boot_id=now.boot_id,
        deadline_at=Instant(now.wall + span),
        deadline_boot=BootMs(now.boot + span),
        max_status_requests=limits.max_status_requests or 10,
        status_requests_used=1,
        max_transport_failures=limits.max_transport_failures or 3,
        max_rate_limited=limits.max_rate_limited or 3,
    )  # fmt: skip


def observation(seen: Observation) -> dict[str, Any]:
    view: dict[str, Any] = {
        "verdict": seen.verdict.value,
        "state": seen.state,
        "http": seen.http.code,
        "detail": None if seen.detail is None else seen.detail.value,
        "explanation": seen.explanation,
        "near_match": seen.near_match,
        "guidance": None if seen.guidance is None else f"{seen.guidance.name}: {seen.guidance.delay_ms} ms",
        "refused_hints": [f"{fault.name}: {fault.why}" for fault in seen.hint_faults],
        "provider_error": seen.provider_error,
        "progress": seen.progress,
        "provider_expires_at": None if seen.provider_expires_at is None else iso(seen.provider_expires_at),
        "request_id": seen.http.request_id,
        "notes": list(seen.notes),
    }
    return view


def decision(made: Decision, now: Instant) -> dict[str, Any]:
    match made:
        case Wait():
            return {
                "decision": "wait", "source": made.source.value, "delay_ms": made.delay_ms,
                "next_poll_at": iso(made.next_poll_at), "from_now_ms": made.next_poll_at - now,
                "notes": list(made.notes),
            }  # fmt: skip
        case Escalate():
            return {
                "decision": "stop", "status": made.status.value, "reason": made.reason.value,
                "detail": None if made.detail is None else made.detail.value,
                "explanation": made.explanation, "notes": list(made.notes),
            }  # fmt: skip
        case Succeed():
            return {"decision": "succeed", "permits": made.result.permits, "notes": list(made.notes)}


SEALED: Final = "sealed:unreadable"
"""The field that the store puts in place of a result that it cannot open."""


def opened(view: dict[str, Any]) -> dict[str, Any]:
    """An operation's document where a result that could not be opened is no field: `sealed` true, no fields."""
    result = view.get("result")
    if result is not None and SEALED in result["fields"]:
        return view | {"result": {**result, "fields": {}, "sealed": True}}
    return view


def approval(question: Escalation | None) -> dict[str, Any] | None:
    """What waits for an operator's approval; None: nothing does."""
    if question is None or question.reason not in (StopReason.CALL_APPROVAL, StopReason.SESSION_APPROVAL):
        return None
    expires = None if question.expires_at is None else iso(question.expires_at)
    return {"wanted": question.reason.value, "asked_at": iso(question.asked_at), "expires_at": expires}


def credential(info: Any) -> dict[str, Any]:
    """What may be known of a stored credential; never a secret."""
    return {
        "name": info.name,
        "kind": info.kind,
        "names": list(info.names),
        "origins": list(info.origins),
        "mode": info.mode.value,
        "created_at": iso(info.created_at),
        "last_used_at": None if info.last_used_at is None else iso(info.last_used_at),
    }


def report(figures: Any) -> dict[str, Any]:
    """A5's figures; spans are named in ms, points in time are ISO."""
    view: dict[str, Any] = {}
    for name, value in msgspec.to_builtins(figures).items():
        if name in ("extensions", "contradictions"):
            view[name] = [{**item, "at": iso(Instant(item["at"]))} for item in value]
        elif name.endswith("time_to_decision") or name == "oldest_open_question":
            view[f"{name}_ms"] = value
        else:
            view[name] = value
    return view
