"""Which limit stops a wait: O7's order, once.

Job: spent budgets and passed times as stops. Must not know: answers, delays.
Source: spec O7, X1-X3, X6, B4, B5, T9.
"""

from __future__ import annotations

from pollcore.decide.cause import stop
from pollcore.decide.charge import RATE_VERDICTS, TIMED_OUT, Charge
from pollcore.facts import (
    DelaySource,
    Escalate,
    Fault,
    Moment,
    Observation,
    Operation,
    StopDetail,
    StopReason,
    Verdict,
    deadline_left,
    useful_left,
)


def spent_budget(
    operation: Operation, charge: Charge, reading: Observation | Fault | None, *, origin: str | None = None
) -> Escalate | None:
    """X6, B4, T7: a failure or rate-limit budget whose counter has reached its maximum.

    With both spent, the one that *reading* spent is named. A failure budget is `delivery_ambiguous` if the last
    request timed out after it may have been sent.
    """
    failures = charge.transport_failures_used >= operation.max_transport_failures
    limited = charge.rate_limited_used >= operation.max_rate_limited
    if limited and (not failures or (isinstance(reading, Observation) and reading.verdict in RATE_VERDICTS)):
        return stop(operation, StopReason.RATE_LIMITED, origin=origin)
    if not failures:
        return None
    if isinstance(reading, Fault):
        ambiguous = reading.may_have_been_sent and reading.kind in TIMED_OUT
        reason = StopReason.DELIVERY_AMBIGUOUS if ambiguous else StopReason.PROVIDER_FAILURE
        text = f"{reading.kind.value}: {reading.text}" if reading.text else reading.kind.value
        return stop(operation, reason, explanation=text, origin=origin)
    detail: StopDetail | None = None
    text = ""
    if reading is not None and reading.verdict is not Verdict.WAITING:
        detail, text = reading.detail, reading.explanation or f"HTTP {reading.http.code}"
    return stop(operation, StopReason.PROVIDER_FAILURE, detail, explanation=text or None, origin=origin)


def passed_limit(operation: Operation, now: Moment) -> StopReason | None:
    """X2, B5: the deadline, or `useful_until`, has come; the deadline is named first."""
    if deadline_left(operation, now) <= 0:
        return StopReason.DEADLINE_EXCEEDED
    useful = useful_left(operation, now)
    return StopReason.USEFULNESS_ENDED if useful is not None and useful <= 0 else None


def stop_of_limits(
    operation: Operation,
    now: Moment,
    *,
    explanation: str | None = None,
    origin: str | None = None,
    shared: DelaySource | None = None,
) -> Escalate | None:
    """O7: deadline; `useful_until`; request budget (X3: at once with the last permitted answer).

    Args:
        shared: The source of the wait that led into the limit, where no request came between.
    """
    reason = passed_limit(operation, now)
    if reason is None and operation.requests_left <= 0:
        reason = StopReason.REQUEST_BUDGET_EXHAUSTED
    if reason is None:
        return None
    return stop(operation, reason, explanation=explanation, origin=origin, shared=shared)
