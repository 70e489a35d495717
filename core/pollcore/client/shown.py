"""What a caller is given of an operation: typed, without a secret, with links masked.

Job: records -> frozen values with times as aware datetimes. Must not know: the store, event loops.
Source: spec K4, K6, S3, S4, G5.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from pollcore.facts import Instant, Operation, ResultPointer, Status, to_datetime
from pollcore.views import result_view
from pollcore.waiting import CODES, WaitEnd, next_step

SEALED: Final = "sealed:unreadable"
"""The field that the store puts in place of a result that this process cannot open."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a success permits. *fields*: the provider's values, links without their query (they may be pre-signed)."""

    permits: str
    validated: bool
    """False: an operator accepted a result that failed validation."""
    qualifiers: tuple[str, ...]
    fields: dict[str, Any]
    sealed: bool = False
    """True: this process cannot open it; *fields* is empty."""


class OperationView(msgspec.Struct, frozen=True, kw_only=True):
    """One wait as its caller sees it. Texts in *last_known_state* and *result* are the provider's: data, no more."""

    operation_id: str
    provider: str
    account: str
    provider_job_id: str
    label: str | None
    status: Status
    last_known_state: str | None
    started_at: datetime
    deadline_at: datetime
    useful_until: datetime | None
    next_poll_at: datetime | None
    status_requests_used: int
    max_status_requests: int
    transport_failures_used: int
    max_transport_failures: int
    rate_limited_used: int
    max_rate_limited: int
    stop_reason: str | None
    stop_detail: str | None
    result: Result | None
    next: str
    """What the caller may do now and what not, in one sentence."""
    existed: bool = False
    """Of a submission: it was there before, nothing was added."""
    warnings: tuple[str, ...] = ()
    """Of a submission: what a submitter must know."""

    @property
    def is_end(self) -> bool:
        """The status is one of the five ends, and will not change."""
        return self.status.is_end


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a wait ended. *exit_code*: what `pollconsole wait` would end with."""

    ended: WaitEnd
    operation: OperationView
    exit_code: int
    next: str

    @property
    def succeeded(self) -> bool:
        """The job succeeded and its result is there."""
        return self.ended is WaitEnd.SUCCEEDED


def shown(
    operation: Operation, silent: int | None, *, existed: bool = False, warnings: tuple[str, ...] = ()
) -> OperationView:
    """The view of *operation*; *silent*: ms since a core last beat, for the sentence in `next`."""
    op, given = operation, operation.submitted
    return OperationView(
        operation_id=op.operation_id,
        provider=given.provider,
        account=given.account,
        provider_job_id=given.job_id,
        label=given.label,
        status=op.status,
        last_known_state=op.last_known_state,
        started_at=to_datetime(op.started_at),
        deadline_at=to_datetime(op.deadline_at),
        useful_until=_time(op.useful_until),
        next_poll_at=_time(op.next_poll_at),
        status_requests_used=op.status_requests_used,
        max_status_requests=op.max_status_requests,
        transport_failures_used=op.transport_failures_used,
        max_transport_failures=op.max_transport_failures,
        rate_limited_used=op.rate_limited_used,
        max_rate_limited=op.max_rate_limited,
        stop_reason=None if op.stop_reason is None else op.stop_reason.value,
        stop_detail=None if op.stop_detail is None else op.stop_detail.value,
        result=None if op.result is None else _result(op.result),
        next=next_step(op, silent),
        existed=existed,
        warnings=warnings,
    )


def outcome(ended: WaitEnd, operation: Operation, silent: int | None) -> Outcome:
    """The end of a wait, with the operation as it stands."""
    view = shown(operation, silent)
    return Outcome(ended=ended, operation=view, exit_code=CODES[ended], next=view.next)


def _time(at: Instant | None) -> datetime | None:
    return None if at is None else to_datetime(at)


def _result(found: ResultPointer) -> Result:
    sealed = SEALED in found.fields
    view = result_view(found, reveal=False)
    return Result(
        permits=found.permits,
        validated=found.validated,
        qualifiers=tuple(found.qualifiers),
        fields={} if sealed else view["fields"],
        sealed=sealed,
    )
