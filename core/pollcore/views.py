"""The JSON shapes that the outside relies on (design.md "Fixed"), as plain dicts.

Job: records -> dicts with exactly those names, times as ISO 8601 Z. Must not know: the command line, storage, how text
is made safe for a terminal (a JSON encoder escapes control characters; people's text goes another way).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pollcore.facts import (
    EFFECT_TIMES,
    AuditEvent,
    Choice,
    Effect,
    Escalation,
    Instant,
    Operation,
    ResultPointer,
    iso,
    mask_url,
)

MAX_DEPTH: Final = 32
"""Of a result pointer's fields; anything deeper is shown as `...`."""


def _time(at: Instant | None) -> str | None:
    return None if at is None else iso(at)


def operation_view(
    operation: Operation,
    *,
    question: Escalation | None = None,
    choices: Sequence[Choice] = (),
    approval: dict[str, Any] | None = None,
    reveal: bool = False,
) -> dict[str, Any]:
    """`show --json`.

    Args:
        question: The open question, with its *choices*; None: no decision is wanted.
        approval: What the shell knows of an approval in force or waiting.
        reveal: The result pointer unmasked; the caller records the reveal (K4).
    """
    op, given = operation, operation.submitted
    return {
        "operation_id": op.operation_id,
        "provider": given.provider,
        "account": given.account,
        "provider_job_id": given.job_id,
        "label": given.label,
        "status": op.status.value,
        "last_known_state": op.last_known_state,
        "last_http": None
        if op.last_http is None
        else {"code": op.last_http.code, "at": iso(op.last_http.answered_at), "request_id": op.last_http.request_id},
        "started_at": iso(op.started_at),
        "deadline_at": iso(op.deadline_at),
        "useful_until": _time(op.useful_until),
        "provider_expires_at": _time(op.provider_expires_at),
        "max_status_requests": op.max_status_requests,
        "status_requests_used": op.status_requests_used,
        "max_transport_failures": op.max_transport_failures,
        "transport_failures_used": op.transport_failures_used,
        "max_rate_limited": op.max_rate_limited,
        "rate_limited_used": op.rate_limited_used,
        "completed_polls": op.completed_polls,
        "request_fingerprint": given.request_fingerprint,
        "expected_states": list(given.expected_states),
        "caller": given.caller,
        "next_poll_at": _time(op.next_poll_at),
        "delay_source": op.delay_source.value if op.delay_source and op.next_poll_at is not None else None,
        "hold_until": _time(op.hold_until),
        "stop_reason": op.stop_reason.value if op.stop_reason else None,
        "stop_detail": op.stop_detail.value if op.stop_detail else None,
        "result": None if op.result is None else result_view(op.result, reveal=reveal),
        "escalation": None if question is None else question_view(question, choices),
        "approval": approval,
        "extensions": op.extensions_used,
        "contract_digest": op.contract_digest,
        "credential": op.credential,
        "unknown_actions": list(op.memory.unknown_actions),
        "resubmit_of": given.resubmit_of,
        "version": op.version,
    }


def result_view(result: ResultPointer, *, reveal: bool) -> dict[str, Any]:
    """The result pointer; links without their query unless *reveal* (they may be pre-signed, K4)."""
    return {
        "fields": dict(result.fields) if reveal else _masked(result.fields, MAX_DEPTH),
        "permits": result.permits,
        "validated": result.validated,
        "qualifiers": list(result.qualifiers),
        "masked": not reveal,
    }


def _masked(value: Any, depth: int) -> Any:
    if depth == 0:
        return "..."
    if isinstance(value, str):
        return mask_url(value) if "?" in value or "://" in value else value
    if isinstance(value, dict):
        return {key: _masked(inner, depth - 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(inner, depth - 1) for inner in value]
    return value


def question_view(question: Escalation, choices: Sequence[Choice] = ()) -> dict[str, Any]:
    """One question, open or decided; choices belong to an open one only."""
    view: dict[str, Any] = {
        "id": question.escalation_id,
        "operation_id": question.operation_id,
        "cause": question.cause,
        "reason": question.reason.value,
        "detail": question.detail,
        "asked_at": iso(question.asked_at),
        "asked_by": question.asked_by,
        "because": question.because,
        "expires_at": _time(question.expires_at),
        "left_ms": question.left_ms,
        "seen_at": _time(question.seen_at),
        "choices": [choice_view(choice) for choice in choices],
    }
    if question.minutes or question.checks:
        view["asked_for"] = {"minutes": question.minutes, "checks": question.checks}
    if question.decided_at is not None:
        view |= {
            "decided_at": iso(question.decided_at),
            "decision": question.decision,
            "operator": question.operator,
            "decision_text": question.decision_text,
        }
    return view


def choice_view(choice: Choice) -> dict[str, Any]:
    """One choice with exactly what it grants."""
    return {
        "kind": choice.kind.value,
        "key": choice.key,
        "label": choice.label,
        "minutes": choice.minutes,
        "checks": choice.checks,
        "transport_failures": choice.transport_failures,
        "rate_limited": choice.rate_limited,
        "credential": choice.credential,
        "contract_digest": choice.contract_digest,
        "step": choice.step,
        "call": choice.call,
        "grants": choice.grants,
        "effects": [_effect_view(effect) for effect in choice.effects],
        "leads_to": choice.leads_to,
        "warnings": list(choice.warnings),
        "unavailable": choice.unavailable,
    }


def _effect_view(effect: Effect) -> dict[str, Any]:
    def side(value: int | str | None) -> int | str | None:
        return iso(Instant(value)) if effect.what in EFFECT_TIMES and isinstance(value, int) else value

    return {"what": effect.what, "before": side(effect.before), "after": side(effect.after)}


def event_view(event: AuditEvent) -> dict[str, Any]:
    """One event of `audit show --json`; every name is there, null where it says nothing."""
    return {
        "at": iso(event.at),
        "event": event.event.value,
        "operation_id": event.operation_id,
        "state_before": event.state_before,
        "state": event.state,
        "http": event.http,
        "fault": event.fault,
        "request_id": event.request_id,
        "planned_at": _time(event.planned_at),
        "sent_at": _time(event.sent_at),
        "delay_source": event.delay_source.value if event.delay_source else None,
        "next_poll_at": _time(event.next_poll_at),
        "retry_after": event.retry_after,
        "requests_used": event.requests_used,
        "max_requests": event.max_requests,
        "deadline_at": _time(event.deadline_at),
        "decision": event.decision,
        "reason": event.reason,
        "detail": event.detail,
        "operator": event.operator,
        "caller": event.caller,
        "text": event.text,
        "notes": list(event.notes),
    }
