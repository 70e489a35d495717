"""What a grant is bound to, as bytes.

Job: the canonical form of what was shown and its SHA-256. Must not know: who pressed which key (the grant says that).
Source: spec G4: operation, its version, question, choices with exact limits or the exact request, contract, credential.
Outside: running clocks; in a wait that goes on also used counters, last state and next poll.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from pollcore.card.drawing import Card
from pollcore.escalation.approvals import request_facts
from pollcore.facts import (
    EFFECT_TIMES,
    LAST_CHECK,
    LEAVE_THE_WAIT_GOING,
    MINUTE,
    Choice,
    Escalation,
    Operation,
    Request,
    stop_in_force,
)

_ENCODER = msgspec.json.Encoder(order="deterministic")


def digest(shown: Card) -> str:
    """SHA-256 of `bound(shown)`, lower-case hex."""
    return hashlib.sha256(bound(shown)).hexdigest()


def digest_of(op: Operation, question: Escalation, choices: Sequence[Choice]) -> str:
    """The digest that the card of these would have, without drawing it: for a card without a request that waits."""
    return hashlib.sha256(_bound(op, question, choices, None)).hexdigest()


def bound(shown: Card) -> bytes:
    """The canonical bytes: JSON, keys sorted, times in ms, nothing that a clock alone changes."""
    return _bound(shown.operation, shown.question, shown.choices, shown.request)


def _bound(op: Operation | None, question: Escalation, choices: Sequence[Choice], request: Request | None) -> bytes:
    goes_on = question.reason in LEAVE_THE_WAIT_GOING and (op is None or stop_in_force(op) is None)
    return _ENCODER.encode(
        {
            "question": question.escalation_id,
            "reason": question.reason.value,
            "detail": question.detail,
            "asked": [question.minutes, question.checks],
            "operation": _operation(op) if op is not None else None,
            "facts": _facts(op) if op is not None and not goes_on else None,
            "choices": [_choice(choice, op) for choice in choices],
            "request": request_facts(request) if request is not None else None,
        }
    )


def _operation(op: Operation) -> dict[str, Any]:
    return {
        "id": op.operation_id,
        "version": op.version,
        "status": op.status.value,
        "job": op.submitted.job_id,
        "account": op.submitted.account,
        "contract": op.contract_digest,
        "credential": op.credential,
        "deadline": op.deadline_at,
        "useful_until": op.useful_until,
        "limits": [op.max_status_requests, op.max_transport_failures, op.max_rate_limited],
    }


def _facts(op: Operation) -> dict[str, Any]:
    """Of a stop: nothing polls, so what was used and seen stands still and belongs to what was shown."""
    return {
        "used": [op.status_requests_used, op.transport_failures_used, op.rate_limited_used],
        "state": op.last_known_state,
        "http": op.last_http.code if op.last_http else None,
    }


def _choice(choice: Choice, op: Operation | None) -> dict[str, Any]:
    """Exact limits. A time that is counted from now runs with the clock: `from_now` says so instead."""
    firm = op is not None and any(
        effect.what == "deadline" and effect.after == op.deadline_at + choice.minutes * MINUTE
        for effect in choice.effects
    )
    running = {LAST_CHECK} if firm else EFFECT_TIMES
    return {
        "key": choice.key,
        "kind": choice.kind.value,
        "label": choice.label,
        "adds": [choice.minutes, choice.checks, choice.transport_failures, choice.rate_limited],
        "credential": choice.credential,
        **({"step": choice.step} if choice.step is not None else {}),
        "contract": choice.contract_digest,
        "call": choice.call,
        "available": choice.unavailable is None,
        "from_now": bool(choice.minutes) and not firm,
        "effects": [
            [effect.what, effect.before, effect.after] for effect in choice.effects if effect.what not in running
        ],
        "moves": sorted(
            effect.what for effect in choice.effects if effect.what in running and effect.what != LAST_CHECK
        ),
    }
