"""X8: a final answer that the contract wants confirmed by a second one.

Job: when a final answer still waits for its confirmation, and what a differing one means.
Must not know: delays, limits. What waits is `Memory.settling`, written by `outcome` alone.
"""

from __future__ import annotations

import msgspec

from pollcore.facts import (
    Decision,
    Escalate,
    Fault,
    Observation,
    Operation,
    Policy,
    StopReason,
    Verdict,
    Wait,
)

_SAYS_NOTHING_OF_THE_JOB = frozenset(
    {Verdict.TRANSPORT_FAILURE, Verdict.RATE_LIMITED, Verdict.QUOTA_EXHAUSTED, Verdict.DENIED}
)

_LIMITS = frozenset(
    {
        StopReason.PROVIDER_FAILURE,
        StopReason.RATE_LIMITED,
        StopReason.DEADLINE_EXCEEDED,
        StopReason.USEFULNESS_ENDED,
        StopReason.REQUEST_BUDGET_EXHAUSTED,
        StopReason.GUIDANCE_BEYOND_DEADLINE,
    }
)
"""Stops that an extension takes back: the confirmation is then still wanted."""


def final_key(reading: Observation) -> str:
    """What two final answers must agree in: `failed:ERROR`."""
    return f"{reading.verdict.value}:{reading.state if reading.state is not None else ''}"


def is_first(operation: Operation, reading: Observation, policy: Policy) -> bool:
    """A final answer that is to be confirmed, and nothing waits for confirmation yet."""
    return policy.schedule.settle_delay is not None and reading.verdict.is_final and operation.memory.settling is None


def contradicts(operation: Operation, reading: Observation) -> bool:
    """A final answer waits for confirmation and this one, about the job as well, differs from it."""
    waiting = operation.memory.settling
    if waiting is None or reading.continues:
        return False
    if reading.verdict is Verdict.WAITING:
        return True
    return reading.verdict.is_final and final_key(reading) != waiting


def unsettled(operation: Operation, reading: Observation) -> Operation:
    """*operation* for a stored answer that is read again: it cannot confirm, or contradict, what it itself said."""
    if reading.verdict in _SAYS_NOTHING_OF_THE_JOB or operation.memory.settling is None:
        return operation
    return msgspec.structs.replace(operation, memory=msgspec.structs.replace(operation.memory, settling=None))


def settling_after(
    operation: Operation, reading: Observation | Fault, decision: Decision, policy: Policy
) -> str | None:
    """`Memory.settling` after *decision*: kept while nothing was said about the job, and through a limit's stop."""
    waiting = operation.memory.settling
    if isinstance(reading, Fault) or reading.verdict in _SAYS_NOTHING_OF_THE_JOB:
        return waiting
    if reading.continues or reading.apart:
        return waiting
    if policy.schedule.settle_delay is None or not reading.verdict.is_final:
        return None
    goes_on = isinstance(decision, Wait) or (isinstance(decision, Escalate) and decision.reason in _LIMITS)
    return final_key(reading) if goes_on else None
