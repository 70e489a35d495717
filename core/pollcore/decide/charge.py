"""What one reading costs: the counters after it.

Job: which budget an answer or a fault spends. Must not know: what is decided then. The request itself was counted
when it was sent (B3) and is not counted here.
Source: spec B2, B4, H5, T1, T7.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore.facts import Fault, FaultKind, Observation, Operation, StopDetail, Verdict

SPENDS_FAILURE_BUDGET: Final = frozenset(
    {
        FaultKind.CONNECTION_REFUSED,
        FaultKind.DNS,
        FaultKind.TLS,
        FaultKind.CONNECT_TIMEOUT,
        FaultKind.TIMEOUT,
        FaultKind.RESET,
        FaultKind.CUT_OFF,
    }
)
"""B4: what the provider's side failed to deliver.

Not in it: `not_sent` and `answer_lost` (ours: a pause or a crash of the worker says nothing about the provider; the
request stays counted), and the faults that stop at once as `integration_failure`.
"""

INTEGRATION_FAULTS: Final[dict[FaultKind, StopDetail]] = {
    FaultKind.TOO_LARGE: StopDetail.RESPONSE_TOO_LARGE,
    FaultKind.PROTOCOL: StopDetail.PROTOCOL_VIOLATION,
    FaultKind.FOREIGN_ORIGIN: StopDetail.FOREIGN_ORIGIN,
    FaultKind.INSECURE: StopDetail.FOREIGN_ORIGIN,
}
"""Faults that are no transport failure: trying again would bring the same (X5, H2, K3)."""

TIMED_OUT: Final = frozenset({FaultKind.TIMEOUT, FaultKind.CONNECT_TIMEOUT})
"""X6: `delivery_ambiguous` if such a request may have been sent."""

RATE_VERDICTS: Final = frozenset({Verdict.RATE_LIMITED, Verdict.QUOTA_EXHAUSTED})


class Charge(msgspec.Struct, frozen=True, gc=False):
    """Counters after a reading; never above their maxima (reliability I2)."""

    completed_polls: int
    transport_failures_used: int
    rate_limited_used: int
    rate_limited_in_a_row: int


def charge_of(operation: Operation, reading: Observation | Fault, *, counted: bool = True) -> Charge:
    """The counters after *reading*.

    Args:
        counted: False for what no status request brought: a submission's response, a stored answer read again.
    """
    polls, failures = operation.completed_polls, operation.transport_failures_used
    limited, in_a_row = operation.rate_limited_used, operation.rate_limited_in_a_row
    if not counted:
        return Charge(polls, failures, limited, in_a_row)
    failed = rate = False
    if isinstance(reading, Fault):
        failed = reading.kind in SPENDS_FAILURE_BUDGET
        # a fault is no answer: it neither adds to a row of 429s nor ends it
    else:
        failed = reading.verdict is Verdict.TRANSPORT_FAILURE
        rate = reading.verdict in RATE_VERDICTS
        in_a_row = in_a_row + 1 if rate else 0
    return Charge(
        polls + 1,
        min(failures + failed, max(failures, operation.max_transport_failures)),
        min(limited + rate, max(limited, operation.max_rate_limited)),
        in_a_row,
    )
