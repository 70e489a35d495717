"""adopt_contract: what the stored last answer says under the new contract.

Job: Observation -> where the operation goes, without a request and with unchanged limits. Must not know: contracts,
envelopes, how often a live answer would be confirmed.
Source: spec, paragraph below the table of group E; S8; end of group E (status names the job's fate).
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore.facts import Observation, Operation, ResultPointer, Status, StopDetail, StopReason, Verdict

GOES_ON: Final = frozenset({Verdict.WAITING, Verdict.TRANSPORT_FAILURE, Verdict.RATE_LIMITED})
"""The stored answer stops nothing any more; what it spent stays spent."""

_ENDS: Final = {
    Verdict.FAILED: (Status.FAILED, StopReason.JOB_FAILED),
    Verdict.CANCELLED: (Status.CANCELLED, StopReason.JOB_CANCELLED),
    Verdict.EXPIRED: (Status.EXPIRED, StopReason.JOB_EXPIRED),
}
_STOPS: Final = {
    Verdict.UNKNOWN: StopReason.UNKNOWN_STATE,
    Verdict.NEEDS_HUMAN: StopReason.NEEDS_HUMAN,
    Verdict.DENIED: StopReason.AUTHORIZATION_DENIED,
    Verdict.QUOTA_EXHAUSTED: StopReason.RATE_LIMITED,
    Verdict.INTEGRATION: StopReason.INTEGRATION_FAILURE,
}


class Reread(msgspec.Struct, frozen=True):
    """Where it goes. *reason* None: it goes on (waiting) or has succeeded."""

    status: Status
    reason: StopReason | None = None
    detail: StopDetail | None = None
    explanation: str | None = None
    result: ResultPointer | None = None
    asks: bool = True


def reread(operation: Operation, observation: Observation, *, confirms: bool) -> Reread:
    """The stored answer's meaning. *confirms*: a failed answer wants a second one (X8): then the wait goes on."""
    verdict = observation.verdict
    if verdict in GOES_ON:
        return Reread(Status.WAITING)
    if verdict is Verdict.SUCCEEDED:
        if observation.result is None:
            return Reread(Status.ESCALATED, StopReason.INTEGRATION_FAILURE, StopDetail.SUCCEEDED_WITHOUT_RESULT, None)
        return Reread(Status.SUCCEEDED, result=observation.result)
    if verdict in _ENDS:
        if confirms and verdict is Verdict.FAILED:
            return Reread(Status.WAITING)
        status, reason = _ENDS[verdict]
        asks = not (verdict is Verdict.CANCELLED and operation.cancel_granted)
        text = observation.provider_error or observation.explanation
        return Reread(status, reason, observation.detail, text, asks=asks)
    detail = StopDetail.QUOTA_EXHAUSTED if verdict is Verdict.QUOTA_EXHAUSTED else observation.detail
    return Reread(Status.ESCALATED, _STOPS[verdict], detail, observation.explanation, observation.result)
