"""What a stop is called and what joins it with others into one card.

Job: status and cause of every stop reason. Must not know: when a stop happens, what can be chosen then.
Source: spec E1, E10 and the end of group E.
"""

from __future__ import annotations

import hashlib
from typing import Final

from pollcore.facts import (
    DelaySource,
    Escalate,
    Operation,
    ResultPointer,
    Status,
    StopDetail,
    StopReason,
)

MAX_CAUSE_PART: Final = 120
"""Characters of one provider-given part of a cause; longer texts are told apart by a digest."""

STATUS_OF: Final[dict[StopReason, Status]] = {
    StopReason.JOB_FAILED: Status.FAILED,
    StopReason.JOB_CANCELLED: Status.CANCELLED,
    StopReason.JOB_EXPIRED: Status.EXPIRED,
    StopReason.DEADLINE_EXCEEDED: Status.ESCALATED,
    StopReason.GUIDANCE_BEYOND_DEADLINE: Status.ESCALATED,
    StopReason.REQUEST_BUDGET_EXHAUSTED: Status.ESCALATED,
    StopReason.RATE_LIMITED: Status.ESCALATED,
    StopReason.UNKNOWN_STATE: Status.ESCALATED,
    StopReason.NEEDS_HUMAN: Status.ESCALATED,
    StopReason.AUTHORIZATION_DENIED: Status.ESCALATED,
    StopReason.PROVIDER_FAILURE: Status.ESCALATED,
    StopReason.DELIVERY_AMBIGUOUS: Status.ESCALATED,
    StopReason.INTEGRATION_FAILURE: Status.ESCALATED,
    StopReason.USEFULNESS_ENDED: Status.ESCALATED,
    StopReason.CREDENTIAL_UNAVAILABLE: Status.ESCALATED,
    StopReason.APPROVAL_DENIED: Status.ESCALATED,
    StopReason.EXTENSION_REQUESTED: Status.ESCALATED,
    StopReason.CALL_APPROVAL: Status.AWAITING_APPROVAL,
    StopReason.SESSION_APPROVAL: Status.AWAITING_APPROVAL,
    StopReason.FIRST_USE: Status.AWAITING_APPROVAL,
}
"""The status that a record takes when it stops for a reason: the job's fate where it is known, else `escalated`.

`operator_request` and `mode_change` stop no operation and are not listed.
"""

MACHINE_WIDE: Final = frozenset({StopDetail.KEYRING_LOCKED, StopDetail.KEYRING_TIMEOUT, StopDetail.KEYRING_ABSENT})
"""What one credential's trouble says of all others."""
_LIMITS_PASSED: Final = frozenset(
    {StopReason.DEADLINE_EXCEEDED, StopReason.USEFULNESS_ENDED, StopReason.GUIDANCE_BEYOND_DEADLINE}
)


def cause_of(
    operation: Operation,
    reason: StopReason,
    detail: StopDetail | None = None,
    *,
    state: str | None = None,
    origin: str | None = None,
    shared: DelaySource | None = None,
) -> str:
    """E10: the text that operations with one common cause share, `unknown_state:acme:compiling`; stable, bounded.

    Stops that concern one job alone end in the operation's id.

    Args:
        state: The provider's state, raw.
        origin: `scheme://host:port` of the request; without it the origin of the stored address or the provider.
        shared: The wait for others that carried the operation into a limit, if it was one.
    """
    given = operation.submitted
    provider, credential = given.provider, operation.credential or "none"
    if reason in _LIMITS_PASSED:
        match shared:
            case DelaySource.ORIGIN_DOWN:
                return f"{shared.value}:{origin or _origin(operation)}"
            case DelaySource.SHARED_COOLDOWN:
                return f"{shared.value}:{provider}:{given.account}:{credential}"
            case DelaySource.PAUSED | DelaySource.CAPPED:
                return f"{shared.value}:{provider}"
    match reason:
        case StopReason.UNKNOWN_STATE | StopReason.NEEDS_HUMAN:
            return f"{reason.value}:{provider}:{_bounded(state)}"
        case StopReason.FIRST_USE:
            return f"{reason.value}:{operation.contract_digest}"
        case StopReason.PROVIDER_FAILURE:
            return f"origin_down:{origin or _origin(operation)}"
        case StopReason.DELIVERY_AMBIGUOUS:
            return f"{reason.value}:{origin or _origin(operation)}"
        case StopReason.AUTHORIZATION_DENIED:
            return f"{reason.value}:{credential}:{origin or _origin(operation)}"
        case StopReason.RATE_LIMITED:
            return f"{detail.value if detail else reason.value}:{provider}:{given.account}:{credential}"
        case StopReason.INTEGRATION_FAILURE:
            return f"{reason.value}:{provider}:{detail.value if detail else '-'}"
        case StopReason.CREDENTIAL_UNAVAILABLE if detail in MACHINE_WIDE:
            return f"{detail.value}"
        case StopReason.CREDENTIAL_UNAVAILABLE:
            return f"{detail.value if detail else reason.value}:{credential}"
        case _:
            return f"{reason.value}:{operation.operation_id}"


def stop(
    operation: Operation,
    reason: StopReason,
    detail: StopDetail | None = None,
    *,
    explanation: str | None = None,
    state: str | None = None,
    origin: str | None = None,
    shared: DelaySource | None = None,
    asks: bool = True,
    result: ResultPointer | None = None,
    notes: tuple[str, ...] = (),
) -> Escalate:
    """A stop with the status and the cause that belong to its reason.

    Raises:
        KeyError: *reason* stops no operation (`operator_request`, `mode_change`).
    """
    return Escalate(
        status=STATUS_OF[reason],
        reason=reason,
        detail=detail,
        explanation=explanation,
        cause=cause_of(operation, reason, detail, state=state, origin=origin, shared=shared),
        asks=asks,
        result=result,
        notes=notes,
    )


def _bounded(text: str | None) -> str:
    """A provider's text as part of a cause: told apart from every other, and never longer than the limit."""
    if text is None:
        return "-"
    if len(text) <= MAX_CAUSE_PART:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    return f"{text[:MAX_CAUSE_PART]}~{digest}"


def _origin(operation: Operation) -> str:
    """Scheme and host of the stored address, without user part, path and query; else the provider's name."""
    address = operation.memory.next_url or operation.submitted.status_url or operation.submitted.base_url
    if address is None or "://" not in address:
        return operation.submitted.provider
    scheme, _, rest = address.partition("://")
    authority = rest.replace("?", "/").replace("#", "/").partition("/")[0].rpartition("@")[2]
    return f"{scheme}://{_bounded(authority)}"
