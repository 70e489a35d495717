"""Documents of `--json` that the core has no view for: contracts, explained answers, credentials, approvals.

Job: records -> plain dicts, times as ISO 8601 Z. Must not know: the store, output, how text is made safe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from pollcore.facts import (
    HOUR,
    BootMs,
    CallGrant,
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


def contract(read: Any, text_digest: str) -> dict[str, Any]:
    """What an operator wants to know of a contract, without its rules.

    `digest` is that of operations and cards: text and settings of the instance; `text_digest` is the text's alone, the
    same under whatever instance.
    """
    policy = read.policy
    return {
        "contract": read.name,
        "title": read.title,
        "digest": read.digest,
        "text_digest": text_digest,
        "origins": list(read.origins),
        "base_url": read.base_url,
        "allow_http": read.allow_http,
        "account": read.account,
        "credential": {
            "kind": read.credential_kind,
            "names": list(read.credential_names),
            "optional": read.credential_optional,
            "least_mode": policy.least_mode,
            "reveals": read.reveals,
            "session_minutes": policy.session_minutes,
            "session_calls": policy.session_calls,
        },
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
        "force_cancel": policy.force_cancel is not None,
        "resubmit": policy.can_resubmit,
        "batch": _batch(read),
        "final_states": list(read.final_states),
    }


def marks(read: Any, known: Any) -> dict[str, Any]:
    """What people did with a contract; *known*: the store's record of its digest, None: there is none."""
    return {
        "tested_live": read.tested_live if read.tried else None,
        "seen_at": None if known is None or known.seen_at is None else iso(known.seen_at),
        "seen_by": None if known is None else known.seen_by,
        "decided_at": None if known is None or known.decided_at is None else iso(known.decided_at),
        "decided_by": None if known is None else known.decided_by,
    }


def _batch(read: Any) -> dict[str, Any] | None:
    """R39: how many operations one status request asks for, and how long one waits for company; None: one."""
    plan = read.steps[0].batch
    return None if plan is None else {"max": plan.most, "gather_ms": plan.gather}


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


_APPROVALS: Final = (StopReason.CALL_APPROVAL, StopReason.SESSION_APPROVAL)


def approval(
    question: Escalation | None,
    digest: str | None = None,
    granted: CallGrant | None = None,
    sessions: Sequence[Any] = (),
) -> dict[str, Any] | None:
    """What waits for an operator's approval, and what is approved and can still be used; None: nothing of it.

    Args:
        digest: Of the exact request that waits, or of the session.
        granted: An approved call that was not used yet.
        sessions: Live ones of the operation's credential.
    """
    wanted = question if question is not None and question.reason in _APPROVALS else None
    if wanted is None and granted is None and not sessions:
        return None
    return {
        "wanted": None if wanted is None else wanted.reason.value,
        "purpose": None if wanted is None else wanted.detail or "status",
        "asked_at": None if wanted is None else iso(wanted.asked_at),
        "seen_at": None if wanted is None else _at(wanted.seen_at),
        "expires_at": None if wanted is None else _at(wanted.expires_at),
        "left_ms": None if wanted is None else wanted.left_ms,
        "request_digest": None if wanted is None else digest,
        "granted": None if granted is None else _call(granted),
        "sessions": [session(one) for one in sessions],
    }


def _at(at: Instant | None) -> str | None:
    return None if at is None else iso(at)


def _call(granted: CallGrant) -> dict[str, Any]:
    return {
        "grant_id": granted.grant_id,
        "purpose": granted.purpose,
        "number": granted.number,
        "request_digest": granted.digest,
        "granted_at": iso(granted.granted_at),
        "expires_at": iso(granted.expires_at),
    }


def session(live: Any) -> dict[str, Any]:
    """A session of a credential that can still be used (G6)."""
    return {
        "session_id": live.session_id,
        "credential": live.credential,
        "run": live.owner,
        "started_at": iso(live.started_at),
        "until": iso(live.until),
        "calls": live.calls,
        "calls_used": live.calls_used,
        "calls_left": live.calls_left,
        "granted_by": live.granted_by,
    }


def credential_question(question: Escalation) -> dict[str, Any]:
    """A question that belongs to a credential, as it was asked; `escalations --json` adds choices and card."""
    return {
        "id": question.escalation_id,
        "reason": question.reason.value,
        "credential": question.cause.partition(":")[2],
        "detail": question.detail,
        "asked_at": iso(question.asked_at),
        "asked_by": question.asked_by,
        "because": question.because,
    }


def credential(info: Any, sessions: Sequence[Any] = ()) -> dict[str, Any]:
    """What may be known of a stored credential, with its live sessions; never a secret."""
    return {
        "name": info.name,
        "kind": info.kind,
        "names": list(info.names),
        "origins": list(info.origins),
        "mode": info.mode.value,
        "created_at": iso(info.created_at),
        "last_used_at": None if info.last_used_at is None else iso(info.last_used_at),
        "sessions": [session(one) for one in sessions if one.credential == info.name],
    }


def report(figures: Any) -> dict[str, Any]:
    """A5's figures; spans are named in ms, points in time are ISO."""
    view: dict[str, Any] = {}
    for name, value in msgspec.to_builtins(figures).items():
        if name in ("extensions", "contradictions", "by_time"):
            view[name] = [{**item, "at": iso(Instant(item["at"]))} for item in value]
        elif name in ("by_provider", "by_reason"):
            view[name] = [{**item, "times": _times(item["times"])} for item in value]
        elif name.endswith("time_to_decision") or name in ("oldest_open_question", "bucket"):
            view[f"{name}_ms"] = value
        else:
            view[name] = value
    return view


def _times(found: dict[str, Any]) -> dict[str, Any]:
    return {name if name == "decisions" else f"{name}_ms": value for name, value in found.items()}


def request_fact(fact: Any) -> dict[str, Any]:
    """One request of `report OP --json`."""
    return {
        "n": fact.n,
        "sent_at": iso(fact.sent_at),
        "planned_at": None if fact.planned_at is None else iso(fact.planned_at),
        "permitted": fact.permitted,
        "wrong": list(fact.wrong),
        "guided_until": None if fact.guided_until is None else iso(fact.guided_until),
        "obeyed": fact.obeyed,
        "answer": fact.answer,
        "decided": fact.decided,
    }
